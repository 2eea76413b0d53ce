//! Noting what time brings about, for as long as the service runs.

use super::files::DueFiles;
use crate::engine::Engine;
use crate::maintenance::{MaintenanceReport, RetentionPass};
use planwright_core::journal::StreamName;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Never looks more often than this, regardless of what is due.
const SHORTEST: Duration = Duration::from_secs(30);

/// Looks at least this often: something may have become due sooner than could be told.
const LONGEST: Duration = Duration::from_mins(5);

/// Journals that are looked at for sealing with one look.
const MAX_SEALED: usize = 1000;

/// Large values that no journal refers to are looked for this often: it reads every journal.
const ARTIFACTS_EVERY: Duration = Duration::from_hours(6);

/// Looks again and again, when the next thing is due.
pub(super) async fn keep(engine: Engine, files: DueFiles, stopping: CancellationToken) {
    let keeping = async {
        let mut artifacts_at = engine.now().plus(ARTIFACTS_EVERY);
        loop {
            let clock = Arc::clone(&engine.context.ports.clock);
            // Not at once: first what was going on may go on.
            clock.sleep(SHORTEST).await;
            apply_retention(&engine, &files).await;
            if engine.now() >= artifacts_at {
                artifacts_at = engine.now().plus(ARTIFACTS_EVERY);
                if let Err(error) = engine.maintenance().remove_unused_artifacts(false).await {
                    tracing::warn!(%error, "large values that no journal refers to could not be removed");
                }
            }
            let next_at = match engine.maintenance().run_maintenance().await {
                Ok(report) => log_notices(&files, &report),
                Err(error) => {
                    tracing::warn!(%error, "what is due cannot be found");
                    None
                }
            };
            // What is due goes by the time of day. A clock that is set back does not make this wait
            // for longer.
            tokio::select! {
                () = clock.sleep(LONGEST) => {}
                () = async { clock.sleep_until(next_at.expect("guarded")).await }, if next_at.is_some() => {}
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = keeping => {}
    }
}

/// Seals and removes what is due: as much as a busy service makes between two looks, journal by
/// journal, so that runs are not held up.
async fn apply_retention(engine: &Engine, files: &DueFiles) {
    let pass = RetentionPass {
        max_journals: MAX_SEALED,
        dry_run: false,
    };
    match engine.maintenance().apply_retention(pass).await {
        Ok(report) => {
            for stream in report.sealed.iter().chain(&report.removed) {
                if let StreamName::Plan(plan) = stream {
                    files.note(plan);
                }
            }
        }
        Err(error) => tracing::warn!(%error, "retention could not be applied"),
    }
}

fn log_notices(
    files: &DueFiles,
    report: &MaintenanceReport,
) -> Option<planwright_core::time::Timestamp> {
    for notice in &report.notices {
        tracing::info!(plan = %notice.plan(), %notice, "noted");
        files.note(notice.plan());
    }
    report.next_at
}
