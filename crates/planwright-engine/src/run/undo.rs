//! Taking an ended run back by a run of its own.
//!
//! The undo has its own journal and goes through everything a run goes through. What it takes back
//! is noted in the journal of the original in the same commit, so that the two never disagree.

use crate::dispatch::{LargeValues, LoadValueError, RunValues};
use crate::engine::{Engine, Environment};
use crate::journal::load::{LoadError, load_review, load_run, plan_of_run};
use crate::port::{Append, LeaseRule, StreamStatus};
use crate::review::plans::{Candidate, ReviewError};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::start::StartRunError;
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, encode};
use planwright_core::plan::StepIx;
use planwright_core::plan::{Finding, Template};
use planwright_core::run::{
    Command, Consent, Corrupt, Kept, PlanUndoError, Refusal, Resolution, Run, RunEvent, UndoPlan,
    plan_undo, undone_by,
};
use std::sync::Arc;

/// The word beside the status of a run that is being taken back.
pub(crate) const UNDOING: &str = "undoing";

#[derive(Debug, thiserror::Error)]
pub enum UndoRunError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error("nobody agreed to take the run back")]
    NotApproved,
    #[error(transparent)]
    Plan(PlanUndoError),
    #[error("a value of the run cannot be read: {0}")]
    Value(String),
    #[error(transparent)]
    Start(#[from] StartRunError),
}

/// What would take a run back.
#[derive(Debug)]
pub struct UndoCandidate {
    /// The run that is taken back.
    pub original: Run,
    pub undo: Undo,
    head: Head,
}

/// How a run is taken back.
#[derive(Debug)]
pub enum Undo {
    /// It was begun and has not ended: it goes on.
    Open(Box<Run>),
    /// It begins.
    Fresh {
        candidate: Candidate,
        steps: Vec<StepIx>,
        kept: Vec<(StepIx, Kept)>,
    },
}

impl Engine {
    /// What would take this run back, or why nothing can. Nothing is changed.
    pub async fn plan_undo(&self, id: &RunId) -> Result<UndoCandidate, UndoRunError> {
        let (original, head) = load_any_run(&self.env, id).await?;
        if let Some(latest) = original.undos().last() {
            let (undo, _) = load_any_run(&self.env, latest).await?;
            if !undo.state().is_terminal() {
                return Ok(UndoCandidate {
                    original,
                    undo: Undo::Open(Box::new(undo)),
                    head,
                });
            }
        }
        let UndoPlan {
            document,
            steps,
            kept,
        } = self.derive_undo(&original).await?;
        let candidate = self
            .tolerant_candidate(document)
            .await
            .map_err(StartRunError::from)?;
        let undo = Undo::Fresh {
            candidate: self.sound(candidate)?,
            steps,
            kept,
        };
        Ok(UndoCandidate {
            original,
            undo,
            head,
        })
    }

    async fn derive_undo(&self, original: &Run) -> Result<UndoPlan, UndoRunError> {
        let mut large = LargeValues::default();
        let templates = original
            .undoable()
            .filter_map(|ix| original.plan().undo_template(ix));
        let needed: Vec<StepIx> = templates.flat_map(Template::referenced_steps).collect();
        let loaded = large
            .load(&*self.env.artifacts, original, &needed, StepIx::new(0))
            .await;
        loaded.map_err(|error: LoadValueError| UndoRunError::Value(error.to_string()))?;
        // Secrets stay references until the undo is made.
        let values = RunValues::new(original, &large, StepIx::new(0));
        let undo = plan_undo(original, &values, &self.catalog()).map_err(|error| match error {
            PlanUndoError::Refused(refusal) => UndoRunError::Refused(refusal),
            unresolved @ PlanUndoError::Unresolved { .. } => UndoRunError::Plan(unresolved),
        })?;
        let bytes = serde_json::to_vec(&undo.document)
            .expect("documents have only string keys")
            .len();
        let limit = self.env.bounds.max_document_bytes;
        if bytes > limit {
            let message = format!(
                "the calls that take it back need {bytes} bytes, at most {limit} are allowed"
            );
            return Err(UndoRunError::Value(message));
        }
        Ok(undo)
    }

    /// Takes an ended run back, or goes on with that. `options.approval` is the consent to the
    /// calls that were shown.
    pub async fn undo(&self, id: &RunId, options: RunOptions) -> Result<RunHandle, UndoRunError> {
        let UndoCandidate {
            original,
            undo,
            head,
        } = self.plan_undo(id).await?;
        let candidate = match undo {
            Undo::Open(undo) => return Ok(self.resume_run(undo.id(), options).await?),
            Undo::Fresh { candidate, .. } => candidate,
        };
        let approval = options.approval.clone().ok_or(UndoRunError::NotApproved)?;
        let Candidate { plan, digest, .. } = candidate;
        approval.shown.check(original.start().version, digest)?;
        if let Some(denied) = self.judge(&plan).denied() {
            return Err(StartRunError::from(denied).into());
        }
        let pins = self.pins(&plan).await.map_err(StartRunError::from)?;
        let consent = Consent::to_shown_calls(approval.by.clone(), pins, &self.env.policy);
        let undo_id = RunId::mint(self.env.ids.entropy());
        let mut mirror = Mirror { original, head };
        let order = Command::Undo {
            run: undo_id.clone(),
            digest,
            by: approval.by,
            assurance: approval.assurance,
        };
        let opened = mirror.record(&self.env, &[order])?;
        let opened = Append {
            status: Some(mirror.status(UNDOING)),
            ..opened
        };
        let started = RunEvent::RunStarted {
            plan: plan.id().clone(),
            version: mirror.original.start().version,
            digest,
            variables: serde_json::Map::new(),
            max_concurrency: 1,
            guards: options.guards,
            by: options.by.clone(),
            forked_from: None,
            consent: Some(Box::new(consent)),
            undoes: Some(mirror.original.id().clone()),
            parent: None,
            document: Some(Arc::clone(plan.document())),
            trace: options.trace.map(Box::new),
            reflection: None,
        };
        let opening = self.open_run(
            &undo_id,
            &plan,
            started,
            vec![opened],
            Some(mirror),
            options,
        );
        Ok(Box::pin(opening).await?)
    }

    /// A candidate that may run, or every reason why it may not.
    fn sound(&self, candidate: Candidate) -> Result<Candidate, StartRunError> {
        let missing = candidate.plan.missing_tools(&self.catalog());
        if !missing.is_empty() {
            return Err(ReviewError::MissingTools(missing).into());
        }
        if candidate.findings.iter().any(Finding::is_error) {
            return Err(StartRunError::Invalid(candidate.findings));
        }
        Ok(candidate)
    }
}

/// A run, by its id alone.
pub(crate) async fn load_any_run(env: &Environment, id: &RunId) -> Result<(Run, Head), LoadError> {
    let plan = plan_of_run(&*env.store, id).await?;
    let (review, _) = load_review(&*env.store, &plan).await?;
    load_run(&*env.store, id, &review, &env.bounds).await
}

/// The journal of the run that is taken back, written along with that of the undo. An ended run has
/// no owner; only the owner of its undo writes to it, and the expected head proves that nobody else
/// did.
#[derive(Debug)]
pub(crate) struct Mirror {
    original: Run,
    head: Head,
}

impl Mirror {
    /// The mirror of a run, if it is an undo.
    pub(crate) async fn of(env: &Environment, run: &Run) -> Result<Option<Self>, LoadError> {
        let Some(original) = &run.start().undoes else {
            return Ok(None);
        };
        let (original, head) = load_any_run(env, original).await?;
        Ok(Some(Self { original, head }))
    }

    /// What the original's journal has to say about `entries` of its undo, which is `undo` after
    /// them.
    pub(crate) fn follow(
        &mut self,
        env: &Environment,
        undo: &Run,
        entries: &[Entry<RunEvent>],
    ) -> Result<Option<Append>, Corrupt> {
        let succeeded = entries.iter().filter_map(|entry| match &entry.event {
            RunEvent::AttemptSucceeded { step, .. }
            | RunEvent::OutcomeResolved {
                step,
                resolution: Resolution::Happened { .. },
                ..
            } => Some(step),
            _ => None,
        });
        let steps: Vec<StepIx> = succeeded
            .filter_map(|step| undone_by(&self.original, step))
            .collect();
        let ended = undo.state().is_terminal();
        if steps.is_empty() && !ended {
            return Ok(None);
        }
        let run = undo.id();
        let noted: Vec<Command> = steps
            .into_iter()
            .map(|step| Command::NoteUndone {
                step,
                run: run.clone(),
            })
            .collect();
        let append = self.record(env, &noted).map_err(|refusal| {
            // Both journals are folded from the same entries, so the original cannot refuse what
            // its undo did.
            tracing::error!(run = %self.original.id(), %refusal, "the undo and its original disagree");
            Corrupt::NoStart
        })?;
        let label = if ended { "" } else { UNDOING };
        Ok(Some(Append {
            status: Some(self.status(label)),
            ..append
        }))
    }

    fn status(&self, label: &str) -> StreamStatus {
        StreamStatus {
            plan: self.original.plan().id().clone(),
            status: self.original.status().into(),
            label: label.to_owned(),
        }
    }

    fn record(&mut self, env: &Environment, commands: &[Command]) -> Result<Append, Refusal> {
        let (stream, expected) = (StreamName::Run(self.original.id().clone()), self.head);
        let mut records = Vec::new();
        for command in commands {
            let at = env.clock.now();
            for event in self.original.decide(command, at)? {
                let record = encode(self.head, &stream, at, 0, Cause::Command, &event);
                let entry = Entry {
                    seq: record.seq,
                    at,
                    epoch: 0,
                    cause: Cause::Command,
                    event,
                };
                self.original
                    .apply(&entry)
                    .expect("what was decided can be applied");
                self.head = record.head();
                records.push(record);
            }
        }
        Ok(Append {
            stream,
            expected,
            records,
            lease: LeaseRule::None,
            status: None,
            answers: Vec::new(),
        })
    }
}
