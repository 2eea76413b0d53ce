//! Which entries of the journal are worth a notice, and what it says: enough to know where to look,
//! and no more.

use super::belonging::{Belongs, Children, belongs};
use crate::port::{Journal, Placed, Store, StoreError};
use planwright_core::digest::Digest;
use planwright_core::id::{PlanId, RunId, StepId};
use planwright_core::journal::{StreamName, decode};
use planwright_core::review::ReviewEvent;
use planwright_core::run::RunEvent;
use planwright_core::time::Timestamp;
use serde::Serialize;

/// Everything an endpoint can be told of.
pub const KINDS: &[&str] = &[
    "plan.proposed",
    "plan.commented",
    "plan.expired",
    "plan.archived",
    "plan.deleted",
    "approval.requested",
    "approval.decided",
    "approval.expired",
    "approval.revoked",
    "input.requested",
    "outcome.unknown",
    "step.failed",
    "run.started",
    "run.paused",
    "run.resumed",
    "run.stalled",
    "run.adjusted",
    "run.ended",
    "run.undo_started",
];

/// One thing that happened, for the outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The same whenever this is told, so that a receiver that is told twice can know it.
    pub id: String,
    /// The name of the event, such as `run.ended`.
    pub kind: &'static str,
    /// Time of the entry it is made from.
    pub at: Timestamp,
    /// The plan, run and step it is about.
    pub about: About,
}

/// What it is about. There are no arguments, no results and no texts of tools in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    /// Id of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_id: Option<PlanId>,
    /// Id of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// Id of the step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_id: Option<StepId>,
    /// Version of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// Digest of what is to be approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Title of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The change itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<NoticeStatus>,
    /// What a child run belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Belongs>,
}

/// The events that notices tell about. The words are promised to other programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum NoticeStatus {
    /// The run was adjusted and continues in another one.
    Adjusted,
    /// An approval was given.
    Approved,
    /// The plan was archived.
    Archived,
    /// The run was cancelled.
    Cancelled,
    /// An approver asked for changes.
    ChangesRequested,
    /// A comment was made.
    Commented,
    /// The run completed.
    Completed,
    /// The run completed without steps that matter.
    CompletedWithFailures,
    /// The plan was deleted.
    Deleted,
    /// The plan, an approval or a step expired.
    Expired,
    /// The run failed.
    Failed,
    /// The outcome of a call is unknown.
    OutcomeUnknown,
    /// The run was paused.
    Paused,
    /// A version was proposed.
    Proposed,
    /// An approver rejected.
    Rejected,
    /// An approval or input was requested.
    Requested,
    /// The run was resumed.
    Resumed,
    /// An approval was revoked.
    Revoked,
    /// No process executes the run any more.
    Stalled,
    /// The run started.
    Started,
    /// The run is being undone.
    Undoing,
}

/// Longer titles are cut: a notice is small.
const MAX_TITLE_CHARS: usize = 200;

/// The notices of one record, without what only the store knows. A record that this version cannot
/// read has none.
fn bare(placed: &Placed) -> Vec<(&'static str, About)> {
    match &placed.stream {
        StreamName::Plan(_) => decode(&placed.record)
            .map(|entry| of_review(entry.event))
            .unwrap_or_default(),
        StreamName::Run(_) => decode(&placed.record)
            .map(|entry| of_run(entry.event))
            .unwrap_or_default(),
    }
}

/// The kinds of notices that a record brings, with their places. Of child runs only what people
/// decide is told.
pub(super) async fn kinds(
    store: &dyn Journal,
    placed: &Placed,
    children: &mut Children,
) -> Result<Vec<(u32, &'static str)>, StoreError> {
    let mut told = Vec::new();
    for (index, (kind, _)) in (0..).zip(bare(placed)) {
        if children.are_told(store, &placed.stream, kind).await? {
            told.push((index, kind));
        }
    }
    Ok(told)
}

/// The notices of one record, in order.
pub async fn notices_of(store: &dyn Store, placed: &Placed) -> Result<Vec<Notice>, StoreError> {
    let found = bare(placed);
    if found.is_empty() {
        return Ok(Vec::new());
    }
    let plan = match &placed.stream {
        StreamName::Plan(plan) => Some(plan.clone()),
        run @ StreamName::Run(_) => store.info(run).await?.map(|info| info.status.plan),
    };
    let title = match &plan {
        Some(plan) => store
            .info(&StreamName::Plan(plan.clone()))
            .await?
            .map(|info| info.status.label),
        None => None,
    };
    let title = title.map(|title| title.chars().take(MAX_TITLE_CHARS).collect::<String>());
    let run = match &placed.stream {
        StreamName::Run(run) => Some(run.clone()),
        StreamName::Plan(_) => None,
    };
    let parent = match &run {
        Some(run) => belongs(store, run).await?,
        None => None,
    };
    let notice = |(index, (kind, about)): (usize, (&'static str, About))| Notice {
        id: stable_id(placed, index),
        kind,
        at: placed.record.at,
        about: About {
            plan_id: plan.clone(),
            run_id: about.run_id.or_else(|| run.clone()),
            parent: parent.clone(),
            title: about
                .title
                .or_else(|| title.clone())
                .filter(|title| !title.is_empty()),
            ..about
        },
    };
    Ok(found.into_iter().enumerate().map(notice).collect())
}

/// Derived from what it is about, so that it is the same after a restore into another store.
fn stable_id(placed: &Placed, index: usize) -> String {
    let parts = [
        placed.stream.to_string(),
        placed.record.seq.to_string(),
        index.to_string(),
    ];
    let digest = Digest::of_parts(&[
        parts[0].as_bytes(),
        parts[1].as_bytes(),
        parts[2].as_bytes(),
    ]);
    digest
        .as_bytes()
        .iter()
        .take(16)
        .fold("msg_".to_owned(), |id, byte| id + &format!("{byte:02x}"))
}

fn of_review(event: ReviewEvent) -> Vec<(&'static str, About)> {
    use ReviewEvent as E;
    let decided = |version, digest, status| {
        (
            "approval.decided",
            About {
                version: Some(version),
                digest,
                status: Some(status),
                ..About::default()
            },
        )
    };
    let plain = |kind, status| {
        vec![(
            kind,
            About {
                status: Some(status),
                ..About::default()
            },
        )]
    };
    match event {
        // No person is asked about a draft.
        E::PlanProposed { draft: true, .. } => Vec::new(),
        E::PlanProposed {
            version,
            document,
            digest,
            ..
        } => {
            let title = document.title.as_deref().unwrap_or_default();
            let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
            let about = About {
                version: Some(version),
                digest: Some(digest),
                title: Some(title),
                status: Some(NoticeStatus::Proposed),
                ..About::default()
            };
            let asked = About {
                status: Some(NoticeStatus::Requested),
                ..about.clone()
            };
            vec![("plan.proposed", about), ("approval.requested", asked)]
        }
        E::PlanApproved {
            version, digest, ..
        } => vec![decided(version, Some(digest), NoticeStatus::Approved)],
        E::PlanRejected { version, .. } => vec![decided(version, None, NoticeStatus::Rejected)],
        E::DraftProposed { version, .. } => {
            let about = About {
                version: Some(version),
                ..About::default()
            };
            let asked = About {
                status: Some(NoticeStatus::Requested),
                ..about.clone()
            };
            vec![
                (
                    "plan.proposed",
                    About {
                        status: Some(NoticeStatus::Proposed),
                        ..about
                    },
                ),
                ("approval.requested", asked),
            ]
        }
        E::ChangesRequested { version, .. } => {
            vec![decided(version, None, NoticeStatus::ChangesRequested)]
        }
        E::ApprovalExpired { version, digest } => {
            let about = About {
                version: Some(version),
                digest: Some(digest),
                status: Some(NoticeStatus::Expired),
                ..About::default()
            };
            vec![("approval.expired", about)]
        }
        E::ApprovalRevoked { version, .. } => {
            let about = About {
                version: Some(version),
                status: Some(NoticeStatus::Revoked),
                ..About::default()
            };
            vec![("approval.revoked", about)]
        }
        E::PlanExpired { version, .. } => {
            let about = About {
                version: Some(version),
                status: Some(NoticeStatus::Expired),
                ..About::default()
            };
            vec![("plan.expired", about)]
        }
        E::PlanDeleted { .. } => plain("plan.deleted", NoticeStatus::Deleted),
        E::PlanArchived { .. } => plain("plan.archived", NoticeStatus::Archived),
        E::CommentAdded { .. } => plain("plan.commented", NoticeStatus::Commented),
        E::RunOpened { .. }
        | E::RunRequested { .. }
        | E::RunWrittenOff { .. }
        | E::PlanUnarchived { .. }
        | E::CommentResolved { .. }
        | E::CommentReopened { .. } => Vec::new(),
    }
}

fn of_run(event: RunEvent) -> Vec<(&'static str, About)> {
    use RunEvent as E;
    let step = |step, status| About {
        step_id: Some(step),
        status: Some(status),
        ..About::default()
    };
    let run = |status| About {
        status: Some(status),
        ..About::default()
    };
    let found = match event {
        E::RunStarted {
            version, digest, ..
        } => {
            let about = About {
                version: Some(version),
                digest: Some(digest),
                ..run(NoticeStatus::Started)
            };
            ("run.started", about)
        }
        E::ApprovalRequested { step: id, call, .. } => {
            let digest = call.map(|call| call.digest);
            (
                "approval.requested",
                About {
                    digest,
                    ..step(id, NoticeStatus::Requested)
                },
            )
        }
        E::ApprovalGranted { step: id, call, .. } => (
            "approval.decided",
            About {
                digest: call,
                ..step(id, NoticeStatus::Approved)
            },
        ),
        E::ApprovalDenied { step: id, .. } => {
            ("approval.decided", step(id, NoticeStatus::Rejected))
        }
        E::InputRequested { step: id, .. } => {
            ("input.requested", step(id, NoticeStatus::Requested))
        }
        E::OutcomeLost { step: id, .. } => {
            ("outcome.unknown", step(id, NoticeStatus::OutcomeUnknown))
        }
        E::AttemptFailed {
            step: id,
            retry_at: None,
            ..
        }
        | E::StepFailed { step: id, .. } => ("step.failed", step(id, NoticeStatus::Failed)),
        E::RunPaused { .. } => ("run.paused", run(NoticeStatus::Paused)),
        E::RunResumed { .. } => ("run.resumed", run(NoticeStatus::Resumed)),
        E::RunCompleted { failures: 0, .. } => ("run.ended", run(NoticeStatus::Completed)),
        E::RunCompleted { .. } => ("run.ended", run(NoticeStatus::CompletedWithFailures)),
        E::RunStalled { .. } => ("run.stalled", run(NoticeStatus::Stalled)),
        E::RunFailed { .. } | E::RunGivenUp { .. } => ("run.ended", run(NoticeStatus::Failed)),
        E::RunCancelled { .. } => ("run.ended", run(NoticeStatus::Cancelled)),
        E::RunAdjusted { version, .. } => (
            "run.adjusted",
            About {
                version: Some(version),
                ..run(NoticeStatus::Adjusted)
            },
        ),
        E::UndoOpened { run: id, .. } => (
            "run.undo_started",
            About {
                run_id: Some(id),
                ..run(NoticeStatus::Undoing)
            },
        ),
        E::ResultReused { .. }
        | E::RunQueued { .. }
        | E::StepIsolated { .. }
        | E::IsolationEnded { .. }
        | E::AttemptStarted { .. }
        | E::AttemptSucceeded { .. }
        | E::AttemptFailed { .. }
        | E::AttemptInterrupted { .. }
        | E::AttemptCancelled { .. }
        | E::OutcomeResolved { .. }
        | E::ChildParked { .. }
        | E::ChildResumed { .. }
        | E::StepSkipped { .. }
        | E::LoopOpened { .. }
        | E::LoopClosed { .. }
        | E::InputGiven { .. }
        | E::CancelRequested { .. }
        | E::ModelUsed { .. }
        | E::AgentTurn { .. }
        | E::RunReflected { .. }
        | E::CriteriaChecked { .. }
        | E::StepUndone { .. } => return Vec::new(),
    };
    vec![found]
}
