//! Commands to runs, wherever they are executed: here, in another process, or nowhere at the
//! moment.

use crate::context::Context;
use crate::context::Request;
use crate::context::current_claim;
use crate::journal::load::{LoadError, load_review, plan_of_run};
use crate::journal::stored_value::store_value;
use crate::journal::writer::{JournalWriter, WriteError};
use crate::port::{
    AcquireError, AppendError, ArtifactError, Lease, LeaseRule, MessageId, OfferChange,
    StillRunning, StoreError,
};
use crate::redaction::entry_text::EntryText as _;
use crate::redaction::learning::learn_secrets;
use crate::run::remote_command::RunCommand;
use crate::run::runs::Runs;
use crate::run::undo::{OriginalJournal, load_any_run};
use planwright_core::id::RunId;
use planwright_core::journal::{Cause, StreamName};
use planwright_core::run::{Command, Refusal, Resolution, Run, RunEvent, RunState};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::oneshot;

/// The time the owner of a run may take to answer another process.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// New mail is looked for at most this often, however often the store changes.
const POST_INTERVAL: Duration = Duration::from_millis(20);

/// The reason a command did not reach a run or was refused by it.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    /// The run cannot be loaded.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The core refuses the command.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The process that executes the run said no, in its own words.
    #[error("{0}")]
    RefusedElsewhere(String),
    /// The owner of the run did not answer in time. It may still obey.
    #[error(
        "the process that executes run {0} did not answer in time; the command stays in its mailbox"
    )]
    NoAnswer(RunId),
    /// No process owns the run, and it could not be taken over for the command.
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// The decision could not be written.
    #[error(transparent)]
    Append(#[from] AppendError),
    /// A large value could not be read or stored.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// A call of an earlier process goes on: what was in flight cannot be settled.
    #[error(transparent)]
    StillRunning(#[from] StillRunning),
}

impl From<StoreError> for CommandError {
    fn from(error: StoreError) -> Self {
        Self::Load(error.into())
    }
}

impl Runs {
    /// Gives a command to a run and waits until it is durable or refused.
    pub async fn command(&self, run: &RunId, command: RunCommand) -> Result<(), CommandError> {
        self.learn_typed(run, &command).await?;
        self.pass_on(run, command).await
    }

    /// Learns the secrets that a person may have typed, so that the process that writes the
    /// command down masks them: this process, which may never have used them, or the owner.
    pub(crate) async fn learn_typed(
        &self,
        run: &RunId,
        command: &RunCommand,
    ) -> Result<(), LoadError> {
        if command.has_typed_text() {
            self.learn_secrets_of_run(run).await?;
        }
        Ok(())
    }

    /// Learns every secret that any version of a run's plan names.
    pub(crate) async fn learn_secrets_of_run(&self, run: &RunId) -> Result<(), LoadError> {
        let store = &*self.context.ports.store;
        let plan = plan_of_run(store, run).await?;
        let (review, _) = load_review(store, &plan).await?;
        let names = review.secret_names().clone();
        learn_secrets(&*self.context.ports.secrets, &self.context.redaction, names).await;
        Ok(())
    }

    /// Says that a call happened and what it returned. The value is masked before it is stored: a
    /// large one becomes an artifact before the command is written down.
    pub async fn resolution_with_value(
        &self,
        run: &RunId,
        mut value: Value,
    ) -> Result<Resolution, CommandError> {
        self.learn_secrets_of_run(run).await?;
        self.context.redaction.redactor().value(&mut value);
        let (value, _) = store_value(&*self.context.ports.artifacts, value).await?;
        Ok(Resolution::Happened { value })
    }

    /// As [`Engine::command`], with the secrets learned.
    pub(crate) async fn pass_on(
        &self,
        run: &RunId,
        command: RunCommand,
    ) -> Result<(), CommandError> {
        if let Some(inbox) = self.context.active.get(run) {
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
        // An owner that is alive and late gets the message: it is about to renew its lease.
        let taken = if self.has_overdue_owner(run).await? {
            None
        } else {
            self.take(run).await?
        };
        match taken {
            Some(lease) => self.command_unowned(run, lease, command, None).await,
            None => self.command_elsewhere(run, &command).await,
        }
    }

    async fn take(&self, run: &RunId) -> Result<Option<Lease>, CommandError> {
        match self
            .context
            .ports
            .store
            .acquire(
                run,
                &self.context.settings.owner,
                self.context.settings.lease_ttl,
            )
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
        // The owner masks what it writes, but the mailbox keeps the message itself.
        let mut left = command.clone();
        left.mask(&self.context.redaction.redactor());
        let body = serde_json::to_vec(&left).expect("commands are plain data");
        let message = match current_claim() {
            Some(claim) => {
                self.context
                    .ports
                    .store
                    .send_claimed(run, body, claim)
                    .await?
            }
            None => self.context.ports.store.send(run, body).await?,
        };
        let since = tokio::time::Instant::now();
        let patience = self.context.settings.lease_ttl / 2;
        let waiting = async {
            let mut changes = self.context.ports.store.changes();
            loop {
                if let Some(answer) = self.context.ports.store.answer(message).await? {
                    return answer.map_err(CommandError::RefusedElsewhere);
                }
                let waits = since.elapsed() < patience && self.has_overdue_owner(run).await?;
                if !waits && let Some(lease) = self.take(run).await? {
                    // The owner may have answered just before it let go: nothing is done twice.
                    if let Some(answer) = self.context.ports.store.answer(message).await? {
                        self.context.ports.store.release(&lease).await?;
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

    /// Gives a command to a run that no process executes: settles what a dead owner left behind,
    /// decides, writes, and lets go again. `message` is the command as it was left for that owner:
    /// it is answered here, so that the next one does not find it.
    async fn command_unowned(
        &self,
        id: &RunId,
        lease: Lease,
        command: RunCommand,
        message: Option<MessageId>,
    ) -> Result<(), CommandError> {
        let result = self.write_command(id, &lease, command, message).await;
        // The append of an answer lets go of the lease too; without one it is let go of alone.
        if let (Err(CommandError::Refused(refusal)), Some(message)) = (&result, message) {
            self.answer_unowned(id, &lease, message, refusal.to_string())
                .await?;
        } else if result.is_err() {
            self.context.ports.store.release(&lease).await?;
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
        let head = self.context.ports.store.head(&stream).await?;
        let mut journal: JournalWriter<RunEvent> =
            JournalWriter::new(&self.context.redaction, stream, head, lease.epoch);
        journal.answer(message, Err(refusal));
        let epoch = lease.epoch;
        let append = journal.take_answers(LeaseRule::Release { epoch });
        Ok(self.context.ports.store.append(vec![append]).await?)
    }

    async fn write_command(
        &self,
        id: &RunId,
        lease: &Lease,
        command: RunCommand,
        message: Option<MessageId>,
    ) -> Result<(), CommandError> {
        let given = command.into_command();
        let commands = [
            (Command::Recover, Cause::Recovery),
            (given, Cause::Command),
            (Command::Settle, Cause::Schedule),
        ];
        self.write_all(id, lease, &commands, message).await?;
        Ok(())
    }

    /// Writes down that a run waits for one of so many others to end, and lets go of it. What its
    /// last owner left behind is settled first.
    pub(crate) async fn note_queued(&self, id: &RunId, slots: u32) -> Result<(), CommandError> {
        if self.has_overdue_owner(id).await? {
            return Ok(());
        }
        let Some(lease) = self.take(id).await? else {
            return Ok(());
        };
        let commands = [
            (Command::Recover, Cause::Recovery),
            (Command::Queue { slots }, Cause::Schedule),
        ];
        let written = self.write_all(id, &lease, &commands, None).await;
        if written.is_err() {
            self.context.ports.store.release(&lease).await?;
        }
        written.map(drop)
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
            .map(|command| match command {
                Command::Recover => (Command::Recover, Cause::Recovery),
                other => (other.clone(), Cause::Timer),
            })
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
        // Settling says that what was in flight is over.
        if commands
            .iter()
            .any(|(command, _)| matches!(command, Command::Recover))
        {
            self.context.ports.leftovers.end_leftovers(id).await?;
        }
        let (mut run, head) = load_any_run(&self.context, id).await?;
        let mut original = OriginalJournal::load(&self.context, &run).await?;
        let stream = StreamName::Run(id.clone());
        let epoch = lease.epoch;
        let mut journal = JournalWriter::new(&self.context.redaction, stream, head, epoch);
        let commands = self.leave_to_workers(&run, commands).await?;
        for &(ref command, cause) in &commands.given {
            if cause == Cause::Command {
                self.context.settings.policy.permit_command(&run, command)?;
            }
            let now = self.context.ports.clock.now();
            journal
                .write(&mut run, command, cause, now)
                .map_err(|error| match error {
                    WriteError::Refused(refusal) => CommandError::Refused(refusal),
                    WriteError::Corrupt(corrupt) => damaged(id, &corrupt).into(),
                })?;
        }
        if let Some(message) = message {
            journal.answer(message, Ok(()));
        }
        let (mut append, entries) = journal.take_append(&run, LeaseRule::Release { epoch });
        append.offers = commands.ended;
        let mut appends = vec![append];
        if let Some(original) = &mut original {
            let followed = original.follow(&self.context, &run, &entries);
            appends.extend(followed.map_err(|error| damaged(id, &error))?);
        }
        self.context.ports.store.append(appends).await?;
        // After the end is durable: told before, they would be cancelled by a run that may still go on.
        if run.state().is_terminal() {
            self.cancel_children(&run).await;
        }
        Ok(entries.into_iter().map(|entry| entry.event).collect())
    }

    /// What is recovered leaves out the calls that workers make. Of a run that is to end, it ends their offers.
    async fn leave_to_workers(
        &self,
        run: &Run,
        commands: &[(Command, Cause)],
    ) -> Result<CommandsForRun, CommandError> {
        let mut given = commands.to_vec();
        let recovers = |(command, _): &(Command, Cause)| matches!(command, Command::Recover);
        let (Some(offers), true) = (&self.context.ports.offers, given.iter().any(recovers)) else {
            return Ok(CommandsForRun {
                given,
                ended: Vec::new(),
            });
        };
        // Nothing is in flight, so no worker has a call of it, and the store need not be asked.
        if run.schedule().running().next().is_none() {
            return Ok(CommandsForRun {
                given,
                ended: Vec::new(),
            });
        }
        let open = offers.offers(run.id()).await?;
        let is_ending = given
            .iter()
            .any(|(command, _)| matches!(command, Command::Cancel { .. } | Command::GiveUp { .. }))
            || matches!(
                run.state(),
                RunState::Stopping { .. } | RunState::Cancelling
            );
        if is_ending {
            let ended = open
                .into_iter()
                .map(|(offer, _)| OfferChange::End(offer.key));
            return Ok(CommandsForRun {
                given,
                ended: ended.collect(),
            });
        }
        let carried: Vec<_> = open
            .iter()
            .filter_map(|(offer, _)| run.find(offer.key.step.as_str()))
            .collect();
        for (command, _) in &mut given {
            if matches!(command, Command::Recover) {
                *command = Command::RecoverOthers {
                    carried: carried.clone(),
                };
            }
        }
        Ok(CommandsForRun {
            given,
            ended: Vec::new(),
        })
    }

    /// Starts handing messages of other processes to the runs executed here.
    pub(crate) fn start_postman(&self) {
        if self.context.active.postman.set(()).is_ok() {
            tokio::spawn(deliver(Arc::downgrade(&self.context)));
        }
    }
}

/// Commands for a run that no process executes.
struct CommandsForRun {
    given: Vec<(Command, Cause)>,
    /// The offers that are over with them.
    ended: Vec<OfferChange>,
}

fn damaged(id: &RunId, error: &planwright_core::run::Corrupt) -> LoadError {
    LoadError::Damaged {
        stream: StreamName::Run(id.clone()),
        reason: error.to_string(),
    }
}

/// Hands every message to its run once. Ends with the engine.
async fn deliver(context: Weak<Context>) {
    let mut delivered: BTreeSet<MessageId> = BTreeSet::new();
    let Some(mut changes) = context
        .upgrade()
        .map(|context| context.ports.store.mail_changes())
    else {
        return;
    };
    loop {
        let Some(context) = context.upgrade() else {
            return;
        };
        match context.ports.store.mail().await {
            Ok(mail) => {
                delivered.retain(|id| mail.iter().any(|message| message.id == *id));
                for message in mail {
                    let Some(inbox) = context.active.get(&message.run) else {
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
        drop(context);
        if changes.changed().await.is_err() {
            return;
        }
        tokio::time::sleep(POST_INTERVAL).await;
    }
}
