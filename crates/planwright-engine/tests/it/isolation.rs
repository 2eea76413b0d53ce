//! A call that ends the process every time, beside calls that do not: it fails, they do not.

use crate::world::{World, after, approved, chain, entries, options};
use planwright_core::id::RunId;
use planwright_core::run::{Run, RunEvent};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Clock as _, OwnerId};
use planwright_engine::{Engine, Supervisor, SupervisorOptions};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A service that dies and is started again.
struct Service {
    world: World,
    at: Timestamp,
    lives: usize,
}

impl Service {
    /// A service in which these plans are approved and run.
    fn new(plans: &[Value]) -> (Self, Vec<RunId>) {
        let runtime = runtime();
        let (world, at, runs) = runtime.block_on(async {
            let world = World::new();
            let engine = world.engine("owner-0");
            let mut runs = Vec::new();
            for plan in plans {
                let plan = approved(&engine, plan.clone()).await;
                let handle = engine.runs().start(&plan, options()).await.unwrap();
                runs.push(handle.run_id().clone());
            }
            let at = world.clock.now();
            (world, at, runs)
        });
        drop(runtime);
        let service = Self {
            world,
            at,
            lives: 0,
        };
        (service, runs)
    }

    /// Goes on with what the last process left, until `dies` says so after a millisecond, or all
    /// runs have ended, or a minute is over. Returns whether it died.
    fn live(&mut self, stop: Option<Duration>, mut dies: impl FnMut(&World) -> bool) -> bool {
        let dead = OwnerId(format!("owner-{}", self.lives));
        self.world.store.kill_owner(&dead);
        self.lives += 1;
        let runtime = runtime();
        let died = runtime.block_on(async {
            self.world.clock.carry_over(self.at);
            let engine: Engine = self.world.engine(&format!("owner-{}", self.lives));
            let supervisor = Supervisor::start(engine, &SupervisorOptions::default());
            let mut died = false;
            for _ in 0..60_000 {
                after(1).await;
                died = dies(&self.world);
                let stats = supervisor.stats();
                if died || stats.executing + stats.queued + stats.troubled == 0 {
                    break;
                }
            }
            if let Some(grace) = stop {
                supervisor.stop(grace).await;
            }
            self.at = self.world.clock.now();
            died
        });
        drop(runtime);
        died
    }

    fn last(&self, run: &RunId) -> RunEvent {
        entries(&*self.world.store, run).pop().unwrap().event
    }
}

fn named(id: &str, mut plan: Value) -> Value {
    plan["id"] = json!(id);
    plan
}

fn poison() -> Value {
    json!({"id": "poison", "steps": [{"id": "poison", "tool": "r.read", "args": {"ms": 3_600_000}}]})
}

/// Dies as soon as a call of `step` was made that was not counted yet.
fn whenever(step: &'static str, mut seen: usize) -> impl FnMut(&World) -> bool {
    move |world| {
        let made = world.calls_of(step);
        std::mem::replace(&mut seen, made) < made
    }
}

#[test]
fn one_call_that_ends_the_process_does_not_fail_its_neighbours() {
    let mut plans = vec![poison()];
    for number in 0..5 {
        plans.push(named(&format!("good-{number}"), chain(2, "r.read", 700)));
    }
    let (mut service, runs) = Service::new(&plans);
    let mut lives = 0;
    while service.live(None, whenever("poison", service.world.calls_of("poison"))) {
        lives += 1;
        assert!(lives < 40, "the call is made for ever");
    }
    let failed = entries(&*service.world.store, &runs[0])
        .into_iter()
        .find_map(|entry| match entry.event {
            RunEvent::AttemptFailed { error, .. } => Some(error),
            _ => None,
        });
    assert_eq!(failed.unwrap().code.as_str(), "interrupted");
    for run in &runs[1..] {
        let last = service.last(run);
        assert!(matches!(last, RunEvent::RunCompleted { .. }), "{last:?}");
    }
}

#[test]
fn six_quick_kills_fail_no_run() {
    let (mut service, runs) = Service::new(&[named("slow", chain(1, "r.read", 700))]);
    for _ in 0..6 {
        let seen = service.world.calls_of("s1");
        assert!(service.live(None, whenever("s1", seen)));
    }
    assert!(!service.live(None, |_| false));
    let last = service.last(&runs[0]);
    assert!(matches!(last, RunEvent::RunCompleted { .. }), "{last:?}");
}

#[test]
fn thirty_restarts_fail_no_run() {
    let (mut service, runs) = Service::new(&[named("slow", chain(1, "r.read", 5_000))]);
    for _ in 0..30 {
        let seen = service.world.calls_of("s1");
        let grace = Some(Duration::from_millis(10));
        assert!(service.live(grace, whenever("s1", seen)));
    }
    assert!(!service.live(None, |_| false));
    let last = service.last(&runs[0]);
    assert!(matches!(last, RunEvent::RunCompleted { .. }), "{last:?}");
}

#[test]
fn a_call_that_is_made_alone_holds_the_others_up_for_a_moment_only() {
    let plans = [
        named("slow", chain(1, "r.read", 600_000)),
        named("other", chain(1, "k.put", 1_000)),
    ];
    let (mut service, runs) = Service::new(&plans);
    for _ in 0..Run::ISOLATED_AFTER {
        let mut lived = 0;
        assert!(service.live(None, |_| {
            lived += 1;
            lived > 50
        }));
    }
    let mut lived = 0;
    service.live(None, |_| {
        lived += 1;
        lived > 15_000
    });
    let ended = service.last(&runs[1]);
    assert!(matches!(ended, RunEvent::RunCompleted { .. }), "{ended:?}");
    let isolated = entries(&*service.world.store, &runs[0]);
    assert!(
        isolated
            .iter()
            .any(|entry| matches!(entry.event, RunEvent::IsolationEnded { .. })),
        "others are made beside it again"
    );
}
