//! Why there is no plan.

use crate::journal::load::LoadError;
use crate::port::{ArtifactError, ModelError};
use crate::review::plans::ReviewError;
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::id::PlanId;
use planwright_core::plan::Finding;
use planwright_core::planning::FillPromptError;
use planwright_core::review::{PlanningRecord, ReviewRefusal};
use std::fmt;

/// Why no plan was written. Nothing was stored.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// The goal is empty or blank.
    #[error("the goal is empty")]
    NoGoal,
    /// The goal exceeds its limit.
    #[error("the goal has {found} characters, at most {limit} are read")]
    GoalTooLong {
        /// Characters of the goal.
        found: usize,
        /// Most characters of a goal.
        limit: usize,
    },
    /// A prompt that replaces a built-in one cannot be filled.
    #[error(transparent)]
    Prompt(#[from] FillPromptError),
    /// The model gave no valid plan.
    #[error("{0}")]
    Failed(Box<FailedPlanning>),
    /// The caller cancelled the planning, which may have cost something already.
    #[error("cancelled")]
    Cancelled(Box<PlanningRecord>),
    /// The order names a step that the plan does not have.
    #[error("the plan has no step `{0}`")]
    NoSuchStep(String),
    /// No tool in the scope of the plan is available.
    #[error("none of the tools in the scope of plan `{0}` can be planned with")]
    NothingInScope(PlanId),
    /// A run of the plan is executing.
    #[error("plan `{0}` is executing: it is changed when the run is over, or paused and cancelled")]
    Executing(PlanId),
    /// A person has to resolve the outcome of this step first.
    #[error("the outcome of step `{0}` is unknown: a person has to resolve it first")]
    OutcomeUnknown(String),
    /// The plan could not be loaded or stored.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

impl ClassifiedError for CreateError {
    fn class(&self) -> ErrorClass {
        use ErrorKind::{Conflict, Invalid, Unavailable, Waiting};
        match self {
            Self::NoGoal => Invalid.with_code("goal_missing"),
            Self::GoalTooLong { .. } => Invalid.with_code("goal_too_long"),
            Self::Prompt(_) => Invalid.with_code("prompt_unusable"),
            Self::Failed(failed) => match &failed.cause {
                Some(cause) => cause.class(),
                None => Unavailable.with_code("no_valid_plan"),
            },
            Self::Cancelled(_) => Unavailable.with_code("planning_cancelled"),
            Self::NoSuchStep(_) => Invalid.with_code("order_names_unknown_step"),
            Self::NothingInScope(_) => Conflict.with_code("nothing_in_scope"),
            Self::Executing(_) => Conflict.with_code("plan_executing"),
            Self::OutcomeUnknown(_) => Waiting.with_code("outcome_unknown"),
            Self::Review(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Prompt(_) => Some(Hint::CorrectPrompts),
            Self::Failed(failed) => match &failed.cause {
                Some(cause) => cause.hint(),
                None => Some(Hint::RewordGoal),
            },
            Self::NothingInScope(_) => Some(Hint::PlanWithAllTools),
            Self::Review(error) => error.hint(),
            Self::NoGoal
            | Self::GoalTooLong { .. }
            | Self::Cancelled(_)
            | Self::NoSuchStep(_)
            | Self::Executing(_)
            | Self::OutcomeUnknown(_) => None,
        }
    }

    fn findings(&self) -> &[Finding] {
        match self {
            Self::Review(error) => error.findings(),
            _ => &[],
        }
    }
}

impl From<LoadError> for CreateError {
    fn from(error: LoadError) -> Self {
        Self::Review(error.into())
    }
}

impl From<ReviewRefusal> for CreateError {
    fn from(refusal: ReviewRefusal) -> Self {
        Self::Review(refusal.into())
    }
}

impl From<ArtifactError> for CreateError {
    fn from(error: ArtifactError) -> Self {
        Self::Review(error.into())
    }
}

/// A model that was asked, and gave no valid plan.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FailedPlanning {
    /// What was wrong with the answer of every round, one line each.
    pub rounds: Vec<Vec<String>>,
    /// Why the model could not be asked any more; absent if the rounds were over.
    pub cause: Option<ModelError>,
    /// Who was asked, and what it cost.
    pub planning: PlanningRecord,
}

/// Lines of one round that are shown; the rest is counted.
const MAX_LINES: usize = 3;

impl fmt::Display for FailedPlanning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{cause}")?,
            None => {
                let model = self.planning.model.as_deref().unwrap_or("the model");
                write!(
                    f,
                    "`{model}` gave no valid plan in {} rounds",
                    self.rounds.len()
                )?;
            }
        }
        for (lines, round) in self.rounds.iter().zip(1_usize..) {
            let shown = lines
                .iter()
                .take(MAX_LINES)
                .map(String::as_str)
                .collect::<Vec<_>>()
                .join("; ");
            let more = lines.len().saturating_sub(MAX_LINES);
            let more = if more > 0 {
                format!(" (and {more} more)")
            } else {
                String::new()
            };
            write!(f, "\n  round {round}: {shown}{more}")?;
        }
        Ok(())
    }
}
