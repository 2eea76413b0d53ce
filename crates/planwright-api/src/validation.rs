//! What `validate --json` prints.

use planwright_core::digest::Digest;
use planwright_core::plan::{Finding, Plan, StepIx};
use planwright_core::run::unit_estimate;
use serde::Serialize;

/// Everything that is wrong with a plan, and its shape if it has one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ValidationResult {
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    pub levels: Vec<Vec<String>>,
    pub critical_path: Vec<String>,
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
