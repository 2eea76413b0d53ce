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
mod tui;
mod workspace;

use std::process::ExitCode;

/// Carries out the command line of this process.
pub fn run() -> ExitCode {
    command::setup::completion::answer_shell();
    let (cli, plan) = match command::args::read_command_line() {
        Ok(read) => read,
        Err(error) => return report_usage(&error),
    };
    descriptors::raise_limit();
    let printer = terminal::printer::Printer::new(cli.global.json, cli.global.no_color);
    let exit = command::dispatch(cli, printer).unwrap_or_else(|failure| {
        let failure = failure.about_plan(plan.as_deref());
        printer.report_failure(&failure);
        failure.exit
    });
    telemetry::stderr::flush();
    ExitCode::from(exit.code())
}

/// Prints what is wrong with the command line. Programs that asked for JSON get it as one document.
fn report_usage(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    let exit = exit::Exit::Usage.code();
    // Help and versions are no errors, and are printed as they are.
    if !error.use_stderr() || !wants_json {
        drop(error.print());
        return ExitCode::from(if error.use_stderr() { exit } else { 0 });
    }
    drop(error.print());
    let text = error.render().to_string();
    let message = text.lines().next().unwrap_or_default();
    let failure = exit::Failure::usage(message.trim_start_matches("error: "));
    let printer = terminal::printer::Printer::new(true, true);
    drop(printer.document(&failure.document()));
    ExitCode::from(exit)
}
