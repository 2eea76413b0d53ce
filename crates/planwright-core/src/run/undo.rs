//! Taking a run back: the plan that does it, derived from what the run did.
//!
//! The undo of a run is a run of its own: a chain of the declared `undo` calls, the last step that
//! completed first. What the calls are made with is fixed here, once, from the values of the run
//! that is taken back. It is written as literal text, so that nothing a tool returned is ever read
//! as a reference.

use super::apply::event_name;
use super::{Corrupt, Refusal, Run, RunEvent, StepEvent, StepState};
use crate::digest::Digest;
use crate::id::{RunId, StepId};
use crate::journal::Entry;
use crate::plan::{
    Document, Plan, Reference, ResolveError, Root, Segment, Step, StepIx, Template, Values, escape,
    literal,
};
use crate::tool::Catalog;
use serde_json::{Map, Value};

/// A plan that takes a run back.
#[derive(Debug, Clone, PartialEq)]
pub struct UndoPlan {
    /// A chain of calls. It has the id of the plan whose run is taken back.
    pub document: Document,
    /// The steps that are taken back, in that order.
    pub steps: Vec<StepIx>,
    /// The effects of the run that nothing takes back, in plan order.
    pub kept: Vec<(StepIx, Kept)>,
}

/// Why a completed step is not taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kept {
    /// It says nothing about how to.
    NoUndo,
    /// Its value was taken over from another run: that one did it.
    Reused {
        /// The run that did it.
        from: RunId,
    },
    /// The run of its sub-plan did it, and can be taken back by itself.
    Child {
        /// The run of its sub-plan.
        run: RunId,
    },
}

/// The reason why a run cannot be taken back.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlanUndoError {
    /// The run may not be taken back now.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A call refers to something that is not there.
    #[error("the undo of step `{step}` cannot be made")]
    Unresolved {
        /// The step or element.
        step: StepId,
        /// The cause.
        source: ResolveError,
    },
}

/// The id of the step that takes `step` back.
pub fn undo_step_id(step: &StepId) -> StepId {
    format!("undo-{step}").parse().unwrap_or_else(|_| {
        // Too long: a name of fixed length that nothing else has.
        let digest = Digest::of_bytes(step.as_str().as_bytes()).hex();
        format!("undo-{}", &digest[..32])
            .parse()
            .expect("letters, digits and a dash are an id")
    })
}

/// The step of `run` that the step `undo` of its undo takes back.
pub fn undone_by(run: &Run, undo: &StepId) -> Option<StepIx> {
    let plain = undo
        .as_str()
        .strip_prefix("undo-")
        .and_then(|step| run.plan().find(step));
    plain.or_else(|| {
        run.plan()
            .indices()
            .find(|&ix| undo_step_id(run.plan().step_id(ix)) == *undo)
    })
}

/// Derives what takes the completed steps of an ended run back. `values` are the values of that
/// run.
pub fn plan_undo(
    run: &Run,
    values: &dyn Values,
    catalog: &Catalog,
) -> Result<UndoPlan, PlanUndoError> {
    if !run.state().is_terminal() {
        return Err(Refusal::NotEnded {
            status: run.status(),
        }
        .into());
    }
    let steps: Vec<StepIx> = run.undoable().collect();
    if steps.is_empty() {
        return Err(run.nothing_to_undo().into());
    }
    let plan = run.plan();
    let mut chain: Vec<Step> = Vec::with_capacity(steps.len());
    for &ix in &steps {
        let args = undo_args(plan, ix, values).map_err(|source| PlanUndoError::Unresolved {
            step: plan.step_id(ix).clone(),
            source,
        })?;
        let after = chain.last().and_then(|before| before.id.clone());
        chain.extend(undo_step(plan, ix, args, after));
    }
    let title = plan
        .document()
        .title
        .as_deref()
        .unwrap_or_else(|| plan.id().as_str());
    let document = Document {
        id: Some(plan.id().clone()),
        title: Some(format!("Undo of {title}")),
        goal: Some(format!("Take back what {} did.", run.id())),
        steps: chain,
        ..Document::default()
    };
    Ok(UndoPlan {
        document,
        steps,
        kept: kept(run, catalog),
    })
}

fn undo_step(
    plan: &Plan,
    ix: StepIx,
    args: Map<String, Value>,
    after: Option<StepId>,
) -> Option<Step> {
    let step = plan.step(ix);
    let undo = step.undo.as_deref()?;
    let id = plan.step_id(ix);
    let title = step.title.as_deref().map_or_else(
        || format!("Take back {id}"),
        |title| format!("Take back: {title}"),
    );
    Some(Step {
        id: Some(undo_step_id(id)),
        title: Some(title),
        tool: Some(undo.tool.clone()),
        args,
        depends_on: after.into_iter().collect(),
        retry: step.retry.clone(),
        timeout_seconds: step.timeout_seconds,
        ..Step::default()
    })
}

fn kept(run: &Run, catalog: &Catalog) -> Vec<(StepIx, Kept)> {
    let plan = run.plan();
    let why = |ix: StepIx| {
        let step = plan.step(ix);
        let read_only = step
            .tool
            .as_deref()
            .is_some_and(|name| catalog.resolve(name).is_ok_and(|tool| tool.is_read_only()));
        if run.is_reused(ix) && !read_only {
            return run.start().forked_from.as_ref().map(|fork| Kept::Reused {
                from: fork.run.clone(),
            });
        }
        let acted =
            step.tool.is_some() && !read_only || run.child_runs(ix).agent_calls().next().is_some();
        (step.undo.is_none() && acted).then_some(Kept::NoUndo)
    };
    let mut kept = Vec::new();
    for ix in plan
        .indices()
        .filter(|&ix| matches!(run.step(ix), StepState::Completed { .. }))
    {
        if plan.step(ix).plan.is_some() && plan.step(ix).undo.is_none() {
            kept.extend(
                run.child_runs(ix)
                    .places()
                    .map(|child| (ix, Kept::Child { run: child.child() })),
            );
        } else {
            kept.extend(why(ix).map(|why| (ix, why)));
        }
    }
    kept
}

fn undo_args(
    plan: &Plan,
    ix: StepIx,
    values: &dyn Values,
) -> Result<Map<String, Value>, ResolveError> {
    let Some(template) = plan.undo_template(ix) else {
        return Ok(plan
            .step(ix)
            .undo
            .as_ref()
            .map(|undo| undo.args.clone())
            .unwrap_or_default());
    };
    match fixed(template, values, plan.max_resolved_bytes())? {
        Value::Object(args) => Ok(args),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            Ok(Map::new())
        }
    }
}

/// The template as text of a plan in which every reference is replaced by its value. Only secrets
/// stay references: their values are never written down.
fn fixed(template: &Template, values: &dyn Values, limit: usize) -> Result<Value, ResolveError> {
    Ok(match template {
        Template::Reference(reference) if is_secret(reference) => written(reference).into(),
        Template::Literal(_) | Template::Reference(_) => literal(template.resolve(values, limit)?),
        Template::Text(segments) => fixed_text(segments, values, limit)?.into(),
        Template::List(list) => Value::Array(
            list.iter()
                .map(|element| fixed(element, values, limit))
                .collect::<Result<_, _>>()?,
        ),
        Template::Object(entries) => Value::Object(
            entries
                .iter()
                .map(|(key, element)| Ok((key.clone(), fixed(element, values, limit)?)))
                .collect::<Result<_, _>>()?,
        ),
    })
}

/// Plain text between secrets is put together before it is escaped: two values may form a marker
/// only together.
fn fixed_text(
    segments: &[Segment],
    values: &dyn Values,
    limit: usize,
) -> Result<String, ResolveError> {
    let mut text = String::new();
    let mut plain = Vec::new();
    for segment in segments {
        match segment {
            Segment::Reference(reference) if is_secret(reference) => {
                text.push_str(&plain_text(&mut plain, values, limit)?);
                if text.ends_with('$') {
                    // It would turn the reference into text.
                    return Err(ResolveError::Secret {
                        reference: reference.source.to_string(),
                    });
                }
                text.push_str(&written(reference));
            }
            Segment::Text(_) | Segment::Reference(_) => plain.push(segment.clone()),
        }
    }
    text.push_str(&plain_text(&mut plain, values, limit)?);
    Ok(text)
}

fn plain_text(
    plain: &mut Vec<Segment>,
    values: &dyn Values,
    limit: usize,
) -> Result<String, ResolveError> {
    let resolved = Template::Text(std::mem::take(plain)).resolve(values, limit)?;
    Ok(resolved.as_str().map(escape).unwrap_or_default())
}

fn is_secret(reference: &Reference) -> bool {
    matches!(reference.root, Root::Secret(_))
}

fn written(reference: &Reference) -> String {
    format!("${{{}}}", reference.source)
}

impl Run {
    /// The completed steps that say how they are taken back, the last to complete first. Since a
    /// step completes after what it depends on, this is a reverse topological order.
    pub fn undoable(&self) -> impl Iterator<Item = StepIx> + '_ {
        let completed = |ix: &StepIx| matches!(self.step(*ix), StepState::Completed { .. });
        let told = |ix: &StepIx| self.plan.step(*ix).undo.is_some() && !self.is_reused(*ix);
        self.finished_steps()
            .iter()
            .rev()
            .copied()
            .filter(completed)
            .filter(told)
    }

    /// Returns whether the value was taken over from another run.
    pub(super) fn is_reused(&self, ix: StepIx) -> bool {
        self.reused.contains(&ix)
    }

    pub(super) fn note_undo(
        &mut self,
        entry: &Entry<RunEvent>,
        run: &RunId,
    ) -> Result<(), Corrupt> {
        if !self.state.is_terminal() || self.undoable().next().is_none() {
            return Err(self.cannot_follow(entry, "undo_opened"));
        }
        self.undos.push(run.clone());
        Ok(())
    }

    pub(super) fn note_undone(
        &mut self,
        entry: &Entry<RunEvent>,
        step: &StepId,
        run: &RunId,
    ) -> Result<(), Corrupt> {
        let ix = self.locate(entry.seq, step)?;
        if !self.state.is_terminal() || self.undos.last() != Some(run) {
            return Err(self.cannot_follow(entry, event_name(&StepEvent::Undone)));
        }
        let Some(next) = self.step(ix).after(&StepEvent::Undone) else {
            return Err(Corrupt::StepTransition {
                seq: entry.seq,
                event: event_name(&StepEvent::Undone),
                step: step.to_string(),
                state: self.step(ix).status(),
            });
        };
        self.replace(ix, next);
        Ok(())
    }
}
