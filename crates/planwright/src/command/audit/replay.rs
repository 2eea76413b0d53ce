//! `replay`: folds a run again from its journal and compares where that leads.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::run_selector::{RunTarget, select_run_for_reading};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan, or a run.
    #[arg(value_name = "ID")]
    plan: String,
    /// The run; default: the latest.
    #[arg(long)]
    run: Option<String>,
    /// Without one tool call. The only kind of replay there is.
    #[arg(long)]
    offline: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if !args.offline {
        return Err(
            Failure::usage("only an offline replay exists: it makes no call").hint(
                "add --offline; to call the tools again, use planwright run or planwright fork",
            ),
        );
    }
    let app = context.open(Access::Read)?;
    let RunTarget { review, run: id } =
        select_run_for_reading(&app, &args.plan, args.run.as_deref()).await?;
    // Folding checks the chain, every transition, and the state that the last entry of an ended run
    // records.
    let (run, head) = app.engine.runs().load_run(&id, &review).await?;
    let digest = run.steps_digest();
    if context.printer.json {
        context.printer.document(&json!({
            "planId": review.id(), "runId": id, "entries": head.seq, "status": run.status(),
            "stateDigest": digest, "ok": true,
        }))?;
    } else {
        context.printer.data(&format!(
            "{id}  {}  {}  state {digest}",
            count_of(head.seq, "entry", "entries"),
            run.status()
        ))?;
    }
    Ok(Exit::Done)
}
