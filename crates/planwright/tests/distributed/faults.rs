//! The proof: hundreds of runs in flight, and everything that they need fails again and again.

use crate::audit::{judge, list_events, settle};
use crate::cluster::{CLAIM, Cluster};
use crate::orders::{approve, await_tools, run};
use crate::process::{Process, Role};
use crate::stream::{Expected, follow};
use planwright_testing::dice::Dice;
use planwright_testing::proxy::CommitCut;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Runs that are in flight at once, for the first faults; later ones have more runs.
const RUNS: usize = 300;
/// So many faults have this many runs.
const FAULTS_PER_ROUND: usize = 300;
const CLIENTS: usize = 4;
/// The time in which the faults of a round are to be thrown: behind that, pauses are short.
const ROUND: Duration = Duration::from_secs(75);
/// A round does not go on for longer.
const LONGEST_ROUND: Duration = Duration::from_secs(240);

fn number(variable: &str, otherwise: u64) -> u64 {
    let given = std::env::var(variable).ok();
    given.map_or(otherwise, |text| text.parse().expect("a number"))
}

/// What is thrown at the processes and the servers, and how often that was.
struct Thrower<'a> {
    cluster: &'a Cluster,
    is_over: AtomicBool,
    wanted: usize,
    thrown: AtomicUsize,
    counts: Mutex<BTreeMap<&'static str, usize>>,
    since: Instant,
}

/// Ends what goes on in other threads when the test ends, also by a panic.
struct OverAtEnd<'a>(&'a AtomicBool);

impl Drop for OverAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Lets the reader end when the test does by a panic.
struct NothingAtEnd<'a>(&'a Expected);

impl Drop for NothingAtEnd<'_> {
    fn drop(&mut self) {
        self.0.set(0);
    }
}

#[test]
fn whatever_fails_nothing_is_lost_doubled_or_guessed() {
    let wanted = usize::try_from(number("PLANWRIGHT_FAULTS", 300)).unwrap();
    let seed = number("PLANWRIGHT_FAULTS_SEED", 7526);
    println!("PLANWRIGHT_FAULTS={wanted} PLANWRIGHT_FAULTS_SEED={seed}");
    let cluster = Cluster::start();
    let expected = Expected::unknown();
    let rounds = wanted.div_ceil(FAULTS_PER_ROUND);
    let mut unknown = BTreeMap::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (seen, events) = std::thread::scope(|scope| {
        let nothing_after_a_panic = NothingAtEnd(&expected);
        let reading = scope.spawn(|| follow(&cluster, &expected));
        for round in 0..rounds {
            let wanted = FAULTS_PER_ROUND.min(wanted - round * FAULTS_PER_ROUND);
            let seed = seed.wrapping_add(round as u64 * 1_000);
            for (kind, count) in throw_round(&cluster, wanted, round, seed) {
                *counts.entry(kind).or_default() += count;
            }
            let since = Instant::now();
            unknown.extend(settle(&cluster));
            println!("round {round}: settled in {:?}", since.elapsed());
        }
        let events = list_events(&cluster);
        expected.set(events.len());
        let seen = reading.join().unwrap();
        drop(nothing_after_a_panic);
        (seen, events)
    });
    let outcome = judge(&cluster, &events, &unknown);
    let thrown: usize = counts.values().sum();
    println!(
        "{thrown} faults {counts:?}; {} runs, {} outcomes unknown; {} events, read by a client that moved {} times",
        outcome.runs,
        outcome.unknown,
        events.len(),
        seen.moves
    );
    let runners = cluster.runners();
    let notes = runners.map(|runner| runner.bench.read("effects.txt").lines().count());
    let notes: usize = notes.sum();
    println!("{notes} steps by the worker that executes runs");
    assert!(outcome.wrong.is_empty(), "{:#?}", outcome.wrong);
    assert_eq!(outcome.runs, rounds * RUNS, "a run was lost or doubled");
    let read: Vec<_> = seen.events.iter().map(|(_, event)| event).collect();
    let first = events
        .iter()
        .zip(&read)
        .position(|(one, other)| one != *other);
    assert!(
        read.len() == events.len() && first.is_none(),
        "{} events were read of {}, and they differ at {first:?}: {:#?}",
        read.len(),
        events.len(),
        first.map(|at| (&events[at], read[at], &seen.events[at].0))
    );
    for process in &cluster.processes {
        assert_eq!(process.end(), 0, "{}", process.bench.read("log"));
    }
    let verify = cluster.services()[0].command(&["verify"]);
    planwright_testing::workbench::said({ verify }.output().unwrap()).ends(0);
    // A few faults may pass it by.
    assert!(
        notes > 0 || wanted < FAULTS_PER_ROUND,
        "the worker that executes runs got none"
    );
    assert!(thrown >= wanted, "{thrown} faults of {wanted}");
}

/// Starts runs, and throws faults while they are in flight.
fn throw_round(
    cluster: &Cluster,
    wanted: usize,
    round: usize,
    seed: u64,
) -> BTreeMap<&'static str, usize> {
    let since = Instant::now();
    prepare(cluster, round, seed);
    println!("round {round}: {RUNS} plans in {:?}", since.elapsed());
    let since = Instant::now();
    let thrower = Thrower {
        cluster,
        is_over: AtomicBool::new(false),
        wanted,
        thrown: AtomicUsize::new(0),
        counts: Mutex::default(),
        since,
    };
    let thrower = &thrower;
    std::thread::scope(|scope| {
        let _over_at_end = OverAtEnd(&thrower.is_over);
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| scope.spawn(move || each_plan(client, round, |id| run(cluster, id))))
            .collect();
        let throwing = [
            scope.spawn(move || thrower.cut_commits(&mut Dice::new(seed))),
            scope.spawn(move || thrower.disturb(&mut Dice::new(seed + 1))),
            scope.spawn(move || thrower.kill(&mut Dice::new(seed + 2))),
            scope.spawn(move || thrower.stop_servers(&mut Dice::new(seed + 3))),
            scope.spawn(move || thrower.silence(&mut Dice::new(seed + 4))),
        ];
        for thread in clients.into_iter().chain(throwing) {
            thread.join().unwrap();
        }
    });
    let counts = lock(&thrower.counts).clone();
    println!("round {round}: {:?} {counts:?}", since.elapsed());
    counts
}

/// Stores and approves the plans of a round, before anything fails.
fn prepare(cluster: &Cluster, round: usize, seed: u64) {
    await_tools(cluster);
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut dice = Dice::new(seed + 10 + client as u64);
                each_plan(client, round, |id| approve(cluster, id, &mut dice));
            });
        }
    });
}

fn each_plan(client: usize, round: usize, mut act: impl FnMut(&str)) {
    for number in (client..RUNS).step_by(CLIENTS) {
        act(&format!("r{round}n{number}"));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Thrower<'_> {
    fn is_over(&self) -> bool {
        self.thrown.load(Ordering::SeqCst) >= self.wanted
            || self.is_over.load(Ordering::SeqCst)
            || self.since.elapsed() >= LONGEST_ROUND
    }

    fn note(&self, kind: &'static str, count: usize) {
        *lock(&self.counts).entry(kind).or_default() += count;
        self.thrown.fetch_add(count, Ordering::SeqCst);
    }

    /// Returns whether fewer faults were thrown than the time that has passed allows.
    fn is_behind(&self) -> bool {
        let passed = self.since.elapsed().as_secs_f64() / ROUND.as_secs_f64();
        (self.thrown.load(Ordering::SeqCst) as f64) < self.wanted as f64 * passed
    }

    /// Waits for a while, or for a moment if too few faults were thrown.
    fn pause_unless_behind(&self, dice: &mut Dice, from: u64, to: u64) {
        if self.is_behind() {
            self.pause(dice, 20, 60);
        } else {
            self.pause(dice, from, to);
        }
    }

    /// Waits for a while, or until it is over.
    fn pause(&self, dice: &mut Dice, from: u64, to: u64) {
        let end = Instant::now() + Duration::from_millis(from + dice.roll() % (to - from));
        while Instant::now() < end && !self.is_over() {
            sleep(Duration::from_millis(20));
        }
    }

    fn pick(&self, dice: &mut Dice) -> &Process {
        &self.cluster.processes[dice.below(self.cluster.processes.len())]
    }

    /// Breaks connections in the middle of commits, whose outcome is unknown then.
    fn cut_commits(&self, dice: &mut Dice) {
        while !self.is_over() {
            let cut = dice.pick(&[CommitCut::Before, CommitCut::After]);
            let is_cut = self.pick(dice).cut_commit(self.cluster.primary(), cut);
            self.note("commits cut", usize::from(is_cut));
            self.pause_unless_behind(dice, 50, 350);
        }
    }

    /// Breaks all connections of a process, or lets it stand still for a moment.
    fn disturb(&self, dice: &mut Dice) {
        while !self.is_over() {
            let process = self.pick(dice);
            if dice.chance(50) {
                let is_cut = process.sever() > 0;
                self.note("connections broken", usize::from(is_cut));
            } else {
                process.stop_for(Duration::from_millis(50 + dice.roll() % 700));
                self.note("stopped for a moment", 1);
            }
            self.pause_unless_behind(dice, 300, 1_200);
        }
    }

    /// Kills services and workers, of steps and of runs.
    fn kill(&self, dice: &mut Dice) {
        // The worker that executes runs gets its first ones from a service that is gone.
        let mut is_service = true;
        while !self.is_over() {
            self.pause(dice, 800, 3_000);
            let candidates = match is_service {
                true => self.cluster.services(),
                false => self.cluster.workers(),
            };
            let killed = &candidates[dice.below(candidates.len())];
            killed.kill();
            let kind = match killed.role {
                Role::Service => "services killed",
                Role::Worker => "workers killed",
                Role::Runner => "workers that execute runs killed",
            };
            self.note(kind, 1);
            is_service = dice.chance(25);
        }
    }

    /// Stops the database, lets the standby take over, and kills and empties brokers.
    fn stop_servers(&self, dice: &mut Dice) {
        for turn in dice.below(4).. {
            self.pause(dice, 4_000, 9_000);
            if self.is_over() {
                return;
            }
            match turn % 4 {
                0 => {
                    let servers = lock(&self.cluster.servers);
                    servers.fail_over();
                    self.note("failovers", 1);
                    drop(servers);
                    self.pause(dice, 1_000, 4_000);
                    lock(&self.cluster.servers).rejoin();
                }
                2 => {
                    let servers = lock(&self.cluster.servers);
                    servers.primary().stop();
                    sleep(Duration::from_millis(dice.roll() % 500));
                    servers.primary().resume();
                    self.note("database restarted", 1);
                }
                _ => {
                    // RabbitMQ takes long to start.
                    let broker = &self.cluster.brokers[usize::from(dice.chance(25))];
                    broker.kill();
                    sleep(Duration::from_millis(dice.roll() % 1_000));
                    if dice.chance(60) {
                        broker.empty();
                        self.note("brokers emptied", 1);
                    }
                    broker.resume();
                    self.note("brokers killed", 1);
                }
            }
        }
    }

    /// Cuts a worker off for longer than its claims, or lets it stand still for so long.
    fn silence(&self, dice: &mut Dice) {
        let workers = self.cluster.workers();
        while !self.is_over() {
            self.pause(dice, 6_000, 14_000);
            if self.is_over() {
                return;
            }
            let worker = &workers[dice.below(workers.len())];
            let time = CLAIM + Duration::from_millis(1_000 + dice.roll() % 2_000);
            if dice.chance(70) {
                worker.partition_for(time, dice.chance(50));
                self.note("workers cut off", 1);
            } else {
                worker.stop_for(time);
                self.note("workers stopped for longer than a claim", 1);
            }
        }
    }
}
