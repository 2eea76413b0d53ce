//! The time of day jumps by hours and days in both directions while runs go on.

use crate::effects::three_effects;
use crate::processes::expect_no_orphans;
use crate::settle::settle;
use crate::world::{OverAtEnd, World, length, seed};
use planwright_testing::dice::Dice;
use planwright_testing::wait::wait_until;
use serde_json::json;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

const HOUR: i64 = 60 * 60;
const DAY: i64 = 24 * HOUR;

#[test]
fn jumps_of_the_clock_lose_double_and_stall_nothing() {
    let length = length("PLANWRIGHT_CLOCK_SECONDS", 8);
    let mut dice = Dice::new(seed("PLANWRIGHT_CLOCK_SEED"));
    let mut world = World::new();
    let library = world.bench.path("shifted_clock.so");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/service/shifted_clock.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"])
        .arg(&library)
        .arg(source);
    assert!(cc.status().unwrap().success());
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    world.environment = vec![
        ("LD_PRELOAD", text(&library)),
        ("CLOCK_SHIFT", text(&world.bench.path("shift"))),
    ];
    jump(&world, 0);
    world.start();
    let over = AtomicBool::new(false);
    let plans = std::thread::scope(|scope| {
        let over_at_end = OverAtEnd(&over);
        let orders = scope.spawn(|| give_orders(&world, &over));
        let started = Instant::now();
        while started.elapsed() < length {
            sleep(Duration::from_millis(100 + dice.roll() % 400));
            jump(&world, dice.pick(&[0, HOUR, -HOUR, DAY, -DAY]));
        }
        drop(over_at_end);
        orders.join().unwrap()
    });
    let outcome = settle(&world, &plans);
    println!("{outcome:?}");
    outcome.check();
    assert_eq!(outcome.unknown, 0, "no call was given up: {outcome:#?}");
    assert_eq!(outcome.completed, outcome.plans, "{outcome:#?}");
    for plan in &plans {
        let events = world.get(&format!("/plan/{plan}/events?limit=1000"));
        let events = events["events"].as_array().unwrap();
        let stalled = events.iter().any(|event| event["event"] == "run.stalled");
        assert!(
            !stalled,
            "a living run was taken for a dead one: {events:#?}"
        );
    }
    assert_eq!(world.stop(), 0);
    expect_no_orphans(world.bench.root());
}

fn jump(world: &World, seconds: i64) {
    world.bench.write("shift.new", &seconds.to_string());
    std::fs::rename(world.bench.path("shift.new"), world.bench.path("shift")).unwrap();
}

fn give_orders(world: &World, over: &AtomicBool) -> Vec<String> {
    let mut plans = Vec::new();
    while !over.load(Ordering::SeqCst) {
        let id = format!("clock-{}", plans.len());
        let plan = json!({ "id": id, "title": id, "steps": three_effects(&id, 150) });
        let client = world.client();
        client.post("/plan", &plan).ends(201);
        // An approval that seems to be older than the token of its approver is not used: the clock
        // jumped in between, and the approver is asked again.
        wait_until("a run with an approval that is not too old", || {
            client.approve(&id);
            let run = client.request("POST", &format!("/plan/{id}/run")).send();
            assert!(matches!(run.status, 202 | 409), "{}", run.text());
            run.status == 202
        });
        plans.push(id);
        sleep(Duration::from_millis(200));
    }
    plans
}
