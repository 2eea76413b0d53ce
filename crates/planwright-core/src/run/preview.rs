//! A run on paper: what every step would send, and what consent and the guards would say. Nothing
//! is called.

use crate::digest::Digest;
use crate::plan::{KnownValues, Plan, StepIx, known_args};
use crate::policy::{Policy, Verdict};
use crate::tool::Catalog;
use serde_json::Value;
use std::collections::BTreeMap;

/// A run on paper.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    /// The digest of what would run.
    pub digest: Digest,
    /// In plan order.
    pub steps: Vec<PreviewStep>,
    /// The steps that decide how long it takes.
    pub critical_path: Vec<StepIx>,
}

/// One step of a run on paper.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewStep {
    /// As they would be sent; what is not known yet is named by where it comes from.
    pub args: Value,
    /// The arguments for each element of a step that runs once per element, the first ones, if the
    /// list is known.
    pub items: Option<Vec<Value>>,
    /// The verdict of the policy.
    pub verdict: Verdict,
    /// The reason, in words for people.
    pub reason: String,
}

/// As many elements as are shown: enough to see what happens.
const MAX_ITEMS: usize = 100;

/// Goes through the plan in dependency order, charging the budget as a run without failures would.
pub fn preview(plan: &Plan, catalog: &Catalog, policy: &Policy, policy_version: &str) -> Preview {
    let budget = &plan.document().limits.budget;
    let judged = policy.judge_plan(plan, catalog);
    let mut steps: Vec<Option<PreviewStep>> = vec![None; plan.len()];
    let mut calls = 0_u64;
    let mut per_tool: BTreeMap<String, u64> = BTreeMap::new();
    for &ix in plan.graph().order() {
        if plan.step(ix).skip {
            let verdict = Verdict::Allow;
            let reason = "the step is left out".to_owned();
            steps[ix.index()] = Some(PreviewStep {
                args: known_args(plan, ix),
                items: None,
                verdict,
                reason,
            });
            continue;
        }
        if plan.step(ix).think.is_some() || plan.step(ix).agent.is_some() {
            let judgement = &judged.steps[ix.index()].judgement;
            let verdict = judgement.verdict;
            let reason = judgement.explain();
            steps[ix.index()] = Some(PreviewStep {
                args: known_args(plan, ix),
                items: None,
                verdict,
                reason,
            });
            continue;
        }
        if plan.step(ix).input.is_some() {
            let verdict = Verdict::Ask;
            let reason = "a person is asked for values".to_owned();
            steps[ix.index()] = Some(PreviewStep {
                args: known_args(plan, ix),
                items: None,
                verdict,
                reason,
            });
            continue;
        }
        let list = KnownValues::of(plan).elements(ix);
        let times = list.as_ref().map_or(1, Vec::len) as u64;
        let name = plan.step(ix).action_label();
        let tool = catalog.resolve(name).ok();
        let judgement = &judged.steps[ix.index()].judgement;
        let mut verdict = judgement.verdict;
        let mut reason = judgement.explain();
        // A budget may name the tool in full or bare, regardless of how the step names it.
        let names = match tool {
            Some(tool) => vec![tool.name.to_string(), tool.name.tool.clone()],
            None => vec![name.to_owned()],
        };
        let spent = |name: &String| per_tool.get(name).copied().unwrap_or_default();
        if budget.calls.is_some_and(|limit| calls + times > limit) {
            (verdict, reason) = (
                Verdict::Deny,
                "the plan's budget of calls is used up by then".to_owned(),
            );
        } else if names.iter().any(|name| {
            budget
                .per_tool
                .get(name)
                .is_some_and(|&limit| spent(name) + times > limit)
        }) {
            (verdict, reason) = (
                Verdict::Deny,
                "the plan's budget for this tool is used up by then".to_owned(),
            );
        } else {
            calls += times;
            for name in names {
                *per_tool.entry(name).or_default() += times;
            }
        }
        let items = list.map(|list| KnownValues::of(plan).element_args(ix, &list, MAX_ITEMS));
        steps[ix.index()] = Some(PreviewStep {
            args: known_args(plan, ix),
            items,
            verdict,
            reason,
        });
    }
    Preview {
        digest: plan.digest(catalog, policy_version),
        steps: steps.into_iter().flatten().collect(),
        critical_path: plan.graph().critical_path(super::unit_estimate),
    }
}
