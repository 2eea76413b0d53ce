//! The status of a plan for lists and details, with a note when no process executes its run.

use crate::exit::Failure;
use crate::terminal::printer::{GREEN, RED, YELLOW};
use crate::workspace::app::App;
use crate::workspace::maintenance::stalled_hint;
use anstyle::Style;
use planwright_core::review::Review;
use planwright_core::status::{PlanStatus, StepStatus};

/// The status of a plan as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanStatusLine {
    pub(crate) status: PlanStatus,
    /// Set when no process executes the run.
    pub(crate) note: Option<StatusNote>,
}

/// Why no process executes a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StatusNote {
    /// Its process is gone; the commands that continue or end it.
    LeftBehind(String),
    /// The service executes as many runs as it may.
    Queued(u32),
}

impl StatusNote {
    /// A few words for lists.
    pub(crate) fn short(&self) -> &'static str {
        match self {
            Self::LeftBehind(_) => "interrupted",
            Self::Queued(_) => "it waits for its turn",
        }
    }

    /// A sentence for those who look at one plan.
    pub(crate) fn sentence(&self) -> String {
        let short = self.short();
        match self {
            Self::LeftBehind(commands) => format!("{short}: {commands}"),
            Self::Queued(slots) => {
                format!("{short}: the service executes {slots} runs at once (max_runs in [serve])")
            }
        }
    }
}

/// How a status is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StatusTone {
    Good,
    Bad,
    /// It waits for a person, or stands still.
    Waiting,
    Active,
    Quiet,
}

impl StatusTone {
    /// The tone of the status of a plan, a run or a step.
    pub(crate) fn of(word: &str) -> Self {
        if let Ok(status) = word.parse() {
            return Self::of_plan(status);
        }
        word.parse().map_or(Self::Quiet, Self::of_step)
    }

    fn of_plan(status: PlanStatus) -> Self {
        match status {
            PlanStatus::Completed | PlanStatus::Approved => Self::Good,
            PlanStatus::CompletedWithFailures
            | PlanStatus::Failed
            | PlanStatus::Cancelled
            | PlanStatus::Rejected
            | PlanStatus::NeedsReview => Self::Bad,
            PlanStatus::Proposed
            | PlanStatus::ChangesRequested
            | PlanStatus::Waiting
            | PlanStatus::Paused
            | PlanStatus::Stalled => Self::Waiting,
            PlanStatus::Executing => Self::Active,
            PlanStatus::Draft
            | PlanStatus::Expired
            | PlanStatus::Archived
            | PlanStatus::Deleted => Self::Quiet,
        }
    }

    fn of_step(status: StepStatus) -> Self {
        match status {
            StepStatus::Completed | StepStatus::Approved => Self::Good,
            StepStatus::Failed | StepStatus::Denied | StepStatus::OutcomeUnknown => Self::Bad,
            StepStatus::AwaitingApproval
            | StepStatus::AwaitingInput
            | StepStatus::AwaitingPlan
            | StepStatus::RetryDue => Self::Waiting,
            StepStatus::Running => Self::Active,
            StepStatus::Queued
            | StepStatus::Pending
            | StepStatus::Ready
            | StepStatus::Blocked
            | StepStatus::Skipped
            | StepStatus::Cancelled
            | StepStatus::Undone => Self::Quiet,
        }
    }
}

/// The style of the status of a plan or a run.
pub(crate) fn status_style(word: &str) -> Style {
    match StatusTone::of(word) {
        StatusTone::Good => GREEN,
        StatusTone::Bad => RED,
        StatusTone::Waiting => YELLOW,
        StatusTone::Active | StatusTone::Quiet => Style::new(),
    }
}

/// Loads the status of a plan, with the commands that move on a run without a process.
pub(crate) async fn load_status_line(
    app: &App,
    review: &Review,
) -> Result<PlanStatusLine, Failure> {
    let status = app.engine.plans().status(review).await?;
    let note = load_note(app, review, status).await?;
    Ok(PlanStatusLine { status, note })
}

async fn load_note(
    app: &App,
    review: &Review,
    status: PlanStatus,
) -> Result<Option<StatusNote>, Failure> {
    let id = review.id().as_str();
    if status == PlanStatus::Stalled {
        return Ok(Some(StatusNote::LeftBehind(stalled_hint(id))));
    }
    let Some(opened) = review
        .runs()
        .last()
        .filter(|_| status == PlanStatus::Executing)
    else {
        return Ok(None);
    };
    if app.engine.runs().is_executed(&opened.run).await? {
        return Ok(None);
    }
    // What is wrong with a damaged run is said by the commands that need it.
    let run = app.engine.runs().load_run(&opened.run, review).await.ok();
    Ok(Some(
        match run.and_then(|(run, _)| run.schedule().queued_behind()) {
            Some(slots) => StatusNote::Queued(slots),
            None => StatusNote::LeftBehind(format!(
                "To continue: planwright resume {id}; to stop it: planwright cancel {id}"
            )),
        },
    ))
}
