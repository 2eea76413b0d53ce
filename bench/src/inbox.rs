//! What looking costs when most plans are long over: the inbox, what is due, lists, and the start
//! of the service.

use crate::client::Served;
use anyhow::{Result, ensure};
use planwright_adapters::demo::Demo;
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::signing::{KeyOrigin, SigningKey};
use planwright_adapters::sqlite::{Options, SqliteStore, StoreOwner};
use planwright_adapters::toolbox::{InProcessServer, Toolbox, ToolboxOptions};
use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::Shown;
use planwright_core::status::RunStatus;
use planwright_engine::{Engine, RunOptions};
use rusqlite::Connection;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Plans that are over.
pub(crate) const OVER: usize = 10_000;
/// Plans that wait for a person, half of them with a run.
pub(crate) const WAITING: usize = 20;
const HANDS: usize = 16;
pub(crate) const ROUNDS: usize = 21;

/// What each look took, half of the looks less and half of them more.
pub(crate) struct Looks {
    /// One statement over the rows of all plans: what reading them costs at least.
    pub(crate) rows: Duration,
    pub(crate) inbox: Duration,
    pub(crate) tend: Duration,
    pub(crate) page: Duration,
    /// From starting the process to its saying where it listens.
    pub(crate) ready: Duration,
    /// `list`, which shows the plans that changed last, as a process.
    pub(crate) list: Duration,
    /// `list --json`, which shows every plan, as a process.
    pub(crate) list_all: Duration,
}

/// The same looks at a store with only what waits, and at one with all that is over too.
pub(crate) fn measure(binary: &Path, dir: &Path) -> Result<(Looks, Looks)> {
    let few = dir.join("inbox-few");
    let many = dir.join("inbox-many");
    Ok((looks(binary, &few, 0)?, looks(binary, &many, OVER)?))
}

fn looks(binary: &Path, workspace: &Path, over: usize) -> Result<Looks> {
    let database = workspace.join(".plans").join("planwright.db");
    std::fs::create_dir_all(workspace.join(".plans"))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let tend = runtime.block_on(async {
        let engine = engine(&database)?;
        fill(&engine, HANDS, over).await?;
        let mut times = Vec::new();
        for _ in 0..ROUNDS {
            let started = Instant::now();
            ensure!(
                engine
                    .maintenance()
                    .run_maintenance()
                    .await?
                    .notices
                    .is_empty(),
                "nothing is due"
            );
            times.push(started.elapsed());
        }
        Ok(middle(times))
    })?;
    drop(runtime);
    let list_all = repeat(5, || {
        let (took, listed) = list(binary, workspace, &["--json"])?;
        let listed: Value = serde_json::from_slice(&listed)?;
        ensure!(listed.is_array(), "the plans are not listed");
        Ok(took)
    })?;
    let list = repeat(5, || {
        let (took, listed) = list(binary, workspace, &[])?;
        ensure!(!listed.is_empty(), "the plans are not listed");
        Ok(took)
    })?;
    let served = Served::start(binary, workspace)?;
    let inbox = repeat(ROUNDS, || get(&served, "/approvals", WAITING))?;
    let page = repeat(ROUNDS, || get(&served, "/plan?limit=20", 20))?;
    let rows = repeat(ROUNDS, || rows(&database))?;
    Ok(Looks {
        rows,
        inbox,
        tend,
        page,
        ready: served.ready,
        list,
        list_all,
    })
}

fn engine(database: &Path) -> Result<Engine> {
    // The program that is measured has its home in the workspace, and finds the key there.
    let workspace = database.ancestors().nth(2).unwrap_or(database);
    let key = workspace.join(".config/planwright/store.key");
    let key = SigningKey::read_or_create(&key, KeyOrigin::MadeHere)?;
    let store = Arc::new(SqliteStore::open_with(Options {
        owner: StoreOwner::Key(Arc::new(key)),
        ..Options::new(database)
    })?);
    let artifacts = PathBuf::from(format!("{}-artifacts", database.display()));
    let servers: [Arc<dyn InProcessServer>; 1] = [Arc::new(Demo)];
    let tools = Arc::new(Toolbox::new(servers, ToolboxOptions::default())?);
    Ok(Engine::builder(tools)
        .store(store, Arc::new(FileArtifacts::new(artifacts)))
        .build())
}

/// Makes the plans that wait, and so many that are over. Many at once, because they share their commits.
pub(crate) async fn fill(engine: &Engine, hands: usize, over: usize) -> Result<()> {
    let next = Arc::new(AtomicUsize::new(0));
    let mut working = tokio::task::JoinSet::new();
    for _ in 0..hands {
        let engine = engine.clone();
        let next = Arc::clone(&next);
        working.spawn(async move {
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= WAITING + over {
                    return anyhow::Ok(());
                }
                make(&engine, number).await?;
            }
        });
    }
    while let Some(done) = working.join_next().await {
        done??;
    }
    Ok(())
}

async fn make(engine: &Engine, number: usize) -> Result<()> {
    let gated = number < WAITING;
    let step = json!({ "id": "s", "tool": "demo.echo", "args": { "value": number }, "approvalRequired": gated });
    let plan = json!({ "id": format!("plan-{number}"), "title": "one of many", "steps": [step] });
    let document = Document::read(plan.to_string().as_bytes(), &Bounds::default())?;
    let person = Principal::person("bench");
    let (review, _) = engine.plans().propose(document, &person).await?;
    if number < WAITING / 2 {
        return Ok(());
    }
    let shown = Shown::Version(review.current().number);
    engine
        .plans()
        .approve(review.id(), &Map::new(), shown, &person, Assurance::Program)
        .await?;
    let run = engine
        .runs()
        .start(review.id(), RunOptions::new(person))
        .await?
        .wait()
        .await?;
    let wanted = if gated {
        RunStatus::Waiting
    } else {
        RunStatus::Completed
    };
    ensure!(run.status() == wanted, "a run is {}", run.status());
    Ok(())
}

fn middle(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

pub(crate) fn repeat(times: usize, mut look: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    Ok(middle(
        (0..times).map(|_| look()).collect::<Result<Vec<_>>>()?,
    ))
}

pub(crate) fn get(served: &Served, path: &str, items: usize) -> Result<Duration> {
    let started = Instant::now();
    let answer = served.get(path)?;
    let took = started.elapsed();
    let found = answer["items"].as_array().map_or(0, Vec::len);
    ensure!(found == items, "{path} has {found} items and not {items}");
    Ok(took)
}

fn list(binary: &Path, workspace: &Path, args: &[&str]) -> Result<(Duration, Vec<u8>)> {
    let started = Instant::now();
    let mut command = Command::new(binary);
    command
        .arg("list")
        .args(args)
        .env("PLANWRIGHT_DIR", workspace)
        .current_dir(workspace);
    let output = command.stderr(Stdio::null()).output()?;
    let took = started.elapsed();
    ensure!(output.status.success(), "the plans are not listed");
    Ok((took, output.stdout))
}

fn rows(database: &Path) -> Result<Duration> {
    let connection = Connection::open(database)?;
    let sql =
        "SELECT name, plan, status, label, created_at, updated_at FROM streams WHERE kind = 'plan'";
    let mut statement = connection.prepare(sql)?;
    let started = Instant::now();
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        std::hint::black_box((row.get::<_, String>(0)?, row.get::<_, String>(3)?));
    }
    Ok(started.elapsed())
}
