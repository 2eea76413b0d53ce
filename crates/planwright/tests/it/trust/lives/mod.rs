//! Random lives of folders: their authors change the files, people trust them or not, people and
//! agents give orders. Nothing leaves that the books of an oracle do not find covered.

mod books;
mod files;
mod folder;

use self::folder::{Folder, Tally};

const HISTORIES: u64 = 30;
const MOVES: usize = 22;

/// `PLANWRIGHT_TRUST_HISTORIES` asks for more of them.
fn histories() -> u64 {
    let asked = std::env::var("PLANWRIGHT_TRUST_HISTORIES").ok();
    asked.map_or(HISTORIES, |count| {
        count.parse().expect("the number of histories")
    })
}

#[test]
fn whatever_folders_bring_and_agents_say_nothing_leaves_that_no_person_let() {
    let histories = histories();
    let live = |seeds: std::ops::Range<u64>| {
        let mut tally = Tally::new();
        for seed in seeds {
            let mut folder = Folder::new(seed);
            folder.live(MOVES);
            add(&mut tally, folder.tally);
        }
        tally
    };
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| live(histories / 2..histories));
        let mut tally = live(0..histories / 2);
        match other.join() {
            Ok(other) => add(&mut tally, other),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        tally
    });
    check(&tally, histories);
}

fn add(tally: &mut Tally, other: Tally) {
    for (what, count) in other {
        *tally.entry(what).or_default() += count;
    }
}

/// It must not pass by doing nothing: each kind has to be seen, so often in a thousand histories.
fn check(tally: &Tally, histories: u64) {
    let expected = [
        ("people who trusted", 500),
        ("people who took trust back", 100),
        ("agents that were to trust", 300),
        ("agents that were to approve", 300),
        ("other doors that agents tried", 300),
        ("yes of agents that was none", 300),
        ("what was brought and not trusted", 100),
        ("allow rules that did not count", 100),
        ("lost limits that rules did not agree to", 25),
        ("calls that trusted rules allow", 100),
        ("calls that are allowed for good", 25),
        ("calls that were approved", 100),
        ("calls to which a person said yes", 200),
        ("programs that a trusted folder lets plans run", 25),
        ("fetches that a trusted folder lets plans make", 30),
        ("executors of a trusted folder", 25),
        ("servers that were started", 30),
        ("servers that were not started", 50),
        ("models that were asked", 50),
        ("models that were not asked", 50),
        ("prompts of a trusted folder", 25),
        ("prompts that no model heard", 50),
    ];
    for (what, per_thousand) in expected {
        let found = tally.get(what).copied().unwrap_or_default();
        assert!(
            found * 1000 >= per_thousand * histories,
            "only {found} {what}: {tally:#?}"
        );
    }
}
