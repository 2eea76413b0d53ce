//! Commands to runs, wherever they are executed: here, in another process, or nowhere at the
//! moment.

use crate::dispatch::Request;
use crate::engine::{Active, Engine, Environment};
use crate::journal::load::LoadError;
use crate::port::{
    AcquireError, Append, AppendError, Lease, LeaseRule, MessageId, StoreError, StreamStatus,
};
use crate::run::remote_command::RunCommand;
use crate::run::undo::{Mirror, load_any_run};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, Entry, Head, StreamName, encode};
use planwright_core::run::{Command, Refusal, Run, RunEvent};
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// How long the owner of a run may take to answer another process.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// New mail is looked for at most this often, however often the store changes.
const POST_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The process that executes the run said no, in its own words.
    #[error("{0}")]
    RefusedElsewhere(String),
    #[error(
        "the process that executes run {0} did not answer in time; the command stays in its mailbox"
    )]
    NoAnswer(RunId),
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    #[error(transparent)]
    Append(#[from] AppendError),
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Load(error.into())
    }
}

impl Engine {
    /// Gives a command to a run and waits until it is durable or refused.
    pub async fn command(&self, run: &RunId, command: RunCommand) -> Result<(), CommandError> {
        if let Some(inbox) = self.active.get(run) {
            let (reply, answer) = oneshot::channel();
            if inbox
                .send(Request::here(command.clone().into_command(), reply))
                .await
                .is_ok()
                && let Ok(verdict) = answer.await
            {
                return Ok(verdict?);
            }
        }
        match self.take(run).await? {
            Some(lease) => self.command_unowned(run, lease, command, None).await,
            None => self.command_elsewhere(run, &command).await,
        }
    }

    async fn take(&self, run: &RunId) -> Result<Option<Lease>, CommandError> {
        match self
            .env
            .store
            .acquire(run, &self.env.owner, self.env.lease_ttl)
            .await
        {
            Ok(lease) => Ok(Some(lease)),
            Err(AcquireError::Held { .. }) => Ok(None),
            Err(AcquireError::NoSuchRun(run)) => Err(LoadError::NoSuchRun(run).into()),
            Err(error @ AcquireError::Store(_)) => Err(error.into()),
        }
    }

    /// Leaves the command with the owner and waits for its answer. If the owner goes away
    /// meanwhile, takes over.
    async fn command_elsewhere(
        &self,
        run: &RunId,
        command: &RunCommand,
    ) -> Result<(), CommandError> {
        let body = serde_json::to_vec(command).expect("commands are plain data");
        let message = self.env.store.send(run, body).await?;
        let waiting = async {
            let mut changes = self.env.store.changes();
            loop {
                if let Some(answer) = self.env.store.answer(message).await? {
                    return answer.map_err(CommandError::RefusedElsewhere);
                }
                if let Some(lease) = self.take(run).await? {
                    // The owner may have answered just before it let go: nothing is done twice.
                    if let Some(answer) = self.env.store.answer(message).await? {
                        self.env.store.release(&lease).await?;
                        return answer.map_err(CommandError::RefusedElsewhere);
                    }
                    return self
                        .command_unowned(run, lease, command.clone(), Some(message))
                        .await;
                }
                // The store's own tick bounds this wait.
                drop(tokio::time::timeout(Duration::from_secs(1), changes.changed()).await);
            }
        };
        tokio::time::timeout(ANSWER_TIMEOUT, waiting)
            .await
            .unwrap_or_else(|_| Err(CommandError::NoAnswer(run.clone())))
    }

    /// Nobody executes the run: settle what a dead owner left behind, decide, write, and let go
    /// again. `message` is the command as it was left for that owner: it is answered here, so that
    /// the next one does not find it.
    async fn command_unowned(
        &self,
        id: &RunId,
        lease: Lease,
        command: RunCommand,
        message: Option<MessageId>,
    ) -> Result<(), CommandError> {
        let result = self.write_command(id, &lease, command, message).await;
        if let (Err(CommandError::Refused(refusal)), Some(message)) = (&result, message) {
            self.answer_unowned(id, &lease, message, refusal.to_string())
                .await?;
        } else if result.is_err() {
            self.env.store.release(&lease).await?;
        }
        result
    }

    /// Refuses a message and lets go of the run.
    async fn answer_unowned(
        &self,
        id: &RunId,
        lease: &Lease,
        message: MessageId,
        refusal: String,
    ) -> Result<(), CommandError> {
        let stream = StreamName::Run(id.clone());
        let append = Append {
            expected: self.env.store.head(&stream).await?,
            stream,
            records: Vec::new(),
            lease: LeaseRule::Release { epoch: lease.epoch },
            status: None,
            answers: vec![(message, Err(refusal))],
        };
        Ok(self.env.store.append(vec![append]).await?)
    }

    async fn write_command(
        &self,
        id: &RunId,
        lease: &Lease,
        command: RunCommand,
        message: Option<MessageId>,
    ) -> Result<(), CommandError> {
        let given = command.into_command();
        self.env.policy.permit_command(&given)?;
        let commands = [
            (Command::Recover, Cause::Recovery),
            (given, Cause::Command),
            (Command::Settle, Cause::Schedule),
        ];
        self.write_all(id, lease, &commands, message).await?;
        Ok(())
    }

    /// Writes what time has brought about, and lets go of the run.
    pub(crate) async fn write_commands(
        &self,
        id: &RunId,
        lease: &Lease,
        commands: &[Command],
    ) -> Result<Vec<RunEvent>, CommandError> {
        let commands: Vec<_> = commands
            .iter()
            .map(|command| (command.clone(), Cause::Timer))
            .collect();
        self.write_all(id, lease, &commands, None).await
    }

    async fn write_all(
        &self,
        id: &RunId,
        lease: &Lease,
        commands: &[(Command, Cause)],
        message: Option<MessageId>,
    ) -> Result<Vec<RunEvent>, CommandError> {
        let (mut run, expected) = load_any_run(&self.env, id).await?;
        let mut mirror = Mirror::of(&self.env, &run).await?;
        let (mut head, mut records, mut entries) = (expected, Vec::new(), Vec::new());
        for &(ref command, cause) in commands {
            let at = self.env.clock.now();
            for event in run.decide(command, at)? {
                let record = encode(
                    head,
                    &StreamName::Run(id.clone()),
                    at,
                    lease.epoch,
                    cause,
                    &event,
                );
                let entry = Entry {
                    seq: record.seq,
                    at,
                    epoch: lease.epoch,
                    cause,
                    event,
                };
                run.apply(&entry).map_err(|error| damaged(id, &error))?;
                head = record.head();
                records.push(record);
                entries.push(entry);
            }
        }
        let mut append = unowned_append(&run, expected, records, lease);
        append
            .answers
            .extend(message.map(|message| (message, Ok(()))));
        let mut appends = vec![append];
        if let Some(mirror) = &mut mirror {
            let followed = mirror.follow(&self.env, &run, &entries);
            appends.extend(followed.map_err(|error| damaged(id, &error))?);
        }
        self.env.store.append(appends).await?;
        if run.state().is_terminal() {
            self.cancel_children(&run).await;
        }
        Ok(entries.into_iter().map(|entry| entry.event).collect())
    }

    /// Starts handing messages of other processes to the runs executed here.
    pub(crate) fn start_postman(&self) {
        if self.active.postman.set(()).is_ok() {
            tokio::spawn(deliver(
                Arc::downgrade(&self.env),
                Arc::downgrade(&self.active),
            ));
        }
    }
}

fn damaged(id: &RunId, error: &planwright_core::run::Corrupt) -> LoadError {
    LoadError::Damaged {
        stream: StreamName::Run(id.clone()),
        reason: error.to_string(),
    }
}

fn unowned_append(
    run: &Run,
    expected: Head,
    records: Vec<planwright_core::journal::Record>,
    lease: &Lease,
) -> Append {
    Append {
        stream: StreamName::Run(run.id().clone()),
        expected,
        records,
        lease: LeaseRule::Release { epoch: lease.epoch },
        status: Some(StreamStatus {
            plan: run.plan().id().clone(),
            status: run.status().into(),
            label: String::new(),
        }),
        answers: Vec::new(),
    }
}

/// Hands every message to its run once. Ends with the engine.
async fn deliver(env: Weak<Environment>, active: Weak<Active>) {
    let mut delivered: BTreeSet<MessageId> = BTreeSet::new();
    let Some(mut changes) = env.upgrade().map(|env| env.store.mail_changes()) else {
        return;
    };
    loop {
        let (Some(env), Some(active)) = (env.upgrade(), active.upgrade()) else {
            return;
        };
        match env.store.mail().await {
            Ok(mail) => {
                delivered.retain(|id| mail.iter().any(|message| message.id == *id));
                for message in mail {
                    let Some(inbox) = active.get(&message.run) else {
                        continue;
                    };
                    if !delivered.insert(message.id) {
                        continue;
                    }
                    match serde_json::from_slice::<RunCommand>(&message.body) {
                        // A full inbox is tried again with the next change.
                        Ok(command) => {
                            if inbox
                                .try_send(Request::message(command.into_command(), message.id))
                                .is_err()
                            {
                                delivered.remove(&message.id);
                            }
                        }
                        Err(error) => {
                            tracing::warn!(run = %message.run, %error, "an unreadable message is ignored");
                        }
                    }
                }
            }
            Err(error) => tracing::warn!(%error, "mail cannot be read"),
        }
        drop((env, active));
        if changes.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(POST_INTERVAL).await;
    }
}
