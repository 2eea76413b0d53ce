//! Processes are killed, stopped and told to end at random, while people go on giving orders.

use crate::effects::three_effects;
use crate::processes::{descendants, expect_no_orphans, kill};
use crate::settle::settle;
use crate::world::{OverAtEnd, World, length, seed};
use planwright_testing::dice::Dice;
use planwright_testing::workbench::Running;
use rustix::process::Signal;
use serde_json::json;
use std::process::Stdio;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long a lease lasts: a process that stands still for longer has lost it by the clock.
const LEASE: Duration = Duration::from_secs(30);
/// Below this length no process stands still for as long as a lease.
const LONG: Duration = Duration::from_secs(300);

/// What was done to processes.
#[derive(Debug, Default)]
struct Blows {
    services_killed: usize,
    services_told_to_end: usize,
    services_stopped: usize,
    children_killed: usize,
    runs_killed: usize,
    runs_told_to_end: usize,
    runs_stopped: usize,
}

#[test]
fn whatever_is_killed_or_stopped_nothing_is_lost_doubled_or_stuck() {
    let length = length("PLANWRIGHT_CHAOS_SECONDS", 30);
    let seed = seed("PLANWRIGHT_CHAOS_SEED");
    let world = World::new();
    world.start();
    let over = AtomicBool::new(false);
    let plans = Mutex::new(Vec::new());
    let blows = std::thread::scope(|scope| {
        let over_at_end = OverAtEnd(&over);
        for number in 0..2 {
            let world = &world;
            let over = &over;
            let plans = &plans;
            scope.spawn(move || give_orders(world, number, Dice::new(seed + number), over, plans));
        }
        let blows = strike(&world, &mut Dice::new(!seed), length, &plans);
        drop(over_at_end);
        blows
    });
    let mut plans = plans.into_inner().unwrap();
    plans.sort();
    let outcome = settle(&world, &plans);
    println!("{blows:?}\n{outcome:?}");
    outcome.check();
    assert_eq!(world.stop(), 0);
    expect_no_orphans(world.bench.root());
    world.bench.run(&["verify"]).ends(0);
    assert!(
        blows.services_killed > 0 && blows.children_killed > 0,
        "{blows:?}"
    );
}

/// Proposes, approves and runs plans, and cancels some, until it is over. Every order is repeated
/// under its key until it is answered.
fn give_orders(
    world: &World,
    client: u64,
    mut dice: Dice,
    over: &AtomicBool,
    plans: &Mutex<Vec<String>>,
) {
    for number in 0.. {
        if over.load(Ordering::SeqCst) {
            return;
        }
        let id = format!("order-{client}-{number}");
        let milliseconds = 20 + dice.roll() % 200;
        let plan = json!({ "id": id, "title": id, "steps": three_effects(&id, milliseconds) });
        let proposed = world.insist("/plan", &plan, &id);
        let done = |status: u16, text: String| {
            assert!(
                status < 300 || text.contains("was done"),
                "an order was carried out twice or refused: {text}"
            );
        };
        done(proposed.status, proposed.text());
        plans.lock().unwrap().push(id.clone());
        let yes = json!({ "decision": "approve", "version": 1 });
        let approved = world.insist(&format!("/plan/{id}/approve"), &yes, &id);
        done(approved.status, approved.text());
        let run = world.insist(&format!("/plan/{id}/run"), &json!({}), &id);
        done(run.status, run.text());
        if dice.chance(10) {
            // It may be over by now.
            let cancelled = world.insist(&format!("/plan/{id}/cancel"), &json!({}), &id);
            assert!(cancelled.status < 500, "{}", cancelled.text());
        }
        sleep(Duration::from_millis(100 + dice.roll() % 300));
    }
}

/// Strikes one process after the other.
fn strike(world: &World, dice: &mut Dice, length: Duration, plans: &Mutex<Vec<String>>) -> Blows {
    let started = Instant::now();
    let mut blows = Blows::default();
    let mut number = 0;
    while started.elapsed() < length {
        sleep(Duration::from_millis(200 + dice.roll() % 600));
        match dice.below(100) {
            0..25 => {
                world.kill();
                world.start();
                blows.services_killed += 1;
            }
            25..35 => {
                assert_eq!(world.stop(), 0, "{}", world.bench.read("serve.err"));
                world.start();
                blows.services_told_to_end += 1;
            }
            35..50 => {
                world.signal(Signal::STOP);
                sleep(pause(dice, length));
                world.signal(Signal::CONT);
                blows.services_stopped += 1;
            }
            50..80 => {
                let mut children = descendants(world.service_id().unwrap());
                children.retain(|child| {
                    child.command.contains("ledger.py") || child.command.starts_with("sh -c")
                });
                if let Some(child) = dice.try_pick(&children) {
                    kill(child.id);
                    blows.children_killed += 1;
                }
            }
            _ => {
                number += 1;
                let id = format!("run-{number}");
                strike_run(world, dice, length, &id, &mut blows);
                plans.lock().unwrap().push(id);
            }
        }
    }
    blows
}

/// Starts a run of its own at the command line and strikes it. What it leaves goes on in the service.
fn strike_run(world: &World, dice: &mut Dice, length: Duration, id: &str, blows: &mut Blows) {
    let milliseconds = 100 + dice.roll() % 300;
    let plan = world.bench.plan(id, three_effects(id, milliseconds));
    // It exists also if the run fails.
    world.bench.run(&["import", &plan]).ends(0);
    let mut command = world.bench.command(&["run", id, "--yes", "--json"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let run = Running::of(command);
    sleep(Duration::from_millis(dice.roll() % 800));
    match dice.below(3) {
        0 => {
            run.kill();
            blows.runs_killed += 1;
        }
        1 => {
            run.signal(Signal::TERM);
            run.wait();
            blows.runs_told_to_end += 1;
        }
        _ => {
            run.signal(Signal::STOP);
            sleep(pause(dice, length));
            run.signal(Signal::CONT);
            run.wait();
            blows.runs_stopped += 1;
        }
    }
}

/// How long a process stands still: in a proof now and then for longer than its lease.
fn pause(dice: &mut Dice, length: Duration) -> Duration {
    if length >= LONG && dice.chance(20) {
        LEASE + Duration::from_secs(5)
    } else {
        Duration::from_millis(100 + dice.roll() % 1_500)
    }
}
