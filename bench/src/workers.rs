//! Steps that other processes carry out, on a store in Postgres: real workers, real brokers.

use crate::client::Served;
use crate::figures::{median, program};
use crate::postgres::{Databases, commits_per_second};
use crate::service;
use crate::table::{Bar, Table};
use anyhow::{Context as _, Result, ensure};
use planwright_core::time::Timestamp;
use planwright_testing::brokers::{BrokerKind, BrokerServer};
use planwright_testing::postgres::Server;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The steps that workers share.
const STEPS: usize = 400;
/// What the tool of each of them takes.
const STEP_MS: u64 = 20;
/// Steps that one worker carries out at once.
const CONCURRENCY: &str = "1";
/// The steps of a chain whose notices are timed.
const CHAIN: usize = 200;
const CAPABILITY: &str = "bench";
/// Longer than a worker takes to start.
const PATIENCE: Duration = Duration::from_secs(30);

/// Measures everything.
pub(crate) fn run() -> Result<()> {
    let work = tempfile::tempdir_in(".")?;
    let server = Server::start();
    let program = program()?;
    let mut databases = Databases::on(&server);
    let mut table = Table::default();
    let limit = commits_per_second(&databases.make(), 1)?;
    table.note(
        "Postgres: single-row commits, one connection",
        format!("{limit:.0}/s"),
    );
    let place = |name: &str, url: String, broker| Place {
        program: program.clone(),
        directory: work.path().join(name),
        url,
        broker,
    };
    let alone = place("shares", databases.make(), None);
    scale(&mut table, &alone)?;
    let direct = place("direct", databases.make(), None).step_times(None)?;
    table.note(
        "a step of the owner's own, p50",
        format!("{:.1} ms", direct.median),
    );
    let brokers = [
        ("Postgres itself", None),
        ("RabbitMQ", Some(BrokerKind::RabbitMq)),
        ("Redis", Some(BrokerKind::Redis)),
    ];
    for (name, kind) in brokers {
        let broker = kind.map(BrokerServer::start);
        let url = broker.as_ref().map(BrokerServer::url);
        let there = place(name, databases.make(), url);
        let dispatched = there.step_times(Some(CAPABILITY))?;
        let above = dispatched.mean - direct.mean;
        table.note(
            &format!("mean ms above, over {name}"),
            format!("{above:.2}"),
        );
        table.bar(
            &format!("a worker's step over {name}: p50 ms above it"),
            dispatched.median - direct.median,
            Bar::AtMost(5.0),
        );
    }
    approve_elsewhere(&mut table, &program, &databases.make(), work.path(), limit)?;
    table.finish()
}

/// How much faster many workers are than one.
fn scale(table: &mut Table, place: &Place) -> Result<()> {
    let mut rates = Vec::new();
    for count in [1, 2, 4] {
        let workers = place.hire(count)?;
        let entries = place.execute(&format!("shared-{count}"), &shared_steps())?;
        drop(workers);
        let begun = times_of(&entries, "attempt_started")?;
        let ended = times_of(&entries, "attempt_succeeded")?;
        let first = begun.iter().min().context("a step was begun")?;
        let last = ended.iter().max().context("a step ended")?;
        let rate = STEPS as f64 / last.since(*first).as_secs_f64();
        table.note(
            &format!("{STEP_MS} ms steps of {count} workers, per second"),
            format!("{rate:.0}"),
        );
        rates.push(rate);
    }
    table.bar(
        "4 workers / 1 worker",
        rates[2] / rates[0],
        Bar::AtLeast(3.5),
    );
    Ok(())
}

fn shared_steps() -> Value {
    let step = |number: usize| {
        json!({
            "id": format!("s{number}"),
            "tool": "demo.sleep",
            "args": { "ms": STEP_MS },
            "capability": CAPABILITY,
        })
    };
    json!({
        "steps": (0..STEPS).map(step).collect::<Vec<_>>(),
        "limits": { "maxConcurrency": 32 },
    })
}

/// An approval at one service of a run that was begun, and is listened to, at another.
fn approve_elsewhere(
    table: &mut Table,
    program: &Path,
    url: &str,
    work: &Path,
    limit: f64,
) -> Result<()> {
    let one = Served::start_on(url, program, &work.join("one"))?;
    let other = Served::start_on(url, program, &work.join("other"))?;
    let approved = service::approved_elsewhere(&one, &other)?;
    let above = |time: Duration| (time.as_secs_f64() * 1e3 - 2e3 / limit).max(0.0);
    table.note(
        "approval at one service to running at another: p50 ms above two commits",
        format!("{:.1}", above(approved.p50)),
    );
    table.bar(
        "approval at one service to running at another: p99 ms above two commits",
        above(approved.p99),
        Bar::AtMost(20.0),
    );
    Ok(())
}

/// A workspace on a database, with the broker that tells workers where to look.
struct Place {
    program: PathBuf,
    directory: PathBuf,
    url: String,
    broker: Option<String>,
}

/// Processes that are killed when this is dropped.
struct Workers(Vec<Child>);

impl Drop for Workers {
    fn drop(&mut self) {
        for worker in &mut self.0 {
            // It may be gone already.
            drop(worker.kill());
            drop(worker.wait());
        }
    }
}

/// From the start of a step to its end, in milliseconds.
struct StepTimes {
    median: f64,
    mean: f64,
}

impl Place {
    fn command(&self, name: &str, args: &[&str]) -> Result<Command> {
        let workspace = self.directory.join(name);
        let own = workspace.join(".config/planwright");
        std::fs::create_dir_all(&own)?;
        let settings = format!("[dispatch]\ncapabilities = [\"{CAPABILITY}\"]\n");
        std::fs::write(own.join("planwright.toml"), settings)?;
        let mut command = Command::new(&self.program);
        command
            .args(args)
            // As a person starts it, also when an agent starts the measurement.
            .env_clear()
            .env("HOME", &workspace)
            .env("PLANWRIGHT_DIR", &workspace)
            .env("PLANWRIGHT_STORE", &self.url)
            .envs(self.broker.iter().map(|url| ("PLANWRIGHT_DISPATCH", url)))
            .current_dir(&workspace)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        Ok(command)
    }

    /// Runs a command of the owner, and returns what it prints.
    fn ask(&self, args: &[&str]) -> Result<String> {
        let output = self.command("owner", args)?.output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "{args:?}: {text}");
        Ok(text)
    }

    /// Starts workers, and waits until all of them take steps.
    fn hire(&self, count: usize) -> Result<Workers> {
        let mut workers = Workers(Vec::new());
        for number in 0..count {
            let args = [
                "worker",
                "--capability",
                CAPABILITY,
                "--concurrency",
                CONCURRENCY,
            ];
            let mut worker = self.command(&format!("worker-{number}"), &args)?;
            workers.0.push(worker.stdout(Stdio::null()).spawn()?);
        }
        let until = Instant::now() + PATIENCE;
        loop {
            // The first command that writes makes the tables.
            let listed = self.ask(&["workers", "--json"]);
            let idle = listed.map_or(0, |listed| listed.matches("\"idle\"").count());
            if idle >= count {
                return Ok(workers);
            }
            ensure!(
                Instant::now() < until,
                "only {idle} of {count} workers came"
            );
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Runs a plan to its end, and returns its journal.
    fn execute(&self, id: &str, plan: &Value) -> Result<Vec<Value>> {
        let mut plan = plan.clone();
        plan["id"] = id.into();
        plan["title"] = id.into();
        let file = self.directory.join("owner").join(format!("{id}.json"));
        std::fs::create_dir_all(self.directory.join("owner"))?;
        std::fs::write(&file, plan.to_string())?;
        self.ask(&["run", &file.to_string_lossy(), "--yes", "--json"])?;
        let log = self.ask(&["log", id, "--json"])?;
        let entries = log.lines().map(serde_json::from_str);
        Ok(entries.collect::<Result<_, _>>()?)
    }

    /// The times of the steps of a chain that this process carries out, or one worker.
    fn step_times(&self, capability: Option<&str>) -> Result<StepTimes> {
        let workers = capability.map(|_| self.hire(1)).transpose()?;
        let step = |number: usize| {
            let mut step = json!({
                "id": format!("s{number}"),
                "tool": "demo.echo",
                "args": { "value": number },
            });
            if let Some(before) = number.checked_sub(1) {
                step["dependsOn"] = json!([format!("s{before}")]);
            }
            if let Some(capability) = capability {
                step["capability"] = capability.into();
            }
            step
        };
        let plan = json!({ "steps": (0..CHAIN).map(step).collect::<Vec<_>>() });
        let entries = self.execute("chain", &plan)?;
        drop(workers);
        let begun = times_of(&entries, "attempt_started")?;
        let ended = times_of(&entries, "attempt_succeeded")?;
        ensure!(
            begun.len() == CHAIN && ended.len() == CHAIN,
            "the chain did not run to its end in one attempt a step"
        );
        let each = begun.iter().zip(&ended);
        let each = each.map(|(begun, ended)| ended.since(*begun).as_secs_f64() * 1e3);
        let each: Vec<f64> = each.collect();
        Ok(StepTimes {
            mean: each.iter().sum::<f64>() / each.len() as f64,
            median: median(each),
        })
    }
}

/// When the entries of a kind were written, in the order of the journal.
fn times_of(entries: &[Value], kind: &str) -> Result<Vec<Timestamp>> {
    let entries = entries.iter().filter(|entry| entry["kind"] == kind);
    let times = entries.map(|entry| serde_json::from_value(entry["at"].clone()));
    Ok(times.collect::<Result<_, _>>()?)
}
