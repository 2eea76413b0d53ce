//! Whether consent covers exactly the call that is about to be made. Asked in the transaction that
//! records its start.

use crate::digest::Digest;
use crate::plan::StepIx;
use crate::policy::{LateChoice, Verdict};
use crate::run::{AskedCall, CallFacts, Consent, Run, StepError, StepErrorCode, StoredValue};
use crate::tool::ToolName;
use std::sync::Arc;

/// The verdict of consent on a call.
pub(super) enum Covered {
    Yes,
    No(StepError),
    /// A person has to agree to exactly this call first.
    Ask(Box<AskedCall>),
}

impl Run {
    pub(super) fn check_consent(
        &self,
        ix: StepIx,
        tool: &ToolName,
        call: Digest,
        facts: Option<&CallFacts>,
    ) -> Covered {
        if self.definition(ix).is_for_model() {
            return self.check_consent_to_model(ix, tool, call, facts);
        }
        if let Some(error) = self.out_of_scope(ix, tool) {
            return Covered::No(error);
        }
        let consent = self.start.consent.as_deref();
        let Some(facts) = facts else {
            return unjudged(consent);
        };
        if let Some(error) = refused_by_consent(consent, tool, facts) {
            return Covered::No(error);
        }
        let choices = self.late_choices(ix);
        // What policy lets an executor do by itself is not what the approver was asked about.
        let free = self.is_agent_call() && facts.judgement.verdict == Verdict::Allow;
        for choice in choices.iter().filter(|_| !free) {
            if let LateChoice::Constraint(constraint) = choice
                && let Some(error) = violated(constraint, facts)
            {
                return Covered::No(error);
            }
        }
        match self.why_asked(ix, facts) {
            Some(_) if self.approved_calls.get(&ix) == Some(&call) => Covered::Yes,
            Some(reason) => Covered::Ask(asked(tool, call, facts, reason)),
            None => Covered::Yes,
        }
    }

    /// A step that a model or an executor works on has no definition to pin. What its executor
    /// calls is judged call by call; the late choices of the approver are about those.
    fn check_consent_to_model(
        &self,
        ix: StepIx,
        tool: &ToolName,
        call: Digest,
        facts: Option<&CallFacts>,
    ) -> Covered {
        let Some(facts) = facts else {
            return unjudged(self.start.consent.as_deref());
        };
        if let Some(error) = denied(facts) {
            return Covered::No(error);
        }
        match self.why_asked(ix, facts) {
            Some(reason) if self.approved_calls.get(&ix) != Some(&call) => {
                Covered::Ask(asked(tool, call, facts, reason))
            }
            Some(_) | None => Covered::Yes,
        }
    }

    /// Returns whether a person would be asked about a call with these facts, so that its arguments
    /// have to be written down.
    pub fn asks_about(&self, ix: StepIx, call: Digest, facts: &CallFacts) -> bool {
        self.approved_calls.get(&ix) != Some(&call) && self.why_asked(ix, facts).is_some()
    }

    /// Returns why the run's own approval does not cover a call, if it does not.
    fn why_asked(&self, ix: StepIx, facts: &CallFacts) -> Option<String> {
        if self.is_agent_call() {
            return self.why_asked_of_agent(self.late_choices(ix), facts);
        }
        let because = || {
            format!(
                "only policy approved the run, and {}",
                facts.judgement.explain()
            )
        };
        if self.definition(ix).is_for_model() {
            let consent = self.start.consent.as_deref()?;
            let persons = consent.is_a_persons_for(self.plan.step_id(self.plan_step(ix)).as_str());
            let asks = facts.judgement.verdict == Verdict::Ask && !persons;
            return asks.then(because);
        }
        let choices = self.late_choices(ix);
        if choices.contains(&LateChoice::Ask) {
            return Some(
                "the approver wants to see the call once its arguments are known".to_owned(),
            );
        }
        // A run from before consent was recorded was covered by its digest alone.
        let consent = self.start.consent.as_deref()?;
        if facts.judgement.verdict != Verdict::Ask {
            return None;
        }
        if !consent.is_a_persons_for(self.plan.step_id(self.plan_step(ix)).as_str()) {
            return Some(because());
        }
        // The approver saw this step as one that is not asked about.
        (facts.late && choices.is_empty()).then(|| {
            format!(
                "this was not known when the plan was approved: {}",
                facts.judgement.explain()
            )
        })
    }

    /// A call that an executor wants was not known to any approver when the plan was approved: what
    /// policy asks about goes only if a person said in advance that it may.
    fn why_asked_of_agent(&self, choices: &[LateChoice], facts: &CallFacts) -> Option<String> {
        if self
            .start
            .parent
            .as_ref()
            .is_some_and(|parent| parent.outside)
        {
            return Some("the tool is not one of those the plan lists".to_owned());
        }
        if facts.judgement.verdict == Verdict::Allow {
            return None;
        }
        // The step of the plan that a person agreed to is the one that the executor works on.
        let step = self
            .start
            .parent
            .as_ref()
            .map(|parent| parent.step.as_str())
            .unwrap_or_default();
        if !self
            .start
            .consent
            .as_deref()
            .is_some_and(|consent| consent.is_a_persons_for(step))
        {
            return Some(format!(
                "only policy approved the run, and {}",
                facts.judgement.explain()
            ));
        }
        let asks = choices.is_empty() || choices.contains(&LateChoice::Ask);
        asks.then(|| {
            format!(
                "an executor wants this call, and {}",
                facts.judgement.explain()
            )
        })
    }

    fn late_choices(&self, ix: StepIx) -> &[LateChoice] {
        let consent = self.start.consent.as_deref();
        let choices = consent.and_then(|consent| {
            consent
                .late
                .get(self.plan.step_id(self.plan_step(ix)).as_str())
        });
        choices.map(Vec::as_slice).unwrap_or_default()
    }

    fn out_of_scope(&self, ix: StepIx, tool: &ToolName) -> Option<StepError> {
        let scope = &self.plan.document().tools_required;
        // The tools of another plan have their own scope.
        if scope.is_empty()
            || self.definition(ix).plan.is_some()
            || self.scope.holds(&tool.to_string())
        {
            return None;
        }
        let name = self.definition(ix).action_label();
        let message = format!(
            "Tool {name} not available in plan scope. Only [{}] are available.",
            list_names(scope)
        );
        Some(StepError::new(StepErrorCode::OutOfScope, message))
    }
}

/// A run that says what it may do calls nothing that nothing is known about.
fn unjudged(consent: Option<&Consent>) -> Covered {
    match consent {
        Some(_) => Covered::No(StepError::new(
            StepErrorCode::PolicyDenied,
            "Policy denied: the call was not judged",
        )),
        None => Covered::Yes,
    }
}

fn asked(tool: &ToolName, call: Digest, facts: &CallFacts, reason: String) -> Box<AskedCall> {
    let args = facts
        .shown
        .clone()
        .unwrap_or_else(|| StoredValue::Inline(Arc::clone(&facts.args)));
    Box::new(AskedCall {
        digest: call,
        tool: tool.clone(),
        args,
        reason,
    })
}

/// Returns why a call is not made, regardless of who agreed to it: the tool is another one by now,
/// or policy forbids it.
pub(super) fn refused_by_consent(
    consent: Option<&Consent>,
    tool: &ToolName,
    facts: &CallFacts,
) -> Option<StepError> {
    consent
        .and_then(|consent| changed(consent, tool, facts))
        .or_else(|| denied(facts))
}

fn denied(facts: &CallFacts) -> Option<StepError> {
    let denied = facts.judgement.verdict == Verdict::Deny;
    let message = || format!("Policy denied: {}", facts.judgement.explain());
    denied.then(|| StepError::new(StepErrorCode::PolicyDenied, message()))
}

/// The names of a scope; of a long one, the first.
pub(super) fn list_names(scope: &[String]) -> String {
    const SHOWN: usize = 50;
    let mut names = scope.iter().take(SHOWN).cloned().collect::<Vec<_>>();
    if scope.len() > SHOWN {
        names.push(format!("and {} more", scope.len() - SHOWN));
    }
    names.join(", ")
}

/// The definition that was approved must be the one that is called.
fn changed(consent: &Consent, tool: &ToolName, facts: &CallFacts) -> Option<StepError> {
    let message = match consent.pins.get(&tool.to_string()) {
        Some(pin) if pin.digest == facts.definition => return None,
        Some(_) => {
            let difference = facts
                .changed
                .as_deref()
                .unwrap_or("its definition is another one");
            format!("`{tool}` changed since the plan was approved: {difference}")
        }
        None => format!("`{tool}` is not one of the tools the plan was approved with"),
    };
    Some(StepError::new(StepErrorCode::ToolChanged, message))
}

fn violated(constraint: &crate::plan::Condition, facts: &CallFacts) -> Option<StepError> {
    let message = match constraint.holds_for_args(&facts.args) {
        Ok(true) => return None,
        Ok(false) => format!(
            "the arguments are not what was agreed to: {} is false",
            constraint.source()
        ),
        Err(error) => format!(
            "the approver's constraint {} cannot be decided: {error}",
            constraint.source()
        ),
    };
    Some(StepError::new(StepErrorCode::ConstraintViolated, message))
}
