//! Everything that must hold before a change lands, cheapest first.

use anyhow::{Context as _, Result, ensure};
use std::process::Command;
use std::time::Instant;

/// One call of cargo.
struct Step {
    name: &'static str,
    args: &'static [&'static str],
    environment: &'static [(&'static str, &'static str)],
}

/// What CI runs. The binary is built first: the kill test runs the real program.
const CHECK: &[Step] = &[
    Step {
        name: "format",
        args: &["fmt", "--all", "--check"],
        environment: &[],
    },
    Step {
        name: "lints",
        args: &[
            "clippy",
            "--workspace",
            "--all-targets",
            "--",
            "-D",
            "warnings",
        ],
        environment: &[],
    },
    Step {
        name: "documentation",
        args: &["doc", "--workspace", "--no-deps"],
        environment: &[("RUSTDOCFLAGS", "-D warnings")],
    },
    Step {
        name: "build",
        args: &["build", "--workspace", "--bins"],
        environment: &[],
    },
    Step {
        name: "build of the tests",
        args: &["test", "--workspace", "--no-run"],
        environment: &[],
    },
];

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
];

/// Runs every check in order and stops at the first that fails. The tests need servers that others
/// wrote; those are installed meanwhile: that waits for the network, and building for the
/// processor.
pub(crate) fn run() -> Result<()> {
    std::thread::scope(|scope| {
        let peers = scope.spawn(crate::peers::install);
        CHECK.iter().try_for_each(Step::run)?;
        peers
            .join()
            .map_err(|_| anyhow::anyhow!("the installation of the peers panicked"))?
    })?;
    crate::lanes::run()
}

/// Runs the long proofs: hours, not minutes.
pub(crate) fn prove() -> Result<()> {
    crate::peers::install()?;
    PROVE.iter().try_for_each(Step::run)
}

impl Step {
    fn run(&self) -> Result<()> {
        let Self {
            name,
            args,
            environment,
        } = self;
        let started = Instant::now();
        println!("== {name}: cargo {}", args.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(*args)
            .envs(environment.iter().copied())
            .status()
            .with_context(|| format!("cannot run cargo for {name}"))?;
        ensure!(status.success(), "{name} failed");
        println!("== {name}: ok in {:.0} s", started.elapsed().as_secs_f64());
        Ok(())
    }
}
