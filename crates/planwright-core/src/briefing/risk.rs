//! How much care a step or a plan deserves: one word for lists and filters.

use super::effect::EffectKind;
use super::model::{Briefing, StepBriefing};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much care something deserves.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Risk {
    /// Nothing is different afterwards.
    Low,
    /// Something is added, changed or sent; or something is overwritten, and the plan can undo it.
    Medium,
    /// Something may be lost, or it is not known what happens.
    High,
}

impl Risk {
    /// Returns the word for it in documents.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the risk of an effect, which the plan can undo or not.
    pub fn of_effect(kind: EffectKind, has_undo: bool) -> Self {
        match kind {
            EffectKind::Reads | EffectKind::Nothing => Self::Low,
            EffectKind::Changes | EffectKind::Sends => Self::Medium,
            EffectKind::Destroys if has_undo => Self::Medium,
            EffectKind::Destroys | EffectKind::Unknown => Self::High,
        }
    }
}

impl StepBriefing {
    /// Returns the risk of the step: of a plan that it runs, that of its riskiest step.
    pub fn risk(&self) -> Risk {
        let of_steps = self.steps.iter().map(Self::risk).max();
        of_steps.unwrap_or_else(|| Risk::of_effect(self.effect.kind, self.undo.is_some()))
    }
}

impl Briefing {
    /// Returns the risk of the plan: that of its riskiest step.
    pub fn risk(&self) -> Risk {
        let of_steps = self.steps.iter().map(StepBriefing::risk).max();
        of_steps.unwrap_or(Risk::Low)
    }
}
