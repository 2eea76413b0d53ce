//! The time in which one run lives: never backwards, never still, and as near to the time of day as
//! that allows.
//!
//! Entries are dated and timers are set by it. Where the time of day jumps forwards, because it was
//! set or the machine slept, the run follows, and says by how much, so that what waits for so many
//! seconds waits for them all the same. Where it jumps backwards, the run goes on from where it
//! was: a retry that is due in a minute is due in a minute.

use crate::port::Clock;
use planwright_core::run::Run;
use planwright_core::time::Timestamp;
use std::time::Duration;

/// A jump shorter than this is not worth a word: clocks are corrected by fractions of a second all
/// the time.
const NOTICEABLE: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct RunTime {
    /// The time that was read last from the time of day.
    at: Timestamp,
    /// When that was.
    awake: Duration,
    /// The time of day is behind, and that was said.
    behind: bool,
}

/// The time, and how far it jumped since it was read last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reading {
    pub(super) now: Timestamp,
    pub(super) jumped: Duration,
}

impl RunTime {
    /// Goes on from the last entry of the run, or from the time of day if that is later.
    pub(super) fn of(run: &Run, clock: &dyn Clock) -> Self {
        let mut time = Self {
            at: run.updated_at(),
            awake: clock.awake(),
            behind: false,
        };
        let now = clock.now();
        time.note_behind(now, time.at);
        time.at = time.at.max(now);
        time
    }

    pub(super) fn read(&mut self, clock: &dyn Clock) -> Reading {
        let awake = clock.awake();
        let expected = self.at.plus(awake.saturating_sub(self.awake));
        let now = clock.now();
        self.note_behind(now, expected);
        if now < expected {
            return Reading {
                now: expected,
                jumped: Duration::ZERO,
            };
        }
        self.at = now;
        self.awake = awake;
        let ahead = now.since(expected);
        let jumped = if ahead < NOTICEABLE {
            Duration::ZERO
        } else {
            ahead
        };
        Reading { now, jumped }
    }

    fn note_behind(&mut self, now: Timestamp, expected: Timestamp) {
        let by = expected.since(now);
        if by < NOTICEABLE {
            self.behind = false;
        } else if !self.behind {
            self.behind = true;
            tracing::warn!(
                behind = ?by,
                "the clock of this machine went back: the run continues from the time of its last entry"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::ManualClock;

    const START: Timestamp = Timestamp::from_millis(1_000_000);
    const DAY: Duration = Duration::from_hours(24);

    fn time(at: Timestamp, clock: &ManualClock) -> RunTime {
        RunTime {
            at,
            awake: clock.awake(),
            behind: false,
        }
    }

    #[test]
    fn it_follows_the_time_of_day() {
        let clock = ManualClock::at(START);
        let mut time = time(START, &clock);
        clock.advance(Duration::from_millis(70));
        let reading = time.read(&clock);
        assert_eq!(
            reading,
            Reading {
                now: START.plus(Duration::from_millis(70)),
                jumped: Duration::ZERO
            }
        );
    }

    #[test]
    fn it_follows_a_jump_forwards_and_says_how_far_it_was() {
        let clock = ManualClock::at(START);
        let mut time = time(START, &clock);
        clock.advance(Duration::from_secs(2));
        clock.suspend(DAY);
        let reading = time.read(&clock);
        assert_eq!(reading.now, clock.now());
        assert_eq!(reading.jumped, DAY);
        assert_eq!(time.read(&clock).jumped, Duration::ZERO, "said once");
    }

    #[test]
    fn it_goes_on_at_its_own_pace_while_the_time_of_day_is_behind() {
        let clock = ManualClock::at(START);
        let mut time = time(START, &clock);
        clock.set_time_of_day(START.minus(DAY));
        for second in 1..=3 {
            clock.advance(Duration::from_secs(1));
            let reading = time.read(&clock);
            assert_eq!(reading.now, START.plus(Duration::from_secs(second)));
            assert_eq!(reading.jumped, Duration::ZERO);
        }
        clock.set_time_of_day(START.plus(DAY));
        assert_eq!(time.read(&clock).now, START.plus(DAY));
    }
}
