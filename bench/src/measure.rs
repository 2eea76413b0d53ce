//! Runs plans over the real store and the real tools, and says what it took.

use crate::shapes;
use anyhow::{Context as _, Result, ensure};
use planwright_adapters::demo::Demo;
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::postgres::{Location, PostgresArtifacts, PostgresStore};
use planwright_adapters::sqlite::SqliteStore;
use planwright_adapters::toolbox::{InProcessServer, Toolbox, ToolboxOptions};
use planwright_core::id::PlanId;
use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use planwright_core::status::RunStatus;
use planwright_engine::{Engine, RunHandle, RunOptions};
use serde_json::Map;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// What a shape took.
pub(crate) struct Measured {
    pub(crate) steps: usize,
    /// From asking for the runs to their ends: reading, checking and digesting the plans is part of
    /// it.
    pub(crate) elapsed: Duration,
    /// From the last run begun to the last run ended.
    pub(crate) executing: Duration,
    pub(crate) peak_mib: f64,
}

impl Measured {
    /// Steps per second, over everything.
    pub(crate) fn rate(&self) -> f64 {
        self.steps as f64 / self.elapsed.as_secs_f64()
    }

    /// Steps per second while steps were being executed.
    pub(crate) fn executing_rate(&self) -> f64 {
        self.steps as f64 / self.executing.as_secs_f64()
    }

    pub(crate) fn micros_per_step(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e6 / self.steps as f64
    }

    pub(crate) fn to_line(&self) -> String {
        format!(
            "{} {} {} {}",
            self.steps,
            self.elapsed.as_nanos(),
            self.executing.as_nanos(),
            self.peak_mib
        )
    }

    pub(crate) fn from_line(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        Some(Self {
            steps: words.next()?.parse().ok()?,
            elapsed: Duration::from_nanos(words.next()?.parse().ok()?),
            executing: Duration::from_nanos(words.next()?.parse().ok()?),
            peak_mib: words.next()?.parse().ok()?,
        })
    }
}

/// Executes a shape in a new file in `dir`, or in the database at `url`.
pub(crate) fn execute(shape: &str, dir: &Path, url: Option<&str>) -> Result<Measured> {
    let plans = shapes::plans(shape).with_context(|| format!("there is no shape {shape:?}"))?;
    // As the program itself has it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (engine, starts) = match url {
        Some(url) => (engine_on_database(url, dir)?, Starts::AtOnce),
        None => (engine_on_file(dir)?, Starts::InTurn),
    };
    let earlier = shapes::earlier_plans(shape);
    runtime.block_on(execute_all(earlier, plans, (&engine, starts)))
}

fn demo_tools() -> Result<Arc<Toolbox>> {
    let servers: [Arc<dyn InProcessServer>; 1] = [Arc::new(Demo)];
    Ok(Arc::new(Toolbox::new(servers, ToolboxOptions::default())?))
}

fn engine_on_file(dir: &Path) -> Result<Engine> {
    let store = Arc::new(SqliteStore::open(&dir.join("planwright.db"))?);
    let artifacts = Arc::new(FileArtifacts::new(dir.join("artifacts")));
    let builder = Engine::builder(demo_tools()?);
    Ok(builder.store(store, artifacts).build())
}

pub(crate) fn engine_on_database(url: &str, dir: &Path) -> Result<Engine> {
    let location = Location::parse(url, None)?;
    let store = Arc::new(PostgresStore::open(location, true)?);
    let files = FileArtifacts::new(dir.join("artifacts"));
    let artifacts = Arc::new(PostgresArtifacts::new(Arc::clone(&store), files));
    let builder = Engine::builder(demo_tools()?);
    Ok(builder.store(store, artifacts).build())
}

/// How the runs of a shape are asked for.
#[derive(Clone, Copy)]
enum Starts {
    /// One after the other: a file has one writer in any case.
    InTurn,
    /// As the users of a service do: each start waits for the network, and not for the others.
    AtOnce,
}

async fn start_in_turn(
    engine: &Engine,
    ids: &[PlanId],
    person: &Principal,
) -> Result<Vec<RunHandle>> {
    let mut handles = Vec::new();
    for id in ids {
        let options = RunOptions::new(person.clone());
        handles.push(engine.runs().start(id, options).await?);
    }
    Ok(handles)
}

async fn start_at_once(
    engine: &Engine,
    ids: Vec<PlanId>,
    person: &Principal,
) -> Result<Vec<RunHandle>> {
    let mut starting = tokio::task::JoinSet::new();
    for id in ids {
        let engine = engine.clone();
        let options = RunOptions::new(person.clone());
        starting.spawn(async move { engine.runs().start(&id, options).await });
    }
    let mut handles = Vec::new();
    while let Some(started) = starting.join_next().await {
        handles.push(started??);
    }
    Ok(handles)
}

async fn execute_all(
    earlier: Vec<String>,
    plans: Vec<String>,
    (engine, starts): (&Engine, Starts),
) -> Result<Measured> {
    let person = Principal::person("bench");
    for plan in earlier {
        let (id, _) = prepare(engine, plan, &person).await?;
        let mut handle = engine
            .runs()
            .start(&id, RunOptions::new(person.clone()))
            .await?;
        handle.wait().await?;
    }
    let mut ids = Vec::new();
    let mut steps = 0;
    for plan in plans {
        let id = prepare(engine, plan, &person).await?;
        steps += id.1;
        ids.push(id.0);
    }
    let started = Instant::now();
    let handles = match starts {
        Starts::InTurn => start_in_turn(engine, &ids, &person).await?,
        Starts::AtOnce => start_at_once(engine, ids, &person).await?,
    };
    let begun = Instant::now();
    for mut handle in handles {
        let run = handle.wait().await?;
        ensure!(
            run.status() == RunStatus::Completed,
            "a run ended {}",
            run.status()
        );
    }
    Ok(Measured {
        steps,
        elapsed: started.elapsed(),
        executing: begun.elapsed(),
        peak_mib: peak_mib()?,
    })
}

async fn prepare(engine: &Engine, plan: String, person: &Principal) -> Result<(PlanId, usize)> {
    let document = Document::read(plan.as_bytes(), &Bounds::default())?;
    drop(plan);
    let (review, _) = engine.plans().propose(document, person).await?;
    let steps = review.current().document.steps.len();
    let id = review.id().clone();
    let shown = Shown::Version(review.current().number);
    drop(review);
    engine
        .plans()
        .approve(&id, &Map::new(), shown, person, Assurance::Program)
        .await?;
    Ok((id, steps))
}

/// The most memory this process has had, as the kernel counts it.
fn peak_mib() -> Result<f64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("peak memory is read from /proc")?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .context("the kernel reports VmHWM")?;
    let kib: f64 = line
        .split_whitespace()
        .nth(1)
        .context("VmHWM has a number")?
        .parse()?;
    Ok(kib / 1024.0)
}
