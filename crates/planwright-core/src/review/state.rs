//! Where a plan and its approvals stand: one enum each, and one table each that says what may
//! follow what.

use super::Revoked;

/// The state of a plan in its review.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewState {
    /// In use, at this stage.
    Active(ReviewStage),
    /// Put away: kept, left out of lists, and closed to decisions. It remembers its stage.
    Archived(ReviewStage),
    /// Deleted. Its journal is kept, and a new version begins it again.
    Deleted,
}

/// The stage of the current version with the people who decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReviewStage {
    /// The author still works on it. It is proposed when the author says so.
    Draft,
    /// The approvers are asked about it.
    Proposed,
    /// Enough people, or policy, agreed, and their approvals are not all used.
    Approved,
    /// An approver rejected it.
    Rejected,
    /// Rejected too often: a person has to step in.
    NeedsReview,
    /// An approver wants something changed first.
    ChangesRequested,
    /// It was not touched for too long. A new version, or proposing it again, brings it back.
    Expired,
}

/// What can happen to a plan as a whole. The last two follow from the approvals that are left; the
/// rest are journaled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReviewSignal {
    VersionDrafted,
    VersionProposed,
    DraftProposed,
    Approved,
    Rejected { too_often: bool },
    ChangesRequested,
    RunOpened,
    Expired,
    ApprovalExpired,
    ApprovalsRevoked,
    Archived,
    Unarchived,
    Deleted,
    Agreed,
    NoLongerAgreed,
}

impl ReviewState {
    /// Returns the state that follows, or `None` if the journal may not say this here.
    pub(super) fn after(self, signal: ReviewSignal) -> Option<Self> {
        use ReviewSignal as S;
        use ReviewStage as Stage;
        Some(match (self, signal) {
            // A new version brings back what was sent back, expired, archived or deleted.
            (_, S::VersionDrafted) => Self::Active(Stage::Draft),
            (_, S::VersionProposed) | (Self::Active(Stage::Draft), S::DraftProposed) => {
                Self::Active(Stage::Proposed)
            }

            // One of several who have to agree leaves the plan where it is.
            (Self::Active(Stage::Proposed | Stage::Approved | Stage::NeedsReview), S::Approved) => {
                self
            }
            (Self::Active(Stage::Proposed | Stage::Approved | Stage::NeedsReview), S::Agreed) => {
                Self::Active(Stage::Approved)
            }
            (Self::Active(Stage::Proposed | Stage::Approved), S::Rejected { too_often: false }) => {
                Self::Active(Stage::Rejected)
            }
            (Self::Active(Stage::Proposed | Stage::Approved), S::Rejected { too_often: true }) => {
                Self::Active(Stage::NeedsReview)
            }
            (Self::Active(Stage::Proposed | Stage::Approved), S::ChangesRequested) => {
                Self::Active(Stage::ChangesRequested)
            }

            // Usually the consent is used up; whether the plan is executing is the run's to say.
            (Self::Active(Stage::Proposed | Stage::Approved), S::RunOpened)
            | (Self::Active(Stage::Approved), S::ApprovalExpired | S::NoLongerAgreed) => {
                Self::Active(Stage::Proposed)
            }
            // Approvals that an edit voided can be revoked at any stage.
            (Self::Active(_) | Self::Archived(_), S::ApprovalsRevoked) => self,

            (Self::Active(Stage::Proposed | Stage::Approved), S::Expired) => {
                Self::Active(Stage::Expired)
            }
            (Self::Active(stage), S::Archived) => Self::Archived(stage),
            (Self::Archived(stage), S::Unarchived) => Self::Active(stage),
            (Self::Active(_) | Self::Archived(_), S::Deleted) => Self::Deleted,
            // No command archives a draft or an approved plan; a journal that says so is read
            // nevertheless.
            (Self::Archived(Stage::Draft), S::DraftProposed)
            | (Self::Archived(Stage::Approved), S::ApprovalExpired | S::NoLongerAgreed) => {
                Self::Archived(Stage::Proposed)
            }
            _ => return None,
        })
    }

    /// Returns the stage of the current version, also of an archived plan; `None` once the plan is
    /// deleted.
    pub const fn stage(self) -> Option<ReviewStage> {
        match self {
            Self::Active(stage) | Self::Archived(stage) => Some(stage),
            Self::Deleted => None,
        }
    }
}

/// The state of an approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ApprovalState {
    /// A run may spend it.
    Open,
    /// As many runs used it as it is good for.
    Spent,
    /// No run used it in time.
    Expired,
    /// The plan was sent back, expired or deleted before any run used the approval up.
    Withdrawn,
    /// The approver took it back, or lost their access, before it was used up.
    Revoked(Revoked),
    /// A later version does something else. One that only has other words keeps the approval.
    Superseded,
}

/// The events in the life of an approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ApprovalSignal<'a> {
    UsedUp,
    TimedOut,
    Withdrawn,
    Revoked(&'a Revoked),
    Superseded,
}

impl ApprovalState {
    /// Returns the state that follows, or `None` if an approval in this state is not concerned.
    pub(super) fn after(&self, signal: ApprovalSignal<'_>) -> Option<Self> {
        use ApprovalSignal as S;
        Some(match (self, signal) {
            (Self::Open, S::UsedUp) => Self::Spent,
            (Self::Open, S::TimedOut) => Self::Expired,
            (Self::Open, S::Withdrawn) => Self::Withdrawn,
            (Self::Open, S::Superseded) => Self::Superseded,
            // Nothing is to build on a superseded one either.
            (Self::Open | Self::Superseded, S::Revoked(revoked)) => Self::Revoked(revoked.clone()),
            _ => return None,
        })
    }
}
