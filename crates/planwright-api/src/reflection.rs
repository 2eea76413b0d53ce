//! What was said about a run as a whole.

use planwright_core::run::{CriterionCheck, Run};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// What came of looking at a run before its end.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReflectionWire {
    /// Counts from 1, over all runs of the same work.
    pub cycle: u32,
    #[schema(value_type = crate::words::AssessmentShape)]
    pub assessment: String,
    pub reasoning: String,
    #[schema(value_type = Vec<Object>)]
    pub adjustments: Vec<Value>,
}

impl ReflectionWire {
    pub(crate) fn of(run: &Run) -> Option<Self> {
        run.reflection().looked_at().map(|looked| Self {
            cycle: looked.cycle,
            assessment: looked.assessment.to_string(),
            reasoning: looked.reasoning.clone(),
            adjustments: looked
                .adjustments
                .iter()
                .map(|adjustment| serde_json::to_value(adjustment).unwrap_or_default())
                .collect(),
        })
    }
}

/// Whether a success criterion holds.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriterionWire {
    pub criterion: String,
    /// Null when neither the model nor a step could tell.
    pub holds: Option<bool>,
    pub evidence: String,
}

impl CriterionWire {
    /// The criteria of a run, as far as they were looked at.
    pub(crate) fn all_of(run: &Run) -> Vec<Self> {
        let criteria = run.reflection().criteria();
        criteria.iter().map(Self::from).collect()
    }
}

impl From<&CriterionCheck> for CriterionWire {
    fn from(check: &CriterionCheck) -> Self {
        Self {
            criterion: check.criterion.clone(),
            holds: check.holds,
            evidence: check.evidence.clone(),
        }
    }
}

/// What `check --json` prints and `POST /plan/{id}/check` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct CriteriaResult {
    pub plan_id: String,
    pub run_id: String,
    /// All of them hold.
    pub success: bool,
    pub criteria: Vec<CriterionWire>,
}

impl CriteriaResult {
    pub fn new(run: &Run) -> Self {
        Self {
            plan_id: run.plan().id().to_string(),
            run_id: run.id().to_string(),
            success: run
                .reflection()
                .criteria()
                .iter()
                .all(|check| check.holds == Some(true)),
            criteria: CriterionWire::all_of(run),
        }
    }
}
