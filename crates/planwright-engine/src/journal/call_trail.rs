//! The arguments that every call of a run was sent, read from its journal.
//!
//! The journal keeps the digest of each call and the values it was made from. The arguments are
//! resolved from these once more and shown only if they have that digest: what is shown is proved.
//! Secrets stand there by name, as they do in the digest.

use crate::context::Context;
use crate::journal::call_digest::call_digest;
use crate::journal::journals::Journals;
use crate::journal::load::{LoadError, RunFolder, load_run_document};
use crate::journal::run_values::{LargeValues, RunValues};
use crate::journal::secret_values::SecretValues;
use crate::port::is_last_page;
use planwright_core::id::{RunId, StepId};
use planwright_core::journal::{Record, StreamName, decode};
use planwright_core::plan::StepIx;
use planwright_core::review::Review;
use planwright_core::run::{Run, RunEvent, StepHistories, idempotency_key};
use planwright_core::tool::ToolName;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Follows the journal of a run, entry by entry.
#[derive(Debug)]
pub struct CallTrail {
    context: Arc<Context>,
    review: Review,
    folder: RunFolder,
    large: LargeValues,
    /// A journal that cannot be folded is read on without it.
    is_broken: bool,
    /// The history of each step so far.
    histories: StepHistories,
}

/// The calls of a run.
#[derive(Debug, Default)]
pub struct SentCalls {
    /// The arguments of the latest call of each step, as far as they can be proved.
    pub arguments: BTreeMap<StepId, Value>,
    /// The history of each step, with times.
    pub histories: StepHistories,
}

impl Journals {
    /// Begins to follow a run of this plan at its first entry.
    pub fn follow_calls(&self, run: &RunId, review: Review) -> CallTrail {
        let bounds = self.context.settings.bounds;
        CallTrail {
            context: Arc::clone(&self.context),
            review,
            folder: RunFolder::new(run.clone(), bounds),
            large: LargeValues::default(),
            is_broken: false,
            histories: StepHistories::default(),
        }
    }

    /// Reads what the latest call of each step was sent, as far as that can be proved, and what
    /// happened to the steps. Arguments of more than `max_bytes` are left out.
    pub async fn sent_calls(
        &self,
        run: &RunId,
        review: Review,
        max_bytes: usize,
    ) -> Result<SentCalls, LoadError> {
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
                    if planwright_core::json::length(&args) <= max_bytes {
                        sent.insert(step, args);
                    } else {
                        sent.remove(&step);
                    }
                }
            }
            if is_last_page(&page, PAGE) {
                return Ok(SentCalls {
                    arguments: sent,
                    histories: trail.histories,
                });
            }
        }
    }

    /// Reads what happened to the steps of a run, and when.
    pub async fn step_histories(&self, run: &RunId) -> Result<StepHistories, LoadError> {
        let stream = StreamName::Run(run.clone());
        let mut histories = StepHistories::default();
        self.read_entries::<RunEvent>(&stream, |_, entry| {
            histories.record(&entry);
            Ok(())
        })
        .await?;
        Ok(histories)
    }

    /// Reads what the latest call of one step was sent, as far as that can be proved.
    pub async fn arguments_sent_by(
        &self,
        run: &RunId,
        review: Review,
        step: &StepId,
    ) -> Result<Option<Value>, LoadError> {
        const PAGE: usize = 1000;
        let stream = StreamName::Run(run.clone());
        let mut trail = self.follow_calls(run, review);
        let mut sent = None;
        let mut after = 0;
        loop {
            let page = self.read(&stream, after, PAGE).await?;
            for record in &page {
                after = record.seq;
                let followed = trail.follow(record).await?;
                sent = followed
                    .filter(|(caller, _)| caller == step)
                    .map(|(_, args)| args)
                    .or(sent);
            }
            if is_last_page(&page, PAGE) {
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
    /// Takes the next entry. Returns the arguments of the call that it starts, as [`Self::follow`]
    /// does; nothing from the first entry on that cannot be folded.
    pub async fn arguments_of(&mut self, record: &Record) -> Option<Value> {
        if self.is_broken {
            return None;
        }
        let followed = self.follow(record).await;
        self.is_broken = followed.is_err();
        followed.ok().flatten().map(|(_, args)| args)
    }

    /// Takes the next entry. Returns the step and its arguments if the entry starts a call and the
    /// arguments have the digest that it names.
    pub async fn follow(&mut self, record: &Record) -> Result<Option<(StepId, Value)>, LoadError> {
        let entry = decode::<RunEvent>(record).map_err(|error| self.folder.decode_error(error))?;
        if self.folder.run().is_none() {
            let store = &*self.context.ports.store;
            let document = load_run_document(store, &self.review, &entry.event).await?;
            self.folder.set_document(document);
        }
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
        self.histories.record(&entry);
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
