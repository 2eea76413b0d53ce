//! Everything that must hold before a change lands.
//!
//! Lints, tests and the binary come out of one build: the linter is a compiler, and cargo takes it
//! as the compiler of the workspace's own crates. Documentation and the core for WebAssembly are
//! made while the tests run, because many of those wait for something else than a processor.

use crate::cxx;
use crate::fuzz::{self, Fuzzer, Length};
use crate::mutants;
use crate::suites::{read_program, read_suites, relay_output, run_suites};
use crate::web;
use anyhow::{Context as _, Result, anyhow, ensure};
use std::path::PathBuf;
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

/// Of the crates that have examples: cargo compiles every crate it is asked about once more for this.
const DOC_TESTS: Step = Step {
    name: "doc tests",
    args: &[
        "test",
        "--doc",
        "-p",
        "planwright-core",
        "-p",
        "planwright-engine",
    ],
    environment: &[],
};

/// What is made beside the tests, by the compiler alone.
const BESIDE: &[Step] = &[
    Step {
        name: "documentation",
        args: &["doc", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    // A dependency that needs an operating system does not compile there.
    Step {
        name: "core for WebAssembly",
        args: &["check", "-p", "planwright-core", "--target", WASM],
        environment: &[],
    },
];

const WASM: &str = "wasm32-unknown-unknown";

/// Suites that run at once beyond one per processor: each has threads of its own, but most of them
/// wait for timers, for servers and for the disk.
const SUITES_MORE_THAN_PROCESSORS: usize = 1;

/// The same proofs at a length for nights.
const PROVE: &[Step] = &[
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
    cxx::ensure_compiler()?;
    let lints = Lints::find()?;
    // The program takes the page in, so it is built first.
    web::check()?;
    let messages = std::thread::scope(|scope| {
        let tools = scope.spawn(install_tools);
        let messages = lints.read_output(&BUILD)?;
        tools
            .join()
            .map_err(|_| anyhow!("the installation of the peers panicked"))??;
        anyhow::Ok(messages)
    })?;
    let mut suites = read_suites(&messages)?;
    suites.insert(
        0,
        web::browser_suite(&read_program(&messages, "planwright")?)?,
    );
    // Last: they take as long as they are told, and need a processor all the time.
    suites.extend(Fuzzer::build("dev")?.suites(Length::Check)?);
    println!("== tests: {} suites", suites.len());
    let failed = std::thread::scope(|scope| {
        let beside = scope.spawn(|| run_beside(&lints));
        let mut failed = run_suites(suites, count_suites_at_once());
        failed.extend(
            beside
                .join()
                .unwrap_or_else(|_| vec!["what runs beside the tests".to_owned()]),
        );
        failed
    });
    ensure!(failed.is_empty(), "failed: {}", failed.join("; "));
    println!("== check: ok in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn count_suites_at_once() -> usize {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    processors + SUITES_MORE_THAN_PROCESSORS
}

fn install_tools() -> Result<()> {
    install_wasm_target()?;
    web::ensure_browser()?;
    crate::peers::install()
}

/// Installs the standard library for WebAssembly. Toolchains that rustup did not install have to
/// bring it.
fn install_wasm_target() -> Result<()> {
    let rustup = Command::new("rustup")
        .args(["target", "add", WASM])
        .stderr(Stdio::null())
        .status();
    match rustup {
        Ok(status) => ensure!(status.success(), "rustup cannot install {WASM}"),
        Err(_) => println!("== {WASM}: there is no rustup, the toolchain must have it"),
    }
    Ok(())
}

/// Runs the calls of cargo that need no test program, and returns the names of those that failed.
/// One after the other: cargo would let the second wait in any case.
fn run_beside(lints: &Lints) -> Vec<String> {
    let doc_tests = (DOC_TESTS.name, lints.command(&DOC_TESTS));
    let others = BESIDE.iter().map(|step| (step.name, step.command()));
    let mut failed = Vec::new();
    for (name, command) in std::iter::once(doc_tests).chain(others) {
        let started = Instant::now();
        match relay_output(name, command) {
            Ok(true) => println!("== {name}: ok in {:.0} s", started.elapsed().as_secs_f64()),
            Ok(false) => failed.push(name.to_owned()),
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
        command
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
    step.run()
}

/// Runs the long proofs: hours, not minutes.
pub(crate) fn prove() -> Result<()> {
    crate::peers::install()?;
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
