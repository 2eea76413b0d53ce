//! Finding the runs that were being executed when the last process ended.

use super::follow::{FAILED_PAUSE, root_of};
use super::scheduler::SchedulerCommand;
use crate::engine::Engine;
use planwright_core::journal::StreamName;
use planwright_core::status::{CachedStatus, RunStatus};
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Where runs stand that may go on by themselves. What was adjusted may have been agreed to
/// meanwhile.
const UNFINISHED: [CachedStatus; 2] = [
    CachedStatus::Run(RunStatus::Executing),
    CachedStatus::Run(RunStatus::Adjusted),
];

/// Sends a command for every run that has not ended and does not wait for a person.
pub(super) async fn find(
    engine: Engine,
    commands: mpsc::Sender<SchedulerCommand>,
    stopping: CancellationToken,
) {
    let searching = async {
        let runs = loop {
            match engine.context.ports.store.runs_in(&UNFINISHED).await {
                Ok(runs) => break runs,
                Err(error) => {
                    tracing::warn!(%error, "unfinished runs cannot be found");
                    tokio::time::sleep(FAILED_PAUSE).await;
                }
            }
        };
        let mut found = BTreeSet::new();
        for run in runs {
            let StreamName::Run(id) = run.stream else {
                continue;
            };
            match root_of(&*engine.context.ports.store, &id).await {
                // If this fails, the scheduler takes no commands any more: the supervisor is stopping.
                Ok(root) if found.insert(root.clone()) => {
                    drop(commands.send(SchedulerCommand::Resume(root)).await);
                }
                Ok(_) => {}
                // One damaged run does not keep the others from going on.
                Err(error) => {
                    tracing::warn!(run = %id, %error, "an unfinished run cannot be found");
                }
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = searching => {}
    }
}
