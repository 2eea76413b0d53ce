//! Where a plan stands, for lists: the engine's word, and whether anybody is at work.

use crate::exit::Failure;
use crate::workspace::app::App;
use crate::workspace::maintenance::stalled_hint;
use planwright_core::review::Review;
use planwright_core::status::PlanStatus;

/// A plan's status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlanStatusLine {
    pub(crate) status: PlanStatus,
    /// What a person should know beside the word.
    pub(crate) note: Option<String>,
}

/// What the engine says, and what can be done about a run that nobody executes.
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
    let note = format!(
        "no process executes it: planwright resume {id} goes on, planwright cancel {id} ends it"
    );
    Ok(PlanStatusLine {
        status,
        note: Some(note),
    })
}
