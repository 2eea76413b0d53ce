//! Approving and denying single steps.

use crate::plan::StepIx;
use crate::principal::{Assurance, Principal};
use crate::run::{Refusal, Run, RunEvent, Shown, StepState};

impl Run {
    pub(super) fn decide_ask_approvals(&self) -> Vec<RunEvent> {
        self.unasked().map(|ix| RunEvent::ApprovalRequested { step: self.step_id(ix).clone() }).collect()
    }

    pub(super) fn decide_approve(
        &self,
        step: &str,
        by: &Principal,
        assurance: Assurance,
        shown: Shown,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let ix = self.awaiting_approval(step, by, shown)?;
        Ok(vec![RunEvent::ApprovalGranted { step: self.step_id(ix).clone(), by: by.clone(), assurance }])
    }

    pub(super) fn decide_deny(
        &self,
        step: &str,
        by: &Principal,
        shown: Shown,
        reason: &str,
    ) -> Result<Vec<RunEvent>, Refusal> {
        let ix = self.awaiting_approval(step, by, shown)?;
        let step = self.step_id(ix).clone();
        Ok(vec![RunEvent::ApprovalDenied { step, by: by.clone(), reason: reason.to_owned() }])
    }

    fn awaiting_approval(&self, step: &str, by: &Principal, shown: Shown) -> Result<StepIx, Refusal> {
        let ix = self.find_step(step)?;
        if !by.may_approve() {
            return Err(Refusal::MayNotApprove(by.clone()));
        }
        shown.check(self.start.version, self.start.digest)?;
        if !matches!(self.step(ix), StepState::AwaitingApproval { .. }) {
            return Err(Refusal::NothingToApprove { step: step.to_owned(), state: self.step(ix).name() });
        }
        Ok(ix)
    }
}
