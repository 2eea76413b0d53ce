//! Decisions about steps without a call: conditions, loops, and questions to people.

use super::run_loop::{RunError, RunLoop};
use crate::journal::run_values::{RunValues, load_stored};
use crate::journal::stored_value::store_value;
use planwright_core::journal::Cause;
use planwright_core::plan::{ResolveError, StepIx};
use planwright_core::run::{Command, Run, StepError, StepErrorCode, StepState, StoredValue};
use serde_json::Value;
use std::sync::Arc;

/// Why a step with `skip` did not run.
const LEFT_OUT: &str = "left out by an edit";

impl RunLoop {
    /// Closes what is done and decides what need not wait for a slot, until nothing follows from
    /// that any more.
    pub(super) async fn settle_flow(&mut self) -> Result<(), RunError> {
        loop {
            let closed = self.close_loops().await?;
            let decided = self.decide_before_asking().await?;
            if !closed && !decided {
                return Ok(());
            }
        }
    }

    /// Decides conditions first: no person is asked to approve a step whose condition is false.
    async fn decide_before_asking(&mut self) -> Result<bool, RunError> {
        let undecided =
            |ix: &StepIx| self.run.definition(*ix).when.is_some() && !self.met.contains(ix);
        let unasked: Vec<StepIx> = self
            .run
            .schedule()
            .unasked_steps()
            .filter(undecided)
            .collect();
        for &step in &unasked {
            self.condition_holds(step).await?;
        }
        Ok(!unasked.is_empty())
    }

    /// Returns whether the step goes on. If the plan leaves it out or its `when` is false it is
    /// skipped, and if its `when` cannot be decided it fails.
    pub(super) async fn condition_holds(&mut self, step: StepIx) -> Result<bool, RunError> {
        if self.run.definition(step).skip {
            self.execute(
                &Command::Skip {
                    step,
                    reason: LEFT_OUT.to_owned(),
                },
                Cause::Schedule,
            )?;
            return Ok(false);
        }
        let plan = Arc::clone(self.run.plan());
        let own = self.run.plan_step(step);
        let Some(source) = &plan.step(own).when else {
            return Ok(true);
        };
        if self.met.contains(&step) || self.run.step(step).tally().attempts > 0 {
            return Ok(true);
        }
        let elsewhere = plan.step(own).for_each.is_some()
            && self.run.loops(step) == plan.decides_per_element(own);
        if elsewhere {
            self.met.insert(step);
            return Ok(true);
        }
        let decided = match self.load(step).await {
            Err(error) => Err(error),
            Ok(()) => plan
                .check_when(own, &self.values(step))
                .map_err(|error| StepError::new(StepErrorCode::ConditionFailed, error.to_string())),
        };
        match decided {
            Ok(true) => {
                self.met.insert(step);
                return Ok(true);
            }
            Ok(false) => {
                let reason = format!("when: {source} is false");
                self.execute(&Command::Skip { step, reason }, Cause::Schedule)?;
            }
            Err(error) => {
                self.execute(&Command::Fail { step, error }, Cause::Schedule)?;
            }
        }
        Ok(false)
    }

    /// Finds the list and begins the loop over it.
    pub(super) async fn open_loop(&mut self, step: StepIx) -> Result<(), RunError> {
        let command = match self.elements(step).await {
            Ok((items, count)) => Command::OpenLoop { step, items, count },
            Err(error) => Command::Fail { step, error },
        };
        self.execute(&command, Cause::Schedule)?;
        Ok(())
    }

    async fn elements(&mut self, step: StepIx) -> Result<(StoredValue, usize), StepError> {
        self.load(step).await?;
        let plan = Arc::clone(self.run.plan());
        let resolved = plan
            .resolve_for_each(step, &self.values(step))
            .unwrap_or(Ok(Value::Null));
        let list = match resolved.map_err(|error| unresolved(&error))? {
            Value::Array(list) => list,
            other => return Err(not_a_list(&other)),
        };
        let count = list.len();
        if count > Run::MAX_ELEMENTS {
            // Not worth storing: the core says how many there may be.
            return Ok((StoredValue::Inline(Arc::new(Value::Null)), count));
        }
        let stored = store_value(&*self.context.ports.artifacts, Value::Array(list)).await;
        let (items, list) = stored
            .map_err(|error| StepError::new(StepErrorCode::ValueNotStored, error.to_string()))?;
        self.large.keep_list(step, list);
        Ok((items, count))
    }

    /// Gathers the values of loops whose elements all had their turn. Returns whether there were
    /// any.
    async fn close_loops(&mut self) -> Result<bool, RunError> {
        let closable: Vec<StepIx> = self.run.schedule().closable().collect();
        let mut closed = false;
        for step in closable {
            let command = match self.gather(step).await {
                Ok(value) => Command::CloseLoop { step, value },
                Err(error) => Command::Fail { step, error },
            };
            self.large.forget_list(step);
            closed |= self.execute(&command, Cause::Schedule)?.is_some();
        }
        Ok(closed)
    }

    async fn gather(&mut self, step: StepIx) -> Result<StoredValue, StepError> {
        let limit = self.context.settings.bounds.max_resolved_bytes as u64;
        let instances: Vec<StepIx> = self
            .run
            .open_loop(step)
            .map(|opened| opened.instances().collect())
            .unwrap_or_default();
        let mut list = Vec::with_capacity(instances.len());
        let mut bytes = 0_u64;
        for ix in instances {
            let StepState::Completed { value, .. } = self.run.step(ix) else {
                list.push(Value::Null);
                continue;
            };
            bytes += match value {
                StoredValue::Inline(value) => value.to_string().len() as u64,
                StoredValue::Artifact(artifact) => artifact.bytes,
            };
            if bytes > limit {
                let message =
                    format!("the values of all elements together have more than {limit} bytes");
                return Err(StepError::new(StepErrorCode::ValueTooLarge, message));
            }
            let value = value.clone();
            let loaded = load_stored(&*self.context.ports.artifacts, &value).await;
            let value = loaded.map_err(|error| {
                StepError::new(StepErrorCode::ArtifactDamaged, error.to_string())
            })?;
            list.push(Arc::unwrap_or_clone(value));
        }
        let stored = store_value(&*self.context.ports.artifacts, Value::Array(list)).await;
        let (stored, value) = stored
            .map_err(|error| StepError::new(StepErrorCode::ValueNotStored, error.to_string()))?;
        if let StoredValue::Artifact(artifact) = &stored {
            self.large.keep(&self.run, step, artifact.bytes, value);
        }
        Ok(stored)
    }

    /// Puts the step's question to people.
    pub(super) async fn ask_input(&mut self, step: StepIx) -> Result<(), RunError> {
        let plan = Arc::clone(self.run.plan());
        let message = match self.load(step).await {
            Err(error) => Err(error),
            Ok(()) => plan
                .resolve_message(self.run.plan_step(step), &self.values(step))
                .map_err(|error| unresolved(&error)),
        };
        let command = match message {
            Ok(message) => Command::AskInput { step, message },
            Err(error) => Command::Fail { step, error },
        };
        self.execute(&command, Cause::Schedule)?;
        Ok(())
    }

    /// Brings in every large value that the step looks at.
    pub(super) async fn load(&mut self, step: StepIx) -> Result<(), StepError> {
        let needed = self.run.plan().needed_steps(self.run.plan_step(step));
        let loaded = self
            .large
            .load(&*self.context.ports.artifacts, &self.run, &needed, step)
            .await;
        loaded.map_err(|error| StepError::new(StepErrorCode::ArtifactDamaged, error.to_string()))
    }

    /// What references of the step see. Large values have to be [loaded](Self::load) before.
    pub(super) fn values(&self, step: StepIx) -> RunValues<'_> {
        RunValues::new(&self.run, &self.large, step)
    }
}

fn unresolved(error: &ResolveError) -> StepError {
    StepError::new(StepErrorCode::UnresolvedReference, error.to_string())
}

fn not_a_list(value: &Value) -> StepError {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    };
    StepError::new(
        StepErrorCode::NotAList,
        format!("`forEach` runs over a list, and this is {kind}"),
    )
}
