//! The events of a plan's own life.

use super::details::{MAX_TEXT, cut};
use super::story::Story;
use super::{EventName, StepDetails};
use crate::digest::Digest;
use crate::id::StepId;
use crate::plan::Document;
use crate::principal::Principal;
use crate::review::ReviewEvent;
use crate::status::StepStatus;

/// Tells the events that an entry of the plan's journal means, in order.
pub(super) fn review_stories(event: &ReviewEvent) -> Vec<Story> {
    use EventName as N;
    let by = |name, by: &Principal, words: String| Story::new(name, format!("{by} {words}")).by(by);
    let story = match event {
        ReviewEvent::PlanProposed {
            version,
            document,
            digest,
            by,
            reason,
            draft,
            restored_from: _,
            trace: _,
            planning: _,
        } => {
            let told = |name, words| Story {
                reason: reason.as_deref().map(|reason| cut(reason, MAX_TEXT)),
                ..of_version(Story::new(name, words).by(by), *version, Some(*digest))
            };
            if *version > 1 {
                return vec![told(N::PlanEdited, format!("{by} made version {version}"))];
            }
            let title = document
                .title
                .as_deref()
                .or(document.goal.as_deref())
                .unwrap_or("a plan");
            let mut stories = vec![told(
                N::PlanCreated,
                format!("{by} created {}", cut(title, 200)),
            )];
            stories.extend(queued_steps(document));
            if !draft {
                stories.push(told(
                    N::PlanProposed,
                    format!("version {version} waits for approval"),
                ));
            }
            return stories;
        }
        // The run tells it itself, in the same commit.
        ReviewEvent::RunOpened { .. } => return Vec::new(),
        ReviewEvent::RunRequested {
            version,
            digest,
            by: who,
            variables: _,
            trace: _,
        } => {
            let words = "wants it run as soon as it is approved".to_owned();
            of_version(by(N::PlanRunRequested, who, words), *version, Some(*digest))
        }
        ReviewEvent::RunWrittenOff { run, by: who, loss } => because(
            by(
                N::RunFailed,
                who,
                format!("wrote {run} off: its journal is damaged"),
            ),
            loss,
        ),
        ReviewEvent::DraftProposed { version, by: who } => of_version(
            by(N::PlanProposed, who, format!("proposed version {version}")),
            *version,
            None,
        ),
        ReviewEvent::PlanApproved {
            version,
            digest,
            by: who,
            ..
        } => {
            let told = by(N::PlanApproved, who, format!("approved version {version}"));
            of_version(told, *version, Some(*digest))
        }
        ReviewEvent::PlanRejected {
            version,
            by: who,
            reason,
        } => {
            let told = by(N::PlanRejected, who, format!("rejected version {version}"));
            because(of_version(told, *version, None), reason)
        }
        ReviewEvent::ChangesRequested {
            version,
            by: who,
            reason,
        } => {
            let told = by(
                N::PlanChangesRequested,
                who,
                format!("asks for changes of version {version}"),
            );
            because(of_version(told, *version, None), reason)
        }
        ReviewEvent::PlanExpired {
            version,
            after_days,
        } => {
            let told = Story::new(
                N::PlanExpired,
                format!("the plan was not touched for {after_days} days"),
            );
            of_version(told, *version, None)
        }
        ReviewEvent::ApprovalExpired { version, digest } => {
            let told = Story::new(N::PlanApprovalExpired, "the approval was not used in time");
            of_version(told, *version, Some(*digest))
        }
        ReviewEvent::ApprovalRevoked {
            version,
            of,
            by: who,
            given: _,
            reason,
        } => {
            let told = by(
                N::PlanApprovalRevoked,
                who,
                format!("revoked the approval of {of}"),
            );
            let told = of_version(told, *version, None);
            match reason {
                Some(reason) => because(told, reason),
                None => told,
            }
        }
        ReviewEvent::PlanArchived { by: who } => {
            by(N::PlanArchived, who, "put the plan away".to_owned())
        }
        ReviewEvent::PlanUnarchived { by: who } => {
            by(N::PlanUnarchived, who, "took the plan back".to_owned())
        }
        ReviewEvent::CommentAdded {
            comment,
            on,
            version,
            reply_to: _,
            by: who,
            text,
        } => {
            let about = on
                .as_ref()
                .map_or_else(|| "the plan".to_owned(), |step| format!("step `{step}`"));
            let told = by(
                N::PlanCommented,
                who,
                format!("commented on {about} ({comment})"),
            );
            because(of_version(told, *version, None), text)
        }
        ReviewEvent::CommentResolved { comment, by: who } => {
            by(N::PlanCommentResolved, who, format!("resolved {comment}"))
        }
        ReviewEvent::CommentReopened { comment, by: who } => {
            by(N::PlanCommentReopened, who, format!("reopened {comment}"))
        }
        ReviewEvent::PlanDeleted { by: who } => {
            by(N::PlanDeleted, who, "deleted the plan".to_owned())
        }
    };
    vec![story]
}

fn of_version(story: Story, version: u32, digest: Option<Digest>) -> Story {
    Story {
        version: Some(version),
        digest,
        ..story
    }
}

fn because(story: Story, reason: &str) -> Story {
    Story {
        reason: Some(cut(reason, MAX_TEXT)),
        ..story
    }
}

/// One event per step, before anything runs.
pub(super) fn queued_steps(document: &Document) -> impl Iterator<Item = Story> {
    document
        .steps
        .iter()
        .zip(1_usize..)
        .map(|(step, position)| {
            let id = step.id.clone().unwrap_or_else(|| {
                position
                    .to_string()
                    .parse::<StepId>()
                    .expect("a number is a valid step id")
            });
            let summary = format!("step `{id}` is queued");
            Story {
                step: Some(StepDetails::new(id, step, StepStatus::Queued)),
                ..Story::new(EventName::PlanStep, summary)
            }
        })
}
