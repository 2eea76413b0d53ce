//! The service under load: how soon listeners know, how soon an approval has effect, what waiting
//! costs.

use crate::client::Served;
use anyhow::{Context as _, Result, ensure};
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

const PLANS: usize = 100;
const LISTENERS: usize = 200;
const STEPS: usize = 20;
const APPROVALS: usize = 200;
pub(crate) const PARKED: usize = 10_000;
const HANDS: usize = 16;

pub(crate) struct Service {
    /// From the moment an event happened, before its commit, to a listener having it.
    pub(crate) told: Duration,
    /// From an approval being sent to a listener knowing that the step runs.
    pub(crate) approved: Duration,
    /// Of the service's memory, for every run that waits for a person.
    pub(crate) parked_bytes: f64,
}

pub(crate) fn measure(binary: &Path, dir: &Path) -> Result<Service> {
    let told = told(&Served::start(binary, &dir.join("told"))?)?;
    let approved = approved(&Served::start(binary, &dir.join("approved"))?)?;
    let parked_bytes = parked(&Served::start(binary, &dir.join("parked"))?)?;
    Ok(Service {
        told,
        approved,
        parked_bytes,
    })
}

fn step(number: usize) -> Value {
    let after: Vec<String> = number
        .checked_sub(1)
        .map(|before| format!("s{before}"))
        .into_iter()
        .collect();
    json!({ "id": format!("s{number}"), "tool": "demo.sleep", "args": { "ms": 20 }, "dependsOn": after })
}

fn create(served: &Served, id: &str, steps: &Value) -> Result<()> {
    served.post("/plan", &json!({ "id": id, "title": id, "steps": steps }))?;
    served.post(
        &format!("/plan/{id}/approve"),
        &json!({ "decision": "approve", "version": 1 }),
    )?;
    Ok(())
}

fn run(served: &Served, id: &str) -> Result<()> {
    served
        .post(&format!("/plan/{id}/run"), &json!({}))
        .map(drop)
}

/// What half of the times, and what all but one in a hundred, do not exceed.
#[derive(Clone, Copy)]
pub(crate) struct Spread {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Result<Self> {
        times.sort();
        let at = |part: usize| times.get(times.len() * part / 100).copied();
        let found = at(50).zip(at(99)).map(|(p50, p99)| Self { p50, p99 });
        found.context("nothing was measured")
    }
}

fn since(occurred_at: &Value) -> Result<Duration> {
    let at: Timestamp = serde_json::from_value(occurred_at.clone())?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let at = Duration::from_millis(u64::try_from(at.as_millis())?);
    Ok(now.saturating_sub(at))
}

/// Two listeners on each of the plans while all of them run.
fn told(served: &Served) -> Result<Duration> {
    let id = |number: usize| format!("told-{}", number % PLANS);
    let steps = Value::from((0..STEPS).map(step).collect::<Vec<_>>());
    for number in 0..PLANS {
        create(served, &id(number), &steps)?;
    }
    let listeners = (0..LISTENERS)
        .map(|number| {
            served.listen(&format!(
                "/plan/{}/events?types=plan.step,run.*",
                id(number)
            ))
        })
        .collect::<Result<Vec<_>>>()?;
    std::thread::scope(|scope| {
        let hear = |mut listener: crate::client::Listener| {
            let mut times = Vec::new();
            while let Some(event) = listener.next()? {
                if event.get("runId").is_some() {
                    times.push(since(&event["occurredAt"])?);
                }
            }
            anyhow::Ok(times)
        };
        let heard: Vec<_> = listeners
            .into_iter()
            .map(|listener| scope.spawn(move || hear(listener)))
            .collect();
        for number in 0..PLANS {
            run(served, &id(number))?;
        }
        let mut times = Vec::new();
        for hearing in heard {
            let heard = hearing.join().expect("a listener does not panic")?;
            ensure!(
                heard.len() > STEPS * 3,
                "a listener heard only {} events",
                heard.len()
            );
            times.extend(heard);
        }
        Ok(Spread::of(times)?.p99)
    })
}

fn gated() -> Value {
    json!([{ "id": "s0", "tool": "demo.echo", "args": { "value": 1 }, "approvalRequired": true }])
}

fn approved(served: &Served) -> Result<Duration> {
    Ok(approved_elsewhere(served, served)?.p99)
}

/// One approval after the other, of runs that left memory because they wait: begun and listened to
/// at one service, approved at another, or at the same.
pub(crate) fn approved_elsewhere(served: &Served, approver: &Served) -> Result<Spread> {
    let mut times = Vec::new();
    for number in 0..APPROVALS {
        let id = format!("approved-{number}");
        create(served, &id, &gated())?;
        let mut listener = served.listen(&format!("/plan/{id}/events"))?;
        run(served, &id)?;
        let mut wait_for = |state: &str| -> Result<()> {
            while listener.next()?.context("the stream ended early")?["step"]["state"] != state {}
            Ok(())
        };
        wait_for("awaiting_approval")?;
        let started = Instant::now();
        approver.post(
            &format!("/plan/{id}/steps/s0/approve"),
            &json!({ "decision": "approve", "version": 1 }),
        )?;
        wait_for("running")?;
        times.push(started.elapsed());
    }
    Spread::of(times)
}

/// Many runs that wait for a person.
fn parked(served: &Served) -> Result<f64> {
    let park = |from: usize, to: usize| -> Result<()> {
        let next = AtomicUsize::new(from);
        std::thread::scope(|scope| {
            let hand = || -> Result<()> {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= to {
                        return Ok(());
                    }
                    let id = format!("parked-{number}");
                    create(served, &id, &gated())?;
                    run(served, &id)?;
                }
            };
            let hands: Vec<_> = (0..HANDS).map(|_| scope.spawn(hand)).collect();
            hands
                .into_iter()
                .try_for_each(|hand| hand.join().expect("a hand does not panic"))
        })
    };
    // What the service needs once is not counted.
    park(0, PARKED / 10)?;
    let before = settled(served)?;
    park(PARKED / 10, PARKED / 10 + PARKED)?;
    let after = settled(served)?;
    #[expect(clippy::cast_precision_loss, reason = "bytes of one process")]
    Ok(after.saturating_sub(before) as f64 / PARKED as f64)
}

/// Memory once the last runs have come to wait.
fn settled(served: &Served) -> Result<u64> {
    std::thread::sleep(Duration::from_secs(5));
    served.resident_bytes()
}
