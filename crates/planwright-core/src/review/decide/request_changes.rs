//! Asking the author to change something. This is no rejection and counts for no round.

use crate::digest::Digest;
use crate::principal::Principal;
use crate::review::{Review, ReviewEvent, ReviewRefusal};
use crate::run::Shown;

impl Review {
    pub(super) fn decide_request_changes(
        &self,
        shown: Shown,
        digest: Digest,
        by: &Principal,
        reason: &str,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        let version = self.check_returnable(shown, digest, by)?;
        Ok(vec![ReviewEvent::ChangesRequested {
            version,
            by: by.clone(),
            reason: reason.to_owned(),
        }])
    }
}
