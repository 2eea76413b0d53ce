//! What developers run: `check` is what CI runs, `prove` the same proofs for longer, `bench`
//! measures.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool talks to the terminal"
)]

mod bench;
mod census;
mod check;
mod model;
mod peers;
mod suites;

use anyhow::{Result, bail};

/// The program's own allocator, so that the bench measures what users run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: cargo xtask check          format, lints, all tests, documentation: what CI runs
       cargo xtask peers          install the MCP servers that the tests call; check does it by itself
       cargo xtask model [--port N]
                                  a small language model on this machine, which needs no key
       cargo xtask census [--dir DIR] [--list | --json]
                                  counts over the source code at DIR: names, types, import cycles, comments
       cargo xtask prove          the kill test and the simulations, at a length for nights
       cargo run --release -p xtask -- bench [--dir DIR]
                                  speed, next to the disk's own limit, on DIR's file system
       cargo run --release -p xtask -- bench mcp
                                  what a call of an MCP server costs above the server's own round trip
       cargo run --release -p xtask -- bench planning
                                  what a planner's prompt costs before the model is asked
       cargo run --release -p xtask -- bench service
                                  how soon listeners and approvals are served, what waiting costs
       cargo run --release -p xtask -- bench inbox
                                  what looking costs when most plans are over
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["check"] => check::run(),
        ["peers"] => peers::install(),
        ["model"] => model::serve(None),
        ["model", "--port", port] => model::serve(Some(port)),
        ["census", rest @ ..] => census::run(rest),
        ["prove"] => check::prove(),
        ["bench"] => bench::run(None),
        ["bench", "--dir", dir] => bench::run(Some(dir.as_ref())),
        ["bench", "mcp"] => bench::run_mcp(),
        ["bench", "planning"] => bench::run_planning(),
        ["bench", "service"] => bench::run_service(),
        ["bench", "inbox"] => bench::run_inbox(),
        ["bench-echo"] => bench::serve_echo(),
        ["bench-one", shape, dir] => bench::run_one(shape, dir.as_ref()),
        _ => {
            eprint!("{USAGE}");
            bail!("unknown command {args:?}")
        }
    }
}
