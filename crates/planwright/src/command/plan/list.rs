//! `list`: the plans, most recently changed first.

use crate::exit::{Exit, Failure};
use crate::terminal::plan_status::{StatusNote, load_status_line};
use crate::terminal::printer::{DIM, line};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::maintenance::run_due_maintenance;
use planwright_api::PlanLine;
use planwright_core::status::CachedStatus;
use planwright_engine::chat::is_listed;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Deleted plans and conversations too.
    #[arg(long)]
    all: bool,
    /// Archived plans, instead of the others.
    #[arg(long)]
    archived: bool,
    /// Only plans with this label on one of their steps. Conversations are labelled `chat`, and
    /// left out otherwise.
    #[arg(long, value_name = "LABEL")]
    label: Option<String>,
}

impl Args {
    /// Returns whether plans that stand there are listed. The others are not even read.
    fn includes_status(&self, status: &CachedStatus) -> bool {
        let is_archived = *status == CachedStatus::Archived;
        self.all || *status != CachedStatus::Deleted && is_archived == self.archived
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    run_due_maintenance(&app).await;
    let printer = context.printer;
    let mut lines = Vec::new();
    let mut notes = Vec::new();
    let mut damaged = false;
    for info in app.engine.journals().plans().await? {
        if !args.includes_status(&info.status.status) {
            continue;
        }
        // One damaged plan does not hide the others.
        let review = match app.engine.plans().load_review(&info.status.plan).await {
            Ok((review, _)) => review,
            Err(error) => {
                printer.warn(&format!("{}: {error}", info.status.plan));
                damaged = true;
                continue;
            }
        };
        if !is_listed(&review.current().document, args.label.as_deref(), args.all) {
            continue;
        }
        let status_line = load_status_line(&app, &review).await?;
        lines.push(PlanLine::new(&review, status_line.status.as_str()));
        notes.push(status_line.note);
    }
    if printer.json {
        printer.document(&lines)?;
    } else {
        for (plan, note) in lines.iter().zip(notes) {
            let title = line(&plan.title);
            let note = note
                .map(|note: StatusNote| printer.out(DIM, &format!("  ({})", note.short())))
                .unwrap_or_default();
            printer.data(&format!(
                "{:24}  {:12}  v{:<3} {:>5} steps  {title}{note}",
                plan.id, plan.status, plan.version, plan.steps
            ))?;
        }
        if lines.is_empty() {
            printer.talk("no plans yet");
            printer.hint(
                "planwright new -o plan.json writes a first plan; planwright demo shows a whole run",
            );
        }
    }
    Ok(if damaged { Exit::Store } else { Exit::Done })
}
