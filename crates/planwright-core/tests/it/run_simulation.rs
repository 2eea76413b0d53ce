//! Many short histories from consecutive seeds. `PLANWRIGHT_SIMULATIONS` sets how many,
//! `PLANWRIGHT_SEED` where to begin; a failure prints the seed that repeats it.

use crate::run_files::setting;
use crate::run_laws::check_journal;
use crate::run_world::{History, PlanSpec, World};
use planwright_core::journal::Cause;
use planwright_core::run::Command;
use planwright_testing::dice::Dice;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

fn number(name: &str, default: u64) -> u64 {
    setting(name).map_or(default, |text| {
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is not a number"))
    })
}

fn simulate(seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let spec = PlanSpec::random(&mut dice, 6);
    let plan = spec.plan();
    let mut history = History::begin(&plan, dice.chance(80));
    let mut world = World::new(&spec, dice.roll());
    world.disturb(&mut history, dice.below(25));
    world.drain(&mut history);
    check_journal(&plan, &history.entries);
    let kept = 1 + dice.below(history.entries.len());
    let mut again = history.fold(kept);
    let mut world = World::after(&spec, dice.roll(), &again);
    again.give(&Command::Recover, Cause::Recovery).unwrap();
    world.disturb(&mut again, dice.below(10));
    world.drain(&mut again);
    check_journal(&plan, &again.entries);
    history.entries.len() + again.entries.len()
}

#[test]
fn short_histories_keep_the_promises_whatever_the_seed() {
    let first = number("PLANWRIGHT_SEED", 1);
    let count = number("PLANWRIGHT_SIMULATIONS", 20_000);
    let mut entries = 0;
    for seed in first..first + count {
        match catch_unwind(AssertUnwindSafe(|| simulate(seed))) {
            Ok(written) => entries += written,
            Err(panic) => {
                eprintln!("failed with PLANWRIGHT_SEED={seed} PLANWRIGHT_SIMULATIONS=1");
                resume_unwind(panic);
            }
        }
    }
    assert!(
        entries as u64 >= 10 * count,
        "the histories are too short to mean anything: {entries} entries"
    );
}
