//! Runs on a store in Postgres, next to what the database itself commits in the same run.
//!
//! The server is one of the tests' own: on this machine, with `fsync` on.

use crate::client::Served;
use crate::figures::{measure_in, median, program};
use crate::inbox::{ROUNDS, WAITING, fill, get, repeat};
use crate::measure::{Measured, engine_on_database};
use crate::table::{Bar, Table};
use anyhow::{Context as _, Result, ensure};
use planwright_adapters::postgres::{Location, PostgresStore};
use planwright_core::journal::{Head, Record, StreamName};
use planwright_core::time::Timestamp;
use planwright_engine::port::{Append, FeedOf, Journal as _, LeaseRule, OwnerId, Position};
use planwright_testing::postgres::Server;
use std::path::Path;
use std::time::{Duration, Instant};
use tokio_postgres::{Client, NoTls};

/// The plans of the store that looks are measured in.
pub(crate) const MANY: usize = 100_000;
/// The plans of the store that they are compared with.
const FEW: usize = 100;
/// Connections that the limit is measured on at once.
const CONNECTIONS: usize = 16;
/// Commits on each of them.
const COMMITS: usize = 500;
/// Appends that are measured without a run.
const APPENDS: u64 = 1_000;
/// About what an entry of a step has.
const ENTRY_BYTES: usize = 300;
/// Measurements in turn with the limit, because what a disk gives changes from second to second.
const PAIRS: usize = 5;
/// Runs that fill the store at once: they share their commits.
const HANDS: usize = 64;
const DIAMONDS: f64 = 200.0;

/// Measures everything, with so many plans in the store that is looked at.
pub(crate) fn run(plans: usize) -> Result<()> {
    let work = tempfile::tempdir_in(".")?;
    let server = Server::start();
    let mut database = Databases::on(&server);
    let mut table = Table::default();
    shapes(&mut table, &mut database, work.path())?;
    looks(&mut table, &mut database, work.path(), plans)?;
    table.finish()
}

/// Makes databases, each of them new: what an earlier measurement left does not count in the next.
pub(crate) struct Databases<'a> {
    server: &'a Server,
    made: usize,
}

impl<'a> Databases<'a> {
    pub(crate) fn on(server: &'a Server) -> Self {
        Self { server, made: 0 }
    }

    pub(crate) fn make(&mut self) -> String {
        self.made += 1;
        let name = format!("bench_{}", self.made);
        self.server.create_database(&name);
        self.server.url(&name)
    }
}

/// Single-row commits per second on so many connections at once.
pub(crate) fn commits_per_second(url: &str, connections: usize) -> Result<f64> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let first = connect(url).await?;
        let table =
            "CREATE TABLE IF NOT EXISTS rows (id bigserial PRIMARY KEY, body bytea NOT NULL)";
        first.batch_execute(table).await?;
        let mut clients = vec![first];
        while clients.len() < connections {
            clients.push(connect(url).await?);
        }
        let started = Instant::now();
        let mut working = tokio::task::JoinSet::new();
        for client in clients {
            working.spawn(async move { insert_rows(&client).await });
        }
        while let Some(done) = working.join_next().await {
            done??;
        }
        let commits = (connections * COMMITS) as f64;
        Ok(commits / started.elapsed().as_secs_f64())
    })
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            eprintln!("a connection of the limit ended: {error}");
        }
    });
    Ok(client)
}

async fn insert_rows(client: &Client) -> Result<()> {
    let row = &[7_u8; 300][..];
    let sql = "INSERT INTO rows (body) VALUES ($1)";
    let insert = client.prepare(sql).await?;
    for _ in 0..COMMITS {
        client.execute(&insert, &[&row]).await?;
    }
    Ok(())
}

/// Appends per second of the journal of one run, of two entries each as a step of a chain has them: what the store takes
/// without the engine.
fn appends_per_second(url: &str) -> Result<f64> {
    let store = PostgresStore::open(Location::parse(url, None)?, true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let stream = StreamName::Run("bench".parse()?);
    let mut head = Head::EMPTY;
    let mut entry = || {
        let at = Timestamp::from_millis(1);
        let record = Record::after(head, &stream, at, 1, None, vec![b' '; ENTRY_BYTES]);
        head = record.head();
        record
    };
    let open = LeaseRule::Open {
        owner: OwnerId("bench".to_owned()),
        ttl: Duration::from_secs(600),
    };
    let mut expected = Head::EMPTY;
    let mut append = |lease: LeaseRule| {
        let records = vec![entry(), entry()];
        let last = records[1].head();
        Append {
            stream: stream.clone(),
            expected: std::mem::replace(&mut expected, last),
            records,
            lease,
            status: None,
            answers: Vec::new(),
            requests: Vec::new(),
            brought: Vec::new(),
            offers: Vec::new(),
        }
    };
    runtime.block_on(async {
        store.append(vec![append(open)]).await?;
        let held = LeaseRule::Held { epoch: 1 };
        let started = Instant::now();
        for _ in 0..APPENDS {
            store.append(vec![append(held.clone())]).await?;
        }
        Ok(APPENDS as f64 / started.elapsed().as_secs_f64())
    })
}

fn shapes(table: &mut Table, databases: &mut Databases<'_>, dir: &Path) -> Result<()> {
    let [mut one, mut many, mut rates, mut shares, mut appends] = [const { Vec::new() }; 5];
    let limits = databases.make();
    for _ in 0..PAIRS {
        let before = commits_per_second(&limits, 1)?;
        let chain = measure_in("chain", dir, Some(&databases.make()))?;
        let limit = f64::midpoint(before, commits_per_second(&limits, 1)?);
        appends.push(appends_per_second(&databases.make())? / limit);
        one.push(limit);
        many.push(commits_per_second(&limits, CONNECTIONS)?);
        rates.push(chain.executing_rate());
        shares.push(chain.executing_rate() / limit);
    }
    table.note(
        "Postgres: single-row commits, one connection",
        format!("{:.0}/s", median(one)),
    );
    table.note(
        &format!("Postgres: the same, {CONNECTIONS} connections"),
        format!("{:.0}/s", median(many)),
    );
    table.note(
        "appends of two entries without a run / commits of one",
        format!("{:.2}", median(appends)),
    );
    table.note("chain of 1,000", format!("{:.0} steps/s", median(rates)));
    table.bar(
        "chain of 1,000: steps per second / commits of one",
        median(shares),
        Bar::AtLeast(0.8),
    );
    let fan_out = medians(databases, "fan-out", dir, Measured::executing_rate)?;
    table.bar(
        "1 → 1,000 → 1: durable steps per second",
        fan_out,
        Bar::AtLeast(5_000.0),
    );
    let per_plan = |measured: &Measured| DIAMONDS / measured.elapsed.as_secs_f64();
    let diamonds = medians(databases, "diamonds", dir, per_plan)?;
    table.bar(
        "200 concurrent ten-step diamonds: plans per second",
        diamonds,
        Bar::AtLeast(500.0),
    );
    Ok(())
}

fn medians(
    databases: &mut Databases<'_>,
    shape: &str,
    dir: &Path,
    figure: impl Fn(&Measured) -> f64,
) -> Result<f64> {
    let mut figures = Vec::new();
    for _ in 0..PAIRS {
        let measured = measure_in(shape, dir, Some(&databases.make()))?;
        figures.push(figure(&measured));
    }
    Ok(median(figures))
}

/// What each look took, half of the looks less and half of them more.
struct Looks {
    inbox: Duration,
    page: Duration,
    /// From starting the process to its saying where it listens.
    ready: Duration,
}

fn looks(table: &mut Table, databases: &mut Databases<'_>, dir: &Path, plans: usize) -> Result<()> {
    let program = program()?;
    let mut look = |plans: usize| {
        let url = databases.make();
        look_at(&program, &url, &dir.join(format!("plans-{plans}")), plans)
    };
    let few = look(FEW)?;
    let many = look(plans)?;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let rows = [
        ("the inbox", few.inbox, many.inbox),
        ("a page of 20", few.page, many.page),
        ("start of a service to ready", few.ready, many.ready),
    ];
    for (what, with_few, with_many) in rows {
        let both = format!("{:.1} ms, {:.1} ms", millis(with_few), millis(with_many));
        table.note(&format!("{what}: {FEW} plans, {plans} plans"), both);
        table.bar(
            &format!("{what}: {plans} plans / {FEW} plans"),
            millis(with_many) / millis(with_few),
            Bar::AtMost(1.5),
        );
    }
    Ok(())
}

/// Makes so many copies of a plan that is over, with its run, all older than what is there. None of what is measured reads
/// their journals, so that these need not be right; all of it passes by their rows.
async fn copy_plans(url: &str, copies: usize) -> Result<()> {
    let client = connect(url).await?;
    let original = client
        .query_one(
            "SELECT plan FROM planwright.streams WHERE kind = 'run' AND status = 'completed' ORDER BY id LIMIT 1",
            &[],
        )
        .await?;
    let original: String = original.get(0);
    let copies = i64::try_from(copies)?;
    let streams = client
        .execute(
            "INSERT INTO planwright.streams (name, kind, plan, status, label, created_at, updated_at) \
             SELECT s.kind || '/copy-' || n, s.kind, 'copy-' || n, s.status, s.label, s.created_at - n, s.updated_at - n \
             FROM generate_series($2::bigint, 1, -1) AS n, planwright.streams AS s WHERE s.plan = $1 ORDER BY n DESC, s.id",
            &[&original, &copies],
        )
        .await?;
    ensure!(
        streams == 2 * copies.unsigned_abs(),
        "{streams} streams were copied"
    );
    client
        .execute(
            "INSERT INTO planwright.entries (stream, seq, at, epoch, hash, key, body) \
             SELECT c.id, e.seq, e.at, e.epoch, e.hash, e.key, e.body \
             FROM planwright.streams AS c JOIN planwright.streams AS o ON o.plan = $1 AND o.kind = c.kind \
             JOIN planwright.entries AS e ON e.stream = o.id WHERE c.plan LIKE 'copy-%'",
            &[&original],
        )
        .await?;
    client
        .batch_execute(
            "INSERT INTO planwright.unplaced (stream, first_seq, last_seq) \
             SELECT e.stream, min(e.seq), max(e.seq) FROM planwright.entries AS e \
             JOIN planwright.streams AS s ON s.id = e.stream WHERE s.plan LIKE 'copy-%' GROUP BY e.stream ORDER BY e.stream",
        )
        .await?;
    Ok(())
}

fn look_at(program: &Path, url: &str, workspace: &Path, plans: usize) -> Result<Looks> {
    std::fs::create_dir_all(workspace)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let engine = engine_on_database(url, workspace)?;
    let copies = plans.checked_sub(FEW);
    let copies = copies.with_context(|| format!("{FEW} of the plans are made one by one"))?;
    runtime.block_on(async {
        fill(&engine, HANDS, FEW - WAITING).await?;
        if copies > 0 {
            copy_plans(url, copies).await?;
            // The entries get their places in the order of all.
            engine.journals().feed(&FeedOf::All, Position(0), 1).await?;
        }
        anyhow::Ok(())
    })?;
    drop(engine);
    drop(runtime);
    let ready = repeat(5, || Ok(Served::start_on(url, program, workspace)?.ready))?;
    let served = Served::start_on(url, program, workspace)?;
    let inbox = repeat(ROUNDS, || get(&served, "/approvals", WAITING))?;
    let page = repeat(ROUNDS, || get(&served, "/plan?limit=20", 20))?;
    Ok(Looks { inbox, page, ready })
}
