//! Judges a plan as a whole, before it runs.

use super::late::unknown_arguments;
use super::{CallToJudge, Judgement, LateChoice, Mode, Policy, Verdict, late_arguments};
use crate::id::StepId;
use crate::plan::{Action, Plan, StepIx, is_type_name, known_args};
use crate::tool::{Catalog, EffectClass, KnownTool};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The late part of a step that an executor works on.
const AGENT_CALLS: &str = "the executor's calls";

/// Every step of a plan, judged on what is known before it runs.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedPlan {
    /// In plan order.
    pub steps: Vec<JudgedStep>,
}

/// One step of a judged plan.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedStep {
    /// Id of the step.
    pub step: StepId,
    /// The tool as the step names it.
    pub tool: String,
    /// The judgement of the step's own call.
    pub judgement: Judgement,
    /// The judgement of the call that takes the step back.
    pub undo: Option<Judgement>,
    /// Arguments that are only known later.
    pub late: Vec<String>,
}

/// A rule that forbids a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Policy denied: step `{step}`: {because}")]
pub struct PolicyDenial {
    /// Id of the step.
    pub step: String,
    /// The rule and its reason.
    pub because: String,
}

impl Policy {
    /// Judges every step on what is known now.
    pub fn judge_plan(&self, plan: &Plan, catalog: &Catalog) -> JudgedPlan {
        JudgedPlan {
            steps: plan
                .indices()
                .map(|ix| self.judge_step(plan, ix, catalog))
                .collect(),
        }
    }

    fn judge_step(&self, plan: &Plan, ix: StepIx, catalog: &Catalog) -> JudgedStep {
        let step = plan.step(ix);
        if step.skip {
            return judge_skipped_step(plan, ix);
        }
        let late = match step.agent {
            Some(_) => vec![AGENT_CALLS.to_owned()],
            None => late_arguments(plan, ix),
        };
        let judgement = match step.action() {
            Some(Action::Tool { name, .. }) => {
                // A large plan is not copied for a policy that looks at no arguments.
                let args = if self.looks_at_args() {
                    known_args(plan, ix)
                } else {
                    Value::Null
                };
                let unknown: BTreeSet<String> = unknown_arguments(plan, ix).into_iter().collect();
                self.judge_call(&CallToJudge {
                    tool: catalog.resolve(name).ok().map(|tool| &**tool),
                    args: &args,
                    unknown: &unknown,
                    step,
                    step_id: plan.step_id(ix).as_str(),
                    plan: plan.id().as_str(),
                    chosen_by_model: false,
                })
            }
            Some(Action::Input(_)) => {
                judge_without_rule(Verdict::Allow, "it asks a person and calls nothing")
            }
            Some(Action::Plan(_)) => self.judge_subplan_step(plan, ix, catalog),
            Some(Action::Think(_) | Action::Agent(_)) => self.judge_model_step(plan, ix, catalog),
            None => judge_without_rule(Verdict::Ask, "the step has no action"),
        };
        let may_be_missing = step.optional && step.tool.is_some();
        let judgement =
            allow_missing_optional(may_be_missing, catalog, step.action_label(), judgement);
        let undo = step.undo.as_deref().map(|undo| {
            // What it is sent may come from results, so nothing of it counts as known.
            let unknown: BTreeSet<String> = undo.args.keys().cloned().collect();
            self.judge_call(&CallToJudge {
                tool: catalog.resolve(&undo.tool).ok().map(|tool| &**tool),
                args: &Value::Object(undo.args.clone()),
                unknown: &unknown,
                step,
                step_id: plan.step_id(ix).as_str(),
                plan: plan.id().as_str(),
                chosen_by_model: false,
            })
        });
        JudgedStep {
            step: plan.step_id(ix).clone(),
            tool: step.action_label().to_owned(),
            judgement,
            undo,
            late,
        }
    }
}

impl Policy {
    /// A model that thinks calls nothing. An executor is as harmless as everything it may call; its
    /// calls are judged again one by one.
    pub fn judge_model_step(&self, plan: &Plan, ix: StepIx, catalog: &Catalog) -> Judgement {
        let step = plan.step(ix);
        if step.approval_required {
            return judge_without_rule(Verdict::Ask, "the plan asks for approval of this step");
        }
        let Some(agent) = step.agent.as_deref() else {
            return judge_without_rule(Verdict::Allow, "it asks a model and calls nothing");
        };
        if agent.is_client() {
            return judge_without_rule(
                Verdict::Allow,
                "each call of the client is judged by itself",
            );
        }
        if let Some(executor) = &agent.executor {
            return judge_without_rule(
                Verdict::Ask,
                &format!("the executor `{executor}` is a program of its own"),
            );
        }
        for name in plan.document().agent_tools() {
            let found = catalog.scoped_tools(name);
            let asks = match found.as_slice() {
                [] => self.asks_about_tool(plan, ix, None),
                found => found
                    .iter()
                    .any(|tool| self.asks_about_tool(plan, ix, Some(tool))),
            };
            if asks {
                return judge_without_rule(
                    Verdict::Ask,
                    &format!("the executor may call `{name}`"),
                );
            }
        }
        judge_without_rule(
            Verdict::Allow,
            "everything the executor may call is allowed",
        )
    }

    /// Returns whether some call of the tool by the step's executor needs a person. Nothing is
    /// known about a tool that is not there.
    fn asks_about_tool(&self, plan: &Plan, ix: StepIx, tool: Option<&KnownTool>) -> bool {
        let args = Value::Object(serde_json::Map::new());
        let subject = CallToJudge {
            tool,
            args: &args,
            unknown: &BTreeSet::new(),
            step: plan.step(ix),
            step_id: plan.step_id(ix).as_str(),
            plan: plan.id().as_str(),
            chosen_by_model: true,
        };
        self.looks_at_args() || self.judge_call(&subject).verdict != Verdict::Allow
    }

    /// A step that runs another plan is as harmless as that plan is.
    pub fn judge_subplan_step(&self, plan: &Plan, ix: StepIx, catalog: &Catalog) -> Judgement {
        let (verdict, rule, reason) = match plan.subplan_of(ix) {
            None => (
                Verdict::Deny,
                None,
                "the plan it runs is not known".to_owned(),
            ),
            Some(child) => {
                let judged = self.judge_plan(&child.plan, catalog);
                let asked = judged
                    .asked_steps()
                    .next()
                    .map(|step| (step.step.clone(), step.judgement.explain()));
                match (judged.denial(), asked) {
                    (Some(denied), _) => {
                        let rule = format!("plan `{}`, step `{}`", child.plan.id(), denied.step);
                        (Verdict::Deny, Some(rule), denied.because)
                    }
                    (None, Some((step, because))) => {
                        let reason =
                            format!("plan `{}`, step `{step}`: {because}", child.plan.id());
                        (Verdict::Ask, None, reason)
                    }
                    (None, None) if child.needs_person.is_some() => {
                        let why = child.needs_person.as_deref().unwrap_or_default();
                        let reason = format!("plan `{}`: {why}", child.plan.id());
                        (Verdict::Ask, None, reason)
                    }
                    (None, None) if plan.step(ix).approval_required => (
                        Verdict::Ask,
                        None,
                        "the plan asks for approval of this step".to_owned(),
                    ),
                    (None, None) => (
                        Verdict::Allow,
                        None,
                        "everything in the plan it runs is allowed".to_owned(),
                    ),
                }
            }
        };
        Judgement {
            verdict,
            rule,
            reason,
            noticed: Vec::new(),
            undecided: Vec::new(),
        }
    }
}

/// Returns a judgement that no rule made.
fn judge_without_rule(verdict: Verdict, reason: &str) -> Judgement {
    Judgement {
        verdict,
        rule: None,
        reason: reason.to_owned(),
        noticed: Vec::new(),
        undecided: Vec::new(),
    }
}

/// A step that is left out calls nothing and has nothing to take back.
fn judge_skipped_step(plan: &Plan, ix: StepIx) -> JudgedStep {
    let judgement = judge_without_rule(Verdict::Allow, "the step is left out");
    let tool = plan.step(ix).action_label().to_owned();
    JudgedStep {
        step: plan.step_id(ix).clone(),
        tool,
        judgement,
        undo: None,
        late: Vec::new(),
    }
}

/// A step that is skipped when its tool is missing calls nothing, so nothing of it is denied.
fn allow_missing_optional(
    optional: bool,
    catalog: &Catalog,
    name: &str,
    judgement: Judgement,
) -> Judgement {
    if optional && catalog.resolve(name).is_err() {
        let reason = "the tool is not there, so the step is skipped".to_owned();
        return Judgement {
            verdict: Verdict::Allow,
            reason,
            ..judgement
        };
    }
    judgement
}

impl JudgedPlan {
    /// The first step that a rule forbids. An unknown tool is not a rule's doing; it is reported
    /// where tools are.
    pub fn denial(&self) -> Option<PolicyDenial> {
        let mut all = self.steps.iter().flat_map(|step| {
            std::iter::once(&step.judgement)
                .chain(&step.undo)
                .map(move |judgement| (step, judgement))
        });
        let (step, judgement) = all.find(|(_, judgement)| {
            judgement.verdict == Verdict::Deny && judgement.rule.is_some()
        })?;
        Some(PolicyDenial {
            step: step.step.to_string(),
            because: judgement.explain(),
        })
    }

    /// The steps that a person has to agree to.
    pub fn asked_steps(&self) -> impl Iterator<Item = &JudgedStep> {
        self.steps
            .iter()
            .filter(|step| step.judgement.verdict != Verdict::Allow)
    }

    /// Returns whether policy alone may approve it.
    pub fn is_allowed(&self) -> bool {
        self.asked_steps().next().is_none()
    }

    /// Returns what the plan as a whole comes to.
    pub fn verdict(&self) -> Verdict {
        if self.denial().is_some() {
            Verdict::Deny
        } else if self.is_allowed() {
            Verdict::Allow
        } else {
            Verdict::Ask
        }
    }

    /// Returns the choice for every late-bound step: the approver's, else the policy's default.
    pub fn late_choices(
        &self,
        chosen: &BTreeMap<String, LateChoice>,
        default: &LateChoice,
    ) -> BTreeMap<String, LateChoice> {
        let late = self.steps.iter().filter(|step| !step.late.is_empty());
        late.filter_map(|step| {
            let name = step.step.to_string();
            let choice = match chosen.get(&name) {
                Some(choice) => choice,
                // What an executor wants is asked about unless the approver said otherwise, even if
                // the policy accepts any late argument of a plan's own steps.
                None if step.late == [AGENT_CALLS] => &LateChoice::Ask,
                None if step.judgement.verdict == Verdict::Ask => default,
                None => return None,
            };
            let choice = choice.clone();
            Some((name, choice))
        })
        .collect()
    }

    /// Returns the choices of an approver who made none, for every step that asks: what an executor
    /// wants and what cannot be repeated is asked about once it is known.
    pub fn careful_choices(
        &self,
        plan: &Plan,
        catalog: &Catalog,
        default: &LateChoice,
    ) -> BTreeMap<String, LateChoice> {
        let asked =
            self.steps.iter().zip(plan.indices()).filter(|(step, _)| {
                !step.late.is_empty() && step.judgement.verdict == Verdict::Ask
            });
        let choices = asked.map(|(step, ix)| {
            let tool = plan.step(ix).tool.as_deref();
            let repeatable = tool
                .and_then(|name| catalog.resolve(name).ok())
                .is_some_and(|tool| tool.class != EffectClass::Unsafe);
            let choice = if repeatable {
                default
            } else {
                &LateChoice::Ask
            };
            (step.step.to_string(), choice.clone())
        });
        choices.collect()
    }

    /// Returns whether every choice is about a step that has something to choose, and every
    /// constraint about its arguments.
    pub fn check_choices(
        &self,
        plan: &Plan,
        chosen: &BTreeMap<String, LateChoice>,
    ) -> Result<(), String> {
        for (name, choice) in chosen {
            let Some(ix) = plan.find(name) else {
                return Err(format!("there is no step `{name}`"));
            };
            if self.steps[ix.index()].late.is_empty() {
                return Err(format!(
                    "all arguments of step `{name}` are known: there is nothing to choose"
                ));
            }
            let LateChoice::Constraint(condition) = choice else {
                continue;
            };
            let step = plan.step(ix);
            // Which tools it calls, and so which arguments there are, is known only then.
            if step.agent.is_some() {
                continue;
            }
            let args = step.plan.as_ref().map_or(&step.args, |child| &child.inputs);
            let known =
                |name: &String| name == "args" || args.contains_key(name) || is_type_name(name);
            if let Some(other) = condition.names().iter().find(|name| !known(name)) {
                return Err(format!(
                    "`{other}` in the constraint is no argument of step `{name}`"
                ));
            }
        }
        Ok(())
    }

    /// Returns the rules in mode `warn` that match a step, for the approver.
    pub fn warnings(&self) -> impl Iterator<Item = (&JudgedStep, String)> {
        self.steps.iter().flat_map(|step| {
            step.judgement
                .noticed
                .iter()
                .filter(|noticed| noticed.mode == Mode::Warn)
                .map(move |noticed| {
                    let reason = noticed.reason.as_deref().unwrap_or("no reason given");
                    (
                        step,
                        format!(
                            "{} would {}: {reason}",
                            noticed.rule,
                            noticed.verdict.as_str()
                        ),
                    )
                })
        })
    }
}
