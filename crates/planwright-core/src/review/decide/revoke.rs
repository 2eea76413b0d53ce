//! Voiding the approvals of a principal that no run has used.

use crate::review::{Review, ReviewEvent, ReviewRefusal, ReviewState, Revocation};
use crate::time::Timestamp;

impl Review {
    /// Nothing to void is nothing to write down.
    pub(super) fn decide_revoke(
        &self,
        revocation: &Revocation,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let Revocation {
            of,
            by,
            given,
            reason,
            policy: _,
        } = revocation;
        if !revocation.is_allowed() {
            return Err(ReviewRefusal::MayNotRevoke {
                of: of.clone(),
                by: by.clone(),
            });
        }
        Self::check_reason(reason.as_deref())?;
        let has_any = match self.state {
            ReviewState::Active(_) | ReviewState::Archived(_) => self
                .revocable(*given, now)
                .any(|approval| approval.by == *of),
            // What was deleted comes back without any consent.
            ReviewState::Deleted => false,
        };
        if !has_any {
            return Ok(Vec::new());
        }
        Ok(vec![ReviewEvent::ApprovalRevoked {
            version: self.current().number,
            of: of.clone(),
            by: by.clone(),
            given: *given,
            reason: reason.clone(),
        }])
    }
}
