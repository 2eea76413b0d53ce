//! Noting what happened to a plan.

use super::state::{ApprovalSignal, ReviewSignal};
use super::{
    Approval, ApprovalState, Comment, OpenedRun, Rejection, RequestedRun, Resolved, Review,
    ReviewEvent, ReviewStage, ReviewState, Revoked, Version, VersionSummary, WrittenOffRun,
};
use crate::digest::Digest;
use crate::id::{PlanId, RunId};
use crate::journal::Entry;
use crate::principal::Principal;
use crate::run::Corrupt;
use crate::time::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

impl Review {
    /// Begins a plan's life from its first entry.
    pub fn open(id: PlanId, first: &Entry<ReviewEvent>) -> Result<Self, Corrupt> {
        let ReviewEvent::PlanProposed { version: 1, .. } = &first.event else {
            return Err(Corrupt::NoStart);
        };
        if first.seq != 1 {
            return Err(Corrupt::Gap {
                last: 0,
                found: first.seq,
            });
        }
        let mut review = Self {
            id,
            seq: 0,
            settled_seq: 0,
            versions: Vec::new(),
            current: None,
            earlier: std::collections::VecDeque::new(),
            forgotten: 0,
            secret_names: BTreeSet::new(),
            stored_parts: BTreeSet::new(),
            state: ReviewState::Active(ReviewStage::Proposed),
            approvals: Vec::new(),
            rejections: Vec::new(),
            change_requests: Vec::new(),
            threads: Vec::new(),
            runs: Vec::new(),
            written_off: Vec::new(),
            requested: None,
            updated_at: first.at,
        };
        review.apply(first)?;
        Ok(review)
    }

    /// Notes one entry. An entry that cannot follow leaves the plan as it was.
    pub fn apply(&mut self, entry: &Entry<ReviewEvent>) -> Result<(), Corrupt> {
        if entry.seq != self.seq + 1 {
            return Err(Corrupt::Gap {
                last: self.seq,
                found: entry.seq,
            });
        }
        if self.note(&entry.event, entry.at).is_none() {
            return Err(Corrupt::PlanTransition {
                seq: entry.seq,
                event: entry.event.name(),
                status: self.state.status(),
            });
        }
        self.seq = entry.seq;
        if !entry.event.is_remark() {
            self.settled_seq = entry.seq;
        }
        self.updated_at = entry.at;
        Ok(())
    }

    /// Notes an event, or returns `None` and changes nothing.
    fn note(&mut self, event: &ReviewEvent, at: Timestamp) -> Option<()> {
        match event {
            ReviewEvent::PlanProposed {
                version,
                document,
                digest,
                by,
                reason,
                restored_from,
                draft,
                trace,
                planning,
            } => self.note_version(Version {
                summary: VersionSummary {
                    number: *version,
                    seq: self.seq + 1,
                    title: document.heading(),
                    steps: document.steps.len(),
                    digest: *digest,
                    by: by.clone(),
                    at,
                    reason: reason.clone(),
                    restored_from: *restored_from,
                    draft: *draft,
                    trace: *trace,
                    planning: planning.clone(),
                },
                document: document.clone(),
            }),
            ReviewEvent::DraftProposed { version, by: _ } => {
                self.note_of_current(*version, ReviewSignal::DraftProposed)
            }
            ReviewEvent::PlanApproved {
                version,
                digest,
                by,
                assurance,
                terms,
            } => self.note_approval(Approval {
                version: *version,
                digest: *digest,
                by: by.clone(),
                assurance: *assurance,
                at,
                terms: terms.clone(),
                spent_by: Vec::new(),
                state: ApprovalState::Open,
            }),
            ReviewEvent::PlanRejected {
                version,
                by,
                reason,
            } => self.note_rejection(rejection(*version, by, reason, at)),
            ReviewEvent::ChangesRequested {
                version,
                by,
                reason,
            } => self.note_change_request(rejection(*version, by, reason, at)),
            ReviewEvent::RunOpened {
                run,
                version,
                digest,
            } => self.note_run(OpenedRun {
                run: run.clone(),
                version: *version,
                digest: *digest,
                at,
            }),
            ReviewEvent::RunRequested {
                version,
                digest,
                variables,
                by,
                trace,
            } => self.note_request(RequestedRun {
                version: *version,
                digest: *digest,
                variables: variables.clone(),
                by: by.clone(),
                trace: *trace,
                at,
            }),
            ReviewEvent::RunWrittenOff { run, by, loss } => self.note_loss(run, by, loss, at),
            ReviewEvent::PlanDeleted { by: _ } => self.note_end(ReviewSignal::Deleted),
            ReviewEvent::PlanExpired { version, .. } => {
                self.check_current(*version)?;
                self.note_end(ReviewSignal::Expired)
            }
            ReviewEvent::ApprovalExpired { version, .. } => {
                self.note_of_current(*version, ReviewSignal::ApprovalExpired)
            }
            ReviewEvent::ApprovalRevoked {
                version,
                of,
                by,
                given,
                reason,
            } => {
                let revoked = Revoked {
                    by: by.clone(),
                    reason: reason.clone(),
                    at,
                };
                self.note_revoked(*version, of, *given, &revoked)
            }
            ReviewEvent::PlanArchived { by: _ } => self.note_signal(ReviewSignal::Archived),
            ReviewEvent::PlanUnarchived { by: _ } => self.note_signal(ReviewSignal::Unarchived),
            ReviewEvent::CommentAdded {
                comment,
                on,
                version,
                reply_to,
                by,
                text,
            } => {
                let comment = Comment {
                    id: comment.clone(),
                    by: by.clone(),
                    text: text.clone(),
                    version: *version,
                    at,
                };
                self.note_comment(comment, on.as_ref(), reply_to.as_ref())
            }
            ReviewEvent::CommentResolved { comment, by } => {
                let by = by.clone();
                self.note_settled(comment, Some(Resolved { by, at }))
            }
            ReviewEvent::CommentReopened { comment, by: _ } => self.note_settled(comment, None),
        }
    }

    /// Moves to the state that follows, if the table has one.
    pub(super) fn note_signal(&mut self, signal: ReviewSignal) -> Option<()> {
        self.state = self.state.after(signal)?;
        Some(())
    }

    fn note_of_current(&mut self, version: u32, signal: ReviewSignal) -> Option<()> {
        self.check_current(version)?;
        self.note_signal(signal)
    }

    fn check_current(&self, version: u32) -> Option<()> {
        (version == self.current().number).then_some(())
    }

    /// Notes that the approvals are enough for a run of this digest, if they are.
    fn note_agreement(&mut self, digest: &Digest, at: Timestamp) {
        if self.usable_approvals(digest, at).is_some() {
            self.note_signal(ReviewSignal::Agreed);
        }
    }

    fn note_version(&mut self, version: Version) -> Option<()> {
        let VersionSummary {
            number,
            digest,
            at,
            draft,
            restored_from,
            ..
        } = version.summary;
        let restores = restored_from.is_none_or(|earlier| (1..number).contains(&earlier));
        if number as usize != self.versions.len() + 1 || !restores {
            return None;
        }
        self.note_signal(if draft {
            ReviewSignal::VersionDrafted
        } else {
            ReviewSignal::VersionProposed
        })?;
        self.versions.push(version.summary.clone());
        self.secret_names.extend(version.document.secret_names());
        let stored = version.document.context.stored.keys();
        self.stored_parts.extend(stored.cloned());
        // What was requested is another plan now.
        self.requested = None;
        let before = self.current.replace(Arc::new(version));
        self.keep_for_comparison(before);
        // Consent is bound to a digest, not to words.
        for approval in &mut self.approvals {
            if draft || approval.digest != digest {
                approval.note(ApprovalSignal::Superseded);
            }
        }
        self.note_agreement(&digest, at);
        Some(())
    }

    fn note_approval(&mut self, approval: Approval) -> Option<()> {
        self.check_decision(approval.version, &approval.by)?;
        self.note_signal(ReviewSignal::Approved)?;
        let digest = approval.digest;
        let at = approval.at;
        self.approvals.push(approval);
        self.note_agreement(&digest, at);
        Some(())
    }

    fn note_rejection(&mut self, rejection: Rejection) -> Option<()> {
        self.check_decision(rejection.version, &rejection.by)?;
        let too_often = self.rejections.len() + 1 >= Self::MAX_REJECTIONS;
        self.note_end(ReviewSignal::Rejected { too_often })?;
        self.rejections.push(rejection);
        Some(())
    }

    fn note_change_request(&mut self, request: Rejection) -> Option<()> {
        self.check_decision(request.version, &request.by)?;
        self.note_end(ReviewSignal::ChangesRequested)?;
        self.change_requests.push(request);
        Some(())
    }

    /// A decision is about the current version, and made by a principal who may approve.
    fn check_decision(&self, version: u32, by: &Principal) -> Option<()> {
        self.check_current(version)?;
        by.may_approve().then_some(())
    }

    /// Notes a signal after which no approval counts: what is proposed again is agreed to again.
    fn note_end(&mut self, signal: ReviewSignal) -> Option<()> {
        self.note_signal(signal)?;
        self.note_approvals(ApprovalSignal::Withdrawn);
        self.requested = None;
        Some(())
    }

    /// Notes that a run is wanted, in place of one that was wanted before.
    fn note_request(&mut self, requested: RequestedRun) -> Option<()> {
        self.check_current(requested.version)?;
        if !self.takes_requests() {
            return None;
        }
        self.requested = Some(Box::new(requested));
        Some(())
    }

    fn note_run(&mut self, opened: OpenedRun) -> Option<()> {
        self.check_current(opened.version)?;
        let digest = opened.digest;
        let at = opened.at;
        self.usable_approvals(&digest, at)?;
        self.note_signal(ReviewSignal::RunOpened)?;
        self.spend_approvals(&opened.run, &digest, at);
        // One request is one run, regardless of who started it.
        self.requested = None;
        self.runs.push(opened);
        self.note_agreement(&digest, at);
        Some(())
    }

    /// The approvals that the run spent stay spent: it is unknown what it did with them.
    fn note_loss(&mut self, run: &RunId, by: &Principal, loss: &str, at: Timestamp) -> Option<()> {
        let place = self.runs.iter().position(|opened| opened.run == *run)?;
        self.written_off.push(WrittenOffRun {
            opened: self.runs.remove(place),
            by: by.clone(),
            loss: loss.to_owned(),
            at,
        });
        Some(())
    }

    /// Uses every approval that counts for this digest once.
    fn spend_approvals(&mut self, run: &RunId, digest: &Digest, at: Timestamp) {
        let approvals = self.approvals.iter_mut();
        for approval in approvals.filter(|approval| approval.is_usable(digest, at)) {
            approval.spend(run);
        }
    }
}

fn rejection(version: u32, by: &Principal, reason: &str, at: Timestamp) -> Rejection {
    Rejection {
        version,
        by: by.clone(),
        reason: reason.to_owned(),
        at,
    }
}
