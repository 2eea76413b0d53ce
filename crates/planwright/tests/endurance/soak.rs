//! Constant load on one service: it stays as fast, as small and as complete as it was.

use crate::effects::{command, count_effects, note};
use crate::processes::{bytes_below, expect_no_orphans, measure};
use crate::world::{EndedAtEnd, OverAtEnd, World, length};
use planwright_testing::steps::effect;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the store may grow by per step that was carried out: entries, results and the files of its
/// plan. Retention keeps it from growing for ever; this is what it has to take away.
const MAX_BYTES_PER_STEP: u64 = 16 << 10;
/// The log of the database is written over again and again: it has a length, and does not grow with
/// the steps.
const MAX_LOG_BYTES: u64 = 64 << 20;
/// How much slower the median request may be at the end than at the beginning.
const MAX_SLOWER: u32 = 4;
const SLACK: Duration = Duration::from_millis(50);
/// How much more memory and how many more files a service may have at the end.
const MAX_MORE_MEMORY_KIB: u64 = 48 << 10;
const MAX_MORE_FILES: usize = 16;

/// One sample of the service.
struct Sample {
    memory: u64,
    files: usize,
}

#[test]
fn a_service_under_constant_load_stays_as_it_is() {
    let length = length("PLANWRIGHT_SOAK_SECONDS", 120);
    let world = World::new();
    world.start();
    let over = AtomicBool::new(false);
    warm_up(&world);
    assert_eq!(world.stop(), 0);
    let store = world.bench.path(".plans");
    let before = bytes_below(&store, is_kept);
    world.start();
    let (load, samples, seen) = std::thread::scope(|scope| {
        let _over = OverAtEnd(&over);
        let _ended = EndedAtEnd(&world);
        let events = scope.spawn(|| listen(&world));
        let sampling = scope.spawn(|| sample(&world, &over));
        let load = put_load(&world, length);
        over.store(true, Ordering::SeqCst);
        let samples = sampling.join().unwrap();
        let listed = list_events(&world, &load.plans);
        assert_eq!(world.stop(), 0);
        (load, samples, (events.join().unwrap(), listed))
    });
    let grown = bytes_below(&store, is_kept).saturating_sub(before);
    let log = bytes_below(&store, is_log);
    check_effects(&world, &load);
    check_events(&seen.0, &seen.1);
    let per_step = grown / u64::try_from(load.steps).unwrap().max(1);
    println!(
        "{} plans, {} steps, {} requests; the store grew by {per_step} bytes per step",
        load.plans.len(),
        load.steps,
        load.latencies.len()
    );
    assert!(per_step <= MAX_BYTES_PER_STEP, "{per_step} bytes per step");
    assert!(log <= MAX_LOG_BYTES, "the database's log has {log} bytes");
    check_latencies(&load.latencies);
    check_samples(&samples);
    expect_no_orphans(world.bench.root());
}

fn is_log(path: &Path) -> bool {
    path.to_string_lossy().ends_with("-wal")
}

fn is_kept(path: &Path) -> bool {
    !is_log(path)
}

/// What was asked for.
#[derive(Default)]
struct Load {
    plans: Vec<String>,
    /// Lines that must be in the log of effects, once.
    expected: Vec<String>,
    steps: usize,
    latencies: Vec<Duration>,
}

impl Load {
    fn post(&mut self, world: &World, path: &str, body: &Value, status: u16) -> Value {
        let started = Instant::now();
        let answer = world.client().post(path, body).ends(status);
        self.latencies.push(started.elapsed());
        answer.json()
    }

    fn status(&mut self, world: &World, id: &str) -> String {
        let started = Instant::now();
        let answer = world.client().get(&format!("/plan/{id}")).ends(200);
        self.latencies.push(started.elapsed());
        answer.json()["status"].as_str().unwrap().to_owned()
    }

    fn wait_for(&mut self, world: &World, id: &str, wanted: &str) {
        let since = Instant::now();
        loop {
            let status = self.status(world, id);
            if status == wanted {
                return;
            }
            assert!(
                since.elapsed() < Duration::from_secs(60),
                "{id} is {status} and not {wanted}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// A plan from its proposal to its end, with a call that a person has to agree to. Every fifth
    /// one is cancelled when that person is asked.
    fn one_plan(&mut self, world: &World, kind: &str, number: usize) {
        let id = format!("{kind}-{number}");
        let [one, two, three, gate] =
            ["command", "note", "append", "gate"].map(|name| format!("{id}-{name}"));
        let mut last = effect(&gate, &[&one, &two, &three]);
        last["approvalRequired"] = json!(true);
        let steps = json!([
            command(&one, 10, &[]),
            note(&two, 0, &[]),
            effect(&three, &[]),
            last
        ]);
        let plan = json!({ "id": id, "title": id, "steps": steps });
        self.post(world, "/plan", &plan, 201);
        let yes = json!({ "decision": "approve", "version": 1 });
        self.post(world, &format!("/plan/{id}/approve"), &yes, 200);
        self.post(world, &format!("/plan/{id}/run"), &json!({}), 202);
        self.wait_for(world, &id, "waiting");
        self.expected.extend([one, two, three]);
        self.steps += 3;
        if number % 5 == 4 {
            self.post(world, &format!("/plan/{id}/cancel"), &json!({}), 202);
            self.wait_for(world, &id, "cancelled");
        } else {
            let digest = asked(world, &id);
            let yes = json!({ "decision": "approve", "digest": digest });
            self.post(
                world,
                &format!("/plan/{id}/steps/{gate}/approve"),
                &yes,
                200,
            );
            self.wait_for(world, &id, "completed");
            self.expected.push(gate);
            self.steps += 1;
        }
        self.plans.push(id);
    }
}

/// The digest of the call of this plan that waits for a person.
fn asked(world: &World, plan: &str) -> Value {
    let inbox = world.client().inbox();
    let item = inbox
        .iter()
        .find(|item| item["planId"] == plan && item["kind"] == "step");
    item.unwrap_or_else(|| panic!("{plan} asks nothing: {inbox:?}"))["digest"].clone()
}

/// What is loaded and cached once is not counted.
fn warm_up(world: &World) {
    let mut load = Load::default();
    for number in 0..10 {
        load.one_plan(world, "warm-up", number);
    }
}

fn put_load(world: &World, length: Duration) -> Load {
    let started = Instant::now();
    let mut load = Load::default();
    let mut number = 0;
    while started.elapsed() < length {
        load.one_plan(world, "soak", number);
        number += 1;
    }
    load
}

/// Follows the stream of everything until the service ends, and returns the numbers of the events of
/// each plan, as they came.
fn listen(world: &World) -> BTreeMap<String, Vec<u64>> {
    let client = world.client();
    let request = client.request("GET", "/events?after=0");
    let stream = request.header("Accept", "text/event-stream").open();
    let mut seen: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in BufReader::new(stream).lines() {
        let Ok(line) = line else { break };
        let data = line
            .strip_prefix("data: ")
            .or_else(|| line.strip_prefix("data:"));
        let event = data.and_then(|data| serde_json::from_str::<Value>(data).ok());
        if let Some(event) = event
            && let (Some(plan), Some(seq)) = (event["planId"].as_str(), event["seq"].as_u64())
        {
            seen.entry(plan.to_owned()).or_default().push(seq);
        }
    }
    seen
}

/// How many events each plan has, by its own list.
fn list_events(world: &World, plans: &[String]) -> BTreeMap<String, u64> {
    let count = |plan: &String| {
        let listed = world.get(&format!("/plan/{plan}/events?limit=1000"));
        let count = listed["events"].as_array().unwrap().len();
        (plan.clone(), u64::try_from(count).unwrap())
    };
    plans.iter().map(count).collect()
}

fn check_events(seen: &BTreeMap<String, Vec<u64>>, listed: &BTreeMap<String, u64>) {
    for (plan, count) in listed {
        let all: Vec<u64> = (1..=*count).collect();
        assert_eq!(seen.get(plan), Some(&all), "the events of {plan}");
    }
}

fn check_effects(world: &World, load: &Load) {
    let effects = count_effects(&world.bench);
    for line in &load.expected {
        assert_eq!(effects.get(line), Some(&1), "{line}");
    }
    let ours = effects.keys().filter(|line| line.starts_with("soak-"));
    assert_eq!(ours.count(), load.expected.len(), "and nothing else");
}

fn sample(world: &World, over: &AtomicBool) -> Vec<Sample> {
    let mut samples = Vec::new();
    while !over.load(Ordering::SeqCst) {
        if let Some((memory, files)) = world.service_id().and_then(measure) {
            samples.push(Sample { memory, files });
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    samples
}

/// The first and the last quarter.
fn quarters<T>(all: &[T]) -> (&[T], &[T]) {
    let quarter = (all.len() / 4).max(1);
    (&all[..quarter], &all[all.len() - quarter..])
}

/// The value below which this many of a hundred are.
fn percentile<T: Ord + Copy>(values: impl IntoIterator<Item = T>, percent: usize) -> T {
    let mut values: Vec<T> = values.into_iter().collect();
    values.sort_unstable();
    values[(values.len() - 1) * percent / 100]
}

fn check_latencies(latencies: &[Duration]) {
    let (first, last) = quarters(latencies);
    let at = |part: &[Duration], percent| percentile(part.iter().copied(), percent);
    println!(
        "latency of the first and the last quarter: p50 {:?} and {:?}, p99 {:?} and {:?}",
        at(first, 50),
        at(last, 50),
        at(first, 99),
        at(last, 99)
    );
    // The slowest ones say more about the machine than about the service.
    assert!(
        at(last, 50) <= at(first, 50) * MAX_SLOWER + SLACK,
        "requests became slower"
    );
}

fn check_samples(samples: &[Sample]) {
    let (first, last) = quarters(samples);
    let memory = |part: &[Sample]| percentile(part.iter().map(|sample| sample.memory), 50);
    let files = |part: &[Sample]| percentile(part.iter().map(|sample| sample.files), 50);
    println!(
        "memory {} and {} KiB, files {} and {}",
        memory(first),
        memory(last),
        files(first),
        files(last)
    );
    assert!(
        memory(last) <= memory(first) + MAX_MORE_MEMORY_KIB,
        "the service grew"
    );
    assert!(
        files(last) <= files(first) + MAX_MORE_FILES,
        "files stay open"
    );
}
