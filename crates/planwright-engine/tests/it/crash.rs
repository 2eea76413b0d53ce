//! A process that dies: its runtime is dropped with everything in it, and another engine goes on
//! from the journal.

use crate::world::{
    World, after, approved, chain, document, options, person, report_of, status_of,
};
use planwright_core::id::PlanId;
use planwright_core::principal::Assurance;
use planwright_core::run::{Resolution, Run, StoredValue};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Clock as _, OwnerId};
use planwright_engine::{RunCommand, ShownText, read_value};
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::runtime::{Builder, Runtime};

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A world whose first engine executed `plan` for `ms` milliseconds and was then killed.
struct Crashed {
    world: World,
    plan: PlanId,
    at: Timestamp,
    /// Calls made before.
    before: usize,
}

impl Crashed {
    fn after(ms: u64, plan: Value) -> Self {
        let runtime = runtime();
        let (world, plan, at) = runtime.block_on(async {
            let world = World::new();
            let engine = world.engine("one");
            let id = approved(&engine, plan).await;
            let _running = engine.runs().start(&id, options()).await.unwrap();
            after(ms).await;
            let now = world.clock.now();
            (world, id, now)
        });
        drop(runtime);
        world.store.kill_owner(&OwnerId("one".into()));
        let before = world.made().len();
        Self {
            world,
            plan,
            at,
            before,
        }
    }

    /// Another process goes on.
    fn resume(&self) -> Run {
        runtime().block_on(async {
            self.world.clock.carry_over(self.at);
            let engine = self.world.engine("two");
            engine
                .runs()
                .resume(&self.plan, options())
                .await
                .unwrap()
                .wait()
                .await
                .unwrap()
        })
    }

    fn command(&self, run: &Run, command: RunCommand) {
        runtime().block_on(async {
            self.world.clock.carry_over(self.at);
            self.world
                .engine("three")
                .runs()
                .command(run.id(), command)
                .await
                .unwrap();
        });
    }

    fn calls_after(&self) -> usize {
        self.world.made().len() - self.before
    }
}

#[test]
fn after_k_of_n_safe_steps_exactly_the_rest_runs() {
    let n = 5;
    for k in 0..n {
        let crashed = Crashed::after(100 * k + 50, chain(5, "r.read", 100));
        assert_eq!(crashed.before as u64, k + 1);
        let run = crashed.resume();
        assert_eq!(
            (run.status().as_str(), crashed.calls_after() as u64),
            ("completed", n - k),
            "crash in step {}",
            k + 1
        );
    }
}

#[test]
fn a_keyed_call_is_repeated_with_the_same_key() {
    let crashed = Crashed::after(50, chain(2, "k.put", 100));
    let run = crashed.resume();
    assert_eq!(
        (run.status().as_str(), crashed.calls_after()),
        ("completed", 2)
    );
    let made = crashed.world.made();
    assert_eq!((made[0].step.as_str(), made[1].step.as_str()), ("s1", "s1"));
    assert_eq!(made[0].key, made[1].key);
    assert_eq!(
        made[0].args["key"],
        json!(made[0].key),
        "the key is sent where the tool takes it"
    );
    assert_ne!(made[0].key, made[2].key, "another step has another key");
}

#[test]
fn an_unsafe_call_is_not_repeated_by_itself() {
    let crashed = Crashed::after(50, chain(2, "w.write", 100));
    let run = crashed.resume();
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "s1"),
            crashed.calls_after()
        ),
        ("waiting", "outcome_unknown", 0)
    );
    let again = crashed.resume();
    assert_eq!(
        (again.status().as_str(), crashed.calls_after()),
        ("waiting", 0),
        "resuming is not an answer"
    );
}

#[test]
fn a_person_says_what_became_of_a_lost_call() {
    let value = StoredValue::Inline(Arc::new(json!("told")));
    let cases = [
        (
            Resolution::Happened { value },
            "completed",
            0,
            Some(json!("told")),
        ),
        (Resolution::DidNotHappen, "failed", 0, None),
        (Resolution::RunAgain, "completed", 1, Some(json!("s1"))),
    ];
    for (resolution, status, repeated, value) in cases {
        let crashed = Crashed::after(50, chain(2, "w.write", 100));
        let run = crashed.resume();
        crashed.command(
            &run,
            RunCommand::Resolve {
                step: "s1".into(),
                by: person(),
                resolution,
            },
        );
        let run = if status == "failed" {
            // The answer alone ended the run.
            runtime().block_on(async {
                let engine = crashed.world.engine("four");
                let (review, _) = engine.plans().load_review(&crashed.plan).await.unwrap();
                engine.runs().load_run(run.id(), &review).await.unwrap().0
            })
        } else {
            crashed.resume()
        };
        assert_eq!(run.status().as_str(), status);
        assert_eq!(crashed.world.calls_of("s1"), 1 + repeated);
        let found = report_of(&run, "s1").value.map(|value| match value {
            StoredValue::Inline(value) => (*value).clone(),
            StoredValue::Artifact(_) => Value::Null,
        });
        assert_eq!(found, value);
    }
}

#[test]
fn a_step_that_waits_for_approval_still_waits_after_a_crash() {
    let plan = json!({"id": "p", "steps": [
        {"id": "busy", "tool": "r.read", "args": {"ms": 1000}},
        {"id": "gated", "tool": "r.read", "approvalRequired": true},
    ]});
    let crashed = Crashed::after(50, plan);
    let run = crashed.resume();
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "gated"),
            crashed.world.calls_of("gated")
        ),
        ("waiting", "awaiting_approval", 0)
    );
    // Approved, and then the process dies before the call: it is made after the restart, once.
    let shown = ShownText::Version(1);
    let approve = RunCommand::Approve {
        step: "gated".into(),
        by: person(),
        assurance: Assurance::Terminal,
        shown,
    };
    crashed.command(&run, approve);
    assert_eq!(crashed.world.calls_of("gated"), 0);
    let run = crashed.resume();
    assert_eq!(
        (run.status().as_str(), crashed.world.calls_of("gated")),
        ("completed", 1)
    );
}

#[test]
fn guards_are_not_reset_by_a_restart() {
    let mut plan = chain(4, "r.read", 100);
    plan["limits"] = json!({"budget": {"calls": 3}});
    let crashed = Crashed::after(150, plan);
    let run = crashed.resume();
    let error = report_of(&run, "s3").error.unwrap();
    assert_eq!(
        (run.status().as_str(), crashed.world.made().len()),
        ("failed", 3)
    );
    assert_eq!(
        error.message,
        "Guard blocked: the budget of 3 calls is used up"
    );
}

#[test]
fn a_plan_that_was_edited_meanwhile_is_not_resumed() {
    let crashed = Crashed::after(50, chain(2, "r.read", 100));
    runtime().block_on(async {
        crashed.world.clock.carry_over(crashed.at);
        let engine = crashed.world.engine("two");
        engine
            .plans()
            .propose(document(chain(3, "r.read", 100)), &person())
            .await
            .unwrap();
        let refused = engine
            .runs()
            .resume(&crashed.plan, options())
            .await
            .unwrap_err()
            .to_string();
        assert!(
            refused.contains("version 1") && refused.contains("version 2"),
            "{refused}"
        );
    });
}

#[test]
fn a_step_that_kills_its_process_every_time_is_given_up() {
    let mut crashed = Crashed::after(50, chain(1, "r.read", 100));
    let mut name = "one".to_owned();
    for round in 0..20 {
        let owner = format!("owner-{round}");
        let runtime = runtime();
        let (ended, at) = runtime.block_on(async {
            crashed.world.clock.carry_over(crashed.at);
            crashed.world.store.kill_owner(&OwnerId(name.clone()));
            let engine = crashed.world.engine(&owner);
            let mut handle = engine
                .runs()
                .resume(&crashed.plan, options())
                .await
                .unwrap();
            let ended =
                tokio::time::timeout(std::time::Duration::from_millis(50), handle.wait()).await;
            (ended.ok().map(Result::unwrap), crashed.world.clock.now())
        });
        drop(runtime);
        (crashed.at, name) = (at, owner);
        if let Some(run) = ended {
            assert_eq!(
                (
                    run.status().as_str(),
                    report_of(&run, "s1").error.unwrap().code.as_str()
                ),
                ("failed", "interrupted")
            );
            assert_eq!(
                crashed.world.made().len(),
                // The first times something else may have been the reason.
                usize::from(Run::ISOLATED_AFTER + Run::MAX_INTERRUPTIONS) + 1
            );
            return;
        }
    }
    panic!("the step is tried for ever");
}

#[test]
fn five_megabytes_survive_a_crash_byte_for_byte() {
    let text: String = ('a'..='z').cycle().take(5 << 20).collect();
    let plan = json!({"id": "p", "steps": [
        {"id": "big", "tool": "r.read", "args": {"value": {"text": text}}},
        {"id": "slow", "tool": "r.read", "dependsOn": ["big"], "args": {"ms": 100}},
        {"id": "copy", "tool": "r.read", "dependsOn": ["slow"], "args": {"value": "${big.text}"}},
    ]});
    let crashed = Crashed::after(50, plan);
    let run = crashed.resume();
    assert_eq!(
        (run.status().as_str(), crashed.world.calls_of("big")),
        ("completed", 1)
    );
    let stored = report_of(&run, "copy").value.unwrap();
    assert!(matches!(stored, StoredValue::Artifact(_)));
    let value = runtime()
        .block_on(read_value(&*crashed.world.artifacts, &stored))
        .unwrap();
    assert!(value == json!(text), "the value came back changed");
}
