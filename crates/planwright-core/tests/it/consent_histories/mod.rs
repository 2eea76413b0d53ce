//! Random lives of plans: no call starts that a valid approval of exactly that call does not cover,
//! regardless of what is edited, written anew, changed, approved, rejected, narrowed, always allowed,
//! paused, left out, cancelled, raced, crashed or waited out.

mod approvals;
mod life;
mod orders;
mod runs;
mod tally;
mod versions;

use self::life::{Life, Setting};
use self::tally::Tally;
use crate::consent_world::{DOCUMENTS, compile, document, policies};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Half of all histories, so that both halves run at once.
const HALF: u64 = 25_000;

/// `PLANWRIGHT_CONSENT_HISTORIES` asks for more of them.
fn half() -> u64 {
    let asked = crate::run_files::setting("PLANWRIGHT_CONSENT_HISTORIES");
    asked.map_or(HALF, |count| {
        count
            .parse::<u64>()
            .expect("the number of histories")
            .div_ceil(2)
    })
}

/// Lives through these histories; the oracle stops at the first call that was not covered.
fn live_through(seeds: std::ops::Range<u64>) {
    let plans = (0..DOCUMENTS)
        .map(|number| [0, 1].map(|child| Arc::new(compile(document(number), child))))
        .collect();
    let mut setting = Setting {
        policies: policies(),
        documents: (0..DOCUMENTS)
            .map(|number| Arc::new(document(number)))
            .collect(),
        plans,
        digests: BTreeMap::new(),
        catalogs: BTreeMap::new(),
    };
    let mut tally = Tally::default();
    for seed in seeds {
        let mut life = Life::begin(&mut setting, &mut tally, seed);
        for _ in 0..38 {
            life.step();
        }
    }
    tally.check();
}

#[test]
fn no_call_starts_without_a_valid_approval_of_exactly_that_call() {
    let half = half();
    live_through(1..half + 1);
}

#[test]
fn nor_in_as_many_other_histories() {
    let half = half();
    live_through(half + 1..2 * half + 1);
}
