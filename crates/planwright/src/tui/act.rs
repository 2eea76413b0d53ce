//! Carries out what was decided, with the commands that every face shares.

use super::load::LoadedPlan;
use super::model::DecisionPage;
use crate::command::execution::order::ExecutionKind;
use crate::exit::Failure;
use crate::terminal::approval_prompt::reject_plan;
use crate::workspace::app::{App, user};
use crate::workspace::plan_source::load_plan;
use crate::workspace::projections::update_plan_files;
use crate::workspace::servers::Need;
use planwright_core::id::{PlanId, RunId};
use planwright_core::policy::LateChoice;
use planwright_core::principal::Assurance;
use planwright_core::run::{Resolution, Shown};
use planwright_engine::{GivenApproval, NewComment, RunCommand, RunHandle, RunOptions};
use serde_json::{Map, Value};

/// Approves exactly the plan that was on the screen.
pub(super) async fn approve_plan(
    app: &App,
    loaded: LoadedPlan,
    see_late_values: bool,
) -> Result<String, Failure> {
    let LoadedPlan {
        shown, mut late, ..
    } = loaded;
    if see_late_values {
        for choice in late.values_mut() {
            *choice = LateChoice::Ask;
        }
    }
    let digest = shown.candidate.digest;
    let given = GivenApproval {
        shown: Shown::Digest(digest),
        by: user(),
        assurance: Assurance::Terminal,
        late,
    };
    let plans = app.engine.plans();
    let review = plans.approve_shown_plan(shown, &Map::new(), &given).await?;
    update_plan_files(app, &review).await;
    let count = review.given_approvals(&digest, app.now()).len();
    let required = app.engine.policy().approval.required() as usize;
    Ok(if count < required {
        format!("{count} of {required} approvals: another approver is needed")
    } else {
        "approved: r runs it".to_owned()
    })
}

/// Sends the plan back with a reason.
pub(super) async fn send_back(
    app: &App,
    loaded: &LoadedPlan,
    reason: &str,
) -> Result<String, Failure> {
    let shown = &loaded.shown;
    let rejected = reject_plan(app, &shown.review, &shown.candidate, reason).await?;
    Ok(format!("{}", rejected.state().status()))
}

/// The decision of a person about one call.
#[derive(Debug, Clone, Copy)]
pub(super) enum CallDecision {
    Approved,
    Denied,
}

impl CallDecision {
    /// Returns the word that the page shows.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Approved => "approved",
            Self::Denied => "denied",
        }
    }
}

/// Decides on one call that waits.
pub(super) async fn decide_step(
    app: &App,
    (run, step): (&RunId, &str),
    shown: Shown,
    refusal: Option<String>,
) -> Result<CallDecision, Failure> {
    let by = user();
    let shown = shown.into();
    let step = step.to_owned();
    let (command, decision) = match refusal {
        None => {
            let assurance = Assurance::Terminal;
            let command = RunCommand::Approve {
                step,
                by,
                assurance,
                shown,
            };
            (command, CallDecision::Approved)
        }
        Some(reason) => {
            let command = RunCommand::Deny {
                step,
                by,
                shown,
                reason,
            };
            (command, CallDecision::Denied)
        }
    };
    app.engine.runs().command(run, command).await?;
    Ok(decision)
}

/// Says what became of a call.
pub(super) async fn resolve_step(
    app: &App,
    (run, step): (&RunId, &str),
    word: &str,
) -> Result<String, Failure> {
    let runs = app.engine.runs();
    let resolution = match word {
        "happened" => runs.resolution_with_value(run, Value::Null).await?,
        "did-not-happen" => Resolution::DidNotHappen,
        _ => Resolution::RunAgain,
    };
    let command = RunCommand::Resolve {
        step: step.to_owned(),
        by: user(),
        resolution,
    };
    runs.command(run, command).await?;
    Ok(format!("step {step}: {word}"))
}

/// Adds a comment to the plan, or to the step that is shown.
pub(super) async fn add_comment(
    app: &App,
    page: &DecisionPage,
    text: String,
) -> Result<String, Failure> {
    let on = page.step.as_ref().map(|(_, step)| step.clone());
    let new = NewComment {
        on,
        reply_to: None,
        text,
    };
    app.engine.plans().comment(&page.plan, new, &user()).await?;
    Ok("the comment is kept".to_owned())
}

/// Starts a run of an approved plan, or continues its latest one. It is executed here.
pub(super) async fn open_run(
    app: &App,
    plan: &PlanId,
    kind: ExecutionKind,
) -> Result<RunHandle, Failure> {
    let (review, _) = load_plan(app, plan).await?;
    app.start_servers(&review.current().document, Need::Use)
        .await?;
    let mut options = RunOptions::new(user());
    // A question of the run is answered here, so it waits for the answer.
    options.linger = true;
    Box::pin(kind.open_run(&app.engine, options)).await
}
