//! `list`: the plans, most recently changed first.

use crate::exit::{Exit, Failure};
use crate::terminal::plan_status::{StatusNote, load_status_line, status_style};
use crate::terminal::printer::{DIM, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::maintenance::run_due_maintenance;
use planwright_api::PlanLine;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use planwright_engine::chat::is_listed;
use planwright_engine::with_causes;

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
    /// Maximum number of plans, most recently changed first; 0 for all. Default: 100, or all of
    /// them with --json.
    #[arg(long, value_name = "N")]
    limit: Option<usize>,
}

/// What a person looks through. Programs get everything unless they say otherwise.
const LINES_FOR_PEOPLE: usize = 100;

impl Args {
    /// Returns whether plans that stand there are listed. The others are not even read.
    fn includes_status(&self, status: &CachedStatus) -> bool {
        let is_archived = *status == CachedStatus::Archived;
        self.all || *status != CachedStatus::Deleted && is_archived == self.archived
    }

    /// Returns how many plans are shown at most.
    fn limit(&self, json: bool) -> usize {
        let unless_told = if json { 0 } else { LINES_FOR_PEOPLE };
        match self.limit.unwrap_or(unless_told) {
            0 => usize::MAX,
            limit => limit,
        }
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    run_due_maintenance(&app).await;
    let printer = context.printer;
    let mut lines = Vec::new();
    let mut notes = Vec::new();
    let mut unreadable = lost_streams(&app).await;
    let limit = args.limit(printer.json);
    let mut has_more = false;
    let mut plans = app.engine.journals().plans().await?;
    plans.retain(|info| args.includes_status(&info.status.status));
    for info in plans {
        if lines.len() >= limit {
            has_more = true;
            break;
        }
        // One damaged plan does not hide the others.
        let mut leave_out = |damage: String| {
            printer.warn(&format!("{}: {damage}", info.status.plan));
            let times = (info.created_at, info.updated_at);
            let label = &info.status.label;
            let line = PlanLine::unreadable(info.status.plan.as_str(), label, times, damage);
            unreadable.push(line);
        };
        let review = match app.engine.plans().load_review(&info.status.plan).await {
            Ok((review, _)) => review,
            Err(error) => {
                leave_out(with_causes(&error));
                continue;
            }
        };
        if !is_listed(&review.current().document, args.label.as_deref(), args.all) {
            continue;
        }
        let status_line = match load_status_line(&app, &review).await {
            Ok(status_line) => status_line,
            Err(failure) => {
                leave_out(failure.message);
                continue;
            }
        };
        lines.push(PlanLine::new(&review, status_line.status.as_str()));
        notes.push(status_line.note);
    }
    let damaged = !unreadable.is_empty();
    if printer.json {
        lines.extend(unreadable);
        printer.document(&lines)?;
    } else {
        let width = lines.iter().map(|plan| plan.status.len()).max();
        let width = width.unwrap_or_default().max(12);
        for (plan, note) in lines.iter().zip(notes) {
            let status = format!("{:width$}", plan.status);
            let status = printer.out(status_style(&plan.status), &status);
            let title = line(&plan.title);
            let note = note
                .map(|note: StatusNote| printer.out(DIM, &format!("  ({})", note.short())))
                .unwrap_or_default();
            let steps = if plan.steps == 1 { "step " } else { "steps" };
            printer.data(&format!(
                "{:24}  {status}  v{:<3} {:>5} {steps}  {title}{note}",
                plan.id, plan.version, plan.steps
            ))?;
        }
        if lines.is_empty() && !damaged {
            printer.talk("no plans yet");
            printer.hint(
                "To write a first plan: planwright new -o plan.json. To see a whole run: planwright demo",
            );
        }
    }
    if has_more {
        printer
            .hint("These are the plans that changed last. To list all: planwright list --limit 0");
    }
    if damaged {
        printer.hint("To see everything that is damaged: planwright verify");
    }
    Ok(if damaged { Exit::Store } else { Exit::Done })
}

/// Plans and runs of which nothing is left but that they were acknowledged.
async fn lost_streams(app: &App) -> Vec<PlanLine> {
    let Some(sqlite) = &app.sqlite else {
        return Vec::new();
    };
    let missing = sqlite.missing_streams().await;
    let never = (Timestamp::from_millis(0), Timestamp::from_millis(0));
    let lost = |name: String| {
        let damage = "it was acknowledged, and the store does not have it any more".to_owned();
        app.printer().warn(&format!("{name}: {damage}"));
        let id = name.strip_prefix("plan/").unwrap_or(&name);
        PlanLine::unreadable(id, "", never, damage)
    };
    match missing {
        Ok(missing) => missing.into_iter().map(lost).collect(),
        // Reading the plans fails in the same way, and says so.
        Err(_) => Vec::new(),
    }
}
