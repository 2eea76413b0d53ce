//! `store export`: the journal of a run as a file that can be taken away.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use crate::workspace::run_selector::select_run_for_reading;
use planwright_core::journal::StreamName;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A run, or a plan: then its latest run.
    #[arg(value_name = "ID")]
    run: String,
    /// The plan's own journal: versions, decisions, runs.
    #[arg(long)]
    plan: bool,
    /// The file to make; default: the id with `.sealed.jsonl`. It must not be there yet.
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let Some(store) = &app.sqlite else {
        return Err(Failure::usage("there is no store in this workspace"));
    };
    let stream = if args.plan {
        let (review, _) = load_plan_for_reading(&app, &args.run).await?;
        StreamName::Plan(review.id().clone())
    } else {
        let target = select_run_for_reading(&app, &args.run, None).await?;
        StreamName::Run(target.run)
    };
    let id = match &stream {
        StreamName::Plan(plan) => plan.to_string(),
        StreamName::Run(run) => run.to_string(),
    };
    let named = || PathBuf::from(format!("{id}.sealed.jsonl"));
    let output = args.output.clone().unwrap_or_else(named);
    let (head, bytes) = store.export_journal(&stream, &output).await?;
    if context.printer.json {
        context.printer.document(&json!({
            "stream": stream.to_string(), "path": output, "entries": head.seq,
            "hash": head.hash, "bytes": bytes, "encrypted": store.cipher().is_sealed(),
        }))?;
    } else {
        context.printer.data(&format!(
            "{}: {} of {stream}, {} KiB",
            line(&output.display().to_string()),
            count_of(head.seq, "entry", "entries"),
            bytes.div_ceil(1024)
        ))?;
    }
    Ok(Exit::Done)
}
