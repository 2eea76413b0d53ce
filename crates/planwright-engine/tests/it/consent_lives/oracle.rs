//! Says, for everything that left, who had agreed to it; or why it was not agreed to.
//!
//! It reads what is in the journal as data, knows the policies by heart, and shares no rule with
//! the program under test.

use super::opening::{Opening, Terms, find, is_late, reference, scope, steps};
use super::past::Past;
use super::rules::{Choice, STRICT, only_reads, says};
use super::stage::{Left, Stage};
use planwright_core::policy::Verdict;
use planwright_core::run::{CallFate, Parent, RunEvent, StoredValue};
use serde_json::{Map, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

/// Why something was allowed to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Covered {
    /// Policy allows it.
    Allowed,
    /// People agreed to the plan with this call in it.
    WithThePlan,
    /// They agreed to it before the plan was adjusted, and it is what it was.
    Before,
    /// A person was shown exactly this call.
    Shown,
    /// An executor wanted it, and policy allows it.
    AgentsAllowed,
    /// An executor wanted it, and the approver of the plan had said that it may, or under which
    /// condition.
    AgentsInAdvance,
    /// The same, and that was before the plan was adjusted.
    AgentsBefore,
    /// An executor wanted it, and a person was shown exactly this call.
    AgentsShown,
    /// It is outside the scope, only noted, and only reads.
    AgentsOutside,
    /// A program that works on a step.
    Program,
    /// A person agreed to take a run back.
    TakenBack,
}

pub(super) struct Oracle<'a> {
    pub(super) stage: &'a Stage,
    pub(super) past: Past,
    /// What was found out already, by run.
    opened: RefCell<BTreeMap<String, Result<Rc<Opening>, String>>>,
}

impl<'a> Oracle<'a> {
    pub(super) fn new(stage: &'a Stage) -> Self {
        Self {
            stage,
            past: Past::of(stage),
            opened: RefCell::default(),
        }
    }

    /// Returns who agreed to this run of the plan, or why it was not agreed to.
    pub(super) fn opening(&self, run: &str) -> Result<Rc<Opening>, String> {
        if let Some(known) = self.opened.borrow().get(run) {
            return known.clone();
        }
        let found = self.find_opening(run).map(Rc::new);
        self.opened
            .borrow_mut()
            .insert(run.to_owned(), found.clone());
        found
    }

    pub(super) fn judge(&self, left: &Left) -> Result<Covered, String> {
        let start = self.past.start_of(&left.run, &left.step, left.attempt);
        let started = start
            .filter(|&start| start <= left.position)
            .ok_or("its start was not durable")?;
        if self.past.was_denied(&left.run, &left.step, started) {
            return Err("a person had said no".to_owned());
        }
        if self.past.is_stopped(&left.run, started) {
            return Err("the run was to stand still, or to end".to_owned());
        }
        if let Some(original) = self.past.taken_back(&left.run) {
            return self.judge_undo(left, &original, started);
        }
        let parent = self.past.parent(&left.run);
        let top = parent.map_or(left.run.as_str(), |parent| parent.run.as_str());
        let opening = self.opening(top)?;
        if opening.scene.policy != left.scene.policy {
            return Err("the policy is another one by now".to_owned());
        }
        if !left.args["to"].is_string() && !left.args["to"].is_null() {
            return Err("the tool does not take these arguments".to_owned());
        }
        match (&left.tool, parent) {
            (None, _) => self.judge_program(left, started, &opening),
            (Some(tool), None) => self.judge_step(left, tool, started, &opening),
            (Some(tool), Some(parent)) => {
                self.judge_wanted(left, tool, (parent, started), &opening)
            }
        }
    }

    /// Whether a person was shown exactly this, and agreed in time.
    fn was_shown(&self, left: &Left, started: u64, opening: &Opening) -> Result<bool, String> {
        let mut shown = false;
        for granted in self.past.granted(&left.run, &left.step, started) {
            if opening.scene.policy == STRICT {
                if *granted.by == opening.proposer {
                    return Err(format!(
                        "four eyes: {} agreed to a call of their own plan",
                        granted.by
                    ));
                }
                if granted.at >= granted.asked_at.plus(Duration::from_secs(5)) {
                    return Err("a person agreed too late".to_owned());
                }
            }
            shown |= match (granted.call, &left.tool) {
                (Some(call), Some(tool)) => {
                    let args =
                        matches!(&call.args, StoredValue::Inline(args) if **args == left.args);
                    call.tool.to_string() == *tool && args
                }
                (Some(_), None) => true,
                (None, _) => false,
            };
        }
        Ok(shown)
    }

    /// Whether the plan wanted a person at this step, and one came.
    fn check_gate(&self, left: &Left, step: &Value, started: u64) -> Result<(), String> {
        let granted = self.past.granted(&left.run, &left.step, started);
        if step["approvalRequired"] == true && granted.is_empty() {
            return Err("the plan asks for approval of this step".to_owned());
        }
        Ok(())
    }

    /// Whether a person agreed to take the run back, of which this is a part.
    fn judge_undo(&self, left: &Left, original: &str, started: u64) -> Result<Covered, String> {
        let agreed = self.past.undo_agreed(original, &left.run);
        let agreed = agreed
            .filter(|&agreed| agreed < started)
            .ok_or("no person agreed to take the run back")?;
        let opening = self.opening(original)?;
        let scene = self.stage.scene_at(agreed);
        let tool = left.tool.as_deref().unwrap_or_default();
        if scene.policy != left.scene.policy || scene.version(tool) != left.scene.version(tool) {
            return Err("the policy or the tool is another one by now".to_owned());
        }
        if says(left.scene.policy, tool, &left.args, false) == Verdict::Deny {
            return Err("policy denies it".to_owned());
        }
        let mut undone = steps(&opening.document).into_iter().filter(|step| {
            let id = step["id"].as_str().unwrap_or_default();
            self.past.value(original, id, agreed).is_some()
        });
        let is_part =
            |step: &Value| step["undo"]["tool"] == tool && step["undo"]["args"] == left.args;
        match undone.any(is_part) {
            true => Ok(Covered::TakenBack),
            false => Err("the plan does not take anything back like this".to_owned()),
        }
    }

    fn judge_program(
        &self,
        left: &Left,
        started: u64,
        opening: &Opening,
    ) -> Result<Covered, String> {
        let step = find(&opening.document, &left.step).ok_or("the plan has no such step")?;
        if step["skip"] == true || step["agent"]["executor"] != "program" {
            return Err("the plan starts no program here".to_owned());
        }
        self.check_gate(left, step, started)?;
        if opening.agreed.contains_key(&left.step) || self.was_shown(left, started, opening)? {
            return Ok(Covered::Program);
        }
        Err("no person agreed to a program".to_owned())
    }

    fn judge_step(
        &self,
        left: &Left,
        tool: &str,
        started: u64,
        opening: &Opening,
    ) -> Result<Covered, String> {
        let step = find(&opening.document, &left.step).ok_or("the plan has no such step")?;
        if step["skip"] == true || step["tool"] != tool {
            return Err("the plan does not call this here".to_owned());
        }
        if left.scene.version(tool) != opening.scene.version(tool) {
            return Err("the tool is another one by now".to_owned());
        }
        if self.resolved(&left.run, step, started) != left.args {
            return Err("these are not the arguments of the plan".to_owned());
        }
        self.check_gate(left, step, started)?;
        let shown = self.was_shown(left, started, opening)?;
        let terms = opening.agreed.get(&left.step);
        let choices = terms
            .map(|terms| terms.choices.as_slice())
            .unwrap_or_default();
        let key = if tool == "r.look" { "of" } else { "to" };
        if !choices.iter().all(|choice| choice.is_kept(&left.args, key)) {
            return Err("the condition of the approver does not hold".to_owned());
        }
        let verdict = match says(left.scene.policy, tool, &left.args, false) {
            Verdict::Deny => return Err("policy denies it".to_owned()),
            Verdict::Allow if step["approvalRequired"] == true => Verdict::Ask,
            verdict => verdict,
        };
        if shown {
            return Ok(Covered::Shown);
        }
        if choices.contains(&Choice::Ask) {
            return Err("the approver wanted to see this call".to_owned());
        }
        match (verdict, terms) {
            (Verdict::Allow, _) => Ok(Covered::Allowed),
            (_, None) => Err("no person agreed to it".to_owned()),
            (_, Some(_)) if is_late(step) && choices.is_empty() => {
                Err("no person agreed to arguments that were not known".to_owned())
            }
            (_, Some(_)) if opening.carried => Ok(Covered::Before),
            (_, Some(_)) => Ok(Covered::WithThePlan),
        }
    }

    /// The arguments of a step with the values of others put in.
    fn resolved(&self, run: &str, step: &Value, before: u64) -> Value {
        let args = step["args"].as_object().into_iter().flatten();
        let resolved = args.map(|(key, value)| {
            let found = reference(value).and_then(|of| self.past.value(run, of, before));
            // What was left out has no value.
            let skipped = reference(value)
                .filter(|of| self.past.was_skipped(run, of))
                .map(|_| Value::Null);
            (
                key.clone(),
                found.or(skipped).unwrap_or_else(|| value.clone()),
            )
        });
        Value::Object(resolved.collect::<Map<_, _>>())
    }

    fn judge_wanted(
        &self,
        left: &Left,
        tool: &str,
        (parent, started): (&Parent, u64),
        opening: &Opening,
    ) -> Result<Covered, String> {
        let step =
            find(&opening.document, parent.step.as_str()).ok_or("the plan has no such step")?;
        if step["skip"] == true || step["agent"].is_null() {
            return Err("no executor works on this step".to_owned());
        }
        let turn = self.check_wanted(left, tool, parent)?;
        let verdict = says(left.scene.policy, tool, &left.args, false);
        let shown = self.was_shown(left, started, opening)?;
        if verdict == Verdict::Deny {
            return Err("policy denies it".to_owned());
        }
        let terms = opening.agreed.get(parent.step.as_str());
        let in_scope = scope(&opening.document).contains(tool);
        if !in_scope {
            let noted = self.stage.scene_at(turn).observe;
            return match (noted, shown) {
                (false, _) => Err("it is outside the scope".to_owned()),
                (true, true) => Ok(Covered::AgentsShown),
                (true, false) if only_reads(tool) && verdict == Verdict::Allow => {
                    Ok(Covered::AgentsOutside)
                }
                (true, false) => Err("it is outside the scope, and no person saw it".to_owned()),
            };
        }
        if left.scene.version(tool) != opening.scene.version(tool) {
            return Err("the tool is another one by now".to_owned());
        }
        match (verdict, shown) {
            (Verdict::Allow, _) => Ok(Covered::AgentsAllowed),
            (_, true) => covered_in_advance(tool, &left.args, terms, true),
            (_, false) => match covered_in_advance(tool, &left.args, terms, false)? {
                Covered::AgentsInAdvance if opening.carried => Ok(Covered::AgentsBefore),
                how => Ok(how),
            },
        }
    }

    /// Whether an executor wanted exactly this call. Returns where the run took note of that.
    fn check_wanted(&self, left: &Left, tool: &str, parent: &Parent) -> Result<u64, String> {
        // An element of a list has an executor of its own.
        let worker = match parent.index {
            Some(index) => format!("{}[{index}]", parent.step),
            None => parent.step.to_string(),
        };
        let turns = self
            .past
            .of_run(parent.run.as_str())
            .iter()
            .filter_map(|noted| match &noted.event {
                RunEvent::AgentTurn { step, calls, .. } if step.as_str() == worker => {
                    Some((noted.position, calls))
                }
                _ => None,
            });
        let mut calls =
            turns.flat_map(|(position, calls)| calls.iter().map(move |call| (position, call)));
        let (position, call) = calls
            .find(|(_, call)| Some(call.number) == parent.call)
            .ok_or("no executor wanted it")?;
        let runs = matches!(&call.fate, CallFate::Run(run) if run.as_str() == left.run);
        let StoredValue::Inline(args) = &call.args else {
            return Err("its arguments are large".to_owned());
        };
        let same = call.tool == tool
            || tool
                .split_once('.')
                .is_some_and(|(_, bare)| bare == call.tool);
        if !runs || !same || **args != left.args || !self.stage.was_wanted(&call.tool, args) {
            return Err("the executor wanted something else".to_owned());
        }
        if self
            .past
            .of_run(&left.run)
            .first()
            .is_none_or(|first| first.position < position)
        {
            return Err("it began before the executor wanted it".to_owned());
        }
        Ok(position)
    }
}

/// Whether what policy asks about was agreed to, and on which terms.
fn covered_in_advance(
    tool: &str,
    args: &Value,
    terms: Option<&Terms>,
    shown: bool,
) -> Result<Covered, String> {
    let choices = terms
        .map(|terms| terms.choices.as_slice())
        .unwrap_or_default();
    if !choices.iter().all(|choice| choice.is_kept(args, "to")) {
        return Err("the condition of the approver does not hold".to_owned());
    }
    if shown {
        return Ok(Covered::AgentsShown);
    }
    match terms {
        None => Err("no person agreed to it".to_owned()),
        Some(terms) if !terms.scope.contains(tool) => {
            Err("the approver of the step was told of other tools".to_owned())
        }
        Some(_) if choices.is_empty() || choices.contains(&Choice::Ask) => {
            Err("the approver wanted to see this call".to_owned())
        }
        Some(_) => Ok(Covered::AgentsInAdvance),
    }
}
