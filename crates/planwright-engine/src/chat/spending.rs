//! The budget of a conversation, over its own calls and those of the plans that are run from it.

use planwright_core::model::{Cost, ModelUse, TokenUsage};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The most that may be spent. Nothing said: no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatBudget {
    /// Most tool calls.
    pub calls: Option<u64>,
    /// Most tokens, of questions and answers together.
    pub tokens: Option<u64>,
}

/// The spending so far. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Spending {
    budget: ChatBudget,
    spent: Arc<Mutex<Spent>>,
}

#[derive(Debug, Default)]
struct Spent {
    calls: u64,
    /// By model. What went before this process is under the model that was asked then.
    models: BTreeMap<String, (TokenUsage, Option<Cost>)>,
}

impl Spending {
    /// Begins with nothing spent.
    pub fn new(budget: ChatBudget) -> Self {
        Self {
            budget,
            ..Self::default()
        }
    }

    /// Counts one call, unless the budget is used up: then the reason.
    pub(super) fn call(&self) -> Result<(), String> {
        let mut spent = self.spent();
        match self.budget.calls {
            Some(limit) if spent.calls >= limit => {
                Err(format!("the budget of {limit} calls is used up"))
            }
            Some(_) | None => {
                spent.calls += 1;
                Ok(())
            }
        }
    }

    /// Returns whether a model may be asked.
    pub(super) fn ask(&self) -> Result<(), String> {
        match self.budget.tokens {
            Some(limit) if self.tokens().total() >= limit => {
                Err(format!("the budget of {limit} tokens is used up"))
            }
            Some(_) | None => Ok(()),
        }
    }

    pub(super) fn count_use(&self, used: &ModelUse) {
        self.add(0, used);
    }

    /// Counts what was spent before this process went on with the conversation.
    pub fn before<'a>(&self, calls: u64, models: impl IntoIterator<Item = &'a ModelUse>) {
        self.spent().calls += calls;
        models.into_iter().for_each(|used| self.add(0, used));
    }

    fn add(&self, calls: u64, used: &ModelUse) {
        let mut spent = self.spent();
        spent.calls += calls;
        let (usage, cost) = spent.models.entry(used.model.clone()).or_default();
        *usage += used.usage;
        if let Some(more) = used.cost {
            *cost.get_or_insert_default() += more;
        }
    }

    /// Returns the number of tool calls so far.
    pub fn calls(&self) -> u64 {
        self.spent().calls
    }

    /// Over all models.
    pub fn tokens(&self) -> TokenUsage {
        let mut all = TokenUsage::default();
        self.spent()
            .models
            .values()
            .for_each(|(usage, _)| all += *usage);
        all
    }

    /// Lists the models with the tokens that each took, and the cost where a price is known.
    pub fn models(&self) -> Vec<(String, TokenUsage, Option<Cost>)> {
        self.spent()
            .models
            .iter()
            .map(|(name, (usage, cost))| (name.clone(), *usage, *cost))
            .collect()
    }

    /// Returns the budget.
    pub fn budget(&self) -> ChatBudget {
        self.budget
    }

    fn spent(&self) -> MutexGuard<'_, Spent> {
        self.spent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
