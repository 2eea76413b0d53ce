//! How a version of a plan came about, when a model or a rule of thumb wrote it.

use crate::json::is_default;
use crate::model::{Cost, ModelUse, TokenUsage};
use crate::planning::Explored;
use serde::{Deserialize, Serialize};

/// What is remembered about planning a version: who was asked, how often, and what it cost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanningRecord {
    /// The model that wrote it; absent when none did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How often it was asked before the plan was valid.
    #[serde(default, skip_serializing_if = "is_default")]
    pub rounds: u32,
    /// What every round used, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used: Vec<ModelUse>,
    /// What the model looked at before it answered.
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

    /// What all rounds cost together, as far as prices are known.
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
