//! Watching a run. An observer sees what is already durable and can change nothing.

use crate::port::{Clock, KeptLine, LoggedLine, Progress, ProgressSink, StepLogs, TextSink};
use crate::redaction::known_secrets::Redaction;
use planwright_core::id::{RunId, StepId};
use planwright_core::journal::Entry;
use planwright_core::run::{Look, Run, RunEvent, StepReport};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

/// Told about every entry of a run after it is durable. It must not block: the run waits for it.
pub trait Observer: Send + Sync {
    /// `run` is the state after the whole commit that contains the entry.
    fn entry(&self, run: &Run, entry: &Entry<RunEvent>);

    /// A commit of a run took this long.
    fn committed(&self, _took: Duration) {}

    /// This process executes the run from here on: it was started or taken over.
    fn executing(&self, _run: &Run) {}

    /// This process executes the run no more: it ended, waits for a person, or cannot go on.
    fn left(&self, _run: &RunId) {}

    /// The run stands still because its store cannot be written, for this reason. It goes on by
    /// itself when the store can.
    fn waits_for_store(&self, _run: &RunId, _reason: &str) {}

    /// A model is asked about the run before it ends, which can take its time.
    fn looking(&self, _run: &Run, _look: Look) {}

    /// How far a call is, as its tool says: untrusted, not journaled, and gone when the call is
    /// over.
    fn progress(&self, _step: &StepId, _progress: &Progress) {}

    /// The same, for those who watch more than one run.
    fn progress_of(&self, _run: &RunId, step: &StepId, progress: &Progress) {
        self.progress(step, progress);
    }

    /// A line that the server of a step's call logs: untrusted and not journaled.
    fn log(&self, _step: &StepId, _line: &LoggedLine) {}

    /// The same, for those who watch more than one run.
    fn log_of(&self, _run: &RunId, step: &StepId, line: &LoggedLine) {
        self.log(step, line);
    }

    /// A piece of what the model of a step says, as it comes: untrusted, not journaled, and whole
    /// only in the entries.
    fn said(&self, _run: &RunId, _step: &StepId, _piece: &str) {}
}

impl<F: Fn(&Run, &Entry<RunEvent>) + Send + Sync> Observer for F {
    fn entry(&self, run: &Run, entry: &Entry<RunEvent>) {
        self(run, entry);
    }
}

/// Calls `call` whenever an attempt at a step begins.
pub fn on_step_start(call: impl Fn(&StepReport) + Send + Sync + 'static) -> Arc<dyn Observer> {
    Arc::new(move |run: &Run, entry: &Entry<RunEvent>| {
        if let RunEvent::AttemptStarted { step, .. } = &entry.event
            && let Some(ix) = run.find(step.as_str())
        {
            call(&StepReport::new(run, ix, entry.at));
        }
    })
}

/// Calls `call` whenever a step has ended by itself: completed, failed, denied or skipped.
pub fn on_step_complete(call: impl Fn(&StepReport) + Send + Sync + 'static) -> Arc<dyn Observer> {
    Arc::new(move |run: &Run, entry: &Entry<RunEvent>| {
        let (RunEvent::AttemptSucceeded { step, .. }
        | RunEvent::AttemptFailed {
            step,
            retry_at: None,
            ..
        }
        | RunEvent::AttemptCancelled { step, .. }
        | RunEvent::StepFailed { step, .. }
        | RunEvent::StepSkipped { step, .. }
        | RunEvent::LoopClosed { step, .. }
        | RunEvent::InputGiven {
            step,
            attempt: None,
            ..
        }
        | RunEvent::ApprovalDenied { step, .. }) = &entry.event
        else {
            return;
        };
        if let Some(ix) = run.find(step.as_str()) {
            call(&StepReport::new(run, ix, entry.at));
        }
    })
}

/// Keeps what the servers of all runs log.
#[derive(Debug)]
pub(crate) struct LogKeeper {
    pub(crate) logs: Arc<dyn StepLogs>,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Observer for LogKeeper {
    fn entry(&self, _run: &Run, _entry: &Entry<RunEvent>) {}

    fn log_of(&self, run: &RunId, step: &StepId, line: &LoggedLine) {
        let kept = KeptLine {
            at: self.clock.now(),
            step: step.clone(),
            line: line.clone(),
        };
        self.logs.keep(run, kept);
    }
}

/// All observers of one run.
#[derive(Clone, Default)]
pub(crate) struct Observers(pub(crate) Vec<Arc<dyn Observer>>);

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Observers({})", self.0.len())
    }
}

impl Observers {
    /// Takes the progress and the log of one step's call to all observers.
    pub(crate) fn sink(&self, run: &RunId, step: &StepId) -> ProgressSink {
        if self.0.is_empty() {
            return ProgressSink::default();
        }
        let told = Arc::new((self.clone(), run.clone(), step.clone()));
        let logged = Arc::clone(&told);
        ProgressSink::new(move |progress| {
            let (observers, run, step) = &*told;
            observers.each(run, |observer| observer.progress_of(run, step, &progress));
        })
        .with_log(move |line| {
            let (observers, run, step) = &*logged;
            observers.each(run, |observer| observer.log_of(run, step, &line));
        })
    }

    /// Takes what the model of a step says to all observers.
    pub(crate) fn said(&self, run: &RunId, step: &StepId, redaction: &Redaction) -> TextSink {
        if self.0.is_empty() {
            return TextSink::default();
        }
        let observers = self.clone();
        let run = run.clone();
        let step = step.clone();
        let redaction = redaction.clone();
        TextSink::new(move |piece| {
            let piece = redaction.redactor().text(piece);
            observers.each(&run, |observer| observer.said(&run, &step, &piece));
        })
    }

    pub(crate) fn tell(&self, run: &Run, entries: &[Entry<RunEvent>], took: Duration) {
        self.each(run.id(), |observer| {
            observer.committed(took);
            entries.iter().for_each(|entry| observer.entry(run, entry));
        });
    }

    pub(crate) fn executing(&self, run: &Run) {
        self.each(run.id(), |observer| observer.executing(run));
    }

    pub(crate) fn waits_for_store(&self, run: &RunId, reason: &str) {
        self.each(run, |observer| observer.waits_for_store(run, reason));
    }

    pub(crate) fn looking(&self, run: &Run, look: Look) {
        self.each(run.id(), |observer| observer.looking(run, look));
    }

    pub(crate) fn left(&self, run: &RunId) {
        self.each(run, |observer| observer.left(run));
    }

    /// A failing observer never changes an outcome: its panic ends here.
    fn each(&self, run: &RunId, tell: impl Fn(&dyn Observer)) {
        for observer in &self.0 {
            if catch_unwind(AssertUnwindSafe(|| tell(&**observer))).is_err() {
                tracing::warn!(%run, "an observer panicked");
            }
        }
    }
}
