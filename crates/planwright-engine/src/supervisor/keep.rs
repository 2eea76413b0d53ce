//! Noting what time brings about, for as long as the service runs.

use super::files::DueFiles;
use crate::engine::Engine;
use crate::maintenance::MaintenanceReport;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Never looks more often than this, regardless of what is due.
const SHORTEST: Duration = Duration::from_secs(30);

/// Looks at least this often: something may have become due sooner than could be told.
const LONGEST: Duration = Duration::from_mins(5);

/// Looks again and again, when the next thing is due.
pub(super) async fn keep(engine: Engine, files: DueFiles, stopping: CancellationToken) {
    let keeping = async {
        loop {
            let clock = Arc::clone(&engine.context.ports.clock);
            // Not at once: first what was going on may go on.
            clock.sleep(SHORTEST).await;
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
