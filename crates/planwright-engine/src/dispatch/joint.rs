//! Commits that a run shares with runs it decided to open, and commits that may wait a moment.
//!
//! Only what reads may wait: see [`GroupedStore`](crate::context::GroupedStore).

use super::run_loop::RunLoop;
use crate::context::{JointPart, JointWriter, JointWritten};
use crate::port::{Append, AppendError};
use planwright_core::journal::Entry;
use planwright_core::run::RunEvent;
use planwright_core::tool::EffectClass;

/// What other runs add to a commit.
#[derive(Default)]
pub(super) struct JointParts {
    parts: Vec<JointPart>,
    written: Vec<JointWritten>,
}

impl JointParts {
    /// Returns whether these entries say only that these runs, which read, were opened.
    fn are_all_late(&self, entries: &[Entry<RunEvent>]) -> bool {
        let is_turn = |entry: &Entry<RunEvent>| matches!(entry.event, RunEvent::AgentTurn { .. });
        !self.parts.is_empty()
            && self.parts.len() == self.written.len()
            && self.parts.len() == entries.len()
            && self.parts.iter().all(|part| part.may_be_late)
            && entries.iter().all(is_turn)
    }
}

impl RunLoop {
    /// Waits for the runs that are opened with this commit: each adds its first entries, and that it
    /// starts its call.
    pub(super) async fn collect_parts(&mut self, joined: Vec<JointWriter>) -> JointParts {
        let mut collected = JointParts::default();
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
        let left = if is_late {
            self.context.ports.grouped.hold(appends)
        } else {
            Some(appends)
        };
        let appended = match left {
            None => Ok(()),
            Some(appends) => self.append(appends).await,
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
