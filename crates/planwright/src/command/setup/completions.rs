//! `completions`: the script that teaches a shell our commands, and to ask for names.

use crate::command::setup::completion::VARIABLE;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use clap_complete::Shell;
use clap_complete::env::Shells;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(printer: Printer, args: &Args) -> Result<Exit, Failure> {
    let shells = Shells::builtins();
    let name = args.shell.to_string();
    let Some(shell) = shells.completer(&name) else {
        return Err(Failure::usage(format!("there is no completion for {name}")));
    };
    let mut script = Vec::new();
    let written = shell.write_registration(
        VARIABLE,
        "planwright",
        "planwright",
        "planwright",
        &mut script,
    );
    written.map_err(|error| Failure::new(Exit::RunFailed, error.to_string()))?;
    printer.raw(&script)?;
    Ok(Exit::Done)
}
