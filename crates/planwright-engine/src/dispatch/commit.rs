//! The commit of a run loop: what is queued becomes durable, and then what follows from it is done.

use super::agent::PreparedAgent;
use super::run_loop::{RunError, RunLoop};
use super::schedule::Prepared;
use super::subplan::PreparedChild;
use super::think::PreparedThought;
use crate::context::crash;
use crate::context::{
    Decided, JointOpening, JointPart, JointWriter, JointWritten, Pauses, Verdict,
};
use crate::port::{Append, AppendError, LeaseRule};
use planwright_core::run::RunState;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// For so long a run that cannot write waits for its store. What is in flight goes on meanwhile, and
/// nothing new begins.
const STORE_PATIENCE: Duration = Duration::from_mins(10);

/// What the first commit of a run does besides. The run is opened together with its first starts,
/// which saves each run a commit.
#[derive(Debug)]
pub(crate) struct Opening {
    /// Takes the first lease.
    pub(crate) rule: LeaseRule,
    /// Appends to other streams that belong to it, for example the approval that it spends.
    pub(crate) with: Vec<Append>,
    /// Told once the run is open, or why it is not.
    pub(crate) told: oneshot::Sender<Result<(), AppendError>>,
    /// The run that decided to open this one, if its decision is written in the same commit.
    pub(crate) joint: Option<JointOpening>,
    /// The run is one call that reads, and policy lets it.
    pub(crate) reads: bool,
    /// The queued entries that open it. Observers hear of the run instead, once it is open.
    pub(crate) entries: usize,
}

/// What follows once the queued entries are durable, and what is durable with them.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) calls: Vec<Prepared>,
    pub(super) children: Vec<PreparedChild>,
    pub(super) replies: Vec<(oneshot::Sender<Verdict>, Verdict)>,
    /// Appends to other streams that belong to it.
    with: Vec<Append>,
    pub(super) told: Vec<(oneshot::Sender<Decided>, Decided)>,
    /// Runs that are opened in the same commit.
    pub(super) joined: Vec<JointWriter>,
    /// Runs that only read, and are opened after it.
    pub(super) reads: Vec<JointWritten>,
    pub(super) agents: Vec<PreparedAgent>,
    pub(super) thoughts: Vec<PreparedThought>,
}

impl Batch {
    fn starts_something(&self) -> bool {
        let calls = !self.calls.is_empty() || !self.children.is_empty();
        calls || !self.agents.is_empty() || !self.thoughts.is_empty()
    }
}

impl RunLoop {
    pub(super) fn has_nothing_to_commit(&self) -> bool {
        let batch = &self.batch;
        let told = batch.replies.is_empty() && batch.told.is_empty();
        let opened = batch.joined.is_empty() && batch.reads.is_empty();
        self.journal.is_empty() && told && opened
    }

    /// Makes the batch durable and then does what follows from it. Returns whether the loop is
    /// over.
    pub(crate) async fn commit(&mut self) -> Result<bool, RunError> {
        // The person who paused the run wants it let go, also where it would stay for an approval.
        let stays = self.linger && *self.run.state() != RunState::Paused;
        let over =
            self.run.state().is_terminal() || self.run.is_parked() && !stays || self.is_drained();
        // A lease is taken by one commit and given back by another.
        if over && self.opening.is_some() {
            self.write_batch(false).await?;
        }
        if self.has_nothing_to_commit() && !over {
            return Ok(false);
        }
        self.write_batch(over).await?;
        Ok(over)
    }

    /// Writes what is queued, gives the lease back with it if the loop is over, and does what
    /// follows.
    pub(super) async fn write_batch(&mut self, over: bool) -> Result<(), RunError> {
        let batch = std::mem::take(&mut self.batch);
        let starts_something = batch.starts_something();
        let epoch = self.tenure.lease().epoch;
        let opening = self.opening.take();
        let opened = opening.as_ref().map_or(0, |opening| opening.entries);
        let rule = match &opening {
            Some(opening) => opening.rule.clone(),
            None if over => LeaseRule::Release { epoch },
            None => LeaseRule::Held { epoch },
        };
        let (mut append, entries) = self.journal.take_append(&self.run, rule);
        append.offers = self.offer_changes(&batch.calls);
        // What a run says about a plan comes after what the plan says.
        let mut appends = batch.with;
        appends.push(append);
        let joined = self.collect_parts(batch.joined, batch.reads).await;
        if let Some(original) = &mut self.original {
            appends.extend(original.follow(&self.context, &self.run, &entries[opened..])?);
        }
        crash::point("run: before commit");
        let started = Instant::now();
        match opening {
            Some(opening) => self.append_opening(opening, appends).await?,
            None => self.append_joined(joined, appends, &entries).await?,
        }
        crash::point("run: after commit");
        let written = &entries[opened..];
        self.observers.tell(&self.run, written, started.elapsed());
        for (reply, verdict) in batch.replies {
            // The caller may be gone; the decision stands.
            drop(reply.send(verdict));
        }
        for (reply, decided) in batch.told {
            drop(reply.send(decided));
        }
        self.stop_calls(&entries);
        self.answer_calls(&entries);
        self.end_isolation(&entries);
        self.tell_children(&entries);
        if starts_something {
            self.secure_lease().await?;
        }
        for prepared in batch.calls {
            self.dispatch(prepared);
        }
        for prepared in batch.children {
            self.dispatch_child(prepared);
        }
        for prepared in batch.agents {
            self.dispatch_agent(prepared);
        }
        for prepared in batch.thoughts {
            self.dispatch_thought(prepared);
        }
        Ok(())
    }

    /// Opens the run. It is not tried again: the caller who starts a run is told at once that the
    /// store cannot be written.
    async fn append_opening(
        &mut self,
        opening: Opening,
        appends: Vec<Append>,
    ) -> Result<(), RunError> {
        let Opening {
            with, told, joint, ..
        } = opening;
        let appends = with.into_iter().chain(appends).collect();
        let context = Arc::clone(&self.context);
        let appended = match joint {
            Some(joint) => joint.append(JointPart { appends }).await,
            None => context.ports.store.append(appends).await,
        };
        let opened = appended.is_ok();
        if opened {
            self.observers.executing(&self.run);
        }
        // The caller may be gone; the run goes on all the same.
        drop(told.send(appended));
        if opened {
            Ok(())
        } else {
            Err(RunError::NotOpened)
        }
    }

    /// The process is about to end, and no call is in flight or about to be.
    fn is_drained(&self) -> bool {
        // What workers do goes on without this process.
        let idle = self.calls.len() == self.count_offered() && self.finished.is_empty();
        *self.draining.borrow() && idle && !self.batch.starts_something()
    }

    /// Writes to another stream in the next commit.
    pub(crate) fn also(&mut self, append: Option<Append>) {
        self.batch.with.extend(append);
    }

    /// Writes, and tries again for a while when the store cannot be written: what the entries say
    /// has happened and must not be lost because of a lock or a full disk. Another owner may have
    /// taken the run over meanwhile; then the store refuses, before the clock is asked.
    pub(super) async fn append(&mut self, appends: Vec<Append>) -> Result<(), AppendError> {
        let context = Arc::clone(&self.context);
        let mut pauses = Pauses::within(STORE_PATIENCE);
        let mut told = None;
        loop {
            let appending = context.ports.store.append(appends.clone());
            let error = match self.collecting_calls(appending).await {
                Err(AppendError::Store(error)) if error.may_pass() => error,
                appended => return appended,
            };
            let Some(pause) = pauses.next().filter(|_| !*self.draining.borrow()) else {
                return Err(error.into());
            };
            let reason = error.to_string();
            if told.as_ref() != Some(&reason) {
                tracing::warn!(run = %self.run.id(), reason, "the run waits for its store");
                self.observers.waits_for_store(self.run.id(), &reason);
                told = Some(reason);
            }
            let mut draining = self.draining.clone();
            let pausing = async move {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    _ = draining.changed() => {}
                }
            };
            self.collecting_calls(pausing).await;
        }
    }
}
