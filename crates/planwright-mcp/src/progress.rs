//! The progress of a call, told to a client that wants to know.

use planwright_core::journal::Entry;
use planwright_core::run::{Run, RunEvent};
use planwright_engine::Observer;
use planwright_engine::port::{Progress, ProgressSink};
use rmcp::model::ProgressNotificationParam;
use rmcp::service::{RequestContext, RoleServer};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::mpsc;

/// Reports of a call's progress that wait to be sent.
const MAX_REPORTS: usize = 16;

/// Tells the client of a call how far it is, if it wants to know.
pub(crate) fn progress_sink(context: &RequestContext<RoleServer>) -> ProgressSink {
    let Some(token) = context.meta.get_progress_token() else {
        return ProgressSink::default();
    };
    let (reports, mut waiting) = mpsc::channel::<Progress>(MAX_REPORTS);
    let peer = context.peer.clone();
    tokio::spawn(async move {
        while let Some(progress) = waiting.recv().await {
            let mut told = ProgressNotificationParam::new(token.clone(), progress.done);
            told.total = progress.total;
            told.message = progress.message;
            if peer.notify_progress(told).await.is_err() {
                return;
            }
        }
    });
    // A client that does not keep up misses reports, and nothing waits for it.
    ProgressSink::new(move |progress| drop(reports.try_send(progress)))
}

/// Tells how many steps of a run are done.
pub(crate) struct StepCount {
    sink: ProgressSink,
    /// What was told last: progress only grows.
    told: AtomicUsize,
}

impl StepCount {
    pub(crate) fn new(sink: ProgressSink) -> Self {
        Self {
            sink,
            told: AtomicUsize::new(0),
        }
    }
}

impl Observer for StepCount {
    fn entry(&self, run: &Run, _: &Entry<RunEvent>) {
        let done = run.schedule().completed_steps();
        if self.told.fetch_max(done, Ordering::Relaxed) >= done {
            return;
        }
        let total = run.plan().document().steps.len();
        // The steps of loops are found while the run goes on.
        let total = total.max(done);
        self.sink.report(Progress {
            done: as_number(done),
            total: Some(as_number(total)),
            message: Some(format!("{done} of {total} steps of {}", run.plan().id())),
        });
    }
}

fn as_number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}
