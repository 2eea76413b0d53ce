//! Measures the speed of runs beside the limit of the disk. Every figure comes from the same run on
//! the same file system.
//!
//! `cargo xtask bench` starts it. It is a program of its own so that `xtask`, which everything else
//! waits for, builds without the engine.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's tool talks to the terminal"
)]

mod client;
mod disk;
mod figures;
mod gateway;
mod inbox;
mod mcp;
mod measure;
mod planning;
mod postgres;
mod seen;
mod service;
mod shapes;
mod table;
mod workers;

use anyhow::{Result, bail};

/// The program's own allocator, so that the bench measures what users run.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const USAGE: &str = "\
usage: cargo xtask bench [--dir DIR]   speed, next to the disk's own limit, on DIR's file system
       cargo xtask bench chain         a chain of steps, in a store in use and on a busy machine too
       cargo xtask bench mcp           what a call of an MCP server costs above the server's own round trip,
                                       and one through the gateway
       cargo xtask bench gateway       calls through the gateway: one by one, 100 at once, of 8 clients at once
       cargo xtask bench planning      what a planner's prompt costs before the model is asked
       cargo xtask bench service       how soon listeners and approvals are served, what waiting costs
       cargo xtask bench inbox         what looking costs when most plans are over
       cargo xtask bench postgres [PLANS]
                                       runs on a store in Postgres, next to the limit of the database; what looking costs
                                       beside 100,000 plans, or so many
       cargo xtask bench workers       steps of 1, 2 and 4 workers, notices over RabbitMQ and Redis, an approval at another
                                       service, on a store in Postgres
       cargo xtask bench seen          what looking costs at a plan over servers whose tools were seen
";

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        [] => figures::run_all(None),
        ["--dir", dir] => figures::run_all(Some(dir.as_ref())),
        ["chain"] => figures::run_chain(),
        ["mcp"] => figures::run_mcp(),
        ["gateway"] => figures::run_gateway(),
        ["planning"] => figures::run_planning(),
        ["service"] => figures::run_service(),
        ["inbox"] => figures::run_inbox(),
        ["seen"] => figures::run_seen(),
        ["workers"] => workers::run(),
        ["postgres"] => postgres::run(postgres::MANY),
        ["postgres", plans] => postgres::run(plans.parse()?),
        // Processes that a measurement starts.
        ["bench-echo"] => figures::serve_echo(),
        ["bench-pass"] => mcp::pass_on(),
        ["bench-seen", starts] => figures::serve_seen(starts.as_ref()),
        ["bench-spin"] => loop {
            std::hint::spin_loop();
        },
        ["bench-one", shape, dir] => figures::run_one(shape, dir.as_ref(), None),
        ["bench-one", shape, dir, url] => figures::run_one(shape, dir.as_ref(), Some(url)),
        _ => {
            eprint!("{USAGE}");
            bail!("unknown benchmark {args:?}")
        }
    }
}
