//! Looking at a run before it ends, and going on in another one.

use crate::digest::Digest;
use crate::id::RunId;
use crate::model::ModelRole;
use crate::plan::Limits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The bounds of reflecting and adjusting, and how much of them is used up. Carried from run to
/// run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Reflection {
    /// The number of times a run is looked at, over all runs of the same work.
    pub max_cycles: u32,
    /// The number of times the rest may be planned anew.
    pub max_replans: u32,
    /// The spending before this run began.
    pub cycles: u32,
    /// The number of times the rest was planned anew.
    pub replans: u32,
    /// The run that this one goes on from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<RunId>,
    /// A run in which nothing failed ends without being looked at.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failures_only: bool,
    /// No model is asked any more once so many tokens were used, over all runs of the same work.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
    /// The rest was planned anew before. A plan of that kind that fails is not planned anew once
    /// more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub replanned: bool,
    /// What failed how, and what was tried then: the same again is no progress.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<Digest>,
    /// The spending of the earlier runs of the same work.
    #[serde(skip_serializing_if = "Spent::is_nothing")]
    pub spent: Spent,
}

/// What runs have spent of a budget that later runs share with them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spent {
    /// The number of calls.
    pub calls: u64,
    /// The tokens that models used.
    pub tokens: u64,
    /// The time in which they were executed.
    pub millis: u64,
    /// The number of calls of each tool that has a limit.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub per_tool: BTreeMap<String, u64>,
    /// The number of times each call was made.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub same_call: BTreeMap<Digest, u64>,
}

impl Spent {
    fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

impl Reflection {
    /// The number of times a run is looked at, unless the caller or the plan says otherwise.
    pub const DEFAULT_MAX_CYCLES: u32 = 3;
    /// The upper bound, regardless of what the caller or the plan asks for.
    pub const MAX_CYCLES: u32 = 100;
}

/// The caller's choices about reflection when it starts a run.
#[derive(Debug, Clone, Copy, Default)]
pub struct ReflectionWish {
    /// The run is looked at before it ends.
    pub reflect: bool,
    /// The rest may be planned anew.
    pub replan: bool,
    /// The number of times a run is looked at.
    pub max_cycles: Option<u32>,
    /// The number of times the rest may be planned anew.
    pub max_replans: Option<u32>,
    /// The tokens that models may use.
    pub max_tokens: Option<u64>,
}

impl ReflectionWish {
    /// The roles whose models will be asked.
    pub fn roles(&self) -> impl Iterator<Item = ModelRole> {
        let roles = [
            (self.reflect, ModelRole::Reflector),
            (self.replan, ModelRole::Planner),
        ];
        roles
            .into_iter()
            .filter_map(|(wanted, role)| wanted.then_some(role))
    }

    /// The bounds that follow, with those of the plan where nothing else was said.
    pub fn bounds(&self, limits: &Limits) -> Option<Reflection> {
        if !self.reflect && !self.replan {
            return None;
        }
        let cycles = self
            .max_cycles
            .or(limits.max_cycles)
            .unwrap_or(Reflection::DEFAULT_MAX_CYCLES);
        let replans = self.max_replans.or(limits.max_replans).unwrap_or(1);
        Some(Reflection {
            max_cycles: if self.reflect {
                cycles.min(Reflection::MAX_CYCLES)
            } else {
                0
            },
            max_replans: if self.replan {
                replans.min(Reflection::MAX_CYCLES)
            } else {
                0
            },
            max_tokens: self.max_tokens,
            ..Reflection::default()
        })
    }
}

/// Whether a success criterion of the plan holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CriterionCheck {
    /// The criterion, as the plan has it.
    pub criterion: String,
    /// Absent when it could not be determined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// The evidence for it or against it, as the model or the step says.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub evidence: String,
}
