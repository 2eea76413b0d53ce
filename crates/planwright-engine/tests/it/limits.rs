//! How many calls may be in flight: per run, per server, per tool, over all runs, and one writer
//! per server.

use crate::world::{World, approved, millis, options};
use planwright_engine::ConcurrencyLimits;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// `n` steps that are ready at once.
fn fan(id: &str, n: usize, tool: &str, max_concurrency: usize) -> Value {
    let step = |at: usize| json!({"id": format!("s{at}"), "tool": tool, "args": {"ms": 100}});
    let steps: Vec<Value> = (0..n).map(step).collect();
    json!({"id": id, "steps": steps, "limits": {"maxConcurrency": max_concurrency}})
}

#[tokio::test(start_paused = true)]
async fn ten_ready_steps_with_a_limit_of_four_are_never_five_in_flight() {
    let world = World::new();
    let run = world.run(fan("p", 10, "r.read", 4)).await;
    assert_eq!(
        (run.status().as_str(), world.peak(""), millis(&run)),
        ("completed", 4, 300)
    );
}

#[tokio::test(start_paused = true)]
async fn a_limit_of_one_keeps_plan_order() {
    let world = World::new();
    world.run(fan("p", 10, "r.read", 1)).await;
    let order: Vec<String> = (0..10).map(|at| format!("s{at}")).collect();
    assert_eq!((world.called(), world.peak("")), (order, 1));
}

#[tokio::test(start_paused = true)]
async fn the_limit_given_at_run_time_replaces_the_plans() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, fan("p", 6, "r.read", 4)).await;
    let mut two = options();
    two.max_concurrency = Some(2);
    engine
        .runs()
        .start(&id, two)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(world.peak(""), 2);
}

#[tokio::test(start_paused = true)]
async fn the_longest_remaining_path_goes_first() {
    let world = World::new();
    let read = |id: &str, after: &[&str]| json!({"id": id, "tool": "r.read", "dependsOn": after, "args": {"ms": 100}});
    let steps = [
        read("short", &[]),
        read("long", &[]),
        read("long2", &["long"]),
        read("long3", &["long2"]),
    ];
    world
        .run(json!({"id": "p", "steps": steps, "limits": {"maxConcurrency": 1}}))
        .await;
    assert_eq!(world.called()[0], "long");
}

#[tokio::test(start_paused = true)]
async fn writers_of_one_server_take_turns_and_readers_do_not_wait() {
    let world = World::new();
    let call = |id: &str, tool: &str| json!({"id": id, "tool": tool, "args": {"ms": 100}});
    let steps = [
        call("w1", "w.write"),
        call("w2", "w.erase"),
        call("w3", "w.write"),
        call("s1", "s.save"),
        call("r1", "r.read"),
        call("r2", "r.look"),
    ];
    let run = world
        .run(json!({"id": "p", "steps": steps, "limits": {"maxConcurrency": 10}}))
        .await;
    assert_eq!(
        (world.peak("w."), world.peak("r."), world.peak("")),
        (1, 2, 4)
    );
    assert_eq!(millis(&run), 300);
}

#[tokio::test(start_paused = true)]
async fn writers_run_together_where_the_operator_says_so() {
    let world = World::with(|tools| tools.serial_writes = false);
    let run = world.run(fan("p", 3, "w.write", 10)).await;
    assert_eq!((world.peak("w."), millis(&run)), (3, 100));
}

#[tokio::test(start_paused = true)]
async fn a_server_takes_as_many_calls_as_it_says() {
    let world = World::with(|tools| tools.server_limit = Some(2));
    let run = world.run(fan("p", 6, "r.read", 10)).await;
    assert_eq!((world.peak("r."), millis(&run)), (2, 300));
}

#[tokio::test(start_paused = true)]
async fn limits_of_the_operator_hold_over_all_runs() {
    let limits = [
        (
            ConcurrencyLimits {
                global: 3,
                ..ConcurrencyLimits::default()
            },
            "",
            3,
        ),
        (
            ConcurrencyLimits {
                per_server: BTreeMap::from([("r".into(), 2)]),
                ..ConcurrencyLimits::default()
            },
            "r.",
            2,
        ),
        (
            ConcurrencyLimits {
                per_tool: BTreeMap::from([("r.read".into(), 2)]),
                ..ConcurrencyLimits::default()
            },
            "r.read",
            2,
        ),
    ];
    for (limits, name, most) in limits {
        let world = World::new();
        let engine = world.engine_with("one", limits);
        let mut handles = Vec::new();
        for plan in ["a", "b", "c"] {
            let id = approved(&engine, fan(plan, 5, "r.read", 10)).await;
            handles.push(engine.runs().start(&id, options()).await.unwrap());
        }
        for handle in &mut handles {
            assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
        }
        assert_eq!((world.peak(name), world.made().len()), (most, 15));
    }
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_not_admitted_does_not_hold_up_the_others() {
    let world = World::new();
    let call = |id: &str, tool: &str| json!({"id": id, "tool": tool, "args": {"ms": 100}});
    let mut steps: Vec<Value> = (0..5)
        .map(|at| call(&format!("w{at}"), "w.write"))
        .collect();
    steps.extend((0..3).map(|at| call(&format!("r{at}"), "r.read")));
    let run = world
        .run(json!({"id": "p", "steps": steps, "limits": {"maxConcurrency": 4}}))
        .await;
    assert_eq!(
        (world.peak(""), world.peak("w."), millis(&run)),
        (4, 1, 500)
    );
}
