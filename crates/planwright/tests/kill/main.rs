//! The kill test: the real program, killed with SIGKILL at every numbered crash point, over many
//! plan shapes.
//!
//! What tools did to the world is read from files the tools wrote, never from Planwright: that is
//! the oracle. After every kill the run is resumed to its end, and then: nothing is lost, nothing
//! is recorded twice, no `unsafe` call was repeated by itself, and an unknown outcome is there
//! exactly where the journal says a call had started and not ended.
//!
//! `PLANWRIGHT_KILL_CYCLES` sets how many cycles must be reached. Unless told, they are 200, and of
//! the crash points every fourth one is taken, other ones of each shape.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

mod belonging;
mod oracle;
mod program;
mod shapes;

use program::{Ended, Workspace};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// What all cycles came to.
#[derive(Debug, Default)]
struct Totals {
    cycles: AtomicUsize,
    kills: AtomicUsize,
    unknown: AtomicUsize,
}

#[test]
fn a_run_killed_anywhere_loses_nothing_and_repeats_nothing() {
    let told = std::env::var("PLANWRIGHT_KILL_CYCLES").ok();
    let stride = if told.is_some() { 1 } else { 4 };
    let wanted = told.map_or(200, |cycles| cycles.parse().expect("a number of cycles"));
    let totals = Totals::default();
    let points = every_single_kill(&totals, stride);
    assert!(
        points.len() >= 12,
        "only {} shapes were covered",
        points.len()
    );
    // Single kills may reach the number by themselves; recovery is killed at least this often all
    // the same.
    let single = totals.cycles.load(Ordering::Relaxed);
    kills_during_recovery(&totals, &points, wanted.max(single + wanted / 5));
    let [cycles, kills, unknown] =
        [&totals.cycles, &totals.kills, &totals.unknown].map(|n| n.load(Ordering::Relaxed));
    println!("{cycles} cycles, {kills} kills, {unknown} unknown outcomes, all as predicted");
    assert!(cycles >= wanted, "{cycles} cycles are too few");
    assert!(
        unknown > 0,
        "no outcome was ever unknown: the windows were not hit"
    );
}

/// The same on a store in Postgres, where every process that was killed takes a second to be noticed.
#[test]
fn a_run_on_postgres_killed_anywhere_loses_nothing_and_repeats_nothing() {
    let told = std::env::var("PLANWRIGHT_KILL_CYCLES").ok();
    let wanted = told.map_or(24, |cycles| cycles.parse().expect("a number of cycles")) / 2;
    let totals = Totals::default();
    let shapes = shapes::all();
    let round = AtomicUsize::new(0);
    in_parallel(|| {
        loop {
            let number = round.fetch_add(1, Ordering::Relaxed);
            if number >= wanted {
                return;
            }
            let shape = &shapes[number % shapes.len()];
            // A walk that visits different points each time and is the same in every execution.
            let at = (number as u64).wrapping_mul(2_654_435_761) % 61 + 1;
            let workspace = Workspace::on_postgres(shape);
            check_cycle(&workspace, shape, &[at, at % 13 + 1], &totals);
        }
    });
    let [cycles, kills, unknown] =
        [&totals.cycles, &totals.kills, &totals.unknown].map(|n| n.load(Ordering::Relaxed));
    println!("{cycles} cycles on Postgres, {kills} kills, {unknown} unknown outcomes");
    assert!(kills >= cycles, "{kills} kills are too few");
}

/// One kill at each crash point of every shape, or at each so many of them. Returns how many points
/// each shape has.
fn every_single_kill(totals: &Totals, stride: u64) -> Vec<(usize, u64)> {
    let points = Mutex::new(Vec::new());
    let next = AtomicUsize::new(0);
    let shapes = shapes::all();
    in_parallel(|| {
        while let Some((index, shape)) =
            Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|i| Some((i, shapes.get(i)?)))
        {
            let mut at = 1 + index as u64 % stride;
            while cycle(shape, &[at], totals) == Killed::Yes {
                at += stride;
            }
            points.lock().unwrap().push((index, at - 1));
        }
    });
    points.into_inner().unwrap()
}

/// Kills the recovery too: the first kill at one point, the next ones while the run is being
/// resumed.
fn kills_during_recovery(totals: &Totals, points: &[(usize, u64)], wanted: usize) {
    let shapes = shapes::all();
    let round = AtomicUsize::new(0);
    in_parallel(|| {
        while totals.cycles.load(Ordering::Relaxed) < wanted {
            let number = round.fetch_add(1, Ordering::Relaxed) as u64;
            let (index, count) = points[number as usize % points.len()];
            // A walk that visits different pairs each time and is the same in every execution.
            let first = number.wrapping_mul(2_654_435_761) % count + 1;
            let second = number % 23 + 1;
            let third = number % 11 + 1;
            cycle(&shapes[index], &[first, second, third], totals);
        }
    });
}

/// Does the work on twice as many threads as there are processors: a cycle spends half of its time
/// waiting for the disk and for processes to start and end.
fn in_parallel(work: impl Fn() + Sync) {
    let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..2 * processors).map(|_| scope.spawn(&work)).collect();
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[derive(Debug, PartialEq, Eq)]
enum Killed {
    Yes,
    /// The program finished before it reached the point.
    No,
}

/// One run of one shape, killed at each of `kills` in turn, then resumed to its end and checked.
fn cycle(shape: &shapes::Shape, kills: &[u64], totals: &Totals) -> Killed {
    check_cycle(&Workspace::new(shape), shape, kills, totals)
}

fn check_cycle(
    workspace: &Workspace,
    shape: &shapes::Shape,
    kills: &[u64],
    totals: &Totals,
) -> Killed {
    let context = || format!("shape `{}`, killed at {kills:?}", shape.name);
    let mut killed = Killed::No;
    let mut unknown = 0;
    for &at in kills {
        let ended = workspace.go_on(Some(at));
        if ended != Ended::Killed {
            break;
        }
        killed = Killed::Yes;
        totals.kills.fetch_add(1, Ordering::Relaxed);
        oracle::check_no_unsafe_repeat(workspace, &context());
    }
    // A person settles what is unknown, from what the world shows; then the run goes on.
    for _ in 0..=shape.steps.len() {
        let predicted = oracle::started_without_end(workspace);
        match workspace.go_on(None) {
            Ended::Completed => break,
            Ended::Waits => {
                unknown += oracle::settle_unknown(workspace, &predicted, &context());
                oracle::answer_questions(workspace, &context());
            }
            other @ (Ended::Killed | Ended::Other(_)) => {
                panic!("{}: the run ended {other:?}", context())
            }
        }
    }
    let number = totals.cycles.fetch_add(1, Ordering::Relaxed);
    oracle::check_end(workspace, number.is_multiple_of(10), &context());
    totals.unknown.fetch_add(unknown, Ordering::Relaxed);
    killed
}
