//! Commits that a run shares with runs it decided to open, and commits that may wait a moment.
//!
//! Only what reads may wait: see [`GroupedStore`](crate::context::GroupedStore).

use super::run_loop::RunLoop;
use crate::context::{JointPart, JointWriter, JointWritten};
use crate::port::{Append, AppendError};
use planwright_core::journal::Entry;
use planwright_core::run::{AgentCall, CallFate, RunEvent};
use planwright_core::tool::EffectClass;

/// What other runs add to a commit, and those that wait for it.
#[derive(Default)]
pub(super) struct JointParts {
    parts: Vec<JointPart>,
    written: Vec<JointWritten>,
    /// Those of them that only read, and are opened after it.
    reads: usize,
}

impl JointParts {
    /// Returns whether these entries say only that runs which read are opened.
    fn are_all_late(&self, entries: &[Entry<RunEvent>]) -> bool {
        self.reads > 0
            && self.reads == self.written.len()
            && self.reads == entries.len()
            && entries.iter().all(is_free_turn)
    }
}

/// Returns whether an entry says only that calls are made which nothing was held against.
pub(super) fn is_free_turn(entry: &Entry<RunEvent>) -> bool {
    match &entry.event {
        RunEvent::AgentTurn { calls, .. } => calls.iter().all(is_free),
        _ => false,
    }
}

/// Returns whether a call is made that nothing was held against.
pub(crate) fn is_free(call: &AgentCall) -> bool {
    matches!(call.fate, CallFate::Run(_)) && !call.outside && call.let_through.is_none()
}

impl RunLoop {
    /// Waits for the runs that are opened with this commit: each adds its first entries, and that it
    /// starts its call. Those that only read are told when it is written.
    pub(super) async fn collect_parts(
        &mut self,
        joined: Vec<JointWriter>,
        reads: Vec<JointWritten>,
    ) -> JointParts {
        let mut collected = JointParts {
            parts: Vec::new(),
            reads: reads.len(),
            written: reads,
        };
        for writer in joined {
            let (part, written) = self.collecting_calls(writer.collect()).await;
            collected.parts.extend(part);
            collected.written.push(written);
        }
        collected
    }

    /// Writes a commit of this run and of those that are opened with it.
    pub(super) async fn append_joined(
        &mut self,
        joined: JointParts,
        mut appends: Vec<Append>,
        entries: &[Entry<RunEvent>],
    ) -> Result<(), AppendError> {
        let reads = joined.are_all_late(entries) || self.only_reads(entries);
        let is_late = reads && matches!(&appends[..], [own] if says_only_entries(own));
        for part in joined.parts {
            appends.extend(part.appends);
        }
        if is_late && let [_] = &appends[..] {
            let held = appends
                .pop()
                .and_then(|own| self.context.ports.grouped.hold(own));
            appends.extend(held);
        }
        let appended = match appends.is_empty() {
            true => Ok(()),
            false => self.append(appends).await,
        };
        for written in joined.written {
            let told = appended.as_ref().map(|&()| ());
            written.tell(told.map_err(ToString::to_string));
        }
        appended
    }

    /// Returns whether this run is one call that reads, and these entries are about nothing else.
    pub(super) fn only_reads(&self, entries: &[Entry<RunEvent>]) -> bool {
        let is_of_read = |entry: &Entry<RunEvent>| match &entry.event {
            RunEvent::AttemptStarted { class, .. } => *class == EffectClass::Safe,
            RunEvent::RunStarted { .. }
            | RunEvent::AttemptSucceeded { .. }
            | RunEvent::AttemptFailed { .. }
            | RunEvent::RunCompleted { .. }
            | RunEvent::RunFailed { .. } => true,
            _ => false,
        };
        self.reads && !entries.is_empty() && entries.iter().all(is_of_read)
    }
}

/// Returns whether nothing waits for this append but those who read the journal.
fn says_only_entries(append: &Append) -> bool {
    append.answers.is_empty()
        && append.requests.is_empty()
        && append.brought.is_empty()
        && append.offers.is_empty()
}
