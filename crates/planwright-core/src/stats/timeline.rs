//! The statistics by the hour, kept up to date entry by entry: a look at them reads no journal.

use super::{Durations, ModelCosts, ReviewTally, RunTally, Statistics};
use crate::id::{PlanId, RunId};
use crate::journal::Entry;
use crate::model::Cost;
use crate::plan::Plan;
use crate::review::ReviewEvent;
use crate::run::RunEvent;
use crate::status::CachedStatus;
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

const HOUR_MILLIS: i64 = 3_600_000;
const DAY_MILLIS: i64 = 24 * HOUR_MILLIS;

/// Hours with figures of their own, three years of them: those before are counted together.
const MAX_HOURS: usize = 3 * 366 * 24;

/// Everything that happened, by the hour.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    hours: BTreeMap<i64, Hour>,
    plans: BTreeMap<PlanId, ReviewTally>,
    /// Runs that have not ended.
    open_runs: BTreeMap<RunId, OpenRun>,
    /// Where each run is counted, and as what.
    statuses: BTreeMap<RunId, (i64, CachedStatus)>,
    /// The hours in which plans were rejected.
    rejections: BTreeMap<PlanId, Vec<i64>>,
    /// The calls of all hours, for predictions.
    calls: Statistics,
}

#[derive(Debug, Clone, Default)]
struct Hour {
    figures: Statistics,
    runs: RunSeries,
}

#[derive(Debug, Clone, Default)]
struct OpenRun {
    tally: RunTally,
    predicted: Option<Duration>,
    /// False for a call of an executor, which is no run of a plan.
    counts: bool,
}

/// Runs that began and ended in some time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSeries {
    /// Runs that began.
    pub begun: u64,
    /// Runs that ended, however.
    pub ended: u64,
    /// Runs that failed, or completed with failures.
    pub failed: u64,
    /// The time those that ended took, without the time in which they waited for people.
    pub took: Durations,
}

/// The figures of one day in UTC.
#[derive(Debug, Clone, Default)]
pub struct Day {
    /// The first instant of the day.
    pub begins: Option<Timestamp>,
    /// Its runs.
    pub runs: RunSeries,
    /// Calls of tools.
    pub calls: u64,
    /// Calls that failed.
    pub failed_calls: u64,
    /// Approvals by people, of plans and of steps.
    pub approvals: u64,
    /// Use of models.
    pub models: ModelCosts,
}

impl Timeline {
    /// Counts one entry of a plan's journal.
    pub fn record_review(&mut self, plan: &PlanId, entry: &Entry<ReviewEvent>) {
        let at = hour_of(entry.at);
        if !self.plans.contains_key(plan) {
            self.plans.insert(plan.clone(), ReviewTally::since(None));
        }
        if let ReviewEvent::PlanRejected { .. } = &entry.event {
            self.rejections.entry(plan.clone()).or_default().push(at);
        }
        if let Some(tally) = self.plans.get_mut(plan) {
            tally.record(entry);
            let hour = self.hours.entry(at).or_default();
            hour.figures.take_review(tally);
        }
        self.bound_hours();
    }

    /// Counts one entry of a run's journal. `predicted` is how long the run should take, when it
    /// begins.
    pub fn record_run(&mut self, id: &RunId, entry: &Entry<RunEvent>, predicted: Option<Duration>) {
        let hour = self.hours.entry(hour_of(entry.at)).or_default();
        let begins = if let RunEvent::RunStarted { parent, .. } = &entry.event {
            let is_call = parent.as_ref().is_some_and(|parent| parent.call.is_some());
            hour.runs.begun += u64::from(!is_call);
            Some(OpenRun {
                predicted,
                counts: !is_call,
                ..OpenRun::default()
            })
        } else {
            None
        };
        // What comes after the end of a run is counted too, and does not end it again.
        let mut run = match begins {
            Some(begun) => begun,
            None => self.open_runs.remove(id).unwrap_or_default(),
        };
        run.tally.record(entry);
        let mut news = Statistics::default();
        news.take_run(&mut run.tally);
        hour.figures.merge(&news);
        self.calls.merge(&Statistics {
            tools: news.tools,
            ..Statistics::default()
        });
        match run.tally.is_over() {
            false => {
                self.open_runs.insert(id.clone(), run);
            }
            true if run.counts => hour.end_run(&run, entry),
            true => {}
        }
        self.bound_hours();
    }

    /// Predicts how long a run of this plan would take, from everything that was called before.
    pub fn predict_duration(&self, plan: &Plan) -> Option<Duration> {
        self.calls.predict_duration(plan)
    }

    /// Predicts what models are paid for in a run.
    pub fn predict_cost(&self, plan: &Plan) -> Option<Cost> {
        self.calls.predict_cost(plan)
    }

    /// Says where a run stands since this instant.
    pub fn set_run_status(&mut self, run: &RunId, at: Timestamp, status: &CachedStatus) {
        let now = (hour_of(at), status.clone());
        if let Some((hour, before)) = self.statuses.insert(run.clone(), now)
            && let Some(hour) = self.hours.get_mut(&hour)
            && let Some(count) = hour.figures.runs.get_mut(before.as_str())
        {
            *count = count.saturating_sub(1);
        }
        let hour = self.hours.entry(hour_of(at)).or_default();
        *hour.figures.runs.entry(status.to_string()).or_default() += 1;
    }

    /// The figures of everything since the beginning of the hour of this instant, or ever. Plans and
    /// the tools they lack are for the caller to add.
    pub fn since(&self, since: Option<Timestamp>) -> Statistics {
        let first = since.map_or(i64::MIN, hour_of);
        let mut figures = Statistics::default();
        for (_, hour) in self.hours.range(first..) {
            figures.merge(&hour.figures);
        }
        figures.runs.retain(|_, count| *count > 0);
        let rejections = self.rejections.values();
        let most = rejections.map(|hours| hours.iter().filter(|hour| **hour >= first).count());
        figures.reviews.most_rejections = most.max().unwrap_or_default() as u64;
        figures
    }

    /// The days since then, or all, on which something happened, the first one first.
    pub fn days(&self, since: Option<Timestamp>) -> Vec<Day> {
        let first = since.map_or(i64::MIN, hour_of);
        let mut days: BTreeMap<i64, Day> = BTreeMap::new();
        for (&at, hour) in self.hours.range(first..) {
            let begins = (at * HOUR_MILLIS).div_euclid(DAY_MILLIS) * DAY_MILLIS;
            let day = days.entry(begins).or_default();
            day.begins = Some(Timestamp::from_millis(begins));
            day.add(hour);
        }
        days.into_values().collect()
    }

    /// The instant from which on things are counted for those who ask since this one.
    pub fn begins(since: Timestamp) -> Timestamp {
        Timestamp::from_millis(hour_of(since) * HOUR_MILLIS)
    }

    fn bound_hours(&mut self) {
        if self.hours.len() <= MAX_HOURS {
            return;
        }
        let Some((oldest, hour)) = self.hours.pop_first() else {
            return;
        };
        let Some((&next, kept)) = self.hours.iter_mut().next() else {
            return;
        };
        kept.figures.merge(&hour.figures);
        kept.runs.merge(&hour.runs);
        for (at, _) in self.statuses.values_mut() {
            if *at == oldest {
                *at = next;
            }
        }
    }
}

impl Hour {
    fn end_run(&mut self, run: &OpenRun, entry: &Entry<RunEvent>) {
        self.runs.ended += 1;
        let completed_badly =
            matches!(&entry.event, RunEvent::RunCompleted { failures, .. } if *failures > 0);
        let failed = completed_badly
            || matches!(
                &entry.event,
                RunEvent::RunFailed { .. } | RunEvent::RunGivenUp { .. }
            );
        self.runs.failed += u64::from(failed);
        if let Some(took) = run.tally.active_duration() {
            self.runs.took.record(took);
        }
        self.figures.add_prediction(&run.tally, run.predicted);
    }
}

impl RunSeries {
    fn merge(&mut self, other: &Self) {
        self.begun += other.begun;
        self.ended += other.ended;
        self.failed += other.failed;
        self.took.merge(&other.took);
    }
}

impl Day {
    fn add(&mut self, hour: &Hour) {
        self.runs.merge(&hour.runs);
        for tool in hour.figures.tools.values() {
            self.calls += tool.calls;
            self.failed_calls += tool.failures;
        }
        let reviews = &hour.figures.reviews;
        self.approvals += reviews.approvals + reviews.step_approvals;
        self.models.merge(&hour.figures.models);
    }
}

fn hour_of(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(HOUR_MILLIS)
}
