//! The safeguards that a version does not have any more, or not as strictly.

use super::gate::{guards_before, guards_others};
use super::plan_loss::losses_of_plan;
use crate::id::StepId;
use crate::plan::{Document, Limits, Step};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A safeguard that an earlier version had. Only a person may agree to do without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SafeguardLoss {
    /// The step that had it; absent for a safeguard of the plan itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub step: Option<StepId>,
    /// As edits spell it: `approvalRequired`, `limits.budget.calls`.
    pub path: String,
    /// What became of it.
    pub kind: LossKind,
    /// The safeguard as it was; absent if it held without being named.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Value>,
    /// What is in its place.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Value>,
}

/// What became of a safeguard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LossKind {
    /// It is gone.
    Removed,
    /// It holds back less than it did.
    Weakened,
    /// Another one is in its place, and neither is stricter.
    Replaced,
}

impl LossKind {
    /// Returns its word in diffs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Weakened => "weakened",
            Self::Replaced => "replaced",
        }
    }
}

impl fmt::Display for SafeguardLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            step,
            path,
            kind,
            before: _,
            after: _,
        } = self;
        if let Some(step) = step {
            write!(f, "step {step}: ")?;
        }
        write!(f, "{path} {}", kind.as_str())
    }
}

/// Returns whether the document names a safeguard, besides those that hold unless they are taken
/// back.
pub(crate) fn names_safeguards(document: &Document) -> bool {
    let of_step = |step: &Step| {
        step.skip
            || step.approval_required
            || step.asks_person()
            || !step.constraints.is_empty()
            || !step.labels.is_empty()
            || step.expect.is_some()
            || step.when.is_some()
            || step.undo.is_some()
            || step.capability.is_some()
            || step.timeout_seconds.is_some()
            || step.retry.is_some()
            || step.max_parallel.is_some()
            || step.agent.is_some()
    };
    !document.tools_required.is_empty()
        || document.limits != Limits::default()
        || document.steps.iter().any(of_step)
}

impl SafeguardLoss {
    /// Returns what `after` lacks of the safeguards that `before` has. Steps are the same if they
    /// have the same id.
    pub fn between(before: &Document, after: &Document) -> Vec<Self> {
        let mut losses = losses_of_plan(before, after);
        let kept: BTreeMap<&StepId, &Step> = after
            .steps
            .iter()
            .filter_map(|step| Some((step.id.as_ref()?, step)))
            .collect();
        for step in &before.steps {
            let Some(id) = &step.id else { continue };
            let losing = StepLosses::new(id);
            let found = match kept.get(id) {
                Some(now) if *now == step => continue,
                Some(now) => losing.compare(step, now),
                None => losing.drop_gates(step),
            };
            losses.extend(found);
        }
        losses.extend(guards_not_waited_for(before, after));
        losses
    }
}

/// What one step lost.
struct StepLosses<'a> {
    id: &'a StepId,
    found: Vec<SafeguardLoss>,
}

impl<'a> StepLosses<'a> {
    fn new(id: &'a StepId) -> Self {
        Self {
            id,
            found: Vec::new(),
        }
    }

    fn lose(&mut self, path: &str, kind: LossKind, before: Option<Value>, after: Option<Value>) {
        self.found.push(SafeguardLoss {
            step: Some(self.id.clone()),
            path: path.to_owned(),
            kind,
            before,
            after,
        });
    }

    /// A step that is gone or left out takes with it what was asked and checked there: what comes in
    /// its place has none of that.
    fn drop_gates(mut self, step: &Step) -> Vec<SafeguardLoss> {
        if step.skip {
            return self.found;
        }
        if step.approval_required {
            self.lose("approvalRequired", LossKind::Removed, yes(), None);
        }
        if step.asks_person() {
            self.lose("input", LossKind::Removed, as_json(&step.input), None);
        }
        if step.expect.is_some() {
            self.lose("expect", LossKind::Removed, as_json(&step.expect), None);
        }
        for constraint in &step.constraints {
            let was = as_json(constraint);
            self.lose("constraints", LossKind::Removed, was, None);
        }
        self.found
    }

    fn compare(mut self, before: &Step, after: &Step) -> Vec<SafeguardLoss> {
        if after.skip {
            return self.drop_gates(before);
        }
        if before.skip {
            self.lose("skip", LossKind::Removed, yes(), None);
        }
        if before.approval_required && !after.approval_required {
            self.lose("approvalRequired", LossKind::Removed, yes(), None);
        }
        if before.asks_person() && !after.asks_person() {
            self.lose("input", LossKind::Removed, as_json(&before.input), None);
        }
        for (path, had, has) in [
            ("constraints", &before.constraints, &after.constraints),
            ("labels", &before.labels, &after.labels),
        ] {
            for text in had.iter().filter(|text| !has.contains(text)) {
                self.lose(path, LossKind::Removed, as_json(text), None);
            }
        }
        self.compare_unordered("expect", before.expect.as_ref(), after.expect.as_ref());
        self.compare_unordered("when", before.when.as_ref(), after.when.as_ref());
        self.compare_unordered("undo", before.undo.as_ref(), after.undo.as_ref());
        self.compare_unordered(
            "capability",
            before.capability.as_ref(),
            after.capability.as_ref(),
        );
        let timeouts = (before.timeout_seconds, after.timeout_seconds);
        self.compare_limit("timeoutSeconds", timeouts.0, timeouts.1);
        let attempts = |step: &Step| step.retry.as_deref().map(|retry| retry.max);
        match (attempts(before), attempts(after)) {
            (Some(had), None) if had > 0 => {
                self.lose("retry", LossKind::Removed, as_json(&before.retry), None);
            }
            (had, has) if had.is_some() => self.compare_limit("retry.max", had, has.or(Some(0))),
            (_, _) => {}
        }
        if before.is_critical() && !after.is_critical() {
            let was = as_json(&before.critical);
            let is = as_json(&after.critical);
            self.lose("critical", LossKind::Weakened, was, is);
        }
        if !before.optional && after.optional {
            self.lose("optional", LossKind::Weakened, None, yes());
        }
        if after.for_each.is_some() {
            self.compare_limit("maxParallel", before.max_parallel, after.max_parallel);
        }
        if let (Some(had), Some(has)) = (before.agent.as_deref(), after.agent.as_deref()) {
            let turns = (Some(had.max_turns()), Some(has.max_turns()));
            self.compare_limit("agent.maxTurns", turns.0, turns.1);
            let calls = (Some(had.max_calls()), Some(has.max_calls()));
            self.compare_limit("agent.maxCalls", calls.0, calls.1);
            self.compare_limit("agent.maxTokens", had.max_tokens, has.max_tokens);
        }
        self.found
    }

    /// Of two that cannot be compared, none is known to be as strict as the other.
    fn compare_unordered<T: PartialEq + Serialize>(
        &mut self,
        path: &str,
        before: Option<&T>,
        after: Option<&T>,
    ) {
        match (before, after) {
            (Some(had), None) => self.lose(path, LossKind::Removed, as_json(had), None),
            (Some(had), Some(has)) if had != has => {
                self.lose(path, LossKind::Replaced, as_json(had), as_json(has));
            }
            (_, _) => {}
        }
    }

    fn compare_limit<T: PartialOrd + Serialize>(
        &mut self,
        path: &str,
        before: Option<T>,
        after: Option<T>,
    ) {
        let Some(kind) = limit_loss(before.as_ref(), after.as_ref()) else {
            return;
        };
        self.lose(
            path,
            kind,
            as_json(&before),
            after.as_ref().and_then(as_json),
        );
    }
}

/// Returns what became of a limit that holds back more the smaller it is.
pub(super) fn limit_loss<T: PartialOrd>(before: Option<&T>, after: Option<&T>) -> Option<LossKind> {
    match (before, after) {
        (Some(_), None) => Some(LossKind::Removed),
        (Some(had), Some(has)) if has > had => Some(LossKind::Weakened),
        (_, _) => None,
    }
}

/// Steps that do not wait any more for a step at which a person is asked or something is checked,
/// although it is still there.
fn guards_not_waited_for(before: &Document, after: &Document) -> Vec<SafeguardLoss> {
    let waited = guards_before(before);
    if waited.values().all(BTreeSet::is_empty) {
        return Vec::new();
    }
    let waits = guards_before(after);
    let running: BTreeMap<&StepId, &Step> = after
        .steps
        .iter()
        .filter(|step| !step.skip)
        .filter_map(|step| Some((step.id.as_ref()?, step)))
        .collect();
    let still_guards = |id: &StepId| running.get(id).is_some_and(|step| guards_others(step));
    let still_runs = |id: &StepId| running.contains_key(id);
    let mut losses = Vec::new();
    for (id, guards) in waited {
        let now = waits.get(&id);
        let gone = guards
            .into_iter()
            .filter(|guard| now.is_none_or(|now| !now.contains(guard)));
        for guard in gone.filter(|guard| still_guards(guard) && still_runs(&id)) {
            losses.push(SafeguardLoss {
                step: Some(id.clone()),
                path: "dependsOn".to_owned(),
                kind: LossKind::Removed,
                before: as_json(&guard),
                after: None,
            });
        }
    }
    losses
}

/// A safeguard that is on or off.
fn yes() -> Option<Value> {
    Some(Value::Bool(true))
}

/// The value as documents spell it; nothing if there is none.
pub(super) fn as_json<T: Serialize>(value: &T) -> Option<Value> {
    serde_json::to_value(value)
        .ok()
        .filter(|value| !value.is_null())
}
