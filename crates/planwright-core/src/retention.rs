//! Which journals may leave the database for a sealed file, and which sealed files may be removed.
//!
//! The caller collects the facts; the rules here read no clock and no store. A journal that a process
//! may still write to, or wait for, stays where it is.

use crate::status::RunStatus;
use crate::time::Timestamp;
use std::fmt;
use std::time::Duration;

/// Facts about a run whose journal may be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunFacts {
    /// The status that its journal folds to.
    pub status: RunStatus,
    /// Time of its last entry.
    pub last_entry_at: Timestamp,
    /// A process that is alive holds its lease.
    pub is_owned: bool,
    /// A command waits for its owner.
    pub has_messages: bool,
    /// A run that has not ended is its fork, its child, its parent, or takes it back.
    pub has_live_relative: bool,
    /// A webhook was not told of all of it.
    pub is_awaited: bool,
}

/// Facts about a plan whose journal may be sealed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanFacts {
    /// It is archived or deleted.
    pub is_put_away: bool,
    /// Time of its last entry.
    pub last_entry_at: Timestamp,
    /// An approval of it can still start a run.
    pub has_open_approval: bool,
    /// Some of its runs are still in the database.
    pub has_unsealed_runs: bool,
    /// A webhook was not told of all of it.
    pub is_awaited: bool,
}

/// Facts about a plan that may be removed with all of its runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovalFacts {
    /// It is archived or deleted.
    pub is_put_away: bool,
    /// A journal of it, or of one of its runs, is still in the database.
    pub is_partly_unsealed: bool,
    /// Time at which the last of its journals was sealed.
    pub sealed_at: Timestamp,
}

/// The reason why a journal stays in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptReason {
    /// The run has not ended.
    NotEnded,
    /// The plan is neither archived nor deleted.
    NotPutAway,
    /// A process executes the run.
    Owned,
    /// A command waits for the owner of the run.
    CommandWaiting,
    /// A run that has not ended depends on it.
    LiveRelative,
    /// An approval was not used.
    OpenApproval,
    /// Runs of the plan are still in the database.
    UnsealedRuns,
    /// A webhook was not told of all of it.
    Awaited,
}

impl fmt::Display for KeptReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotEnded => "the run has not ended",
            Self::NotPutAway => "the plan is neither archived nor deleted",
            Self::Owned => "a process executes the run",
            Self::CommandWaiting => "a command waits for the owner of the run",
            Self::LiveRelative => "a run that has not ended depends on it",
            Self::OpenApproval => "an approval of the plan was not used",
            Self::UnsealedRuns => "runs of the plan are not sealed",
            Self::Awaited => "a webhook was not told of all of it",
        })
    }
}

/// The decision about one journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionDecision {
    /// It may go now.
    Due,
    /// It may go at this time, if nothing happens until then.
    DueAt(Timestamp),
    /// It stays.
    Kept(KeptReason),
}

/// Decides whether the journal of a run may be sealed.
pub fn decide_run_sealing(
    facts: &RunFacts,
    seal_after: Duration,
    now: Timestamp,
) -> RetentionDecision {
    let reasons = [
        (!facts.status.is_terminal(), KeptReason::NotEnded),
        (facts.is_owned, KeptReason::Owned),
        (facts.has_messages, KeptReason::CommandWaiting),
        (facts.has_live_relative, KeptReason::LiveRelative),
        (facts.is_awaited, KeptReason::Awaited),
    ];
    decide(&reasons, facts.last_entry_at.plus(seal_after), now)
}

/// Decides whether the journal of a plan may be sealed.
pub fn decide_plan_sealing(
    facts: &PlanFacts,
    seal_after: Duration,
    now: Timestamp,
) -> RetentionDecision {
    let reasons = [
        (!facts.is_put_away, KeptReason::NotPutAway),
        (facts.has_open_approval, KeptReason::OpenApproval),
        (facts.has_unsealed_runs, KeptReason::UnsealedRuns),
        (facts.is_awaited, KeptReason::Awaited),
    ];
    decide(&reasons, facts.last_entry_at.plus(seal_after), now)
}

/// Decides whether a plan and its runs, all of them sealed, may be removed for good.
pub fn decide_removal(
    facts: &RemovalFacts,
    remove_after: Duration,
    now: Timestamp,
) -> RetentionDecision {
    let reasons = [
        (!facts.is_put_away, KeptReason::NotPutAway),
        (facts.is_partly_unsealed, KeptReason::UnsealedRuns),
    ];
    decide(&reasons, facts.sealed_at.plus(remove_after), now)
}

fn decide(reasons: &[(bool, KeptReason)], due_at: Timestamp, now: Timestamp) -> RetentionDecision {
    if let Some((_, reason)) = reasons.iter().find(|(applies, _)| *applies) {
        return RetentionDecision::Kept(*reason);
    }
    if due_at > now {
        return RetentionDecision::DueAt(due_at);
    }
    RetentionDecision::Due
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_hours(24);

    fn at(days: u32) -> Timestamp {
        Timestamp::from_millis(0).plus(DAY.saturating_mul(days))
    }

    fn ended() -> RunFacts {
        RunFacts {
            status: RunStatus::Completed,
            last_entry_at: at(1),
            is_owned: false,
            has_messages: false,
            has_live_relative: false,
            is_awaited: false,
        }
    }

    fn put_away() -> PlanFacts {
        PlanFacts {
            is_put_away: true,
            last_entry_at: at(1),
            has_open_approval: false,
            has_unsealed_runs: false,
            is_awaited: false,
        }
    }

    #[test]
    fn a_run_is_sealed_once_its_time_is_over() {
        assert_eq!(
            decide_run_sealing(&ended(), DAY, at(1)),
            RetentionDecision::DueAt(at(2))
        );
        assert_eq!(
            decide_run_sealing(&ended(), DAY, at(2)),
            RetentionDecision::Due
        );
    }

    #[test]
    fn only_ended_runs_are_sealed() {
        for status in RunStatus::ALL {
            let decision = decide_run_sealing(
                &RunFacts {
                    status: *status,
                    ..ended()
                },
                DAY,
                at(9),
            );
            let expected = match status.is_terminal() {
                true => RetentionDecision::Due,
                false => RetentionDecision::Kept(KeptReason::NotEnded),
            };
            assert_eq!(decision, expected, "{status}");
        }
    }

    #[test]
    fn a_run_that_anybody_needs_stays() {
        let needed = [
            (
                RunFacts {
                    is_owned: true,
                    ..ended()
                },
                KeptReason::Owned,
            ),
            (
                RunFacts {
                    has_messages: true,
                    ..ended()
                },
                KeptReason::CommandWaiting,
            ),
            (
                RunFacts {
                    has_live_relative: true,
                    ..ended()
                },
                KeptReason::LiveRelative,
            ),
            (
                RunFacts {
                    is_awaited: true,
                    ..ended()
                },
                KeptReason::Awaited,
            ),
        ];
        for (facts, reason) in needed {
            assert_eq!(
                decide_run_sealing(&facts, DAY, at(900)),
                RetentionDecision::Kept(reason)
            );
        }
    }

    #[test]
    fn a_plan_that_anybody_needs_stays() {
        assert_eq!(
            decide_plan_sealing(&put_away(), DAY, at(2)),
            RetentionDecision::Due
        );
        let needed = [
            (
                PlanFacts {
                    is_put_away: false,
                    ..put_away()
                },
                KeptReason::NotPutAway,
            ),
            (
                PlanFacts {
                    has_open_approval: true,
                    ..put_away()
                },
                KeptReason::OpenApproval,
            ),
            (
                PlanFacts {
                    has_unsealed_runs: true,
                    ..put_away()
                },
                KeptReason::UnsealedRuns,
            ),
            (
                PlanFacts {
                    is_awaited: true,
                    ..put_away()
                },
                KeptReason::Awaited,
            ),
        ];
        for (facts, reason) in needed {
            assert_eq!(
                decide_plan_sealing(&facts, DAY, at(900)),
                RetentionDecision::Kept(reason)
            );
        }
    }

    #[test]
    fn a_plan_is_removed_only_as_a_whole() {
        let whole = RemovalFacts {
            is_put_away: true,
            is_partly_unsealed: false,
            sealed_at: at(3),
        };
        assert_eq!(
            decide_removal(&whole, DAY, at(3)),
            RetentionDecision::DueAt(at(4))
        );
        assert_eq!(decide_removal(&whole, DAY, at(4)), RetentionDecision::Due);
        let partly = RemovalFacts {
            is_partly_unsealed: true,
            ..whole
        };
        assert_eq!(
            decide_removal(&partly, DAY, at(900)),
            RetentionDecision::Kept(KeptReason::UnsealedRuns)
        );
        let active = RemovalFacts {
            is_put_away: false,
            ..whole
        };
        assert_eq!(
            decide_removal(&active, DAY, at(900)),
            RetentionDecision::Kept(KeptReason::NotPutAway)
        );
    }
}
