//! The statistics over everything that was read.

use super::{Durations, ModelCosts, ReviewTally, RunTally};
use crate::plan::Plan;
use crate::run::estimates_by_tool;
use crate::status::{CachedStatus, PlanStatus};
use std::collections::BTreeMap;
use std::time::Duration;

/// Tools with figures of their own; the calls of any others are counted together.
const MAX_TOOLS: usize = 1000;

/// The name under which further tools are counted.
const OTHERS: &str = "(others)";

/// Everything that was counted.
#[derive(Debug, Clone, Default)]
pub struct Statistics {
    /// Calls by tool.
    pub tools: BTreeMap<String, ToolStats>,
    /// Decisions of people and policy.
    pub reviews: ReviewStats,
    /// Predicted and actual durations.
    pub predictions: PredictionStats,
    /// Number of plans by status.
    pub plans: BTreeMap<String, u64>,
    /// Number of runs by status.
    pub runs: BTreeMap<String, u64>,
    /// Tools that plans ask for and no server offers, with the number of such plans.
    pub gaps: BTreeMap<String, u64>,
    /// Use of models, for writing plans and in runs.
    pub models: ModelCosts,
    /// Calls that executors and clients wanted and that were not made.
    pub refused: u64,
    /// Calls of clients that would not have been made, had the gateway been told to enforce.
    pub let_through: u64,
    /// Number of reflections on runs.
    pub reflections: u64,
    /// Number of adjustments that followed.
    pub adjustments: u64,
    /// Journals that could not be read.
    pub unreadable: u64,
}

/// The calls of one tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolStats {
    /// Number of calls.
    pub calls: u64,
    /// Calls that failed.
    pub failures: u64,
    /// Durations of the calls.
    pub latency: Durations,
}

/// Decisions of people, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReviewStats {
    /// Number of plans.
    pub plans: u64,
    /// Number of versions.
    pub versions: u64,
    /// Given by people.
    pub approvals: u64,
    /// Approvals given by policy.
    pub by_policy: u64,
    /// Of single steps, in runs.
    pub step_approvals: u64,
    /// Denials of single steps, in runs.
    pub step_denials: u64,
    /// Rejections of versions.
    pub rejections: u64,
    /// The most often that one plan was rejected.
    pub most_rejections: u64,
    /// Requests for changes.
    pub change_requests: u64,
    /// Comments of people.
    pub comments: u64,
    /// Plans and approvals that expired.
    pub expiries: u64,
    /// Time from a proposal to its approval by a person.
    pub time_to_approval: Durations,
}

/// Predicted and actual durations of completed runs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PredictionStats {
    /// Number of completed runs with a prediction.
    pub runs: u64,
    /// Sum of the predictions.
    pub predicted: Duration,
    /// Sum of the actual durations.
    pub actual: Duration,
    /// The sum of how far each prediction was off.
    pub off: Duration,
}

impl Statistics {
    /// Adds what was said about a plan.
    pub fn add_review(&mut self, tally: &ReviewTally, status: PlanStatus) {
        let figures = &mut self.reviews;
        figures.plans += 1;
        figures.versions += tally.versions;
        figures.approvals += tally.approvals;
        figures.by_policy += tally.by_policy;
        figures.rejections += tally.rejections;
        figures.most_rejections = figures.most_rejections.max(tally.rejections);
        figures.change_requests += tally.change_requests;
        figures.comments += tally.comments;
        figures.expiries += tally.expiries;
        for &time in &tally.times_to_approval {
            figures.time_to_approval.record(time);
        }
        self.models.merge(&tally.models);
        *self.plans.entry(status.as_str().to_owned()).or_default() += 1;
    }

    /// Adds a portion of the calls of a run.
    pub fn add_calls(&mut self, tally: &mut RunTally) {
        for (tool, took, succeeded) in tally.calls.drain(..) {
            let known = self.tools.contains_key(&tool) || self.tools.len() < MAX_TOOLS;
            let figures = self
                .tools
                .entry(if known { tool } else { OTHERS.to_owned() })
                .or_default();
            figures.calls += 1;
            figures.failures += u64::from(!succeeded);
            figures.latency.record(took);
        }
    }

    /// Predicts the duration of a run: the author's estimate, else the mean latency of its tools
    /// along its longest path. `None` if nothing is known about them.
    pub fn predict_duration(&self, plan: &Plan) -> Option<Duration> {
        if let Some(seconds) = plan.document().estimated_duration {
            return Duration::try_from_secs_f64(seconds).ok();
        }
        let mut known = BTreeMap::new();
        for ix in plan.indices() {
            let label = plan.step(ix).action_label();
            if let Some(mean) = self.mean_latency(label) {
                known.insert(label.to_owned(), mean);
            }
        }
        if known.is_empty() {
            return None;
        }
        plan.graph()
            .remaining(estimates_by_tool(plan, &known))
            .into_iter()
            .max()
    }

    /// Journals name tools in full; plans may name them without their server.
    fn mean_latency(&self, label: &str) -> Option<Duration> {
        let figures = self.tools.get(label).or_else(|| {
            let mut named = self.tools.iter().filter(|(name, _)| {
                name.strip_suffix(label)
                    .is_some_and(|server| server.ends_with('.'))
            });
            named
                .next()
                .map(|(_, figures)| figures)
                .filter(|_| named.next().is_none())
        });
        figures.and_then(|figures| figures.latency.mean())
    }

    /// Adds a run that is one call of an executor: its call and what people said about it count,
    /// the run does not.
    pub fn add_call_run(&mut self, mut tally: RunTally) {
        self.add_calls(&mut tally);
        self.models.merge(&tally.models);
        self.reviews.step_approvals += tally.approvals;
        self.reviews.step_denials += tally.denials;
    }

    /// Adds a run whose journal was read to its end.
    pub fn add_run(&mut self, tally: RunTally, status: &CachedStatus, predicted: Option<Duration>) {
        let completed = tally.completed;
        let actual = tally.active_duration();
        self.refused += tally.refused;
        self.let_through += tally.let_through;
        self.reflections += tally.reflections;
        self.adjustments += u64::from(tally.adjusted);
        self.add_call_run(tally);
        *self.runs.entry(status.as_str().to_owned()).or_default() += 1;
        if let (true, Some(predicted), Some(actual)) = (completed, predicted, actual) {
            let figures = &mut self.predictions;
            figures.runs += 1;
            figures.predicted = figures.predicted.saturating_add(predicted);
            figures.actual = figures.actual.saturating_add(actual);
            figures.off = figures.off.saturating_add(predicted.abs_diff(actual));
        }
    }

    /// Adds a plan that asks for a tool no server offers.
    pub fn add_gap(&mut self, tool: &str) {
        let known = self.gaps.contains_key(tool) || self.gaps.len() < MAX_TOOLS;
        *self
            .gaps
            .entry(if known { tool } else { OTHERS }.to_owned())
            .or_default() += 1;
    }
}
