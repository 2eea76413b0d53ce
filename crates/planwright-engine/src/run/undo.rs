//! Taking an ended run back by a run of its own.
//!
//! The undo has its own journal and goes through everything a run goes through. What it takes back
//! is noted in the journal of the original in the same commit, so that the two never disagree.

use crate::context::Context;
use crate::journal::load::{LoadError, load_run_with_review};
use crate::journal::run_values::{LargeValues, LoadValueError, RunValues};
use crate::journal::writer::{JournalWriter, WriteError};
use crate::port::{Append, LeaseRule};
use crate::review::plans::Candidate;
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use crate::run::start::{StartRunError, check_narrow_enough};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName};
use planwright_core::plan::StepIx;
use planwright_core::plan::Template;
use planwright_core::run::{
    Command, Consent, Corrupt, Kept, PlanUndoError, Refusal, Resolution, Run, RunEvent, UndoPlan,
    plan_undo, undone_by,
};
use planwright_core::time::Timestamp;
use std::sync::Arc;

/// The word beside the status of a run that is being taken back.
pub(crate) const UNDOING: &str = "undoing";

/// The reason a run was not undone.
#[derive(Debug, thiserror::Error)]
pub enum UndoRunError {
    /// The run cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The core refuses the undo.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The approver did not agree to the calls of the undo.
    #[error("the undo of the run was not approved")]
    NotApproved,
    /// The calls of the undo cannot be built.
    #[error(transparent)]
    Plan(PlanUndoError),
    /// A result that the undo needs cannot be read, in words.
    #[error("a value of the run cannot be read: {0}")]
    Value(String),
    /// The run that undoes could not be started.
    #[error(transparent)]
    Start(#[from] StartRunError),
}

/// A plan that would take a run back.
#[derive(Debug)]
pub struct UndoCandidate {
    /// The run that is taken back.
    pub original: Run,
    /// The run that undoes it, begun or to be begun.
    pub undo: PreparedUndo,
    head: Head,
}

/// The options with which a run is taken back.
#[derive(Debug)]
pub enum PreparedUndo {
    /// It was begun and has not ended: it goes on.
    Open(Box<Run>),
    /// It begins.
    Fresh {
        /// The plan of the undo.
        candidate: Candidate,
        /// Steps of the original that are undone.
        steps: Vec<StepIx>,
        /// Steps of the original that stay, with the reason.
        kept: Vec<(StepIx, Kept)>,
    },
}

impl Runs {
    /// Plans how this run would be taken back, or says why nothing can. Nothing is changed.
    pub async fn plan_undo(&self, id: &RunId) -> Result<UndoCandidate, UndoRunError> {
        let (original, head) = load_any_run(&self.context, id).await?;
        if let Some(latest) = original.undos().last() {
            let (undo, _) = load_any_run(&self.context, latest).await?;
            if !undo.state().is_terminal() {
                return Ok(UndoCandidate {
                    original,
                    undo: PreparedUndo::Open(Box::new(undo)),
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
            .plans()
            .compile(document)
            .await
            .map_err(StartRunError::from)?;
        let undo = PreparedUndo::Fresh {
            candidate: self.check_findings(candidate)?,
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
            .load(
                &*self.context.ports.artifacts,
                original,
                &needed,
                StepIx::new(0),
            )
            .await;
        loaded.map_err(|error: LoadValueError| UndoRunError::Value(error.to_string()))?;
        // Secrets stay references until the undo is made.
        let values = RunValues::new(original, &large, StepIx::new(0));
        let undo =
            plan_undo(original, &values, &self.context.catalog()).map_err(|error| match error {
                PlanUndoError::Refused(refusal) => UndoRunError::Refused(refusal),
                unresolved @ PlanUndoError::Unresolved { .. } => UndoRunError::Plan(unresolved),
            })?;
        let bytes = serde_json::to_vec(&undo.document)
            .expect("documents have only string keys")
            .len();
        let limit = self.context.settings.bounds.max_document_bytes;
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
            PreparedUndo::Open(undo) => return Ok(self.resume_run(undo.id(), options).await?),
            PreparedUndo::Fresh { candidate, .. } => candidate,
        };
        let approval = options.approval.clone().ok_or(UndoRunError::NotApproved)?;
        let Candidate { plan, digest, .. } = candidate;
        approval.shown.check(original.start().version, digest)?;
        if let Some(denied) = self.plans().judge(&plan).denial() {
            return Err(StartRunError::from(denied).into());
        }
        let pins = self
            .plans()
            .pins(&plan)
            .await
            .map_err(StartRunError::from)?;
        let policy = &self.context.settings.policy;
        let tools: Vec<&str> = pins.keys().map(String::as_str).collect();
        policy.check_approver_of_tools(approval.assurance, &tools)?;
        let consent = Consent::to_shown_calls(approval.by.clone(), pins, policy);
        check_narrow_enough(plan.id(), &consent, &options)?;
        let undo_id = RunId::mint(self.context.ports.ids.entropy());
        let mut journal = OriginalJournal::new(&self.context, original, head);
        let order = Command::Undo {
            run: undo_id.clone(),
            digest,
            by: approval.by,
            assurance: approval.assurance,
        };
        self.context
            .settings
            .policy
            .permit_command(&journal.original, &order)?;
        journal
            .write(&order, self.context.ports.clock.now())
            .map_err(|error| match error {
                WriteError::Refused(refusal) => UndoRunError::Refused(refusal),
                WriteError::Corrupt(corrupt) => UndoRunError::Load(LoadError::Damaged {
                    stream: StreamName::Run(id.clone()),
                    reason: corrupt.to_string(),
                }),
            })?;
        let opened = journal.take_append(UNDOING);
        let started = RunEvent::RunStarted {
            plan: plan.id().clone(),
            version: journal.original.start().version,
            digest,
            variables: serde_json::Map::new(),
            max_concurrency: 1,
            guards: options.guards,
            by: options.by.clone(),
            forked_from: None,
            consent: Some(Box::new(consent)),
            undoes: Some(journal.original.id().clone()),
            parent: None,
            document: Some(Arc::clone(plan.document())),
            trace: options
                .trace
                .or_else(|| journal.original.start().trace)
                .map(Box::new),
            reflection: None,
            call_timeout_ms: Some(self.context.call_timeout_ms()),
            stepwise: false,
        };
        let opening = self.open_run(
            &undo_id,
            &plan,
            started,
            vec![opened].into(),
            Some(journal),
            options,
        );
        Ok(Box::pin(opening).await?)
    }

    /// A candidate that may run, or every reason why it may not.
    fn check_findings(&self, candidate: Candidate) -> Result<Candidate, StartRunError> {
        self.plans().check_sound(&candidate)?;
        Ok(candidate)
    }
}

/// A run, by its id alone.
pub(crate) async fn load_any_run(context: &Context, id: &RunId) -> Result<(Run, Head), LoadError> {
    let store = &*context.ports.store;
    let (_, run, head) = load_run_with_review(store, id, &context.settings.bounds).await?;
    Ok((run, head))
}

/// The journal of the run that is taken back, written along with that of the undo. An ended run has
/// no owner; only the owner of its undo writes to it, and the expected head proves that no other
/// process did.
#[derive(Debug)]
pub(crate) struct OriginalJournal {
    original: Run,
    writer: JournalWriter<RunEvent>,
}

impl OriginalJournal {
    fn new(context: &Context, original: Run, head: Head) -> Self {
        let stream = StreamName::Run(original.id().clone());
        Self {
            original,
            writer: JournalWriter::new(&context.redaction, stream, head, 0),
        }
    }

    /// Loads the journal of the run that `run` takes back, if it is an undo.
    pub(crate) async fn load(context: &Context, run: &Run) -> Result<Option<Self>, LoadError> {
        let Some(original) = &run.start().undoes else {
            return Ok(None);
        };
        let (original, head) = load_any_run(context, original).await?;
        Ok(Some(Self::new(context, original, head)))
    }

    /// Builds what the original's journal has to say about `entries` of its undo, which is `undo`
    /// after them.
    pub(crate) fn follow(
        &mut self,
        context: &Context,
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
        let now = context.ports.clock.now();
        for step in steps {
            let run = undo.id().clone();
            let note = Command::NoteUndone { step, run };
            self.write(&note, now).map_err(|error| match error {
                // Both journals are folded from the same entries, so the original cannot refuse
                // what its undo did.
                WriteError::Refused(refusal) => {
                    tracing::error!(run = %self.original.id(), %refusal, "the undo and its original disagree");
                    Corrupt::NoStart
                }
                WriteError::Corrupt(corrupt) => corrupt,
            })?;
        }
        Ok(Some(self.take_append(if ended { "" } else { UNDOING })))
    }

    fn write(&mut self, command: &Command, now: Timestamp) -> Result<(), WriteError<Refusal>> {
        self.writer
            .write(&mut self.original, command, Cause::Command, now)?;
        Ok(())
    }

    fn take_append(&mut self, label: &str) -> Append {
        let (append, _) = self
            .writer
            .take_labelled(&self.original, label, LeaseRule::None);
        append
    }
}
