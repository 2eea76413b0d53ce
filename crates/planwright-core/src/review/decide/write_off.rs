//! Ending a run that cannot be read any more. Only a person can say that a loss is accepted.

use crate::id::RunId;
use crate::policy::Permission;
use crate::principal::{Principal, PrincipalKind};
use crate::review::{Review, ReviewEvent, ReviewRefusal};
use crate::run::Refusal;

impl Review {
    /// A run that was written off before is fine as it is.
    pub(super) fn decide_write_off(
        &self,
        run: &RunId,
        by: &Principal,
        loss: &str,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        if by.kind != PrincipalKind::Person {
            return Err(Refusal::MayNot {
                by: by.clone(),
                action: Permission::Resolve,
            }
            .into());
        }
        if self.is_written_off(run) {
            return Ok(Vec::new());
        }
        if !self.runs().iter().any(|opened| opened.run == *run) {
            return Err(ReviewRefusal::NoSuchRun(run.clone()));
        }
        Ok(vec![ReviewEvent::RunWrittenOff {
            run: run.clone(),
            by: by.clone(),
            loss: loss.to_owned(),
        }])
    }
}
