//! The consent to a run, and the facts that decide about each of its calls.

use super::StoredValue;
use crate::digest::Digest;
use crate::policy::{CallToJudge, Cap, Judgement, LateChoice, Policy, TimeSpan};
use crate::principal::{Principal, PrincipalKind};
use crate::review::{Approval, Pin, Version};
use crate::tool::{KnownTool, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What was agreed to when the run began. Written into its first entry, so that the run carries its
/// own consent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Consent {
    /// The approvers.
    pub approved_by: Vec<Principal>,
    /// The tools that may be called, as they were defined.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub pins: BTreeMap<String, Pin>,
    /// What the approvers said about steps whose arguments were not all known. All of it holds.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub late: BTreeMap<String, Vec<LateChoice>>,
    /// The author of the plan, if they may not approve its calls either.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proposed_by: Option<Principal>,
    /// A step whose approval is not given in time fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_expires_after: Option<TimeSpan>,
    /// The same call made more often is a runaway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_call: Option<u64>,
    /// Steps that people agreed to in the run that this one goes on from, and that are just as they
    /// were. What policy agreed to since is only the change.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub agreed: BTreeSet<String>,
}

impl Consent {
    /// The consent that these approvals, spent together, give to a run.
    pub fn of(approvals: &[&Approval], version: &Version, policy: &Policy) -> Self {
        let mut late: BTreeMap<String, Vec<LateChoice>> = BTreeMap::new();
        for (step, choice) in approvals.iter().flat_map(|approval| &approval.terms.late) {
            let choices = late.entry(step.clone()).or_default();
            if !choices.contains(choice) {
                choices.push(choice.clone());
            }
        }
        // They are all of one digest, which covers the definitions: the pins are the same in each.
        let pins = approvals
            .iter()
            .flat_map(|approval| approval.terms.pins.clone())
            .collect();
        Self {
            approved_by: counting(approvals),
            pins,
            late,
            proposed_by: policy.approval.four_eyes.then(|| version.by.clone()),
            step_expires_after: policy.approval.step_expires_after,
            same_call: policy.same_call,
            agreed: BTreeSet::new(),
        }
    }

    /// Returns the first choice for late arguments that was not agreed to: a run on this consent
    /// would drop it, and what was meant to be narrow would run as wide as it was approved.
    pub fn find_choice_not_agreed<'c>(
        &self,
        chosen: &'c BTreeMap<String, LateChoice>,
    ) -> Option<(&'c String, &'c LateChoice)> {
        let is_agreed = |step: &String, choice: &LateChoice| {
            let agreed = self.late.get(step);
            agreed.is_some_and(|agreed| agreed.contains(choice))
        };
        chosen
            .iter()
            .find(|(step, choice)| !is_agreed(step, choice))
    }

    /// Returns whether a person agreed to this step: now, or before as it is now.
    pub fn is_a_persons_for(&self, step: &str) -> bool {
        self.is_a_persons() || self.agreed.contains(step)
    }

    /// The consent of a principal who was shown every call with its arguments.
    pub fn to_shown_calls(by: Principal, pins: BTreeMap<String, Pin>, policy: &Policy) -> Self {
        Self {
            approved_by: vec![by],
            pins,
            same_call: policy.same_call,
            ..Self::default()
        }
    }

    /// What this consent means for a plan that one of the steps runs: the same people, the same
    /// tools, and its own choices for arguments that are known only later.
    #[must_use]
    pub fn for_child(&self, late: BTreeMap<String, LateChoice>) -> Self {
        let late = late
            .into_iter()
            .map(|(step, choice)| (step, vec![choice]))
            .collect();
        // Other plans have steps of their own: what was agreed to before is said of no step of
        // theirs.
        Self {
            late,
            agreed: BTreeSet::new(),
            ..self.clone()
        }
    }

    /// What this consent means for one call of a step that decides while it runs: the same people, the
    /// one tool, and what was said about such calls. What was agreed to before is said of that step.
    #[must_use]
    pub fn for_call(
        &self,
        late: BTreeMap<String, Vec<LateChoice>>,
        pins: BTreeMap<String, Pin>,
    ) -> Self {
        Self {
            approved_by: self.approved_by.clone(),
            pins,
            late,
            proposed_by: self.proposed_by.clone(),
            step_expires_after: self.step_expires_after,
            same_call: self.same_call,
            agreed: self.agreed.clone(),
        }
    }

    /// Returns whether a person agreed, and not only policy.
    pub fn is_a_persons(&self) -> bool {
        self.approved_by
            .iter()
            .any(|by| by.kind == PrincipalKind::Person)
    }
}

/// Those whose yes counts: where policy agreed and not as many people as have to, it is policy's
/// alone.
fn counting(approvals: &[&Approval]) -> Vec<Principal> {
    let required = approvals
        .iter()
        .map(|approval| approval.terms.required())
        .max()
        .unwrap_or(1);
    let is_person = |approval: &&&Approval| approval.by.kind == PrincipalKind::Person;
    let enough = approvals.iter().filter(is_person).count() >= required as usize;
    let counted = approvals
        .iter()
        .filter(|approval| enough || !is_person(approval));
    counted.map(|approval| approval.by.clone()).collect()
}

/// What decides about one call besides the plan and the journal, looked up right before the call is
/// made.
#[derive(Debug, Clone, PartialEq)]
pub struct CallFacts {
    /// The definition that would be called now.
    pub definition: Digest,
    /// The change since it was pinned, in words, if there is one.
    pub changed: Option<String>,
    /// Exactly what is sent.
    pub args: Arc<Value>,
    /// The same as it can be written down: by name if it is large.
    pub shown: Option<StoredValue>,
    /// Some of the arguments come from results.
    pub late: bool,
    /// The judgement of the policy.
    pub judgement: Judgement,
    /// The limits of the operator that apply.
    pub caps: Vec<Cap>,
}

impl CallFacts {
    /// Judges a call with the arguments that are sent.
    pub fn new(
        policy: &Policy,
        tool: &KnownTool,
        args: Arc<Value>,
        late: bool,
        subject: &CallToJudge<'_>,
    ) -> Self {
        Self {
            definition: tool.digest(),
            changed: None,
            judgement: policy.judge_call(subject),
            caps: policy.caps_for_tool(tool),
            args,
            shown: None,
            late,
        }
    }
}

impl CallFacts {
    /// Gathers what decides about a step that a model or an executor works on.
    pub fn of_model(call: Digest, args: Arc<Value>, judgement: Judgement) -> Self {
        Self {
            definition: call,
            changed: None,
            args,
            shown: None,
            late: false,
            judgement,
            caps: Vec::new(),
        }
    }

    /// Gathers what decides about a step that runs another plan, as that plan is now.
    pub fn of_child(plan: Digest, args: Arc<Value>, late: bool, judgement: Judgement) -> Self {
        Self {
            definition: plan,
            changed: None,
            args,
            shown: None,
            late,
            judgement,
            caps: Vec::new(),
        }
    }
}

/// A call that a person is asked about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// The digest of the tool's name and the arguments: an approval covers exactly this.
    pub digest: Digest,
    /// The tool that is called.
    pub tool: ToolName,
    /// The arguments.
    pub args: StoredValue,
    /// Why it is asked about.
    pub reason: String,
}
