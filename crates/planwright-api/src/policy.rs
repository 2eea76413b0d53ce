//! What the policy says about a plan, as other programs see it.

use planwright_core::policy::{JudgedPlan, JudgedStep, LateChoice, UnenforcedRule};
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// What `policy explain --json` prints and `POST /policy/explain` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyExplanation {
    pub plan_id: String,
    pub digest: String,
    /// Part of every digest.
    pub policy_version: String,
    /// What the plan as a whole comes to: `allow`, `ask` or `deny`.
    pub verdict: String,
    pub steps: Vec<StepVerdict>,
}

/// One step, judged on what is known before it runs.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepVerdict {
    pub step: String,
    pub tool: String,
    #[schema(value_type = crate::words::VerdictShape)]
    pub verdict: String,
    /// Null when a default decided.
    pub rule: Option<String>,
    pub reason: String,
    /// Rules that matched and are not enforced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub noticed: Vec<NoticedRule>,
    /// Rules that are decided once the arguments are known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
    /// Arguments that are only known later.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub late: Vec<String>,
    /// What holds for them: `any`, `ask` or a constraint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_choice: Option<String>,
    /// What is said about the call that takes the step back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoticedRule {
    pub rule: String,
    #[schema(value_type = crate::words::VerdictShape)]
    pub verdict: String,
    #[schema(value_type = crate::words::RuleModeShape)]
    pub mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl StepVerdict {
    /// Every step of a plan, with what would hold for its late arguments.
    pub fn of(judged: &JudgedPlan, late: &BTreeMap<String, LateChoice>) -> Vec<Self> {
        judged
            .steps
            .iter()
            .map(|step| Self::new(step, late))
            .collect()
    }

    fn new(step: &JudgedStep, late: &BTreeMap<String, LateChoice>) -> Self {
        let JudgedStep {
            step: id,
            tool,
            judgement,
            undo,
            late: arguments,
        } = step;
        let noticed = |noticed: &UnenforcedRule| NoticedRule {
            rule: noticed.rule.clone(),
            verdict: noticed.verdict.as_str().to_owned(),
            mode: noticed.mode.as_str().to_owned(),
            reason: noticed.reason.clone(),
        };
        Self {
            step: id.to_string(),
            tool: tool.clone(),
            verdict: judgement.verdict.as_str().to_owned(),
            rule: judgement.rule.clone(),
            reason: judgement.reason.clone(),
            noticed: judgement.noticed.iter().map(noticed).collect(),
            undecided: judgement.undecided.clone(),
            late: arguments.clone(),
            late_choice: late.get(id.as_str()).map(ToString::to_string),
            undo: undo
                .as_ref()
                .map(|undo| format!("{} ({})", undo.verdict.as_str(), undo.explain())),
        }
    }
}
