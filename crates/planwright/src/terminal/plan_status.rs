//! The status of a plan for lists and details, with a note when no process executes its run.

use crate::exit::Failure;
use crate::workspace::app::App;
use crate::workspace::maintenance::stalled_hint;
use planwright_core::review::Review;
use planwright_core::status::PlanStatus;

/// The status of a plan as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanStatusLine {
    pub(crate) status: PlanStatus,
    /// Set when no process executes the run: that it waits for its turn, or the commands that
    /// continue or end it.
    pub(crate) note: Option<String>,
}

/// Loads the status of a plan, with the commands that move on a run without a process.
pub(crate) async fn load_status_line(
    app: &App,
    review: &Review,
) -> Result<PlanStatusLine, Failure> {
    let status = app.engine.plans().status(review).await?;
    let id = review.id().as_str();
    if status == PlanStatus::Stalled {
        return Ok(PlanStatusLine {
            status,
            note: Some(format!("no process executes it: {}", stalled_hint(id))),
        });
    }
    let Some(opened) = review
        .runs()
        .last()
        .filter(|_| status == PlanStatus::Executing)
    else {
        return Ok(PlanStatusLine { status, note: None });
    };
    if app.engine.runs().is_executed(&opened.run).await? {
        return Ok(PlanStatusLine { status, note: None });
    }
    let (run, _) = app.engine.runs().load_run(&opened.run, review).await?;
    if let Some(slots) = run.queued_behind() {
        let note = format!(
            "it waits for its turn: the service executes {slots} runs at once (max_runs in [serve])"
        );
        return Ok(PlanStatusLine {
            status,
            note: Some(note),
        });
    }
    let note = format!(
        "no process executes it: planwright resume {id} continues it; planwright cancel {id} stops it"
    );
    Ok(PlanStatusLine {
        status,
        note: Some(note),
    })
}
