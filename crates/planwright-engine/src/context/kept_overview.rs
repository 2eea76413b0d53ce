//! The overview of all plans in memory, so that lists and figures read no journal.

use crate::port::Position;
use planwright_core::id::{PlanId, RunId};
use planwright_core::principal::Principal;
use planwright_core::stats::Timeline;
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;
use std::collections::{BTreeMap, BTreeSet};

/// A plan as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanSummary {
    /// Id of the plan.
    pub id: PlanId,
    /// The title; else the beginning of the goal.
    pub title: String,
    /// Where it stands; nothing if it cannot be read.
    pub status: Option<PlanStatus>,
    /// True if it was put away.
    pub is_archived: bool,
    /// True if it was deleted.
    pub is_deleted: bool,
    /// The current version.
    pub version: u32,
    /// The number of its steps.
    pub steps: usize,
    /// The principal who brought the first version.
    pub author: Option<Principal>,
    /// The tools that its steps call or that it asks for, as it names them.
    pub tools: BTreeSet<String>,
    /// Labels of its steps.
    pub labels: BTreeSet<String>,
    /// True if it is a conversation, or the session of a client.
    pub is_conversation: bool,
    /// True if it takes inputs.
    pub is_template: bool,
    /// When it was brought.
    pub created_at: Timestamp,
    /// When something was last said or changed about it.
    pub updated_at: Timestamp,
    /// When anything last happened, in its runs too.
    pub active_at: Timestamp,
    /// Steps of its latest run that are over, and all of them, while that run has not ended.
    pub progress: Option<(usize, usize)>,
    /// Why it cannot be read.
    pub damage: Option<String>,
    /// The text that searches look through, in lower case.
    pub(crate) text: String,
}

/// A run that was begun.
#[derive(Debug, Clone)]
pub(crate) struct SeenRun {
    pub(crate) plan: PlanId,
    /// True for a call of an executor, which is no run of a plan.
    pub(crate) is_call: bool,
}

/// Everything that was read so far.
#[derive(Debug, Default)]
pub(crate) struct KeptOverview {
    /// The position up to which the feed was read.
    pub(crate) position: Position,
    pub(crate) timeline: Timeline,
    pub(crate) plans: BTreeMap<PlanId, PlanSummary>,
    pub(crate) runs: BTreeMap<RunId, SeenRun>,
    /// When something last happened in a run of a plan.
    pub(crate) run_activity: BTreeMap<PlanId, Timestamp>,
    /// Plans whose summary is out of date.
    pub(crate) changed_plans: BTreeSet<PlanId>,
    /// Runs whose status is out of date.
    pub(crate) changed_runs: BTreeSet<RunId>,
    /// When it was last checked which plans were removed for good.
    pub(crate) swept_at: Option<Timestamp>,
}
