//! Approving and denying single steps.

use crate::digest::Digest;
use crate::plan::StepIx;
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::run::{AskedCall, Refusal, Run, RunEvent, Shown, StepState};
use crate::time::Timestamp;

impl Run {
    pub(super) fn decide_ask_approvals(&self, now: Timestamp) -> Vec<RunEvent> {
        self.schedule()
            .unasked_steps()
            .map(|ix| self.approval_requested(ix, None, now))
            .collect()
    }

    /// Asks a person about a step, or about one concrete call of it.
    pub(super) fn approval_requested(
        &self,
        ix: StepIx,
        call: Option<Box<AskedCall>>,
        now: Timestamp,
    ) -> RunEvent {
        let span = self
            .start
            .consent
            .as_deref()
            .and_then(|consent| consent.step_expires_after);
        let expires_at = span.map(|span| now.plus(span.as_duration()));
        RunEvent::ApprovalRequested {
            step: self.step_id(ix).clone(),
            call,
            expires_at,
        }
    }

    pub(super) fn decide_approve(
        &self,
        step: &str,
        by: &Principal,
        assurance: Assurance,
        shown: Shown,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let (ix, call) = self.awaiting_approval(step, by, shown, now)?;
        if self
            .start
            .consent
            .as_deref()
            .is_some_and(|consent| consent.proposed_by.as_ref() == Some(by))
        {
            return Err(Refusal::FourEyes(by.clone()));
        }
        let step = self.step_id(ix).clone();
        Ok(vec![RunEvent::ApprovalGranted {
            step,
            by: by.clone(),
            assurance,
            call,
        }])
    }

    pub(super) fn decide_deny(
        &self,
        step: &str,
        by: &Principal,
        shown: Shown,
        reason: &str,
        now: Timestamp,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let (ix, _) = self.awaiting_approval(step, by, shown, now)?;
        let step = self.step_id(ix).clone();
        Ok(vec![RunEvent::ApprovalDenied {
            step,
            by: by.clone(),
            reason: reason.to_owned(),
        }])
    }

    /// The step that waits, and the call that was asked about. A person's word counts only for what
    /// they were shown: the concrete call if there is one, else the plan.
    fn awaiting_approval(
        &self,
        step: &str,
        by: &Principal,
        shown: Shown,
        now: Timestamp,
    ) -> Result<(StepIx, Option<Digest>), Refusal> {
        let ix = self.find_step(step)?;
        if by.kind != PrincipalKind::Person {
            return Err(Refusal::MayNotApprove(by.clone()));
        }
        let StepState::AwaitingApproval {
            call, expires_at, ..
        } = self.step(ix)
        else {
            // What was shown is checked first: a caller that looks at another plan should be told
            // that.
            shown.check(self.start.version, self.start.digest)?;
            return Err(Refusal::NothingToApprove {
                step: step.to_owned(),
                state: self.step(ix).status(),
            });
        };
        let call = call.as_ref().map(|call| call.digest);
        match call {
            Some(call) if shown != Shown::Digest(call) => {
                return Err(Refusal::Stale {
                    shown,
                    current: Shown::Digest(call),
                });
            }
            Some(_) => {}
            None => shown.check(self.start.version, self.start.digest)?,
        }
        if let Some(at) = expires_at.filter(|&at| at <= now) {
            return Err(Refusal::ApprovalExpired {
                step: step.to_owned(),
                at,
            });
        }
        Ok((ix, call))
    }
}
