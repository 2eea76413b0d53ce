//! The binary: command line, configuration, wiring. It decides nothing; the core does.

mod chat;
mod command;
mod config;
mod descriptors;
mod exit;
mod telemetry;
mod terminal;
mod workspace;

use clap::Parser as _;
use std::process::ExitCode;

/// A run makes and drops many small values.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = command::args::Cli::parse();
    descriptors::raise_limit();
    let printer = terminal::printer::Printer::new(cli.global.json, cli.global.no_color);
    let exit = command::dispatch(cli, printer).unwrap_or_else(|failure| {
        printer.failure(&failure);
        failure.exit
    });
    ExitCode::from(exit.code())
}
