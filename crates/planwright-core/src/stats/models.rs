//! Use of models.

use crate::model::{Cost, ModelUse, TokenUsage};
use std::collections::BTreeMap;

/// Models with figures of their own; any others are counted together.
const MAX_MODELS: usize = 200;

const OTHERS: &str = "(others)";

/// Requests to one model and their cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ModelStats {
    /// Answers that were paid for.
    pub answers: u64,
    /// Tokens of all requests.
    pub usage: TokenUsage,
    /// As far as prices are known.
    pub cost: Cost,
    /// Answers for which no price is known.
    pub unpriced: u64,
}

impl ModelStats {
    fn record(&mut self, used: &ModelUse) {
        self.answers += 1;
        self.usage += used.usage;
        match used.cost {
            Some(cost) => self.cost += cost,
            None => self.unpriced += 1,
        }
    }

    fn merge(&mut self, other: &Self) {
        self.answers += other.answers;
        self.usage += other.usage;
        self.cost += other.cost;
        self.unpriced += other.unpriced;
    }
}

/// Requests to all models, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelCosts(BTreeMap<String, ModelStats>);

impl ModelCosts {
    /// Counts one use of a model.
    pub fn record(&mut self, used: &ModelUse) {
        let known = self.0.contains_key(&used.model) || self.0.len() < MAX_MODELS;
        let name = if known { &*used.model } else { OTHERS };
        self.0.entry(name.to_owned()).or_default().record(used);
    }

    /// Adds the counts of another set.
    pub fn merge(&mut self, other: &Self) {
        for (model, figures) in &other.0 {
            let known = self.0.contains_key(model) || self.0.len() < MAX_MODELS;
            let name = if known { model } else { OTHERS };
            self.0.entry(name.to_owned()).or_default().merge(figures);
        }
    }

    /// Returns whether no model was used.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over the models in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &ModelStats)> {
        self.0
            .iter()
            .map(|(model, figures)| (model.as_str(), figures))
    }

    /// All models together.
    pub fn total(&self) -> ModelStats {
        let mut total = ModelStats::default();
        self.0.values().for_each(|figures| total.merge(figures));
        total
    }
}
