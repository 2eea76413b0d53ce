//! The origin of a version of a plan that a model or a rule of thumb wrote.

use crate::json::is_default;
use crate::model::{Cost, ModelUse, TokenUsage};
use crate::planning::Explored;
use serde::{Deserialize, Serialize};

/// The record of planning a version: the models, the rounds, and the cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanningRecord {
    /// The model that wrote it; absent when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The number of times it was asked before the plan was valid.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rounds: u32,
    /// The use of every round, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<ModelUse>,
    /// The calls with which the model looked around before it answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explored: Option<Explored>,
    /// No model wrote it: it was put together from the words of its goal, for a person to finish.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fallback: bool,
}

impl PlanningRecord {
    /// A draft that no model wrote.
    pub fn fallback() -> Self {
        Self {
            fallback: true,
            ..Self::default()
        }
    }

    /// The tokens of all rounds together.
    pub fn usage(&self) -> TokenUsage {
        let mut total = TokenUsage::default();
        self.used.iter().for_each(|used| total += used.usage);
        total
    }

    /// Adds up the cost of all rounds, as far as prices are known.
    pub fn cost(&self) -> Option<Cost> {
        total_cost(&self.used)
    }
}

fn total_cost(used: &[ModelUse]) -> Option<Cost> {
    used.iter()
        .filter_map(|used| used.cost)
        .reduce(|mut total, cost| {
            total += cost;
            total
        })
}
