//! The room that the small values of one run may take together. They are part of the run's state,
//! and so in memory for as long as it is executed.

use planwright_core::run::{Run, StoredValue};
use std::sync::atomic::{AtomicU64, Ordering};

/// Beyond this many bytes of JSON, values become artifacts that would else be in the journal.
const MAX_BYTES: u64 = 32 << 20;
/// So small a value is in the journal all the same: its artifact's name is not much shorter.
const ALWAYS_INLINE_BYTES: usize = 1024;

#[derive(Debug)]
pub(super) struct InlineBudget {
    used: AtomicU64,
}

impl InlineBudget {
    /// Counts what a run that was taken over has already.
    pub(super) fn of(run: &Run) -> Self {
        let values = run.indices().filter_map(|ix| run.step(ix).value());
        let used = values.map(|value| match value {
            StoredValue::Inline(value) => value.to_string().len() as u64,
            StoredValue::Artifact(_) => 0,
        });
        Self {
            used: AtomicU64::new(used.sum()),
        }
    }

    /// The size up to which the next value stays in the journal.
    pub(super) fn max_inline_bytes(&self) -> usize {
        if self.used.load(Ordering::Relaxed) < MAX_BYTES {
            StoredValue::MAX_INLINE_BYTES
        } else {
            ALWAYS_INLINE_BYTES
        }
    }

    pub(super) fn take(&self, bytes: usize) {
        self.used.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_whose_values_fill_its_room_keeps_only_tiny_ones_in_the_journal() {
        let budget = InlineBudget {
            used: AtomicU64::new(0),
        };
        budget.take(MAX_BYTES as usize - 1);
        assert_eq!(budget.max_inline_bytes(), StoredValue::MAX_INLINE_BYTES);
        budget.take(1);
        assert_eq!(budget.max_inline_bytes(), ALWAYS_INLINE_BYTES);
    }
}
