//! The word that a store keeps beside a journal.

use super::{PlanStatus, RunStatus};
use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

/// The status that a store keeps beside the journal of a plan or a run, so that lists need not
/// read journals.
///
/// It only says which journals are worth reading; what is shown or decided is folded from the
/// journal. A word of a newer version is [`CachedStatus::Other`]: it is kept as it is, matches no
/// search, and counts neither as over nor as deleted, so that its journal is read and the fold
/// refuses what it does not know.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CachedStatus {
    /// A plan that its author still works on.
    Draft,
    /// A plan that people are asked about.
    Proposed,
    /// A plan with an approval that no run has used up.
    Approved,
    /// A plan that an approver rejected.
    Rejected,
    /// A plan that was rejected too often.
    NeedsReview,
    /// A plan that an approver wants changed.
    ChangesRequested,
    /// A plan that was not touched for too long.
    Expired,
    /// A plan whose run used its approval up: the run says more than the plan.
    Opened,
    /// A plan that was put away.
    Archived,
    /// A plan that was deleted.
    Deleted,
    /// A run.
    Run(RunStatus),
    /// A word that this version does not know.
    Other(String),
}

impl CachedStatus {
    /// The words of plans.
    const PLANS: [Self; 10] = [
        Self::Draft,
        Self::Proposed,
        Self::Approved,
        Self::Rejected,
        Self::NeedsReview,
        Self::ChangesRequested,
        Self::Expired,
        Self::Opened,
        Self::Archived,
        Self::Deleted,
    ];

    /// Returns the word that is stored.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Draft => PlanStatus::Draft.as_str(),
            Self::Proposed => PlanStatus::Proposed.as_str(),
            Self::Approved => PlanStatus::Approved.as_str(),
            Self::Rejected => PlanStatus::Rejected.as_str(),
            Self::NeedsReview => PlanStatus::NeedsReview.as_str(),
            Self::ChangesRequested => PlanStatus::ChangesRequested.as_str(),
            Self::Expired => PlanStatus::Expired.as_str(),
            Self::Opened => "opened",
            Self::Archived => PlanStatus::Archived.as_str(),
            Self::Deleted => PlanStatus::Deleted.as_str(),
            Self::Run(status) => status.as_str(),
            Self::Other(word) => word,
        }
    }

    /// Returns the status of the run, if it is the word of one.
    pub const fn run_status(&self) -> Option<RunStatus> {
        if let Self::Run(status) = self {
            Some(*status)
        } else {
            None
        }
    }
}

impl From<PlanStatus> for CachedStatus {
    fn from(status: PlanStatus) -> Self {
        match status {
            PlanStatus::Draft => Self::Draft,
            PlanStatus::Proposed => Self::Proposed,
            PlanStatus::Approved => Self::Approved,
            PlanStatus::Rejected => Self::Rejected,
            PlanStatus::NeedsReview => Self::NeedsReview,
            PlanStatus::ChangesRequested => Self::ChangesRequested,
            PlanStatus::Expired => Self::Expired,
            PlanStatus::Archived => Self::Archived,
            PlanStatus::Deleted => Self::Deleted,
            PlanStatus::Executing => Self::Run(RunStatus::Executing),
            PlanStatus::Waiting => Self::Run(RunStatus::Waiting),
            PlanStatus::Paused => Self::Run(RunStatus::Paused),
            PlanStatus::Stalled => Self::Run(RunStatus::Stalled),
            PlanStatus::Completed => Self::Run(RunStatus::Completed),
            PlanStatus::CompletedWithFailures => Self::Run(RunStatus::CompletedWithFailures),
            PlanStatus::Failed => Self::Run(RunStatus::Failed),
            PlanStatus::Cancelled => Self::Run(RunStatus::Cancelled),
        }
    }
}

impl From<RunStatus> for CachedStatus {
    fn from(status: RunStatus) -> Self {
        Self::Run(status)
    }
}

impl From<String> for CachedStatus {
    fn from(word: String) -> Self {
        if let Some(known) = Self::PLANS.iter().find(|known| known.as_str() == word) {
            return known.clone();
        }
        match word.parse() {
            Ok(status) => Self::Run(status),
            Err(_) => Self::Other(word),
        }
    }
}

impl From<&str> for CachedStatus {
    fn from(word: &str) -> Self {
        Self::from(word.to_owned())
    }
}

impl FromStr for CachedStatus {
    type Err = Infallible;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Ok(Self::from(word))
    }
}

impl fmt::Display for CachedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_read_back_as_itself() {
        let runs = RunStatus::ALL
            .iter()
            .map(|status| CachedStatus::Run(*status));
        for status in CachedStatus::PLANS.into_iter().chain(runs) {
            assert_eq!(CachedStatus::from(status.as_str()), status);
            assert!(!matches!(status, CachedStatus::Other(_)));
        }
    }

    #[test]
    fn a_word_of_a_newer_version_is_kept_as_it_is() {
        let unknown = CachedStatus::from("hibernating");
        assert_eq!(unknown, CachedStatus::Other("hibernating".to_owned()));
        assert_eq!(unknown.as_str(), "hibernating");
        assert_eq!(unknown.run_status(), None);
    }
}
