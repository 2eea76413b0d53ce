//! What developers run: `check` is what CI runs, `prove` the same proofs for longer, `bench`
//! measures.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool talks to the terminal"
)]

mod census;
mod check;
mod dist;
mod fuzz;
mod model;
mod mutants;
mod output;
mod packages;
mod peers;
mod suites;
mod web;

use anyhow::{Context as _, Result, bail, ensure};
use std::process::Command;

const USAGE: &str = "\
usage: cargo xtask check          format, lints, all tests, documentation: what CI runs
       cargo xtask web            build the page that the service shows; check does it by itself
       cargo xtask peers          install the MCP servers that the tests call; check does it by itself
       cargo xtask model [--port N]
                                  a small language model on this machine, which needs no key
       cargo xtask census [--dir DIR] [--list | --json]
                                  counts over the source code at DIR: names, types, import cycles, comments
       cargo xtask fuzz [TARGET [--seconds N | FILE]]
                                  what strangers write: all targets shortly, one for longer, or one input again
       cargo xtask fuzz merge TARGET
                                  adds what was found to the corpus, as far as it reaches something new
       cargo xtask mutants [SHARD/OF]
                                  the rules of runs and reviews, broken one by one: do the tests notice?
       cargo xtask prove [NAME]   kills, simulations, load, chaos, fuzzing and mutants, at a length for nights; or one of
                                  simulated, histories, requests, model, kills, postgres, distributed, soak, chaos, disks,
                                  clocks, servers, goals
       cargo xtask dist [--program PATH]
                                  the program as people install it, in target/dist: static binary, tar.gz, deb, wheel, npm
                                  package, checksums, SBOM; of the program at PATH instead of one that it builds
       cargo xtask dist check [--program PATH]
                                  installs each package of target/dist, or of PATH, into an empty prefix and runs the demo
       cargo xtask bench [--dir DIR | mcp | gateway | planning | service | inbox | postgres [PLANS] | workers | seen]
                                  speed, next to the disk's own limit, on DIR's file system
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["check"] => check::run(),
        ["web"] => web::build(),
        ["peers"] => peers::install(),
        ["model"] => model::serve(None),
        ["model", "--port", port] => model::serve(Some(port)),
        ["census", rest @ ..] => census::run(rest),
        ["fuzz", rest @ ..] => fuzz::run(rest),
        ["mutants"] => mutants::run(None),
        ["mutants", shard] => mutants::run(Some(shard)),
        ["prove"] => check::prove(),
        ["prove", name] => check::prove_one(name),
        ["dist", rest @ ..] => dist::run(rest),
        ["bench", rest @ ..] => run_benchmarks(rest),
        _ => {
            eprint!("{USAGE}");
            bail!("unknown command {args:?}")
        }
    }
}

/// Runs the benchmarks, which are a program of their own: they need the engine, and everything else
/// here would wait until it is built.
fn run_benchmarks(args: &[&str]) -> Result<()> {
    match args.first() {
        Some(&"postgres") => packages::ensure_database()?,
        Some(&"workers") => packages::ensure_servers()?,
        _ => {}
    }
    let mut bench = Command::new(env!("CARGO"));
    bench
        .args([
            "run",
            "--release",
            "--quiet",
            "-p",
            "planwright-bench",
            "--",
        ])
        .args(args);
    let status = bench.status().context("cannot run cargo for the bench")?;
    ensure!(status.success(), "the bench ended with {status}");
    Ok(())
}
