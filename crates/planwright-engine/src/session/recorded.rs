//! The calls of a client in a session, read from the journals.

use super::document::STEP;
use super::sessions::Sessions;
use crate::journal::conversation::is_session;
use crate::journal::load::LoadError;
use crate::journal::stored_value::read_value;
use crate::run::child::WANTED_STEP;
use crate::run::undo::load_any_run;
use planwright_core::id::PlanId;
use planwright_core::plan::RecordedCall;
use planwright_core::run::{AgentCall, CallFate, StepState};
use serde_json::Value;

/// Why what a client did cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum ReadSessionError {
    /// The plan is no session.
    #[error("plan `{0}` is no session of a client")]
    NotASession(PlanId),
    /// A journal cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
}

impl Sessions {
    /// The calls of a session that were made and succeeded, in their order.
    pub async fn recorded_calls(
        &self,
        session: &PlanId,
    ) -> Result<Vec<RecordedCall>, ReadSessionError> {
        let (review, _) = self.plans().load_review(session).await?;
        if !is_session(&review.current().document) {
            return Err(ReadSessionError::NotASession(session.clone()));
        }
        let mut recorded = Vec::new();
        for opened in review.runs() {
            let (run, _) = load_any_run(&self.context, &opened.run).await?;
            let work = run.find(STEP).and_then(|ix| run.agent_work(ix));
            let turns = work.map(|work| work.turns().to_vec()).unwrap_or_default();
            for call in turns.iter().flat_map(|turn| &turn.calls) {
                recorded.extend(self.recorded_call(call).await?);
            }
        }
        Ok(recorded)
    }

    /// A call, if it was made and succeeded.
    async fn recorded_call(&self, call: &AgentCall) -> Result<Option<RecordedCall>, LoadError> {
        let (CallFate::Run(child), Some(name)) = (&call.fate, &call.name) else {
            return Ok(None);
        };
        let context = &self.context;
        let run = match load_any_run(context, child).await {
            Ok((run, _)) => run,
            // It was agreed to, and the process ended before it began.
            Err(LoadError::NoSuchRun(_)) => return Ok(None),
            Err(error) => return Err(error),
        };
        let step = run.find(WANTED_STEP).map(|ix| run.step(ix));
        let Some(StepState::Completed { value, .. }) = step else {
            return Ok(None);
        };
        let artifacts = &*context.ports.artifacts;
        let args = read_value(artifacts, &call.args).await;
        let (Ok(Value::Object(args)), Ok(result)) = (args, read_value(artifacts, value).await)
        else {
            return Ok(None);
        };
        let catalog = context.catalog();
        let tool = catalog.resolve(&name.to_string());
        Ok(Some(RecordedCall {
            tool: name.to_string(),
            args,
            result,
            read_only: tool.is_ok_and(|tool| tool.is_read_only()),
        }))
    }
}
