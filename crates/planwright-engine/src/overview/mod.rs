//! All plans at a glance, kept up to date from the feed of the journal: lists that are searched, and
//! figures over time.

mod follow;
mod search;

pub use crate::context::PlanSummary;
pub use search::{FoundPlans, PlanOrder, PlanQuery};

use crate::context::Context;
use crate::journal::load::LoadError;
use planwright_core::model::Cost;
use planwright_core::plan::Plan;
use planwright_core::stats::{Day, Statistics, Timeline};
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The expectations of a run, as far as anything is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Forecast {
    /// The time it takes, without waiting for people.
    pub duration: Option<Duration>,
    /// The cost of the models in it.
    pub cost: Option<Cost>,
}

/// The plans of a store at a glance.
///
/// The first look reads everything; later ones read only what came since. Cheap to clone: it shares
/// the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// let figures = engine.overview().figures(None).await?;
/// assert!(figures.days.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Overview {
    context: Arc<Context>,
}

/// Figures over all plans and runs.
#[derive(Debug, Clone)]
pub struct Figures {
    /// From when on things were counted: the beginning of the hour that was asked for.
    pub since: Option<Timestamp>,
    /// All of it.
    pub total: Statistics,
    /// Day by day, the first one first.
    pub days: Vec<Day>,
}

impl Overview {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    /// Reads everything, so that the first look does not have to.
    pub async fn read_ahead(&self) -> Result<(), LoadError> {
        self.catch_up().await.map(drop)
    }

    /// Figures over everything that happened since the beginning of the hour of this instant, or
    /// ever.
    pub async fn figures(&self, since: Option<Timestamp>) -> Result<Figures, LoadError> {
        let kept = self.catch_up().await?;
        let mut total = kept.timeline.since(since);
        total.reviews.plans = kept.plans.len() as u64;
        let catalog = self.context.catalog();
        let mut wanted: BTreeMap<&str, u64> = BTreeMap::new();
        for plan in kept.plans.values() {
            let Some(status) = plan.status else {
                total.unreadable += 1;
                continue;
            };
            let status = if plan.is_archived {
                PlanStatus::Archived
            } else {
                status
            };
            *total.plans.entry(status.as_str().to_owned()).or_default() += 1;
            if !plan.is_deleted {
                for tool in &plan.tools {
                    *wanted.entry(tool).or_default() += 1;
                }
            }
        }
        for (tool, plans) in wanted {
            if catalog.lacks(tool) {
                total.add_gaps(tool, plans);
            }
        }
        Ok(Figures {
            since: since.map(Timeline::begins),
            total,
            days: kept.timeline.days(since),
        })
    }

    /// Predicts how long a run of the plan would take and what it would cost, from what was read so
    /// far; nothing where nothing is known about its tools, or the journals are just being read.
    pub fn predict_from_known(&self, plan: &Plan) -> Forecast {
        let Ok(kept) = self.context.overview.try_lock() else {
            return Forecast::default();
        };
        Forecast {
            duration: kept.timeline.predict_duration(plan),
            cost: kept.timeline.predict_cost(plan),
        }
    }
}
