//! Following the journal: whenever a person has decided something in a run, that run is looked at.

use super::requested::RequestedRuns;
use super::scheduler::SchedulerCommand;
use super::unfinished;
use crate::engine::Engine;
use crate::journal::feed::end_of_feed;
use crate::journal::load::load_review;
use crate::port::{FeedOf, Journal, Placed, StoreError, is_last_feed_page};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Record, StreamName, decode};
use planwright_core::run::RunEvent;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Records read at a time.
const PAGE: usize = 500;

/// The time to wait before asking a store again that failed.
pub(super) const FAILED_PAUSE: Duration = Duration::from_secs(1);

/// Sub-plans nest less deep than this.
const MAX_DEPTH: usize = 64;

/// The beginnings of the entries that can let a run go on. Most entries are none of these and are
/// not decoded.
const DECISIONS: [&[u8]; 7] = [
    b"approval_granted",
    b"approval_denied",
    b"input_given",
    b"outcome_resolved",
    b"run_resumed",
    b"run_started",
    b"step_failed",
];

/// Sends a command for every run in which something was decided, until told to stop.
pub(super) async fn follow(
    engine: Engine,
    commands: mpsc::Sender<SchedulerCommand>,
    requested: RequestedRuns,
    stopping: CancellationToken,
) {
    let following = async {
        let store = &engine.context.ports.store;
        let mut changes = store.changes();
        let mut after = loop {
            match end_of_feed(&**store).await {
                Ok(end) => break end,
                Err(error) => failed(&error).await,
            }
        };
        // Only now: what was decided before is found there, what is decided from here on is read
        // below.
        tokio::spawn(unfinished::find(
            engine.clone(),
            commands.clone(),
            stopping.clone(),
        ));
        let left = requested.clone();
        let ending = stopping.clone();
        tokio::spawn(async move { ending.run_until_cancelled(left.start_left()).await });
        loop {
            changes.mark_unchanged();
            match store.feed(&FeedOf::All, after, PAGE).await {
                Ok(page) => {
                    after = page.last().map_or(after, |placed| placed.position);
                    for placed in &page {
                        report_decision(&engine, &commands, &requested, placed).await;
                    }
                    if is_last_feed_page(&page, PAGE) && changes.changed().await.is_err() {
                        return;
                    }
                }
                Err(error) => failed(&error).await,
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = following => {}
    }
}

async fn failed(error: &StoreError) {
    tracing::warn!(%error, "the journal cannot be followed");
    tokio::time::sleep(FAILED_PAUSE).await;
}

async fn report_decision(
    engine: &Engine,
    commands: &mpsc::Sender<SchedulerCommand>,
    requested: &RequestedRuns,
    placed: &Placed,
) {
    let run = match &placed.stream {
        StreamName::Run(run) => run,
        StreamName::Plan(plan) => {
            if contains(&placed.record.body, b"plan_approved") {
                resume_approved(engine, commands, plan).await;
                requested.start(plan).await;
            }
            return;
        }
    };
    let Some(event) = decision(&placed.record) else {
        return;
    };
    // A run that was begun here is watched here. One that was begun elsewhere is taken over if its
    // owner dies.
    if matches!(event, RunEvent::RunStarted { .. })
        && let Ok(Some(lease)) = engine.context.ports.store.lease(run).await
        && lease.owner == engine.context.settings.owner
    {
        return;
    }
    match root_of(&*engine.context.ports.store, run).await {
        Ok(root) => drop(commands.send(SchedulerCommand::Resume(root)).await),
        Err(error) => tracing::warn!(%run, %error, "a decision in this run is not followed"),
    }
}

/// An approval of an adjusted plan lets its work go on.
async fn resume_approved(
    engine: &Engine,
    commands: &mpsc::Sender<SchedulerCommand>,
    plan: &PlanId,
) {
    let adjusted = async {
        let (review, _) = load_review(&*engine.context.ports.store, plan).await?;
        engine.runs().adjusted_run(&review).await
    };
    match adjusted.await {
        Ok(Some(run)) => drop(commands.send(SchedulerCommand::Resume(run)).await),
        Ok(None) => {}
        Err(error) => tracing::warn!(%plan, %error, "an approval of this plan is not followed"),
    }
}

/// The event of this record, if a run may be able to go on after it although no process executes
/// it.
fn decision(record: &Record) -> Option<RunEvent> {
    if !DECISIONS
        .iter()
        .any(|decision| contains(&record.body, decision))
    {
        return None;
    }
    let event = decode::<RunEvent>(record).ok()?.event;
    let decides = matches!(
        event,
        RunEvent::ApprovalGranted { .. }
            | RunEvent::ApprovalDenied { .. }
            | RunEvent::InputGiven { .. }
            | RunEvent::OutcomeResolved { .. }
            | RunEvent::RunResumed { .. }
            | RunEvent::RunStarted { .. }
            | RunEvent::StepFailed { .. }
    );
    decides.then_some(event)
}

/// Looks only at the first bytes: the kind of an entry is the first thing it says.
fn contains(body: &[u8], word: &[u8]) -> bool {
    body[..body.len().min(96)]
        .windows(word.len())
        .any(|window| window == word)
}

/// The run that this one is, directly or through others, the work of. It is the one that can be
/// resumed.
pub(super) async fn root_of(store: &dyn Journal, run: &RunId) -> Result<RunId, StoreError> {
    let mut root = run.clone();
    for _ in 0..MAX_DEPTH {
        let stream = StreamName::Run(root.clone());
        let page = store.read(&stream, 0, 1).await?;
        let parent = page
            .first()
            .and_then(|record| decode::<RunEvent>(record).ok())
            .and_then(|entry| {
                if let RunEvent::RunStarted { parent, .. } = entry.event {
                    parent
                } else {
                    None
                }
            });
        match parent {
            Some(parent) => root = parent.run,
            None => break,
        }
    }
    Ok(root)
}
