//! What a run of the plan was agreed to on, found anew from who said yes to what, and when.

use super::oracle::Oracle;
use super::rules::{
    Choice, STRICT, agrees_to_changes, lasts, only_reads, people_needed, says, uses,
};
use super::stage::Scene;
use planwright_core::policy::Verdict;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::ReviewEvent;
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// What an approval is about: what the plan does, the versions of the tools it may call, and the
/// policy.
type About = (Value, BTreeMap<String, u32>, usize);

#[derive(Debug)]
struct Yes {
    by: Principal,
    about: About,
    until: Option<Timestamp>,
    uses: u32,
    choices: Vec<(String, Choice)>,
    /// No person in this world said it: policy agreed by itself to a change.
    unasked: bool,
}

/// What holds for a step.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    pub(super) choices: Vec<Choice>,
    /// The tools its executor may call, as the approver read them.
    pub(super) scope: BTreeSet<String>,
}

#[derive(Debug)]
pub(super) struct Opening {
    pub(super) document: Value,
    pub(super) scene: Scene,
    pub(super) proposer: Principal,
    /// The steps that people agreed to, and on which terms.
    pub(super) agreed: BTreeMap<String, Terms>,
    /// They agreed to an earlier run, and policy to what changed.
    pub(super) carried: bool,
}

impl Oracle<'_> {
    /// Finds who agreed to this run of the plan, or why it was not agreed to.
    pub(super) fn find_opening(&self, run: &str) -> Result<Opening, String> {
        let mut yes = Vec::new();
        let mut current = None;
        for noted in &self.past.plan {
            let scene = self.stage.scene_at(noted.position);
            match &noted.event {
                ReviewEvent::PlanProposed { document, by, .. } => {
                    let document = serde_json::to_value(&**document).unwrap();
                    let about = about(&document, &scene);
                    // Other words for the same are no other plan.
                    yes.retain(|yes: &Yes| yes.about == about);
                    current = Some((document, by));
                }
                ReviewEvent::PlanApproved { by, .. } => {
                    let (document, proposer) = current.as_ref().ok_or("nothing was proposed")?;
                    let said = self.stage.said_with(noted.position);
                    check_approver(by, proposer, &scene)?;
                    yes.push(Yes {
                        by: by.clone(),
                        about: about(document, &scene),
                        until: lasts(scene.policy)
                            .map(|span| noted.at.plus(Duration::from_millis(span))),
                        // Its own yes to a change is for the run that goes on.
                        uses: if said.is_none() {
                            1
                        } else {
                            uses(scene.policy)
                        },
                        choices: choices(document, &scene, said.as_deref().unwrap_or_default())?,
                        unasked: said.is_none(),
                    });
                }
                ReviewEvent::PlanRejected { .. } => yes.clear(),
                ReviewEvent::RunOpened { run: opened, .. } => {
                    let (document, proposer) = current.as_ref().ok_or("nothing was proposed")?;
                    let now = about(document, &scene);
                    let counts = |yes: &&mut Yes| {
                        yes.about == now
                            && yes.uses > 0
                            && yes.until.is_none_or(|until| noted.at < until)
                    };
                    let spent: Vec<&mut Yes> = yes.iter_mut().filter(counts).collect();
                    let spent: Vec<&Yes> = spent
                        .into_iter()
                        .map(|yes| {
                            yes.uses -= 1;
                            &*yes
                        })
                        .collect();
                    if opened.as_str() == run {
                        return self.opened(run, document, proposer, scene, &spent);
                    }
                }
                _ => {}
            }
        }
        Err(format!("{run} was never opened"))
    }

    fn opened(
        &self,
        run: &str,
        document: &Value,
        proposer: &Principal,
        scene: Scene,
        spent: &[&Yes],
    ) -> Result<Opening, String> {
        let people: BTreeSet<&str> = spent
            .iter()
            .filter(|yes| yes.by.kind == PrincipalKind::Person)
            .map(|yes| yes.by.name.as_str())
            .collect();
        let by_policy = spent.iter().any(|yes| yes.by.kind == PrincipalKind::Policy);
        let enough = people.len() >= people_needed(scene.policy);
        if !by_policy && !enough {
            return Err(format!("{run} began without an approval"));
        }
        let unchanged = self.unchanged(run, document, scene)?;
        // One approval of the two needed counts as none, and policy is alone with what it agrees
        // to.
        let agreed = if !enough {
            let policys = spent
                .iter()
                .filter(|yes| yes.by.kind == PrincipalKind::Policy);
            let unasked = policys.into_iter().all(|yes| yes.unasked);
            check_policys(document, scene, &unchanged, unasked)?;
            unchanged
                .into_iter()
                .filter_map(|(step, terms)| Some((step, terms?)))
                .collect()
        } else {
            let scope = scope(document);
            let of = |step: &str| {
                let all = spent.iter().flat_map(|yes| &yes.choices);
                all.filter(|(of, _)| of == step)
                    .map(|(_, choice)| *choice)
                    .collect()
            };
            let named = steps(document)
                .into_iter()
                .map(|step| name(step).to_owned());
            named
                .map(|step| {
                    (
                        step.clone(),
                        Terms {
                            choices: of(&step),
                            scope: scope.clone(),
                        },
                    )
                })
                .collect()
        };
        let document = document.clone();
        let proposer = proposer.clone();
        Ok(Opening {
            document,
            scene,
            proposer,
            agreed,
            carried: !enough,
        })
    }

    /// The steps that are what they were in the run that this one goes on from, after steps that
    /// are, with what people agreed to about them, if they did.
    fn unchanged(
        &self,
        run: &str,
        document: &Value,
        scene: Scene,
    ) -> Result<BTreeMap<String, Option<Terms>>, String> {
        let Some(origin) = self.past.origin(run) else {
            return Ok(BTreeMap::new());
        };
        let before = self.opening(&origin)?;
        let same_outside =
            about(&before.document, &before.scene) == about(&before.document, &scene);
        let mut left = BTreeMap::new();
        if !same_outside {
            return Ok(left);
        }
        // A plan has few steps: going over them as often as there are finds what follows from what.
        for _ in steps(document) {
            for step in steps(document) {
                let was = find(&before.document, name(step));
                let same = was.is_some_and(|was| {
                    plain(was) == plain(step)
                        && waits_for(&before.document, was) == waits_for(document, step)
                });
                let below = waits_for(document, step)
                    .iter()
                    .all(|on| left.contains_key(on));
                if same && below && !self.past.was_in_vain(&origin, name(step)) {
                    left.insert(
                        name(step).to_owned(),
                        before.agreed.get(name(step)).cloned(),
                    );
                }
            }
        }
        Ok(left)
    }
}

fn check_approver(by: &Principal, proposer: &Principal, scene: &Scene) -> Result<(), String> {
    match by.kind {
        PrincipalKind::Person if scene.policy == STRICT && by == proposer => {
            Err(format!("four eyes: {by} approved their own plan"))
        }
        PrincipalKind::Person | PrincipalKind::Policy => Ok(()),
        PrincipalKind::Agent | PrincipalKind::Service => Err(format!("{by} approved a plan")),
    }
}

/// Whether policy may have agreed: to what it allows, and to a change by itself only if that reads.
fn check_policys(
    document: &Value,
    scene: Scene,
    unchanged: &BTreeMap<String, Option<Terms>>,
    unasked: bool,
) -> Result<(), String> {
    if unasked && !agrees_to_changes(scene.policy) {
        return Err("policy agreed to a change that is a person's".to_owned());
    }
    for step in steps(document) {
        let id = name(step);
        let known = unchanged.get(name(step));
        let left_out = step["skip"] == true;
        let allowed = left_out || is_allowed(document, step, scene.policy);
        let harmless = allowed && !left_out && step["tool"].as_str().is_some_and(only_reads);
        match known {
            Some(Some(_)) => {}
            // Only policy ever agreed to it.
            Some(None) if allowed => {}
            None if harmless || (allowed && !unasked) => {}
            _ => return Err(format!("policy agreed to step `{id}` by itself")),
        }
    }
    Ok(())
}

/// Returns true if a step needs no approval, on what is written down.
fn is_allowed(document: &Value, step: &Value, policy: usize) -> bool {
    if step["approvalRequired"] == true {
        return false;
    }
    match step["tool"].as_str() {
        Some(tool) => says(policy, tool, &step["args"], is_late(step)) == Verdict::Allow,
        None => {
            let scope = scope(document);
            step["agent"]["executor"].is_null()
                && scope
                    .iter()
                    .all(|tool| says(policy, tool, &json!({}), false) == Verdict::Allow)
        }
    }
}

/// What was said about the steps whose calls were not all known, or goes without saying.
fn choices(
    document: &Value,
    scene: &Scene,
    said: &[(String, Choice)],
) -> Result<Vec<(String, Choice)>, String> {
    let mut choices = said.to_vec();
    for step in steps(document) {
        let id = name(step);
        let left_out = step["skip"] == true;
        if left_out || said.iter().any(|(of, _)| of == id) {
            continue;
        }
        let Some(tool) = step["tool"].as_str() else {
            choices.push((id.to_owned(), Choice::Ask));
            continue;
        };
        match says(scene.policy, tool, &step["args"], is_late(step)) {
            Verdict::Deny if !is_late(step) => {
                return Err(format!("step `{id}` was approved, and policy denies it"));
            }
            Verdict::Ask if is_late(step) => {
                choices.push((
                    id.to_owned(),
                    if scene.policy == STRICT {
                        Choice::Ask
                    } else {
                        Choice::Any
                    },
                ));
            }
            _ => {}
        }
    }
    Ok(choices)
}

fn about(document: &Value, scene: &Scene) -> About {
    let mut doing: Vec<Value> = steps(document).into_iter().map(plain).collect();
    doing.extend(
        steps(document)
            .iter()
            .map(|step| json!(waits_for(document, step))),
    );
    let called = steps(document)
        .into_iter()
        .filter(|step| step["skip"] != true);
    let called = called
        .filter_map(|step| step["tool"].as_str())
        .map(str::to_owned);
    let listed = if steps(document).iter().any(|step| !step["agent"].is_null()) {
        scope(document)
    } else {
        BTreeSet::new()
    };
    let versions = called
        .chain(listed)
        .filter_map(|tool| Some((tool.clone(), scene.version(&tool)?)));
    (
        json!([doing, document["toolsRequired"]]),
        versions.collect(),
        scene.policy,
    )
}

pub(super) fn steps(document: &Value) -> Vec<&Value> {
    document["steps"].as_array().into_iter().flatten().collect()
}

pub(super) fn find<'a>(document: &'a Value, id: &str) -> Option<&'a Value> {
    steps(document).into_iter().find(|step| name(step) == id)
}

fn name(step: &Value) -> &str {
    step["id"].as_str().unwrap_or_default()
}

/// What a step does, without its words and what it waits for.
fn plain(step: &Value) -> Value {
    let mut step = step.clone();
    if let Some(step) = step.as_object_mut() {
        step.retain(|key, _| {
            !matches!(
                key.as_str(),
                "title" | "labels" | "capabilityLabel" | "dependsOn"
            )
        });
    }
    step
}

/// The steps that come before it: those it names, and those whose values it takes.
pub(super) fn waits_for(document: &Value, step: &Value) -> BTreeSet<String> {
    let declared = step["dependsOn"].as_array().into_iter().flatten();
    let mut before: BTreeSet<String> = declared
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let words = format!("{}{}", step["args"], step["agent"]);
    for other in steps(document) {
        if words.contains(&format!("${{{}}}", name(other))) {
            before.insert(name(other).to_owned());
        }
    }
    before
}

/// Whether some of what it is called with is known only once another step has answered.
pub(super) fn is_late(step: &Value) -> bool {
    step["args"]
        .as_object()
        .into_iter()
        .flatten()
        .any(|(_, value)| reference(value).is_some())
}

/// The step whose value stands here.
pub(super) fn reference(value: &Value) -> Option<&str> {
    value.as_str()?.strip_prefix("${")?.strip_suffix('}')
}

/// What executors may call.
pub(super) fn scope(document: &Value) -> BTreeSet<String> {
    let listed = document["toolsRequired"]
        .as_array()
        .filter(|listed| !listed.is_empty());
    match listed {
        Some(listed) => listed
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        None => {
            let called = steps(document)
                .into_iter()
                .filter(|step| step["skip"] != true);
            called
                .filter_map(|step| step["tool"].as_str())
                .map(str::to_owned)
                .collect()
        }
    }
}
