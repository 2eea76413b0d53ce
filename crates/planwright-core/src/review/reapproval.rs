//! Approvals that an edit voided, so that people are asked about the change and not about everything
//! again.

use super::approval::{are_enough, first_of_each};
use super::{Approval, ApprovalState, BuildsOn, Review};
use crate::id::StepId;
use crate::plan::{Context, Plan, StepIx, executable_step, known_args};
use crate::policy::JudgedPlan;
use crate::time::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

impl Review {
    /// The version whose approval an edit voided before it was used, if nothing was agreed to
    /// since.
    pub fn approval_before_edit(&self, now: Timestamp) -> Option<BuildsOn> {
        let last = self.approvals.last()?;
        let counts = |approval: &&Approval| {
            approval.state == ApprovalState::Superseded
                && !approval.has_expired(now)
                && approval.version == last.version
                && approval.digest == last.digest
        };
        let given = first_of_each(self.approvals.iter().rev().filter(counts));
        are_enough(&given).then_some(BuildsOn {
            version: last.version,
            digest: last.digest,
        })
    }
}

/// The steps of `after` that are just as they were agreed to: the same call with the same known
/// arguments, after the same steps, with the same verdict, and with no other tools for its
/// executor. Tools and policy have to be those of the agreement; the caller has checked that.
pub fn steps_already_approved(
    (before, judged_before): (&Plan, &JudgedPlan),
    (after, judged_after): (&Plan, &JudgedPlan),
) -> Vec<StepId> {
    let is_same = |ix: &StepIx| {
        let id = after.step_id(*ix);
        let Some(was) = before.find(id.as_str()) else {
            return false;
        };
        let verdict = |judged: &JudgedPlan, ix: StepIx| {
            let step = &judged.steps[ix.index()];
            (
                step.judgement.verdict,
                step.undo.as_ref().map(|undo| undo.verdict),
                step.late.clone(),
            )
        };
        executable(before, was) == executable(after, *ix)
            && known_args(before, was) == known_args(after, *ix)
            && executor_words(before, was) == executor_words(after, *ix)
            && executor_tools(after, *ix).is_subset(&executor_tools(before, was))
            && verdict(judged_before, was) == verdict(judged_after, *ix)
    };
    after
        .indices()
        .filter(is_same)
        .map(|ix| after.step_id(ix).clone())
        .collect()
}

/// The context that an executor of the step is told beyond the step itself.
fn executor_words(plan: &Plan, ix: StepIx) -> Option<(Option<&str>, Option<&Context>)> {
    plan.step(ix).agent.as_ref()?;
    let document = plan.document();
    Some((
        document.goal_for_executors(),
        document.context_for_executors(),
    ))
}

/// What an executor of the step may call. Steps that are added can bring tools into the scope of
/// others.
fn executor_tools(plan: &Plan, ix: StepIx) -> BTreeSet<&str> {
    let works = plan.step(ix).agent.is_some();
    plan.document()
        .agent_tools()
        .into_iter()
        .filter(|_| works)
        .collect()
}

/// What is executed of a step: everything but its words, with the edges that references make.
fn executable(plan: &Plan, ix: StepIx) -> Value {
    let after: BTreeSet<&str> = plan
        .graph()
        .dependencies(ix)
        .iter()
        .map(|&dependency| plan.step_id(dependency).as_str())
        .collect();
    executable_step(plan.step(ix), after.into_iter().collect())
}
