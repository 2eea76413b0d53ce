//! Holding the success criteria of a plan against what a run of it came to.

use crate::journal::load::LoadError;
use crate::journal::writer::{JournalWriter, WriteError};
use crate::port::{AppendError, LeaseRule, ModelRequest};
use crate::run::runs::Runs;
use crate::run::undo::load_any_run;
use planwright_core::adjust::{
    criteria_messages, criteria_schema, read_criteria, settled_by_steps,
};
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, StreamName};
use planwright_core::model::{ModelRole, ModelUse};
use planwright_core::planning::CHECK;
use planwright_core::run::{Command, CriterionCheck, Refusal, Run};
use std::collections::BTreeMap;

/// How often the outcome is written again because the journal of the run has grown meanwhile.
const TRIES: usize = 16;

/// The reason the criteria of a run were not checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckCriteriaError {
    /// The run cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The plan has no success criteria.
    #[error("the plan names no success criteria")]
    NoCriteria,
    /// The core refuses to record the check.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The outcome could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl ClassifiedError for CheckCriteriaError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Load(error) => error.class(),
            Self::NoCriteria => ErrorKind::Conflict.with_code("no_criteria"),
            Self::Refused(refusal) => refusal.class(),
            Self::Append(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Load(error) => error.hint(),
            Self::NoCriteria => Some(Hint::AddCriteria),
            Self::Refused(refusal) => refusal.hint(),
            Self::Append(error) => error.hint(),
        }
    }
}

impl Runs {
    /// Finds out whether each success criterion holds, and records it: steps of the plan decide
    /// where they say so, the reflector is asked about the rest. What it cannot say is unknown.
    pub async fn check_criteria(
        &self,
        id: &RunId,
        model: Option<&str>,
    ) -> Result<Run, CheckCriteriaError> {
        let (run, _) = load_any_run(&self.context, id).await?;
        let criteria = &run.plan().document().success_criteria;
        if criteria.is_empty() {
            return Err(CheckCriteriaError::NoCriteria);
        }
        if !run.state().is_terminal() {
            return Err(Refusal::NotEnded {
                status: run.status(),
            }
            .into());
        }
        let mut checks = settled_by_steps(&run);
        let asked: Vec<usize> = (0..criteria.len())
            .filter(|index| !checks.contains_key(index))
            .collect();
        let (answered, used) = self.ask_criteria(&run, &asked, model).await;
        checks.extend(answered);
        let checks: Vec<CriterionCheck> = checks.into_values().collect();
        self.note_criteria(id, checks, used).await
    }

    async fn ask_criteria(
        &self,
        run: &Run,
        asked: &[usize],
        model: Option<&str>,
    ) -> (BTreeMap<usize, CriterionCheck>, Vec<ModelUse>) {
        let criteria = &run.plan().document().success_criteria;
        let nobody_knows = |why: &str| {
            let unknown = |&index: &usize| {
                let criterion = criteria[index].clone();
                (
                    index,
                    CriterionCheck {
                        criterion,
                        holds: None,
                        evidence: why.to_owned(),
                    },
                )
            };
            asked.iter().map(unknown).collect::<BTreeMap<_, _>>()
        };
        if asked.is_empty() {
            return (BTreeMap::new(), Vec::new());
        }
        let instructions = match self.context.settings.prompts.fill_prompt(&CHECK, &[]) {
            Ok(instructions) => instructions,
            Err(error) => {
                return (
                    nobody_knows(&format!("the model could not be asked: {error}")),
                    Vec::new(),
                );
            }
        };
        let messages = criteria_messages(run, asked, &instructions);
        let mut request = ModelRequest::new(ModelRole::Reflector, messages);
        request.schema = Some(criteria_schema(asked));
        request.model = model.map(str::to_owned);
        match self.context.ports.model.ask(request).await {
            Err(error) => (
                nobody_knows(&format!("the model could not be asked: {error}")),
                Vec::new(),
            ),
            Ok(answer) if answer.cut => (nobody_knows("the answer was cut off"), vec![answer.used]),
            Ok(answer) => {
                let checks = match read_criteria(run, asked, &answer.text) {
                    Ok(checks) => checks.into_iter().collect(),
                    Err(why) => nobody_knows(&format!("the answer cannot be read: {why}")),
                };
                (checks, vec![answer.used])
            }
        }
    }

    async fn note_criteria(
        &self,
        id: &RunId,
        checks: Vec<CriterionCheck>,
        used: Vec<ModelUse>,
    ) -> Result<Run, CheckCriteriaError> {
        self.learn_secrets_of_run(id).await?;
        let command = Command::NoteCriteria { checks, used };
        let mut tries = TRIES;
        loop {
            let (mut run, head) = load_any_run(&self.context, id).await?;
            let stream = StreamName::Run(id.clone());
            let mut journal = JournalWriter::new(&self.context.redaction, stream, head, 0)
                .knowing_status_of(&run);
            let now = self.context.ports.clock.now();
            journal
                .write(&mut run, &command, Cause::Command, now)
                .map_err(|error| match error {
                    WriteError::Refused(refusal) => CheckCriteriaError::Refused(refusal),
                    WriteError::Corrupt(corrupt) => LoadError::Damaged {
                        stream: StreamName::Run(id.clone()),
                        reason: corrupt.to_string(),
                    }
                    .into(),
                })?;
            let (append, _) = journal.take_append(&run, LeaseRule::None);
            match self.context.ports.store.append(vec![append]).await {
                Err(AppendError::Conflict { .. }) if tries > 0 => tries -= 1,
                done => {
                    done?;
                    return Ok(run);
                }
            }
        }
    }
}
