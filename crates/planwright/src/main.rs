//! The binary: command line, configuration, wiring. It decides nothing; the core does.

mod args;
mod changes;
mod chat;
mod command;
mod config;
mod consent;
mod dag;
mod editor;
mod execution;
mod executor_table;
mod exit;
mod late;
mod model_table;
mod no_model;
mod passphrase;
mod plan_file;
mod plan_source;
mod planning;
mod printer;
mod progress;
mod projections;
mod prompt_files;
mod questions;
mod quiet_panics;
mod reflection;
mod secret_table;
mod servers;
mod spinner;
mod standing;
mod target;
mod telemetry;
mod tending;
mod trusting;
mod variables;
mod waiting;
mod webhook_table;
mod wire_up;

use clap::Parser as _;
use std::process::ExitCode;

/// A run makes and drops many small values.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let cli = args::Cli::parse();
    let printer = printer::Printer::new(cli.global.json, cli.global.no_color);
    let exit = command::dispatch(cli, printer).unwrap_or_else(|failure| {
        printer.failure(&failure);
        failure.exit
    });
    ExitCode::from(exit.code())
}
