//! The digest an approval is bound to: it covers everything that changes what is executed.

use super::{Document, Plan, Step};
use crate::digest::{Digest, DigestWriter, canonical_json};
use crate::id::PlanId;
use crate::tool::{Catalog, KnownTool};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What the digest of a plan covers around its steps, as it is hashed.
#[derive(Debug, Clone)]
pub struct DigestFrame {
    before: Vec<u8>,
    after: Vec<u8>,
}

impl DigestFrame {
    /// Takes what the digest of a plan covers besides the steps, for plans that differ from it only in
    /// words and in the arguments of their steps.
    pub fn of(plan: &Plan, catalog: &Catalog, policy_version: &str) -> Self {
        let bytes = |steps: &str| {
            let steps = json!(steps);
            let covered = plan.digested(steps, catalog, policy_version, &mut BTreeMap::new());
            canonical_json(&covered)
        };
        // They differ in one byte, and that is where the digest of the steps belongs.
        let mut before = bytes("0");
        let other = bytes("1");
        let differ = before.iter().zip(&other).position(|(one, two)| one != two);
        let after = before.split_off(differ.unwrap_or(before.len()));
        Self {
            before,
            after: after.into_iter().skip(1).collect(),
        }
    }

    /// The [digest](Plan::digest) of a plan of which everything but the steps was digested before.
    pub fn digest(&self, plan: &Plan) -> Digest {
        let steps = plan.digest_of_steps().to_string();
        let parts = [&self.before, steps.as_bytes(), &self.after];
        Digest::of_bytes(&parts.concat())
    }
}

impl Plan {
    /// The digest of what this plan executes, with the tools as they are defined and under a
    /// policy.
    ///
    /// Titles, goals, notes and labels are left out: people may reword a plan without asking again,
    /// unless an executor is told these words. Everything else is in, also what this version does not execute, so that a field can never be
    /// smuggled past an approval.
    pub fn digest(&self, catalog: &Catalog, policy_version: &str) -> Digest {
        self.digest_within(catalog, policy_version, &mut BTreeMap::new())
    }

    /// `known` holds the digests of sub-plans that were taken already: each is taken once, however
    /// many steps run the sub-plan.
    fn digest_within(
        &self,
        catalog: &Catalog,
        policy_version: &str,
        known: &mut BTreeMap<PlanId, Digest>,
    ) -> Digest {
        let steps = json!(self.digest_of_steps());
        Digest::of_json(&self.digested(steps, catalog, policy_version, known))
    }

    fn digest_of_steps(&self) -> Digest {
        // The steps are hashed one by one, each in canonical form: a plan of any size costs the
        // memory of one step.
        let mut steps = DigestWriter::default();
        for ix in self.indices() {
            let after: BTreeSet<&str> = self
                .graph
                .dependencies(ix)
                .iter()
                .map(|&dependency| self.step_id(dependency).as_str())
                .collect();
            steps.add_part(&canonical_json(&executable_step(
                self.step(ix),
                after.into_iter().collect(),
            )));
        }
        steps.finish()
    }

    /// Everything that the digest covers.
    fn digested(
        &self,
        steps: Value,
        catalog: &Catalog,
        policy_version: &str,
        known: &mut BTreeMap<PlanId, Digest>,
    ) -> Value {
        let mut whole = json!({
            "plan": executable_document(&self.document),
            "steps": steps,
            "tools": self.tool_digests(catalog),
            "policy": policy_version,
        });
        if let Some(goal) = self.document.goal_for_executors() {
            whole["goal"] = json!(goal);
        }
        if let Some(context) = self.document.context_for_executors() {
            whole["context"] = json!(context);
        }
        let run = self.document.subplan_ids();
        if !run.is_empty() {
            // `null` while there is no such plan.
            let mut plans = Map::new();
            for id in run {
                let digest = match (known.get(id), self.subplans().get(id)) {
                    (Some(digest), _) => json!(digest),
                    (None, Some(subplan)) => {
                        let digest = subplan.plan.digest_within(catalog, policy_version, known);
                        known.insert(id.clone(), digest);
                        json!(digest)
                    }
                    (None, None) => Value::Null,
                };
                plans.insert(id.to_string(), digest);
            }
            whole["plans"] = Value::Object(plans);
        }
        whole
    }

    /// Every name under which the plan uses a tool: steps, what takes them back, and the scope.
    pub fn tool_names(&self) -> BTreeSet<&str> {
        let steps = self.document.steps.iter();
        let names = steps.flat_map(|step| {
            let undo = step.undo.as_deref().map(|undo| undo.tool.as_str());
            let agent = step
                .agent
                .as_deref()
                .and_then(|agent| agent.tool.as_deref());
            step.tool.as_deref().into_iter().chain(undo).chain(agent)
        });
        names
            .chain(self.document.tools_required.iter().map(String::as_str))
            .collect()
    }

    /// The definitions each used name stands for: several for a server or a pattern, `null` while
    /// nothing here has such a name.
    fn tool_digests(&self, catalog: &Catalog) -> BTreeMap<&str, Value> {
        let describe =
            |tool: &Arc<KnownTool>| json!({"name": tool.name.to_string(), "digest": tool.digest()});
        let digest = |name: &str| match catalog.resolve(name) {
            Ok(tool) => describe(tool),
            Err(_) => match catalog.scoped_tools(name).as_slice() {
                [] => Value::Null,
                several => several.iter().map(|tool| describe(tool)).collect(),
            },
        };
        self.tool_names()
            .into_iter()
            .map(|name| (name, digest(name)))
            .collect()
    }
}

/// The fields of a step that are for people: rewording them changes nothing that is executed.
pub(super) const WORDS_OF_STEP: [&str; 3] = ["title", "labels", "capabilityLabel"];

/// The fields of a plan that are for people, as [`executable_document`] leaves them out.
pub(super) const WORDS_OF_PLAN: [&str; 8] = [
    "id",
    "title",
    "goal",
    "successCriteria",
    "context",
    "risks",
    "plannerModel",
    "estimatedDuration",
];

fn executable_document(document: &Document) -> Value {
    // Every field is named, so that a new one has to be decided on.
    let Document {
        id: _,
        title: _,
        goal: _,
        inputs,
        variables,
        steps: _,
        outputs,
        tools_required,
        success_criteria: _,
        context: _,
        risks: _,
        limits,
        planner_model: _,
        executor_model,
        estimated_duration: _,
    } = document;
    let mut executable = json!({
        "inputs": inputs,
        "variables": variables,
        "toolsRequired": tools_required.iter().collect::<BTreeSet<_>>(),
        "limits": limits,
        "executorModel": executor_model,
    });
    // Left out where there are none: plans without outputs keep the digest that they had before
    // there were any.
    if !outputs.is_empty() {
        executable["outputs"] = json!(outputs);
    }
    executable
}

/// The step without its words, after these steps: what the digest covers and what is compared when
/// an approval is carried over.
pub(crate) fn executable_step(step: &Step, after: Vec<&str>) -> Value {
    let Value::Object(mut fields) =
        serde_json::to_value(step).expect("steps have only string keys")
    else {
        return Value::Object(Map::new());
    };
    for words in WORDS_OF_STEP {
        fields.remove(words);
    }
    // It is said again below, together with the edges that references make.
    fields.remove("dependsOn");
    fields.insert("after".to_owned(), json!(after));
    Value::Object(fields)
}
