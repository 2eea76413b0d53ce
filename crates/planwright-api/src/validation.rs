//! What `validate --json` prints and `POST /validate` answers, and checks of parts of a plan.

use planwright_core::digest::Digest;
use planwright_core::plan::{Condition, Finding, Plan, StepIx};
use planwright_core::run::unit_estimate;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// Everything that is wrong with a plan, and its shape if it has one.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ValidationResult {
    /// Whether the plan could run as it is.
    pub ok: bool,
    /// What an approval of it would cover; absent unless it is ok.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Steps grouped by the longest chain before them.
    pub levels: Vec<Vec<String>>,
    /// The longest chain of steps.
    pub critical_path: Vec<String>,
    /// Errors first.
    #[schema(value_type = Vec<crate::FindingShape>)]
    pub findings: Vec<Finding>,
}

impl ValidationResult {
    pub fn new(plan: Option<&Plan>, digest: Option<Digest>, findings: Vec<Finding>) -> Self {
        let ok = !findings.iter().any(Finding::is_error);
        let name = |plan: &Plan, ix: &StepIx| plan.step_id(*ix).to_string();
        let mut levels = Vec::new();
        let mut critical_path = Vec::new();
        if let Some(plan) = plan {
            let names = |level: &Vec<StepIx>| level.iter().map(|ix| name(plan, ix)).collect();
            levels = plan.graph().levels().iter().map(names).collect();
            critical_path = plan
                .graph()
                .critical_path(unit_estimate)
                .iter()
                .map(|ix| name(plan, ix))
                .collect();
        }
        Self {
            ok,
            digest: digest.filter(|_| ok).map(|digest| digest.to_string()),
            levels,
            critical_path,
            findings,
        }
    }
}

/// What is to be said about a CEL expression.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionResult {
    /// Whether it can be read, and, where values were given, decided.
    pub ok: bool,
    /// The names that it takes from outside.
    pub names: Vec<String>,
    /// What it comes to with the values that were given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holds: Option<bool>,
    /// Why it cannot be read or decided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl ExpressionResult {
    /// Reads an expression, and decides it if values are given.
    pub fn new(source: &str, values: Option<&Map<String, Value>>) -> Self {
        let condition = match Condition::parse(source) {
            Ok(condition) => condition,
            Err(error) => {
                return Self {
                    ok: false,
                    names: Vec::new(),
                    holds: None,
                    error: Some(error),
                };
            }
        };
        let decided = values.map(|values| {
            let names = values.iter().map(|(name, value)| (name.as_str(), value));
            condition.holds(names)
        });
        let (holds, error) = match decided {
            None => (None, None),
            Some(Ok(holds)) => (Some(holds), None),
            Some(Err(error)) => (None, Some(error)),
        };
        Self {
            ok: error.is_none(),
            names: condition.names().into_iter().collect(),
            holds,
            error,
        }
    }
}
