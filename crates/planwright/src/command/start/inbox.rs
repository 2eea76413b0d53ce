//! `inbox`: everything that waits for a person, each with the command that decides it.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{DIM, YELLOW, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::run_selector::selector_of;
use crate::workspace::variables::quote_word;
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::StepIx;
use planwright_core::review::{Review, ReviewState};
use planwright_core::run::{Run, StepState};
use planwright_core::status::PlanStatus;
use planwright_engine::AwaitingPeople;
use planwright_engine::chat::listens;
use planwright_engine::with_causes;
use serde::Serialize;

/// One thing that waits for a person.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Awaited {
    /// `plan`, `step`, `input` or `outcome`.
    pub(crate) kind: &'static str,
    pub(crate) plan_id: String,
    pub(crate) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    pub(crate) since: String,
    /// The command that shows it and asks.
    command: String,
}

pub(crate) async fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let awaited = load_inbox(&app).await?;
    let printer = context.printer;
    if printer.json {
        printer.document(&awaited)?;
        return Ok(Exit::Done);
    }
    for item in &awaited {
        print_item(&app, item)?;
    }
    if awaited.is_empty() {
        printer.talk("nothing waits for you");
    }
    Ok(Exit::Done)
}

/// Everything that waits for a person, the newest plans first.
pub(crate) async fn load_inbox(app: &App) -> Result<Vec<Awaited>, Failure> {
    let AwaitingPeople { plans, runs } = app.engine.inbox().plans_awaiting_people().await?;
    let mut found = Vec::new();
    for info in plans {
        let plan = &info.status.plan;
        let runs = runs.get(plan).map_or(&[][..], Vec::as_slice);
        // One damaged plan does not hide the others.
        match load_awaited(app, plan, runs).await {
            Ok(awaited) => found.extend(awaited),
            Err(failure) => app.printer().warn(&format!("{plan}: {}", failure.message)),
        }
    }
    Ok(found)
}

async fn load_awaited(app: &App, plan: &PlanId, runs: &[RunId]) -> Result<Vec<Awaited>, Failure> {
    let (review, _) = app.engine.plans().load_review(plan).await?;
    let mut found = Vec::new();
    let status = app.engine.plans().status(&review).await?;
    let is_open = matches!(status, PlanStatus::Proposed | PlanStatus::NeedsReview);
    if is_open && review.state() != ReviewState::Deleted {
        found.push(Awaited {
            command: format!("planwright approve {plan}"),
            since: review.current().at.to_string(),
            ..describe(&review, "plan")
        });
    }
    for run in runs {
        let loaded = app.engine.runs().load_run(run, &review).await;
        let (run, _) = loaded.map_err(|error| Failure::refused(with_causes(&error)))?;
        let waiting = run.schedule().waiting().filter(|&ix| !listens(&run, ix));
        found.extend(waiting.filter_map(|ix| awaited_step(&review, &run, ix)));
    }
    Ok(found)
}

fn describe(review: &Review, kind: &'static str) -> Awaited {
    let document = &review.current().document;
    let title = document.title.as_ref().or(document.goal.as_ref());
    Awaited {
        kind,
        plan_id: review.id().to_string(),
        title: title.cloned().unwrap_or_default(),
        run_id: None,
        step: None,
        digest: None,
        since: String::new(),
        command: String::new(),
    }
}

/// What one step waits for; nothing if it waits for the run of a sub-plan, which is listed itself.
fn awaited_step(review: &Review, run: &Run, ix: StepIx) -> Option<Awaited> {
    let plan = selector_of(run);
    let step = quote_word(run.step_id(ix).as_str());
    let of_step = |kind| Awaited {
        run_id: Some(run.id().to_string()),
        step: Some(run.step_id(ix).to_string()),
        ..describe(review, kind)
    };
    match run.step(ix) {
        StepState::AwaitingApproval { asked_at, call, .. } => {
            let digest = call
                .as_ref()
                .map_or_else(|| run.start().digest, |asked| asked.digest);
            Some(Awaited {
                since: asked_at.to_string(),
                digest: Some(digest.to_string()),
                command: format!("planwright approve {plan} --step {step}"),
                ..of_step("step")
            })
        }
        StepState::AwaitingInput { asked_at, .. } => Some(Awaited {
            since: asked_at.to_string(),
            command: format!("planwright input {plan} {step}"),
            ..of_step("input")
        }),
        StepState::OutcomeUnknown { .. } => Some(Awaited {
            since: run.updated_at().to_string(),
            command: format!(
                "planwright resolve {plan} {step} --happened | --did-not-happen | --run-again"
            ),
            ..of_step("outcome")
        }),
        _ => None,
    }
}

fn print_item(app: &App, item: &Awaited) -> Result<(), Failure> {
    let printer = app.printer();
    let words = match item.kind {
        "plan" => "approve the plan",
        "step" => "approve a call",
        "input" => "answer a question",
        _ => "say whether a call happened",
    };
    let step = item.step.as_deref().map(|step| format!(" · {step}"));
    printer.data(&format!(
        "{:24}  {}  {}{}",
        line(&item.plan_id),
        printer.out(YELLOW, words),
        line(&item.title),
        line(&step.unwrap_or_default())
    ))?;
    printer.data(&printer.out(DIM, &format!("  {}", item.command)))
}
