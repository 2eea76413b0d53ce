//! `export`: a stored plan as a file.

use crate::exit::{Exit, Failure};
use crate::plan_source::load_for_reading;
use crate::projections::markdown;
use crate::wire_up::{Access, Setting};
use clap::ValueEnum;
use planwright_adapters::files::atomic_write;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Json,
    Md,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    #[arg(long, value_enum, default_value = "json")]
    format: Format,
    /// An earlier version; default: the current one.
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// Where to; default: stdout.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let app = setting.open(Access::Read)?;
    let (review, _) = load_for_reading(&app, &args.plan).await?;
    let version = match args.version {
        None => review.current(),
        Some(number) => review.version(number).ok_or_else(|| {
            let last = review.current().number;
            Failure::usage(format!("plan `{}` has no version {number}", review.id()))
                .hint(format!("its versions are 1 to {last}"))
        })?,
    };
    let text = match args.format {
        Format::Json => {
            let json = serde_json::to_string_pretty(&*version.document);
            json.map_err(|error| Failure::new(Exit::Store, error.to_string()))? + "\n"
        }
        Format::Md => {
            markdown(&app, &review, version).await.map_err(|problem| Failure::new(Exit::Store, problem))?
        }
    };
    match &args.output {
        None => setting.printer.raw(text.as_bytes())?,
        Some(path) => {
            atomic_write(path, text.as_bytes())
                .map_err(|error| Failure::usage(crate::exit::chain(&error)))?;
        }
    }
    Ok(Exit::Done)
}
