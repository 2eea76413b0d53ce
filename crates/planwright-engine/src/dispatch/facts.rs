//! The facts that decide about a call, looked up right before its start is recorded.

use super::run_loop::RunLoop;
use crate::journal::stored_value::store_value;
use crate::review::pins::since_pinned;
use planwright_core::digest::Digest;
use planwright_core::plan::StepIx;
use planwright_core::policy::{CallToJudge, late_arguments};
use planwright_core::run::{CallFacts, StepError, StepErrorCode, StoredValue};
use planwright_core::tool::KnownTool;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

impl RunLoop {
    /// Judges the call as it would be sent. What a person would be shown is stored first, so that
    /// it can be named.
    pub(super) async fn facts(
        &mut self,
        step: StepIx,
        tool: &KnownTool,
        args: &Arc<Value>,
        call: Digest,
    ) -> Result<CallFacts, StepError> {
        let plan = self.run.plan();
        let own = self.run.plan_step(step);
        let subject = CallToJudge {
            tool: Some(tool),
            args,
            unknown: &BTreeSet::new(),
            step: self.run.definition(step),
            step_id: plan.step_id(own).as_str(),
            plan: plan.id().as_str(),
            chosen_by_model: self.run.is_agent_call(),
        };
        let late = !late_arguments(plan, own).is_empty();
        let mut facts = CallFacts::new(
            &self.context.settings.policy,
            tool,
            Arc::clone(args),
            late,
            &subject,
        );
        let consent = self.run.start().consent.as_deref();
        if let Some(pin) = consent.and_then(|consent| consent.pins.get(&tool.name.to_string()))
            && pin.digest != tool.digest()
        {
            facts.changed = Some(since_pinned(&*self.context.ports.artifacts, pin, tool).await);
        }
        if self.run.asks_about(step, call, &facts) {
            facts.shown = Some(self.store_shown(args).await?);
        }
        Ok(facts)
    }

    /// The arguments as they can be written down.
    pub(super) async fn store_shown(&mut self, args: &Value) -> Result<StoredValue, StepError> {
        let stored = store_value(&*self.context.ports.artifacts, args.clone()).await;
        let (stored, _) = stored.map_err(|error| {
            StepError::new(
                StepErrorCode::NotShown,
                format!("the call cannot be shown: {error}"),
            )
        })?;
        Ok(stored)
    }
}
