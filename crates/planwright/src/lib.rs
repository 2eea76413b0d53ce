//! The program: command line, configuration, wiring. It decides nothing; the core does.

mod chat;
mod command;
mod config;
mod descriptors;
mod exit;
pub mod fuzzing;
mod telemetry;
mod terminal;
mod trust;
mod workspace;

use clap::Parser as _;
use std::process::ExitCode;

/// Carries out the command line of this process.
pub fn run() -> ExitCode {
    let cli = command::args::Cli::parse();
    descriptors::raise_limit();
    let printer = terminal::printer::Printer::new(cli.global.json, cli.global.no_color);
    let exit = command::dispatch(cli, printer).unwrap_or_else(|failure| {
        printer.failure(&failure);
        failure.exit
    });
    ExitCode::from(exit.code())
}
