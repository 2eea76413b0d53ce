//! The statistics over everything that was read.

use super::{Durations, ModelCosts, ReviewTally, RunTally};
use crate::model::Cost;
use crate::plan::Plan;
use crate::run::estimates_by_tool;
use crate::status::{CachedStatus, PlanStatus};
use std::collections::BTreeMap;
use std::mem::take;
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
    /// What models were paid for the calls whose price is known.
    pub cost: Cost,
    /// Number of those calls.
    pub priced: u64,
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

    /// Takes over what was counted of a plan so far.
    pub(super) fn take_review(&mut self, tally: &mut ReviewTally) {
        let figures = &mut self.reviews;
        figures.versions += take(&mut tally.versions);
        figures.approvals += take(&mut tally.approvals);
        figures.by_policy += take(&mut tally.by_policy);
        figures.rejections += take(&mut tally.rejections);
        figures.change_requests += take(&mut tally.change_requests);
        figures.comments += take(&mut tally.comments);
        figures.expiries += take(&mut tally.expiries);
        for time in tally.times_to_approval.drain(..) {
            figures.time_to_approval.record(time);
        }
        self.models.merge(&take(&mut tally.models));
    }

    /// Takes over what was counted of a run so far.
    pub(super) fn take_run(&mut self, tally: &mut RunTally) {
        self.add_calls(tally);
        self.models.merge(&take(&mut tally.models));
        self.reviews.step_approvals += take(&mut tally.approvals);
        self.reviews.step_denials += take(&mut tally.denials);
        self.refused += take(&mut tally.refused);
        self.let_through += take(&mut tally.let_through);
        self.reflections += take(&mut tally.reflections);
        self.adjustments += u64::from(take(&mut tally.adjusted));
    }

    /// Adds everything that another set has counted.
    pub fn merge(&mut self, other: &Self) {
        for (tool, counted) in &other.tools {
            let known = self.tools.contains_key(tool) || self.tools.len() < MAX_TOOLS;
            let name = if known { tool } else { OTHERS };
            let figures = self.tools.entry(name.to_owned()).or_default();
            figures.calls += counted.calls;
            figures.failures += counted.failures;
            figures.latency.merge(&counted.latency);
            figures.cost += counted.cost;
            figures.priced += counted.priced;
        }
        self.reviews.merge(&other.reviews);
        self.predictions.merge(&other.predictions);
        for (status, count) in &other.plans {
            *self.plans.entry(status.clone()).or_default() += count;
        }
        for (status, count) in &other.runs {
            *self.runs.entry(status.clone()).or_default() += count;
        }
        for (tool, plans) in &other.gaps {
            self.add_gaps(tool, *plans);
        }
        self.models.merge(&other.models);
        self.refused += other.refused;
        self.let_through += other.let_through;
        self.reflections += other.reflections;
        self.adjustments += other.adjustments;
        self.unreadable += other.unreadable;
    }

    /// Adds a portion of the calls of a run.
    pub fn add_calls(&mut self, tally: &mut RunTally) {
        for call in tally.calls.drain(..) {
            let known = self.tools.contains_key(&call.tool) || self.tools.len() < MAX_TOOLS;
            let name = if known { call.tool } else { OTHERS.to_owned() };
            let figures = self.tools.entry(name).or_default();
            figures.calls += 1;
            figures.failures += u64::from(!call.succeeded);
            figures.latency.record(call.took);
            if let Some(cost) = call.cost {
                figures.cost += cost;
                figures.priced += 1;
            }
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

    /// Predicts what models are paid for in a run, from what such steps cost so far. `None` if no
    /// step is known to have cost anything.
    pub fn predict_cost(&self, plan: &Plan) -> Option<Cost> {
        let costs = plan.indices().filter_map(|ix| {
            let figures = self.find_figures(plan.step(ix).action_label())?;
            figures.cost.0.checked_div(figures.priced)
        });
        costs.reduce(u64::saturating_add).map(Cost)
    }

    fn mean_latency(&self, label: &str) -> Option<Duration> {
        self.find_figures(label)?.latency.mean()
    }

    /// Journals name tools in full; plans may name them without their server.
    fn find_figures(&self, label: &str) -> Option<&ToolStats> {
        self.tools.get(label).or_else(|| {
            let mut named = self.tools.iter().filter(|(name, _)| {
                name.strip_suffix(label)
                    .is_some_and(|server| server.ends_with('.'))
            });
            named
                .next()
                .map(|(_, figures)| figures)
                .filter(|_| named.next().is_none())
        })
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
        self.add_prediction(&tally, predicted);
        self.refused += tally.refused;
        self.let_through += tally.let_through;
        self.reflections += tally.reflections;
        self.adjustments += u64::from(tally.adjusted);
        self.add_call_run(tally);
        *self.runs.entry(status.as_str().to_owned()).or_default() += 1;
    }

    /// Adds how long a run took against how long it was expected to take.
    pub(super) fn add_prediction(&mut self, tally: &RunTally, predicted: Option<Duration>) {
        let actual = tally.active_duration().filter(|_| tally.completed);
        if let (Some(predicted), Some(actual)) = (predicted, actual) {
            let figures = &mut self.predictions;
            figures.runs += 1;
            figures.predicted = figures.predicted.saturating_add(predicted);
            figures.actual = figures.actual.saturating_add(actual);
            figures.off = figures.off.saturating_add(predicted.abs_diff(actual));
        }
    }

    /// Adds a plan that asks for a tool no server offers.
    pub fn add_gap(&mut self, tool: &str) {
        self.add_gaps(tool, 1);
    }

    /// Adds so many plans that ask for a tool no server offers.
    pub fn add_gaps(&mut self, tool: &str, plans: u64) {
        let known = self.gaps.contains_key(tool) || self.gaps.len() < MAX_TOOLS;
        *self
            .gaps
            .entry(if known { tool } else { OTHERS }.to_owned())
            .or_default() += plans;
    }
}

impl ReviewStats {
    fn merge(&mut self, other: &Self) {
        self.plans += other.plans;
        self.versions += other.versions;
        self.approvals += other.approvals;
        self.by_policy += other.by_policy;
        self.step_approvals += other.step_approvals;
        self.step_denials += other.step_denials;
        self.rejections += other.rejections;
        self.most_rejections = self.most_rejections.max(other.most_rejections);
        self.change_requests += other.change_requests;
        self.comments += other.comments;
        self.expiries += other.expiries;
        self.time_to_approval.merge(&other.time_to_approval);
    }
}

impl PredictionStats {
    fn merge(&mut self, other: &Self) {
        self.runs += other.runs;
        self.predicted = self.predicted.saturating_add(other.predicted);
        self.actual = self.actual.saturating_add(other.actual);
        self.off = self.off.saturating_add(other.off);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Cause, Entry};
    use crate::plan::{Bounds, Document, validate};
    use crate::run::RunEvent;
    use crate::time::Timestamp;
    use crate::tool::Catalog;
    use serde_json::{Value, json};

    fn record(tally: &mut RunTally, event: Value) {
        tally.record(&Entry {
            seq: 1,
            at: Timestamp::from_millis(0),
            epoch: 1,
            cause: Cause::Command,
            event: serde_json::from_value::<RunEvent>(event).unwrap(),
        });
    }

    fn ask(tally: &mut RunTally, attempt: u32, cost: Option<u64>) {
        let call = format!("sha256:{}", "0".repeat(64));
        record(
            tally,
            json!({ "attempt_started": { "step": "s", "attempt": attempt, "tool": "planwright.agent",
                "class": "keyed", "call": call } }),
        );
        let usage = json!({ "input": 1, "output": 1 });
        let used = json!({ "role": "executor", "model": "m/m", "usage": usage, "cost": cost });
        record(
            tally,
            json!({ "model_used": { "step": "s", "used": used } }),
        );
    }

    fn plan(steps: Value) -> Plan {
        let text = json!({ "id": "p", "title": "P", "steps": steps }).to_string();
        let document = Document::read(text.as_bytes(), &Bounds::default()).unwrap();
        validate(document, &Catalog::default(), &Bounds::default())
            .plan
            .unwrap()
    }

    #[test]
    fn a_run_is_expected_to_cost_what_such_steps_cost_with_all_their_attempts() {
        let agent =
            |id: &str| json!({ "id": id, "title": id, "agent": { "instruction": "Do it." } });
        let asks = plan(json!([agent("a"), agent("b")]));
        let asks_nothing = plan(json!([{ "id": "a", "title": "A", "tool": "x.y" }]));
        let mut figures = Statistics::default();
        assert_eq!(figures.predict_cost(&asks), None);
        for parked_cost in [200, 400] {
            let mut tally = RunTally::default();
            ask(&mut tally, 1, Some(parked_cost));
            let run = "run_7niek65rxqpm";
            record(
                &mut tally,
                json!({ "child_parked": { "step": "s", "attempt": 1, "run": run } }),
            );
            ask(&mut tally, 2, Some(100));
            let value = json!({ "inline": "done" });
            record(
                &mut tally,
                json!({ "attempt_succeeded": { "step": "s", "attempt": 2, "value": value } }),
            );
            figures.add_calls(&mut tally);
        }
        // Twice the mean of 300 and 500.
        assert_eq!(figures.predict_cost(&asks), Some(Cost(800)));
        assert_eq!(figures.predict_cost(&asks_nothing), None);
    }

    #[test]
    fn what_has_no_price_is_not_expected_to_be_free() {
        let mut figures = Statistics::default();
        let mut tally = RunTally::default();
        ask(&mut tally, 1, None);
        let value = json!({ "inline": "done" });
        record(
            &mut tally,
            json!({ "attempt_succeeded": { "step": "s", "attempt": 1, "value": value } }),
        );
        figures.add_calls(&mut tally);
        let asks = plan(json!([{ "id": "a", "title": "A", "agent": { "instruction": "Do it." } }]));
        assert_eq!(figures.predict_cost(&asks), None);
    }
}
