//! Going on with the runs that wait for a sign-in to a server.

use super::Supervisor;
use crate::journal::load::load_review;
use crate::port::StoreError;
use crate::run::remote_command::RunCommand;
use planwright_core::id::{PlanId, RunId};
use planwright_core::principal::Principal;
use planwright_core::run::{Reply, Run};
use serde_json::{Map, Value};

/// A sign-in that a person made.
#[derive(Debug, Clone, Copy)]
pub struct CompletedSignIn<'a> {
    /// The operator's name for the server.
    pub server: &'a str,
    /// The person who signed in.
    pub by: &'a Principal,
    /// `true` if only runs in this person's name use it.
    pub is_personal: bool,
}

impl CompletedSignIn<'_> {
    /// The answers to the steps of a run that wait for exactly this.
    fn answers(&self, run: &Run) -> Vec<RunCommand> {
        if self.is_personal && run.start().acts_for() != Some(self.by) {
            return Vec::new();
        }
        let asked = run.indices().filter_map(|step| {
            let asked = run.step(step).question()?;
            (asked.sign_in_server()? == self.server).then(|| RunCommand::GiveInput {
                step: run.step_id(step).to_string(),
                by: self.by.clone(),
                question: asked.digest(),
                replies: vec![Reply::Values(Map::from_iter([(
                    "signedIn".to_owned(),
                    Value::Bool(true),
                )]))],
            })
        });
        asked.collect()
    }
}

impl Supervisor {
    /// Answers the steps that ask for this sign-in, so that their runs go on, and returns how many
    /// there were. One that cannot be answered waits for a person as before.
    pub async fn continue_after_sign_in(
        &self,
        signed_in: CompletedSignIn<'_>,
    ) -> Result<u64, StoreError> {
        let waiting = self.engine.inbox().plans_awaiting_people().await?;
        let mut answered = 0;
        for (plan, runs) in &waiting.runs {
            for run in runs {
                answered += self.answer_in(plan, run, signed_in).await;
            }
        }
        Ok(answered)
    }

    async fn answer_in(&self, plan: &PlanId, id: &RunId, signed_in: CompletedSignIn<'_>) -> u64 {
        let store = &*self.engine.context.ports.store;
        let loaded = match load_review(store, plan).await {
            Ok((review, _)) => self.engine.runs().load_run(id, &review).await,
            Err(error) => Err(error),
        };
        let commands = match loaded {
            Ok((run, _)) => signed_in.answers(&run),
            Err(error) => {
                tracing::warn!(run = %id, %error, "a run that waits cannot be looked at");
                return 0;
            }
        };
        let mut answered = 0;
        for command in commands {
            match self.command(id, command).await {
                Ok(()) => answered += 1,
                Err(error) => {
                    tracing::warn!(run = %id, %error, "a run does not go on after a sign-in");
                }
            }
        }
        answered
    }
}
