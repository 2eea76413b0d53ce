//! The histories themselves, and what came of all of them.

use super::life::Life;
use super::oracle::{Covered, Oracle};
use super::past::Past;
use super::rules::policies;
use super::stage::Stage;
use super::versions::check_versions;
use planwright_core::run::{CallFate, RunEvent};
use planwright_core::time::Timestamp;
use planwright_engine::port::Clock as _;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Builder;

/// Half of all histories. Both halves run at once.
const HALF: u64 = 170;

/// `PLANWRIGHT_CONSENT_HISTORIES` asks for more of them.
fn half() -> u64 {
    let asked = std::env::var("PLANWRIGHT_CONSENT_HISTORIES").ok();
    asked.map_or(HALF, |count| {
        count
            .parse::<u64>()
            .expect("the number of histories")
            .div_ceil(2)
    })
}

/// What came of all histories, so that none passes by doing nothing.
#[derive(Debug, Default)]
struct Tally {
    histories: u64,
    covered: BTreeMap<Covered, u64>,
    /// Runs by how they ended, and whether they go on from an adjusted one.
    ended: BTreeMap<(&'static str, bool), u64>,
    /// Why wanted calls were not made, and why steps failed.
    refused: BTreeMap<String, u64>,
    denied: u64,
    /// Approvals that no run used in time.
    expired: u64,
    /// Pauses of people that people lifted, and that programs wanted to lift.
    lifted: u64,
    stood: u64,
    /// Pauses of people over those of programs.
    over: u64,
    /// Steps that others wait for and that were left out.
    left_out: u64,
    /// The same, but it was the author who wanted it.
    stayed: u64,
    /// Calls for executors that work on elements of a list.
    of_elements: u64,
    /// What narrowed steps that were written anew, and versions without it that people agreed to.
    kept: u64,
    dropped: u64,
}

impl Tally {
    fn note(&mut self, past: &Past) {
        self.histories += 1;
        let of_elements = |run: &&String| {
            let parent = past.parent(run);
            parent.is_some_and(|parent| parent.index.is_some())
        };
        self.of_elements += past.runs.keys().filter(of_elements).count() as u64;
        for (run, entries) in &past.runs {
            let went_on = past.origin(run).is_some();
            for noted in entries {
                let end = match &noted.event {
                    RunEvent::RunCompleted { .. } if past.parent(run).is_some() => "call made",
                    RunEvent::RunCompleted { .. } => "completed",
                    RunEvent::RunFailed { .. } => "failed",
                    RunEvent::RunGivenUp { .. } => "given up",
                    RunEvent::RunAdjusted {
                        replanned: true, ..
                    } => "replanned",
                    RunEvent::RunAdjusted { .. } => "adjusted",
                    RunEvent::OutcomeLost { .. } => "unknown",
                    _ => {
                        self.note_refusals(&noted.event);
                        continue;
                    }
                };
                *self.ended.entry((end, went_on)).or_default() += 1;
            }
        }
    }

    fn note_refusals(&mut self, event: &RunEvent) {
        let mut refuse = |code: &str| *self.refused.entry(code.to_owned()).or_default() += 1;
        match event {
            RunEvent::AgentTurn { calls, .. } => {
                for call in calls {
                    if let CallFate::Refused(error) = &call.fate {
                        refuse(error.code.as_str());
                    }
                }
            }
            RunEvent::StepFailed { error, .. } => refuse(error.code.as_str()),
            RunEvent::ApprovalDenied { .. } => self.denied += 1,
            _ => {}
        }
    }

    fn add(&mut self, other: Self) {
        let Self {
            histories,
            covered,
            ended,
            refused,
            denied,
            expired,
            lifted,
            stood,
            over,
            left_out,
            stayed,
            of_elements,
            kept,
            dropped,
        } = other;
        self.lifted += lifted;
        self.stood += stood;
        self.over += over;
        self.left_out += left_out;
        self.stayed += stayed;
        self.of_elements += of_elements;
        self.kept += kept;
        self.dropped += dropped;
        self.histories += histories;
        self.denied += denied;
        self.expired += expired;
        covered
            .into_iter()
            .for_each(|(how, count)| *self.covered.entry(how).or_default() += count);
        ended
            .into_iter()
            .for_each(|(end, count)| *self.ended.entry(end).or_default() += count);
        refused
            .into_iter()
            .for_each(|(code, count)| *self.refused.entry(code).or_default() += count);
    }

    /// Whether enough of everything happened, given how many histories there were.
    fn check(&self) {
        let covered = |how: Covered| self.covered.get(&how).copied().unwrap_or_default();
        let ended = |word, went_on| {
            self.ended
                .get(&(word, went_on))
                .copied()
                .unwrap_or_default()
        };
        let refused = |code: &str| self.refused.get(code).copied().unwrap_or_default();
        let expected = [
            ("calls that policy allows", covered(Covered::Allowed), 3_000),
            (
                "calls that people agreed to with the plan",
                covered(Covered::WithThePlan),
                1_000,
            ),
            (
                "calls that people agreed to before an adjustment",
                covered(Covered::Before),
                4,
            ),
            ("calls that a person was shown", covered(Covered::Shown), 30),
            (
                "calls of executors that policy allows",
                covered(Covered::AgentsAllowed),
                400,
            ),
            (
                "calls of executors that were agreed to in advance",
                covered(Covered::AgentsInAdvance),
                100,
            ),
            (
                "calls of executors that a person was shown",
                covered(Covered::AgentsShown),
                40,
            ),
            (
                "calls of executors outside the scope",
                covered(Covered::AgentsOutside),
                8,
            ),
            ("programs", covered(Covered::Program), 25),
            (
                "calls that were made for executors",
                ended("call made", false),
                400,
            ),
            ("adjusted runs", ended("adjusted", false), 150),
            ("runs planned anew", ended("replanned", false), 100),
            (
                "runs that went on and completed",
                ended("completed", true),
                100,
            ),
            (
                "runs that went on and were adjusted again",
                ended("adjusted", true),
                15,
            ),
            ("unknown outcomes", ended("unknown", false), 15),
            (
                "refusals of tools outside the scope",
                refused("out_of_scope"),
                400,
            ),
            ("refusals of arguments", refused("invalid_args"), 150),
            ("refusals by policy", refused("policy_denied"), 20),
            (
                "refusals by the approver's condition",
                refused("constraint_violated"),
                80,
            ),
            (
                "refusals of tools that changed",
                refused("tool_changed"),
                40,
            ),
            ("calls that people denied", self.denied, 30),
            ("approvals that came too late", self.expired, 20),
            ("pauses of people that people lifted", self.lifted, 40),
            ("pauses of people that programs did not lift", self.stood, 4),
            ("pauses of people over those of programs", self.over, 15),
            (
                "steps that others wait for and that were left out",
                self.left_out,
                20,
            ),
            (
                "steps that others wait for and that their author did not leave out",
                self.stayed,
                8,
            ),
            ("calls for elements of a list", self.of_elements, 60),
            ("calls that take a run back", covered(Covered::TakenBack), 8),
            ("safeguards that were kept", self.kept, 40),
            ("lost safeguards that people agreed to", self.dropped, 15),
        ];
        for (what, found, per_thousand) in expected {
            assert!(
                found * 1000 >= per_thousand * self.histories,
                "only {found} {what}: {self:?}"
            );
        }
    }
}

/// Lives through one history, and has everything judged that left in it.
fn live_through(seed: u64, tally: &mut Tally) {
    let stage = Stage::new(seed);
    let lives = stage.dice(|dice| dice.pick(&[1, 1, 2, 2, 3]));
    let mut now = stage.clock().now();
    for number in 0..lives {
        now = live(&stage, number, now);
        // The operator who starts the next process may have decided otherwise.
        stage.change(|scene, dice| {
            if dice.chance(20) {
                scene.policy = dice.below(policies().len());
            }
            if dice.chance(15) {
                scene.observe = !scene.observe;
            }
        });
    }
    let oracle = Oracle::new(&stage);
    for left in stage.left() {
        match oracle.judge(&left) {
            Ok(how) => *tally.covered.entry(how).or_default() += 1,
            Err(why) => panic!(
                "history {seed}: {why}: {left:?}\n{}",
                stage.story(left.position)
            ),
        }
    }
    let orders = oracle.check_orders();
    let orders = orders.unwrap_or_else(|why| {
        panic!("history {seed}: {why}\n{}", stage.story(u64::MAX));
    });
    tally.lifted += orders.lifted;
    tally.over += orders.over;
    tally.left_out += orders.left_out;
    tally.stayed += stage.heard_to("LeaveOut", "another person has to");
    let versions = check_versions(&oracle.past);
    let versions = versions.unwrap_or_else(|why| panic!("history {seed}: {why}"));
    tally.kept += versions.kept;
    tally.dropped += versions.agreed;
    tally.stood += stage.heard("only a person can");
    tally.note(&oracle.past);
    tally.expired += stage.heard("approval expired") + stage.heard("has expired");
}

/// One process. It may be killed at any moment; returns when that was.
fn live(stage: &Arc<Stage>, number: u64, now: Timestamp) -> Timestamp {
    let runtime = Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    let (moves, killed) = stage.dice(|dice| {
        let killed = dice
            .chance(30)
            .then(|| Duration::from_millis(5 + dice.below(250) as u64));
        (6 + dice.below(5), killed)
    });
    let (owner, ended_at) = runtime.block_on(async {
        stage.clock().carry_over(now);
        let life = Life::begin(stage, number);
        match killed {
            Some(after) => drop(tokio::time::timeout(after, Box::pin(life.go_on(moves))).await),
            None => Box::pin(life.go_on(moves)).await,
        }
        (life.owner, stage.clock().now())
    });
    drop(runtime);
    stage.world.store.kill_owner(&owner);
    ended_at
}

#[test]
fn whatever_executors_want_and_reflections_change_no_call_leaves_that_nobody_agreed_to() {
    let half = half();
    let live = |seeds: std::ops::Range<u64>| {
        let mut tally = Tally::default();
        seeds.for_each(|seed| live_through(seed, &mut tally));
        tally
    };
    let tally = std::thread::scope(|scope| {
        let other = scope.spawn(|| live(half + 1..2 * half + 1));
        let mut tally = live(1..half + 1);
        match other.join() {
            Ok(other) => tally.add(other),
            Err(panic) => std::panic::resume_unwind(panic),
        }
        tally
    });
    tally.check();
}
