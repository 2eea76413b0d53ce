//! Makes a briefing from a plan as it would run.

use super::call::{BriefedCall, describe_call, late_pointers, written_path};
use super::effect::{Effect, EffectKind};
use super::file_change::CurrentFile;
use super::model::{
    ActionBriefing, Briefing, CallBriefing, LoopBriefing, ScopedTool, StepBriefing, StepCounts,
};
use crate::digest::Digest;
use crate::json::pointer_token;
use crate::plan::{Action, Agent, KnownValues, Plan, StepIx};
use crate::policy::{JudgedStep, Policy, UnenforcedRule};
use crate::principal::Principal;
use crate::tool::{Catalog, KnownTool};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

/// Elements of a list whose arguments are shown.
const MAX_ITEMS: usize = 100;
/// Files that are compared with what they would become.
const MAX_FILES: usize = 100;

/// The facts of a briefing that the plan itself does not have.
#[derive(Debug, Clone)]
pub struct BriefingFacts {
    /// The version that is shown.
    pub version: u32,
    /// The digest that an approval covers.
    pub digest: Digest,
    /// The origin of the version, if it is stored.
    pub author: Option<PlanAuthor>,
    /// The files that would be written, as they are now, by the paths of [`wanted_files`].
    pub files: BTreeMap<String, CurrentFile>,
    /// The model for steps that name none.
    pub default_model: Option<String>,
    /// The time limit of calls for which the plan names none.
    pub default_timeout: Option<Duration>,
}

/// The origin of a version of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanAuthor {
    /// The proposer.
    pub by: Principal,
    /// The model that wrote it, if one did.
    pub model: Option<String>,
}

/// Says what an approval of the plan covers.
pub fn brief_plan(
    plan: &Plan,
    catalog: &Catalog,
    policy: &Policy,
    facts: &BriefingFacts,
) -> Briefing {
    let briefer = Briefer {
        catalog,
        policy,
        facts,
    };
    let steps = briefer.brief_steps(plan, KnownValues::of(plan), "");
    let mut counts = StepCounts::default();
    count_steps(&steps, &mut counts);
    let document = plan.document();
    let author = facts.author.as_ref();
    Briefing {
        plan: plan.id().to_string(),
        version: facts.version,
        digest: facts.digest.to_string(),
        title: document.title.clone(),
        goal: document.goal.clone(),
        context: document
            .context_for_executors()
            .map(|context| serde_json::to_value(context).expect("a context has only string keys")),
        proposed_by: author.map(|author| author.by.to_string()),
        written_by_model: author
            .and_then(|author| author.model.clone())
            .or_else(|| document.planner_model.clone()),
        outputs: Some(document.outputs.clone()).filter(|outputs| !outputs.is_empty()),
        risks: document.risks.clone(),
        call_timeout_seconds: facts.default_timeout.map(|limit| limit.as_secs_f64()),
        counts,
        steps,
    }
}

/// Describes one concrete call, all of whose arguments are known.
pub fn brief_call(
    name: &str,
    args: Value,
    catalog: &Catalog,
    files: &BTreeMap<String, CurrentFile>,
) -> (CallBriefing, Effect) {
    let tool = catalog.resolve(name).ok().map(|tool| &**tool);
    let BriefedCall { call, effect } = describe_call(name, tool, args, &[], files);
    (call, effect)
}

/// The file of the workspace that a concrete call would write, if it writes one.
pub fn path_written_by(name: &str, args: &Value, catalog: &Catalog) -> Option<String> {
    let tool = catalog.resolve(name).ok()?;
    written_path(tool, args, &[]).map(str::to_owned)
}

/// The files of the workspace that the plan or a call of it would write, as far as they are known:
/// a briefing compares them with what they would become.
pub fn wanted_files(plan: &Plan, catalog: &Catalog) -> BTreeSet<String> {
    let mut paths = BTreeSet::new();
    collect_files(plan, KnownValues::of(plan), catalog, &mut paths);
    paths
}

fn collect_files(
    plan: &Plan,
    values: KnownValues<'_>,
    catalog: &Catalog,
    paths: &mut BTreeSet<String>,
) {
    for ix in plan.indices() {
        if paths.len() >= MAX_FILES {
            return;
        }
        let step = plan.step(ix);
        if step.skip {
            continue;
        }
        let args = values.args(ix);
        match step.action() {
            Some(Action::Tool { name, .. }) => {
                if let Ok(tool) = catalog.resolve(name)
                    && let Some(path) = written_path(tool, &args, &values.late_parts(ix))
                {
                    paths.insert(path.to_owned());
                }
            }
            Some(Action::Plan(_)) => {
                if let Some(child) = plan.subplan_of(ix) {
                    let late = late_pointers(&values.late_parts(ix));
                    let inputs = known_inputs(&args, &late);
                    let values = KnownValues::of(&child.plan).with_inputs(&inputs);
                    collect_files(&child.plan, values, catalog, paths);
                }
            }
            Some(Action::Think(_) | Action::Agent(_) | Action::Input(_)) | None => {}
        }
    }
}

struct Briefer<'a> {
    catalog: &'a Catalog,
    policy: &'a Policy,
    facts: &'a BriefingFacts,
}

/// What a step does, and what that does to the world.
struct BriefedAction {
    action: ActionBriefing,
    effect: Effect,
    steps: Vec<StepBriefing>,
}

impl Briefer<'_> {
    /// Describes the steps of a plan, those that change something first.
    fn brief_steps(&self, plan: &Plan, values: KnownValues<'_>, path: &str) -> Vec<StepBriefing> {
        let judged = self.policy.judge_plan(plan, self.catalog);
        let mut steps: Vec<StepBriefing> = plan
            .indices()
            .map(|ix| self.brief_step(plan, ix, values, (path, &judged.steps[ix.index()])))
            .collect();
        // Stable: within a group the order of the plan stays.
        steps.sort_by_key(|step| !step.effect.kind.changes_something());
        steps
    }

    fn brief_step(
        &self,
        plan: &Plan,
        ix: StepIx,
        values: KnownValues<'_>,
        (path, judged): (&str, &JudgedStep),
    ) -> StepBriefing {
        let step = plan.step(ix);
        let id = format!("{path}{}", plan.step_id(ix));
        let BriefedAction {
            action,
            mut effect,
            steps,
        } = self.brief_action(plan, ix, values, &id);
        let undo = self.brief_undo(plan, ix, values).filter(|_| !step.skip);
        if effect.kind.wants_undo() && steps.is_empty() {
            let words = match &undo {
                Some(undo) => format!("{}; undone by calling {}", effect.words, undo.tool),
                None => format!("{}; this plan has no way to undo it", effect.words),
            };
            effect.words = words;
        }
        let after = plan.graph().dependencies(ix).iter();
        StepBriefing {
            title: step.title.clone(),
            effect,
            action,
            verdict: judged.judgement.verdict.as_str().to_owned(),
            rule: judged.judgement.rule.clone(),
            reason: judged.judgement.reason.clone(),
            warnings: judged.judgement.warnings().map(describe_warning).collect(),
            after: after
                .map(|&ix| format!("{path}{}", plan.step_id(ix)))
                .collect(),
            when: step.when.clone(),
            for_each: brief_loop(plan, ix, values),
            gate: step.approval_required,
            constraints: step.constraints.clone(),
            expect: step.expect.clone(),
            retries: step.retry.as_deref().map_or(0, |retry| retry.max),
            timeout_seconds: step.timeout_seconds,
            secrets: plan.secrets(ix).iter().map(ToString::to_string).collect(),
            undo,
            steps,
            id,
        }
    }

    fn brief_action(
        &self,
        plan: &Plan,
        ix: StepIx,
        values: KnownValues<'_>,
        id: &str,
    ) -> BriefedAction {
        let step = plan.step(ix);
        if step.skip {
            return BriefedAction {
                action: ActionBriefing::Nothing,
                effect: Effect::new(EffectKind::Nothing, "is left out"),
                steps: Vec::new(),
            };
        }
        let alone = |action, effect| BriefedAction {
            action,
            effect,
            steps: Vec::new(),
        };
        let model = |named: Option<&String>| {
            let of_plan = || plan.document().executor_model.clone();
            let default = || self.facts.default_model.clone();
            named.cloned().or_else(of_plan).or_else(default)
        };
        match step.action() {
            Some(Action::Tool { name, .. }) => {
                let tool = self.catalog.resolve(name).ok().map(|tool| &**tool);
                let late = values.late_parts(ix);
                let BriefedCall { call, effect } =
                    describe_call(name, tool, values.args(ix), &late, &self.facts.files);
                alone(ActionBriefing::Call(call), effect)
            }
            Some(Action::Think(think)) => {
                let action = ActionBriefing::Think {
                    prompt: values.prompt(ix),
                    model: model(think.model.as_ref()),
                };
                let words = "asks a model and calls nothing";
                alone(action, Effect::new(EffectKind::Nothing, words))
            }
            Some(Action::Agent(agent)) => {
                let tools: Vec<ScopedTool> = plan
                    .document()
                    .agent_tools()
                    .into_iter()
                    .flat_map(|name| self.brief_scoped_tools(name))
                    .collect();
                let effect = agent_effect(agent, &tools);
                let action = ActionBriefing::Agent {
                    instruction: values.prompt(ix),
                    target: values.target(ix),
                    executor: agent.executor.clone(),
                    model: match &agent.executor {
                        Some(_) => agent.model.clone(),
                        None => model(agent.model.as_ref()),
                    },
                    tools,
                    max_calls: agent.max_calls(),
                };
                alone(action, effect)
            }
            Some(Action::Input(input)) => {
                let action = ActionBriefing::Input {
                    message: values.message(ix),
                    schema: input.schema.clone(),
                };
                let words = "asks a person and calls nothing";
                alone(action, Effect::new(EffectKind::Nothing, words))
            }
            Some(Action::Plan(child)) => {
                self.brief_subplan((plan, ix), &child.id.to_string(), values, id)
            }
            None => alone(
                ActionBriefing::Nothing,
                Effect::new(EffectKind::Unknown, "has no action"),
            ),
        }
    }

    fn brief_subplan(
        &self,
        (plan, ix): (&Plan, StepIx),
        name: &str,
        values: KnownValues<'_>,
        id: &str,
    ) -> BriefedAction {
        let inputs = values.args(ix);
        let late = late_pointers(&values.late_parts(ix));
        let Some(child) = plan.subplan_of(ix) else {
            return BriefedAction {
                action: ActionBriefing::Plan {
                    plan: name.to_owned(),
                    version: None,
                    inputs,
                    late,
                },
                effect: Effect::new(EffectKind::Unknown, "runs a plan that is not known here"),
                steps: Vec::new(),
            };
        };
        let known = known_inputs(&inputs, &late);
        let below = KnownValues::of(&child.plan).with_inputs(&known);
        let steps = self.brief_steps(&child.plan, below, &format!("{id}/"));
        let worst = steps.iter().map(|step| step.effect.kind).min();
        let mut counts = StepCounts::default();
        count_steps(&steps, &mut counts);
        let words = format!(
            "runs the plan {name} (version {}): {}",
            child.version,
            counts.describe()
        );
        BriefedAction {
            effect: Effect::new(worst.unwrap_or(EffectKind::Nothing), words),
            action: ActionBriefing::Plan {
                plan: name.to_owned(),
                version: Some(child.version),
                inputs,
                late,
            },
            steps,
        }
    }

    fn brief_undo(&self, plan: &Plan, ix: StepIx, values: KnownValues<'_>) -> Option<CallBriefing> {
        let undo = plan.step(ix).undo.as_deref()?;
        let tool = self.catalog.resolve(&undo.tool).ok().map(|tool| &**tool);
        let args = values.undo_args(ix)?;
        let late = values.late_undo_parts(ix);
        Some(describe_call(&undo.tool, tool, args, &late, &BTreeMap::new()).call)
    }

    /// Every tool that an entry of the scope stands for, by its own name.
    fn brief_scoped_tools(&self, entry: &str) -> Vec<ScopedTool> {
        let found = self.catalog.scoped_tools(entry);
        if found.is_empty() {
            return vec![ScopedTool {
                tool: entry.to_owned(),
                effect: Effect::of_name(entry, self.catalog),
            }];
        }
        let brief = |tool: &Arc<KnownTool>| ScopedTool {
            tool: tool.name.to_string(),
            effect: Effect::of_tool(tool),
        };
        found.into_iter().map(brief).collect()
    }
}

/// An executor does at most what its tools do; a program of its own does what it likes.
fn agent_effect(agent: &Agent, tools: &[ScopedTool]) -> Effect {
    if agent.is_client() {
        let words = "makes the calls that a gateway client requests, each checked separately";
        let kind = tools.iter().map(|tool| tool.effect.kind).min();
        return Effect::new(kind.unwrap_or(EffectKind::Nothing), words.to_owned());
    }
    if let Some(executor) = &agent.executor {
        let words = format!(
            "delegates to the program {}, which runs with your permissions",
            crate::text::reveal_hidden(executor)
        );
        return Effect::new(EffectKind::Unknown, words);
    }
    let worst = tools
        .iter()
        .map(|tool| tool.effect.kind)
        .min()
        .unwrap_or(EffectKind::Nothing);
    let words = match worst {
        EffectKind::Nothing => "lets a model work without tools".to_owned(),
        EffectKind::Reads => "lets a model choose its calls, all of which only read".to_owned(),
        EffectKind::Unknown | EffectKind::Destroys | EffectKind::Changes | EffectKind::Sends => {
            let changing = tools
                .iter()
                .filter(|tool| tool.effect.kind.changes_something());
            let names: Vec<&str> = changing.map(|tool| tool.tool.as_str()).collect();
            format!(
                "lets a model choose its calls, including {}",
                names.join(", ")
            )
        }
    };
    Effect::new(worst, words)
}

fn describe_warning(rule: &UnenforcedRule) -> String {
    let reason = rule.reason.as_deref().unwrap_or("no reason given");
    format!("{} would {}: {reason}", rule.rule, rule.verdict.as_str())
}

fn brief_loop(plan: &Plan, ix: StepIx, values: KnownValues<'_>) -> Option<LoopBriefing> {
    let source = values.list_source(ix)?;
    let Some(list) = values.elements(ix) else {
        return Some(LoopBriefing {
            over: source,
            count: None,
            items: Vec::new(),
            late: Vec::new(),
        });
    };
    let late = late_pointers(&values.late_element_parts(ix, &list));
    let items = if plan.step(ix).tool.is_some() {
        values.element_args(ix, &list, MAX_ITEMS)
    } else {
        list.iter().take(MAX_ITEMS).cloned().collect()
    };
    Some(LoopBriefing {
        over: "a list that is known".to_owned(),
        count: Some(list.len()),
        items,
        late,
    })
}

impl Briefing {
    /// The briefing of one of the plan's own steps, with those of the plan it runs.
    #[must_use]
    pub fn only_step(mut self, id: &str) -> Self {
        self.steps.retain(|step| step.id == id);
        self.counts = StepCounts::default();
        count_steps(&self.steps, &mut self.counts);
        self
    }
}

fn count_steps(steps: &[StepBriefing], counts: &mut StepCounts) {
    for step in steps {
        if matches!(step.action, ActionBriefing::Plan { .. }) && !step.steps.is_empty() {
            count_steps(&step.steps, counts);
            continue;
        }
        counts.steps += 1;
        let kind = step.effect.kind;
        counts.changing += usize::from(kind.changes_something());
        counts.without_undo += usize::from(kind.wants_undo() && step.undo.is_none());
    }
}

impl StepCounts {
    /// Describes the counts: "14 steps, 3 change something".
    pub fn describe(&self) -> String {
        if self.steps == 1 {
            return match (self.changing, self.without_undo) {
                (0, _) => "1 step, which changes nothing".to_owned(),
                (_, 0) => "1 step, which changes something".to_owned(),
                (_, _) => "1 step, which changes something and has no undo".to_owned(),
            };
        }
        let changing = match self.changing {
            0 => "none changes anything".to_owned(),
            1 => "1 changes something".to_owned(),
            all if all == self.steps => "all change something".to_owned(),
            many => format!("{many} change something"),
        };
        let undo = match (self.changing, self.without_undo) {
            (_, 0) => String::new(),
            (1, _) => " and has no undo".to_owned(),
            (changing, without) if changing == without => ", none with an undo".to_owned(),
            (_, without) => format!(", {without} without an undo"),
        };
        format!("{} steps, {changing}{undo}", self.steps)
    }
}

/// The inputs of a sub-plan that are known: to its steps the others are inputs that come later.
fn known_inputs(inputs: &Value, late: &[String]) -> Map<String, Value> {
    let is_late = |name: &str| {
        let at = format!("/{}", pointer_token(name));
        late.iter()
            .any(|pointer| *pointer == at || pointer.starts_with(&format!("{at}/")))
    };
    let inputs = inputs.as_object().into_iter().flatten();
    let known = inputs.filter(|(name, _)| !is_late(name));
    known
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}
