//! Everything that must hold before a change lands, cheapest first.

use anyhow::{Context as _, Result, ensure};
use std::process::Command;
use std::time::Instant;

/// Runs every check in order and stops at the first that fails.
pub(crate) fn run() -> Result<()> {
    let steps: &[(&str, &[&str], &[(&str, &str)])] = &[
        ("format", &["fmt", "--all", "--check"], &[]),
        ("lints", &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"], &[]),
        // Build the binary first: the kill test runs the real program.
        ("build", &["build", "--workspace", "--bins"], &[]),
        ("tests", &["test", "--workspace", "--no-fail-fast"], &[]),
        ("documentation", &["doc", "--workspace", "--no-deps"], &[("RUSTDOCFLAGS", "-D warnings")]),
    ];
    for (name, args, environment) in steps {
        let started = Instant::now();
        println!("== {name}: cargo {}", args.join(" "));
        let status = Command::new(env!("CARGO"))
            .args(*args)
            .envs(environment.iter().copied())
            .status()
            .with_context(|| format!("cannot run cargo for {name}"))?;
        ensure!(status.success(), "{name} failed");
        println!("== {name}: ok in {:.0} s", started.elapsed().as_secs_f64());
    }
    Ok(())
}
