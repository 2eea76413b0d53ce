//! What strangers can write, tried with anything: ten targets, the limits that hold for each of
//! them, and the corpus in `fuzz/corpus`.
//!
//! `tests/corpus.rs` tries the corpus with every `cargo test`; `tests/fuzz.rs` is the fuzzer, which
//! `cargo xtask fuzz` builds and starts.

mod configuration;
mod lives;
mod names;
mod outside;
mod plans;

use cap::Cap;
use rustix::time::{ClockId, clock_gettime};
use std::alloc::System;
use std::time::Duration;

/// Counts what is allocated, and refuses what is over the limit.
#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, usize::MAX);

/// The most bytes one input may make a target allocate.
const MAX_BYTES: usize = 256 << 20;

/// The most processor time one input may take. Time on the clock would also measure what else the
/// machine does.
const MAX_TIME: Duration = Duration::from_secs(1);

/// Something that reads what strangers wrote.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name, which is also that of its folder in the corpus.
    pub name: &'static str,
    read: fn(&[u8]),
}

impl Target {
    /// Every target.
    pub const ALL: [Self; 10] = [
        Self::new("plan_json", plans::read_json),
        Self::new("plan_yaml", plans::read_markdown),
        Self::new("references", plans::read_references),
        Self::new("ids_and_paths", names::read_ids_and_paths),
        Self::new("frames", outside::read_frames),
        Self::new("tool_schemas", outside::read_tool_schemas),
        Self::new("sse_ids", names::read_sse_id),
        Self::new("journal", lives::read_journal),
        Self::new("approvals", lives::read_approvals),
        Self::new("configuration", configuration::read_configuration),
    ];

    const fn new(name: &'static str, read: fn(&[u8])) -> Self {
        Self { name, read }
    }

    /// Finds a target by its name.
    pub fn find(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|target| target.name == name)
    }
}

/// Gives an input to a target. Panics if the target does, takes too long or breaks a law; aborts if
/// it allocates too much.
pub fn try_input(target: &Target, input: &[u8]) {
    let limit = ALLOCATOR.allocated().saturating_add(MAX_BYTES);
    // Refused only if more is allocated already, by another thread.
    ALLOCATOR.set_limit(limit).unwrap_or_default();
    let started = processor_time();
    (target.read)(input);
    let taken = processor_time().saturating_sub(started);
    assert!(
        taken <= MAX_TIME,
        "{} took {taken:?} for {} bytes",
        target.name,
        input.len()
    );
}

fn processor_time() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::try_from(now).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn an_input_is_refused_more_memory_than_the_limit() {
        let greedy = Target::new("greedy", |_| {
            let reserve = |bytes| black_box(Vec::<u8>::new()).try_reserve_exact(bytes);
            assert!(reserve(MAX_BYTES / 2).is_ok());
            assert!(reserve(MAX_BYTES + 1).is_err());
        });
        try_input(&greedy, b"");
    }

    #[test]
    #[should_panic(expected = "slow took")]
    fn an_input_that_takes_too_long_is_a_failure() {
        let slow = Target::new("slow", |_| {
            let started = processor_time();
            while processor_time().saturating_sub(started) <= MAX_TIME {
                black_box(started);
            }
        });
        try_input(&slow, b"");
    }
}
