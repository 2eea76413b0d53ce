//! Keeping the safeguards of a step that is written anew.

use super::gate::guards_others;
use crate::id::StepId;
use crate::plan::{Agent, Document, Retry, Step};
use std::collections::{BTreeMap, BTreeSet};

impl Step {
    /// The step with everything that narrowed `old`, whose place it takes. Where both name
    /// something, the stricter of them holds; where neither is stricter, that of `old`, which
    /// people have seen.
    #[must_use]
    pub(crate) fn keeping_safeguards_of(mut self, old: &Self) -> Self {
        // Every field is named, so that a new one has to be decided on.
        let Self {
            id: _,
            title: _,
            tool,
            args: _,
            think: _,
            agent,
            input: _,
            plan: _,
            depends_on: _,
            result: _,
            when,
            skip,
            for_each: _,
            max_parallel,
            retry,
            timeout_seconds,
            approval_required,
            constraints,
            critical,
            optional,
            expect,
            undo,
            capability,
            capability_label,
            labels,
        } = old;
        self.approval_required |= approval_required;
        self.skip |= skip;
        self.optional &= optional;
        if old.is_critical() && !self.is_critical() {
            self.critical = *critical;
        }
        self.constraints = union(constraints, self.constraints);
        self.labels = union(labels, self.labels);
        self.expect = expect.clone().or(self.expect);
        self.when = when.clone().or(self.when);
        self.timeout_seconds = smaller(*timeout_seconds, self.timeout_seconds);
        self.retry = fewer_retries(retry.clone(), self.retry);
        // An undo belongs to the call that it takes back.
        if self.tool == *tool || self.undo.is_none() {
            self.undo = undo.clone().or(self.undo);
        }
        if capability.is_some() {
            self.capability.clone_from(capability);
            self.capability_label.clone_from(capability_label);
        }
        if self.for_each.is_some() {
            self.max_parallel = smaller(*max_parallel, self.max_parallel);
        }
        if let (Some(agent), Some(earlier)) = (self.agent.as_deref_mut(), agent.as_deref()) {
            keep_bounds(agent, earlier);
        }
        self
    }
}

impl Document {
    /// Gives every step the safeguards of the step that had its id in `old`.
    pub(crate) fn keep_safeguards_of(&mut self, old: &Self) {
        let known: BTreeMap<&StepId, &Step> = old
            .steps
            .iter()
            .filter_map(|step| Some((step.id.as_ref()?, step)))
            .collect();
        for step in &mut self.steps {
            let earlier = step.id.as_ref().and_then(|id| known.get(id));
            if let Some(earlier) = earlier.filter(|earlier| **earlier != step) {
                *step = std::mem::take(step).keeping_safeguards_of(earlier);
            }
        }
    }

    /// The steps at which a person is asked or something is checked, of those that `step` waits for
    /// by name.
    pub(crate) fn guards_named_by<'a>(&self, step: &'a Step) -> impl Iterator<Item = &'a StepId> {
        let guards: BTreeSet<StepId> = self
            .steps
            .iter()
            .filter(|step| guards_others(step))
            .filter_map(|step| step.id.clone())
            .collect();
        step.depends_on
            .iter()
            .filter(move |on| guards.contains(*on))
    }
}

fn union(old: &[String], new: Vec<String>) -> Vec<String> {
    let mut all = old.to_vec();
    all.extend(new.into_iter().filter(|text| !old.contains(text)));
    all
}

fn smaller<T: PartialOrd>(old: Option<T>, new: Option<T>) -> Option<T> {
    match (old, new) {
        (Some(old), Some(new)) => Some(if new < old { new } else { old }),
        (old, new) => old.or(new),
    }
}

fn fewer_retries(old: Option<Box<Retry>>, new: Option<Box<Retry>>) -> Option<Box<Retry>> {
    match (old, new) {
        (Some(old), Some(new)) => Some(if new.max < old.max { new } else { old }),
        (old, new) => old.or(new),
    }
}

/// An executor may do no more than the one before.
fn keep_bounds(agent: &mut Agent, earlier: &Agent) {
    if agent.max_turns() > earlier.max_turns() {
        agent.max_turns = Some(earlier.max_turns());
    }
    if agent.max_calls() > earlier.max_calls() {
        agent.max_calls = Some(earlier.max_calls());
    }
    agent.max_tokens = smaller(earlier.max_tokens, agent.max_tokens);
}
