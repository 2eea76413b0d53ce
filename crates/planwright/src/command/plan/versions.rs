//! `versions`: every version of a plan, by whom and why.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{DIM, line};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use planwright_api::VersionLine;
use planwright_core::status::PlanStatus;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan id, or enough of its beginning.
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
    let printer = context.printer;
    let lines = VersionLine::all(&review);
    if printer.json {
        printer.document(&lines)?;
        return Ok(Exit::Done);
    }
    for version in &lines {
        let VersionLine {
            version: number,
            at,
            by,
            steps,
            ..
        } = version;
        let mut notes = Vec::new();
        if version.approved {
            notes.push(PlanStatus::Approved.to_string());
        }
        if version.current {
            notes.push("current".to_owned());
        }
        notes.extend(
            version
                .restored_from
                .map(|earlier| format!("restored from {earlier}")),
        );
        let notes = printer.out(DIM, &notes.join(", "));
        let reason = version
            .reason
            .as_deref()
            .map(|reason| format!("  {}", line(reason)));
        let by = line(&by.to_string());
        let reason = reason.unwrap_or_default();
        let steps = count_of(steps, "step", "steps");
        printer.data(format!("v{number:<3} {at}  {by}  {steps}{reason}  {notes}").trim_end())?;
    }
    Ok(Exit::Done)
}
