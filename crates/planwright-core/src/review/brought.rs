//! The growth of a store, and the principals who cause it.

use super::ReviewEvent;
use crate::plan::Document;
use crate::principal::Principal;

impl ReviewEvent {
    /// The principal who brings this into the store, if there is a limit to how much they bring.
    ///
    /// There is none for decisions, nor for what makes room: a person who agrees, sends back, takes an
    /// approval back, archives or deletes is never refused because of what they stored before.
    pub fn brought_by(&self) -> Option<&Principal> {
        match self {
            Self::PlanProposed { by, .. }
            | Self::RunRequested { by, .. }
            | Self::CommentAdded { by, .. }
            | Self::CommentResolved { by, .. }
            | Self::CommentReopened { by, .. }
            | Self::PlanUnarchived { by } => Some(by),
            Self::DraftProposed { .. }
            | Self::PlanApproved { .. }
            | Self::PlanRejected { .. }
            | Self::RunOpened { .. }
            | Self::RunWrittenOff { .. }
            | Self::PlanDeleted { .. }
            | Self::PlanArchived { .. }
            | Self::ChangesRequested { .. }
            | Self::PlanExpired { .. }
            | Self::ApprovalExpired { .. }
            | Self::ApprovalRevoked { .. } => None,
        }
    }

    /// Bytes of the parts that a new version keeps beside the journal and the version before it,
    /// if there is one, did not.
    pub fn new_part_bytes(&self, before: Option<&Document>) -> u64 {
        let Self::PlanProposed { document, .. } = self else {
            return 0;
        };
        let was_there = |digest| {
            let parts = before
                .iter()
                .flat_map(|before| before.context.stored.values());
            parts.into_iter().any(|part| part.digest == digest)
        };
        let parts = document.context.stored.values();
        let new = parts.filter(|part| !was_there(part.digest));
        new.map(|part| part.bytes).sum()
    }
}
