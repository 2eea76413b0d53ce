//! Everything that must hold before a change lands.
//!
//! Lints, tests and the binary come out of one build: the linter is a compiler, and cargo takes it
//! as the compiler of the workspace's own crates. Documentation, the core for WebAssembly and the
//! fuzzer are made while the tests run, because many of those wait for something else than a
//! processor.

use crate::dist;
use crate::fuzz::{self, Fuzzer, Length};
use crate::mutants;
use crate::output::{Shown, relay_output};
use crate::packages;
use crate::suites::{self, Failure, Suite, read_program, read_suites, run_suites};
use crate::web;
use anyhow::{Context as _, Result, anyhow, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// One call of cargo.
struct Step {
    name: &'static str,
    args: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

const FORMAT: Step = Step {
    name: "format",
    args: &["fmt", "--all", "--check"],
    environment: &[],
};

/// Everything at once: a build of the programs alone would choose other features for the
/// dependencies, and compile them a second time.
const BUILD: Step = Step {
    name: "lints and build",
    args: &[
        "test",
        "--workspace",
        "--all-targets",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ],
    environment: &[],
};

/// The documentation and its examples. Of the whole workspace: with fewer crates cargo chooses other
/// features for the dependencies, and compiles them once more.
const DOCUMENTATION: Step = Step {
    name: "documentation",
    args: &["test", "--doc", "--workspace"],
    environment: &[],
};

/// A dependency that needs an operating system does not compile there.
const CORE_FOR_WASM: Step = Step {
    name: "core for WebAssembly",
    args: &["check", "-p", "planwright-core", "--target", WASM],
    environment: &[],
};

const WASM: &str = "wasm32-unknown-unknown";

/// Suites that run at once beyond one per processor: each has threads of its own, but most of them
/// wait for timers, for servers and for the disk.
const SUITES_MORE_THAN_PROCESSORS: usize = 1;

/// The proofs with servers of strangers.
const STRANGERS: [&str; 2] = ["servers", "goals"];

/// The same proofs at a length for nights.
const PROVE: &[Step] = &[
    Step {
        name: STRANGERS[0],
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "real",
            "strangers",
            "--",
            "--ignored",
            "--nocapture",
        ],
        environment: &[],
    },
    Step {
        name: STRANGERS[1],
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "real",
            "goals",
            "--",
            "--ignored",
            "--nocapture",
        ],
        environment: &[],
    },
    Step {
        name: "simulated histories",
        args: &[
            "test",
            "--release",
            "-p",
            "planwright-core",
            "--test",
            "it",
            "run_",
        ],
        environment: &[
            ("PLANWRIGHT_SIMULATIONS", "5000000"),
            ("PROPTEST_CASES", "100000"),
        ],
    },
    Step {
        name: "histories of consent",
        args: &[
            "test",
            "--release",
            "-p",
            "planwright-core",
            "--test",
            "it",
            "consent_histories",
        ],
        environment: &[("PLANWRIGHT_CONSENT_HISTORIES", "1000000")],
    },
    Step {
        name: "histories of consent with executors and adjustments",
        args: &[
            "test",
            "--release",
            "-p",
            "planwright-engine",
            "--test",
            "it",
            "consent_lives",
        ],
        environment: &[("PLANWRIGHT_CONSENT_HISTORIES", "100000")],
    },
    Step {
        name: "requests",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "service",
            "tried",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_TRIES", "4000"), ("PLANWRIGHT_TRY_SEED", "new")],
    },
    Step {
        name: "model",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "model",
            "goals",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_MODEL_GOALS", "10")],
    },
    Step {
        name: "kills",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "kill",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_KILL_CYCLES", "20000")],
    },
    Step {
        name: "postgres",
        args: &[
            "test",
            "-p",
            "planwright-adapters",
            "--test",
            "postgres",
            "processes",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_POSTGRES_APPENDS", "12500")],
    },
    Step {
        name: "distributed",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "distributed",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_FAULTS", "5000")],
    },
    // The real program at length, one test after the other: each wants the machine for itself.
    Step {
        name: "soak",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "endurance",
            "soak",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_SOAK_SECONDS", "1200")],
    },
    Step {
        name: "chaos",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "endurance",
            "chaos",
            "--",
            "--nocapture",
        ],
        environment: &[
            ("PLANWRIGHT_CHAOS_SECONDS", "900"),
            ("PLANWRIGHT_CHAOS_SEED", "new"),
        ],
    },
    Step {
        name: "disks that fail",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "endurance",
            "disk",
            "--",
            "--nocapture",
        ],
        environment: &[("PLANWRIGHT_DISK_TRIES", "120")],
    },
    Step {
        name: "clocks that jump",
        args: &[
            "test",
            "-p",
            "planwright",
            "--test",
            "endurance",
            "clock",
            "--",
            "--nocapture",
        ],
        environment: &[
            ("PLANWRIGHT_CLOCK_SECONDS", "300"),
            ("PLANWRIGHT_CLOCK_SEED", "new"),
        ],
    },
];

/// Runs every check. The tests need servers that others wrote; those are installed meanwhile: that
/// waits for the network, and building for the processor.
pub(crate) fn run() -> Result<()> {
    let started = Instant::now();
    FORMAT.run()?;
    packages::ensure_compiler()?;
    let lints = Lints::find()?;
    let messages = std::thread::scope(|scope| {
        let tools = scope.spawn(install_tools);
        // The program takes the page in, so it is built first.
        web::check()?;
        let messages = lints.read_output(&BUILD)?;
        tools
            .join()
            .map_err(|_| anyhow!("the installation of the peers panicked"))??;
        anyhow::Ok(messages)
    })?;
    let program = read_program(&messages, "planwright")?;
    let mut suites = interleave(web::browser_suites(&program)?, read_suites(&messages)?);
    let tool = read_program(&messages, "xtask")?;
    suites.push(dist::trial_suite(&tool, &program)?);
    println!("== tests: {} suites", suites.len());
    let (mut failures, beside) = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run_beside(&lints));
        let failures = run_suites(suites, count_suites_at_once());
        (failures, beside.join())
    });
    let beside = beside.map_err(|_| anyhow!("what runs beside the tests panicked"))?;
    failures.extend(beside.fuzzers?);
    suites::report(&suites::retry_alone(failures))?;
    let failed = beside.failed;
    ensure!(failed.is_empty(), "failed: {}", failed.join("; "));
    println!("== check: ok in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// Puts each of the first suites before as many of the others as run beside it: browsers take much
/// of the machine, and two of them would wait for each other.
fn interleave(first: Vec<Suite>, others: Vec<Suite>) -> Vec<Suite> {
    let mut others = others.into_iter();
    let mut suites = Vec::new();
    for suite in first {
        suites.push(suite);
        suites.extend(others.by_ref().take(count_suites_at_once() - 1));
    }
    suites.extend(others);
    suites
}

fn count_suites_at_once() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    processors + SUITES_MORE_THAN_PROCESSORS
}

fn install_tools() -> Result<()> {
    packages::ensure_target(WASM)?;
    packages::ensure_test_programs()?;
    crate::peers::install()
}

/// What came of that which runs beside the tests.
struct Beside {
    /// The names of the calls of cargo that failed.
    failed: Vec<String>,
    fuzzers: Result<Vec<Failure>>,
}

/// Runs the calls of cargo that need no test program, and then the fuzzer. One after the other: cargo
/// would let the second wait in any case, and a fuzzer needs a processor all the time.
fn run_beside(lints: &Lints) -> Beside {
    Beside {
        failed: run_cargo_beside(lints),
        fuzzers: run_fuzzers(),
    }
}

fn run_fuzzers() -> Result<Vec<Failure>> {
    let suites = Fuzzer::build("dev")?.suites(Length::Check)?;
    let suites = suites.into_iter().map(Suite::quiet).collect();
    Ok(run_suites(suites, 1))
}

/// Returns the names of the calls that failed.
fn run_cargo_beside(lints: &Lints) -> Vec<String> {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut documentation = lints.command(&DOCUMENTATION);
    documentation
        .env("RUSTDOC", xtask.join("rustdoc"))
        .env("PLANWRIGHT_DOCUMENTATION", xtask.join("../target/doc"));
    let mut core_for_wasm = CORE_FOR_WASM.command();
    // The macros that it needs are there from the build, as long as both are built in the same way.
    build_quickly(&mut core_for_wasm);
    let commands = [
        (DOCUMENTATION.name, documentation),
        (CORE_FOR_WASM.name, core_for_wasm),
    ];
    let mut failed = Vec::new();
    for (name, command) in commands {
        let started = Instant::now();
        match relay_output(name, command, Shown::AsItRuns) {
            Ok(output) if output.succeeded => {
                println!("== {name}: ok in {:.0} s", started.elapsed().as_secs_f64());
            }
            Ok(output) => {
                output.print_end(name);
                failed.push(name.to_owned());
            }
            Err(error) => failed.push(format!("{name}: {error:#}")),
        }
    }
    failed
}

/// The linter, in place of the compiler of the workspace's crates: `cargo clippy` does the same, but
/// makes nothing that can be run, and compiles every dependency a second time for it.
struct Lints {
    driver: PathBuf,
}

impl Lints {
    fn find() -> Result<Self> {
        let output = Command::new("rustc").args(["--print", "sysroot"]).output();
        let output = output.context("cannot run rustc")?;
        let sysroot = String::from_utf8(output.stdout).context("the path of rustc is no text")?;
        let driver = PathBuf::from(sysroot.trim()).join("bin/clippy-driver");
        ensure!(
            driver.is_file(),
            "{} is missing: rustup component add clippy",
            driver.display()
        );
        Ok(Self { driver })
    }

    fn command(&self, step: &Step) -> Command {
        let mut command = step.command();
        build_quickly(&mut command)
            .env("RUSTC_WORKSPACE_WRAPPER", &self.driver)
            // As `cargo clippy -- -D warnings` hands them over: this separator, after each argument.
            .env(
                "CLIPPY_ARGS",
                "-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__",
            );
        command
    }

    /// Runs a call and returns its standard output.
    fn read_output(&self, step: &Step) -> Result<String> {
        let started = step.announce();
        let mut command = self.command(step);
        let output = command.stderr(Stdio::inherit()).output();
        let output = output.with_context(|| format!("cannot run cargo for {}", step.name))?;
        ensure!(output.status.success(), "{} failed", step.name);
        step.report(started);
        String::from_utf8(output.stdout).context("cargo says something that is no text")
    }
}

/// Lets cargo do what this build needs, and no more: a panic says where it was without debug
/// information, and a first build has nothing to go on from.
pub(crate) fn build_quickly(command: &mut Command) -> &mut Command {
    command.env("CARGO_PROFILE_DEV_DEBUG", "0");
    // Of an optimised crate's sixteen parts, each is optimised against the others: that takes half as long again, and
    // makes nothing of ours faster. Four parts are enough for two processors.
    command
        .env("CARGO_PROFILE_DEV_LTO", "off")
        .env("CARGO_PROFILE_DEV_CODEGEN_UNITS", "4");
    let earlier = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/debug/incremental");
    if !has_compiled_us(&earlier) && std::env::var_os("CARGO_INCREMENTAL").is_none() {
        command.env("CARGO_INCREMENTAL", "0");
    }
    command
}

/// cargo keeps the state of each crate in a folder of its own. This program is built first.
fn has_compiled_us(folder: &Path) -> bool {
    let crates = std::fs::read_dir(folder).into_iter().flatten().flatten();
    crates
        .map(|entry| entry.file_name())
        .any(|name| name.to_string_lossy().starts_with("planwright_"))
}

/// Runs one of the long proofs, named by the first word of its name.
pub(crate) fn prove_one(name: &str) -> Result<()> {
    let step = PROVE
        .iter()
        .find(|step| step.name.split(' ').next() == Some(name));
    let names = || PROVE.iter().filter_map(|step| step.name.split(' ').next());
    let step = step.with_context(|| {
        let names: Vec<&str> = names().collect();
        format!("there is no proof {name}: there are {}", names.join(", "))
    })?;
    install_tools()?;
    if STRANGERS.contains(&name) {
        crate::peers::install_strangers()?;
    }
    step.run()
}

/// Runs the long proofs: hours, not minutes.
pub(crate) fn prove() -> Result<()> {
    crate::peers::install()?;
    crate::peers::install_strangers()?;
    PROVE.iter().try_for_each(Step::run)?;
    fuzz::prove()?;
    mutants::prove()
}

impl Step {
    fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command
            .args(self.args)
            .envs(self.environment.iter().copied());
        command
    }

    fn run(&self) -> Result<()> {
        self.finish(&mut self.command())
    }

    fn finish(&self, command: &mut Command) -> Result<()> {
        let started = self.announce();
        let status = command
            .status()
            .with_context(|| format!("cannot run cargo for {}", self.name))?;
        ensure!(status.success(), "{} failed", self.name);
        self.report(started);
        Ok(())
    }

    fn announce(&self) -> Instant {
        println!("== {}: cargo {}", self.name, self.args.join(" "));
        Instant::now()
    }

    fn report(&self, started: Instant) {
        println!(
            "== {}: ok in {:.0} s",
            self.name,
            started.elapsed().as_secs_f64()
        );
    }
}
