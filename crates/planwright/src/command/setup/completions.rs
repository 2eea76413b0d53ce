//! `completions`: the script that teaches a shell our commands.

use crate::command::args::Cli;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use clap::CommandFactory as _;
use clap_complete::Shell;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(printer: Printer, args: &Args) -> Result<Exit, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "planwright", &mut script);
    printer.raw(&script)?;
    Ok(Exit::Done)
}
