//! What every call of a run was sent, told from its journal.
//!
//! The journal keeps the digest of each call and the values it was made from. The arguments are
//! resolved from these once more and shown only if they have that digest: what is shown is proved.
//! Secrets stand there by name, as they do in the digest.

use crate::context::Context;
use crate::dispatch::call_digest;
use crate::dispatch::{LargeValues, RunValues, SecretValues};
use crate::journal::journals::Journals;
use crate::journal::load::{LoadError, RunFolder};
use planwright_core::id::{RunId, StepId};
use planwright_core::journal::{Record, StreamName, decode};
use planwright_core::plan::StepIx;
use planwright_core::review::Review;
use planwright_core::run::{Run, RunEvent, idempotency_key};
use planwright_core::tool::ToolName;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Follows the journal of a run, entry by entry.
#[derive(Debug)]
pub struct CallTrail {
    context: Arc<Context>,
    folder: RunFolder,
    large: LargeValues,
}

impl Journals {
    /// Begins to follow a run of this plan at its first entry.
    pub fn follow_calls(&self, run: &RunId, review: Review) -> CallTrail {
        let bounds = self.context.settings.bounds;
        CallTrail {
            context: Arc::clone(&self.context),
            folder: RunFolder::new(run.clone(), review, bounds),
            large: LargeValues::default(),
        }
    }

    /// Reads what the latest call of each step was sent, as far as that can be proved.
    pub async fn sent_arguments(
        &self,
        run: &RunId,
        review: Review,
    ) -> Result<BTreeMap<StepId, Value>, LoadError> {
        const PAGE: usize = 1000;
        let stream = StreamName::Run(run.clone());
        let mut trail = self.follow_calls(run, review);
        let mut sent = BTreeMap::new();
        let mut after = 0;
        loop {
            let page = self.read(&stream, after, PAGE).await?;
            for record in &page {
                after = record.seq;
                if let Some((step, args)) = trail.follow(record).await? {
                    sent.insert(step, args);
                }
            }
            if page.len() < PAGE {
                return Ok(sent);
            }
        }
    }

    /// What a step would send now, its references resolved from the run as far as it is; nothing if
    /// that is not known yet.
    pub async fn known_arguments(&self, run: &Run, step: StepIx) -> Option<Value> {
        let mut large = LargeValues::default();
        let args = resolve(&self.context, run, &mut large, step).await?;
        Some(Value::Object(args))
    }
}

impl CallTrail {
    /// Takes the next entry. Returns the step and its arguments if the entry starts a call and the
    /// arguments have the digest that it names.
    pub async fn follow(&mut self, record: &Record) -> Result<Option<(StepId, Value)>, LoadError> {
        let entry = decode::<RunEvent>(record).map_err(|error| self.folder.undecoded(error))?;
        let sent = match (&entry.event, self.folder.run()) {
            (
                RunEvent::AttemptStarted {
                    step, tool, call, ..
                },
                Some(run),
            ) => match run.find(step.as_str()) {
                Some(ix) => {
                    let args = resolve(&self.context, run, &mut self.large, ix).await;
                    let args = args.and_then(|args| self.prove(run, ix, tool, args, call));
                    args.map(|args| (step.clone(), args))
                }
                None => None,
            },
            _ => None,
        };
        self.folder.apply(&entry)?;
        Ok(sent)
    }

    /// Returns the arguments if they are what was sent. A tool that takes an idempotency key was
    /// given one besides.
    fn prove(
        &self,
        run: &Run,
        step: StepIx,
        tool: &ToolName,
        mut args: Map<String, Value>,
        call: &planwright_core::digest::Digest,
    ) -> Option<Value> {
        let plain = Value::Object(args.clone());
        if call_digest(tool, &plain) == *call {
            return Some(plain);
        }
        let catalog = self.context.catalog();
        let known = catalog.resolve(&tool.to_string()).ok()?;
        let key = idempotency_key(run.id(), &run.start().digest, run.step_id(step));
        args.insert(known.key_argument.clone()?, Value::String(key));
        let keyed = Value::Object(args);
        (call_digest(tool, &keyed) == *call).then_some(keyed)
    }
}

/// Resolves the arguments of a tool step; nothing for other steps, or if a value is missing.
async fn resolve(
    context: &Context,
    run: &Run,
    large: &mut LargeValues,
    step: StepIx,
) -> Option<Map<String, Value>> {
    let plan = run.plan();
    let own = run.plan_step(step);
    plan.step(own).tool.as_ref()?;
    let artifacts = &*context.ports.artifacts;
    let needed = plan.needed_steps(own);
    large.load(artifacts, run, &needed, step).await.ok()?;
    let secrets = SecretValues::placeholders(&plan.secrets(own));
    let values = RunValues::new(run, large, step).with_secrets(&secrets);
    plan.resolve_args(own, &values).ok()
}
