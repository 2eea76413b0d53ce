//! The figures of each table, and the bars that they must meet.

use crate::disk::Log;
use crate::gateway::{Crowd, Gateway, Syncs};
use crate::measure::{Measured, execute};
use crate::table::{Bar, Table};
use crate::{disk, inbox, mcp, planning, seen, service, shapes};
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Runs every benchmark and prints a table. Fails if a bar is missed, so that a regression is seen.
pub(crate) fn run_all(dir: Option<&Path>) -> Result<()> {
    let work = match dir {
        Some(dir) => tempfile::tempdir_in(dir)?,
        None => tempfile::tempdir_in(".")?,
    };
    let mut table = Table::default();
    let limit = chains(&mut table, work.path())?;

    let fan_out = median_of(5, "fan-out", work.path())?;
    table.bar(
        "1 → 1,000 → 1: durable steps per second",
        fan_out.executing_rate(),
        Bar::AtLeast(20_000.0),
    );

    let diamonds = median_of(5, "diamonds", work.path())?;
    table.note(
        "200 concurrent ten-step diamonds",
        format!("{:.0} steps/s", diamonds.rate()),
    );

    let unbalanced = median_of(9, "unbalanced", work.path())?;
    let critical = shapes::UNBALANCED_CRITICAL_PATH.as_secs_f64();
    table.bar(
        "unbalanced: time / critical path",
        unbalanced.executing.as_secs_f64() / critical,
        Bar::AtMost(1.03),
    );

    let small = median_of(21, "layered-1000", work.path())?;
    let large = median_of(5, "layered-100000", work.path())?;
    table.note(
        "layered, 1,000 steps",
        format!("{:.1} µs/step", small.micros_per_step()),
    );
    table.note(
        "layered, 100,000 steps",
        format!("{:.1} µs/step", large.micros_per_step()),
    );
    let growth = large.micros_per_step() / small.micros_per_step();
    table.bar(
        "time per step, 100,000 / 1,000 steps",
        growth,
        Bar::AtMost(1.3),
    );
    table.bar(
        "peak memory at 100,000 steps, MiB",
        large.peak_mib,
        Bar::AtMost(400.0),
    );

    let (one_step, budget) = one_step_process(work.path(), limit)?;
    table.note(
        "one-step plan, process start to exit",
        format!("{:.1} ms", one_step.as_secs_f64() * 1e3),
    );
    let ratio = one_step.as_secs_f64() / budget.as_secs_f64();
    table.bar(
        "one-step plan: time / (3 commits + 20 ms)",
        ratio,
        Bar::AtMost(1.0),
    );

    calls_of_a_server(&mut table, work.path())?;
    prompts_of_planners(&mut table)?;
    service_under_load(&mut table, work.path(), limit)?;
    looks_at_many_plans(&mut table, work.path())?;
    looks_at_seen_tools(&mut table, work.path())?;
    table.finish()
}

/// The chain in a new store, and in harder times. Returns the disk's single-row commits per second.
fn chains(table: &mut Table, dir: &Path) -> Result<f64> {
    let chain = chain_beside_disk(dir, "chain", Log::Growing)?;
    table.note(
        "disk: SQLite WAL FULL single-row commits",
        format!("{:.0}/s", chain.limit),
    );
    table.note("chain of 1,000", format!("{:.0} steps/s", chain.rate));
    table.bar(
        "chain of 1,000: commits per second / disk",
        chain.share,
        Bar::AtLeast(0.9),
    );
    table.note(
        "the same, with starting the run counted in",
        format!("{:.3}", chain.whole),
    );
    chain_in_hard_times(table, dir)?;
    Ok(chain.limit)
}

/// The chain in a store that is in use, and beside processes that take all processors.
fn chain_in_hard_times(table: &mut Table, dir: &Path) -> Result<()> {
    let used = chain_beside_disk(dir, "chain-used", Log::InUse)?;
    table.note(
        "disk: the same, in a database in use",
        format!("{:.0}/s", used.limit),
    );
    table.bar(
        "chain of 1,000 in a store in use / disk",
        used.share,
        Bar::AtLeast(0.8),
    );
    let busy = BusyProcessors::start()?;
    let beside = chain_beside_disk(dir, "chain", Log::Growing)?;
    drop(busy);
    table.note(
        "disk: the same, beside busy processors",
        format!("{:.0}/s", beside.limit),
    );
    table.note(
        "chain of 1,000 beside busy processors",
        format!("{:.0} steps/s", beside.rate),
    );
    table.bar(
        "chain of 1,000 beside busy processors / disk",
        beside.share,
        Bar::AtLeast(0.6),
    );
    Ok(())
}

/// Only the chains, for a developer who works on the store.
pub(crate) fn run_chain() -> Result<()> {
    let work = tempfile::tempdir_in(".")?;
    let mut table = Table::default();
    chains(&mut table, work.path())?;
    table.finish()
}

/// One process per processor that computes and never waits, until it is dropped.
struct BusyProcessors(Vec<std::process::Child>);

impl BusyProcessors {
    fn start() -> Result<Self> {
        let processors = std::thread::available_parallelism()?.get();
        let mut busy = Self(Vec::new());
        for _ in 0..processors {
            let mut program = Command::new(std::env::current_exe()?);
            busy.0.push(program.arg("bench-spin").spawn()?);
        }
        Ok(busy)
    }
}

impl Drop for BusyProcessors {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// Only what is done before a planner is asked, for a developer who works on it.
pub(crate) fn run_planning() -> Result<()> {
    let mut table = Table::default();
    prompts_of_planners(&mut table)?;
    table.finish()
}

fn prompts_of_planners(table: &mut Table) -> Result<()> {
    let measured = planning::measure()?;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let name = format!(
        "writing a prompt's {} KiB as JSON, p50",
        measured.bytes >> 10
    );
    table.note(&name, format!("{:.2} ms", millis(measured.bytes_alone)));
    let name = format!("prompt over {} tools: ms", planning::TOOLS);
    table.bar(&name, millis(measured.prompt), Bar::AtMost(20.0));
    Ok(())
}

/// Only the service, for a developer who works on it.
pub(crate) fn run_service() -> Result<()> {
    let work = tempfile::tempdir_in(".")?;
    let limit = disk::commits_per_second(work.path(), 1000, Log::Growing)?;
    let mut table = Table::default();
    table.note(
        "disk: SQLite WAL FULL single-row commits",
        format!("{limit:.0}/s"),
    );
    service_under_load(&mut table, work.path(), limit)?;
    table.finish()
}

fn service_under_load(table: &mut Table, dir: &Path, commits_per_second: f64) -> Result<()> {
    let measured = service::measure(&program()?, dir)?;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let commit = 1e3 / commits_per_second;
    table.bar(
        "200 listeners of 100 runs: p99 ms to be told",
        millis(measured.told),
        Bar::AtMost(50.0),
    );
    let above = (millis(measured.approved) - commit).max(0.0);
    table.bar(
        "approval to running: p99 ms above one commit",
        above,
        Bar::AtMost(20.0),
    );
    let name = format!("{} runs that wait: bytes each", service::PARKED);
    table.bar(&name, measured.parked_bytes, Bar::AtMost(2048.0));
    Ok(())
}

/// Only what looking costs when most plans are over, for a developer who works on it.
pub(crate) fn run_inbox() -> Result<()> {
    let work = tempfile::tempdir_in(".")?;
    let mut table = Table::default();
    looks_at_many_plans(&mut table, work.path())?;
    table.finish()
}

fn looks_at_many_plans(table: &mut Table, dir: &Path) -> Result<()> {
    let (few, many) = inbox::measure(&program()?, dir)?;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let named = |what: &str| format!("{what} beside {} plans that are over", inbox::OVER);
    table.note(
        &named("one SELECT of all rows"),
        format!("{:.2} ms", millis(many.rows)),
    );
    let looks = [
        ("the inbox", few.inbox, many.inbox),
        ("what is due", few.tend, many.tend),
        ("a page of 20", few.page, many.page),
    ];
    for (what, alone, beside) in looks {
        table.note(
            &named(what),
            format!("{:.2} ms, alone {:.2} ms", millis(beside), millis(alone)),
        );
        // What is over costs no more than reading its rows once would.
        let above = (millis(beside) - millis(alone)).max(0.0);
        table.bar(
            &format!("{what}: ms more"),
            above,
            Bar::AtMost(millis(many.rows).max(5.0)),
        );
    }
    let alone = millis(few.ready);
    let beside = millis(many.ready);
    table.note(
        &named("start to ready"),
        format!("{beside:.2} ms, alone {alone:.2} ms"),
    );
    table.note(
        &named("`list`, which shows 100, as a process"),
        format!("{:.0} ms", millis(many.list)),
    );
    table.note(
        "`list --json` of all of them, as a process",
        format!("{:.0} ms", millis(many.list_all)),
    );
    Ok(())
}

/// The program as it is shipped, or as it was built with this one. A developer who tries something out can name one that
/// is there already.
pub(crate) fn program() -> Result<PathBuf> {
    if let Some(program) = std::env::var_os("PLANWRIGHT_BENCH_PROGRAM") {
        return Ok(program.into());
    }
    let mut build = Command::new(env!("CARGO"));
    build.args(["build", "-p", "planwright"]);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    ensure!(build.status()?.success(), "the binary does not build");
    Ok(std::env::current_exe()?.with_file_name("planwright"))
}

/// Only what an MCP server's calls cost, for a developer who works on them.
pub(crate) fn run_mcp() -> Result<()> {
    let mut table = Table::default();
    calls_of_a_server(&mut table, tempfile::tempdir()?.path())?;
    calls_through_the_gateway(&mut table, tempfile::tempdir()?.path())?;
    table.finish()
}

/// Only what the gateway costs: one call after the other, many at once, and of several clients.
pub(crate) fn run_gateway() -> Result<()> {
    let mut table = Table::default();
    calls_through_the_gateway(&mut table, tempfile::tempdir_in(".")?.path())?;
    let program = program()?;
    let crowd = Crowd::measure(&program, tempfile::tempdir_in(".")?.path())?;
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let calls = crate::gateway::AT_ONCE;
    let clients = crate::gateway::CLIENTS;
    table.note(
        &format!("{calls} reads at once: per call"),
        micros(crowd.at_once),
    );
    table.note(
        &format!("{clients} clients at once on one store: a read, p50"),
        micros(crowd.of_clients),
    );
    if let Some(syncs) = Syncs::count(&program, tempfile::tempdir_in(".")?.path())? {
        let most = Bar::AtMost(2.0);
        table.bar("gateway: syncs of a call that changes", syncs.change, most);
        let most = Bar::AtMost(0.2);
        table.bar("gateway: syncs of a call that only reads", syncs.read, most);
    }
    table.finish()
}

/// Only what looking at a plan over several servers costs.
pub(crate) fn run_seen() -> Result<()> {
    let work = tempfile::tempdir_in(".")?;
    let mut table = Table::default();
    looks_at_seen_tools(&mut table, work.path())?;
    table.finish()
}

fn looks_at_seen_tools(table: &mut Table, dir: &Path) -> Result<()> {
    let looks = seen::measure(&program()?, dir)?;
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let servers = seen::SERVERS;
    let tools = seen::TOOLS;
    let noted = |time: Duration| format!("{:.1} ms", millis(time));
    table.note("version, as a process", noted(looks.version));
    let first = format!("import of a plan over {servers} servers, all started");
    table.note(&first, noted(looks.first));
    table.bar(
        &format!("show of it, {tools} tools each seen before: ms"),
        millis(looks.show),
        Bar::AtMost(50.0),
    );
    Ok(())
}

/// The server of [`run_seen`].
pub(crate) fn serve_seen(starts: &Path) -> Result<()> {
    mcp::serve_tools(&seen::list_tools(starts)?)
}

/// The server of [`run_mcp`].
pub(crate) fn serve_echo() -> Result<()> {
    mcp::serve()
}

fn calls_of_a_server(table: &mut Table, dir: &Path) -> Result<()> {
    let trips = mcp::round_trips(dir)?;
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    table.note("MCP server over pipes, by hand, p50", micros(trips.by_hand));
    table.note(
        "the same through the client, p50",
        micros(trips.through_client),
    );
    table.note(
        "the same in a session of the gateway, journaled, p50",
        micros(trips.through_session),
    );
    table.bar(
        "MCP call: ms above the server's round trip",
        trips.overhead_ms(),
        Bar::AtMost(1.0),
    );
    Ok(())
}

fn calls_through_the_gateway(table: &mut Table, dir: &Path) -> Result<()> {
    let measured = Gateway::measure(&program()?, dir)?;
    let micros = |time: Duration| format!("{:.0} µs", time.as_secs_f64() * 1e6);
    let above = |time: Duration| time.saturating_sub(measured.direct).as_secs_f64() * 1e3;
    table.note("a call without the gateway, p50", micros(measured.direct));
    table.note(
        "one through a program that only passes it on",
        micros(measured.passed_on),
    );
    table.note("one that changes, through it", micros(measured.change));
    table.note("one that only reads, through it", micros(measured.read));
    table.note("a request without a call, to it", micros(measured.no_call));
    let journaled = above(measured.change);
    table.bar("gateway: ms above the call", journaled, Bar::AtMost(1.0));
    let read = above(measured.read);
    table.bar("gateway: ms above a read", read, Bar::AtMost(0.2));
    let no_call = above(measured.no_call);
    table.bar("gateway: ms without a call", no_call, Bar::AtMost(0.2));
    Ok(())
}

/// Medians over pairs measured in turn, because what a disk gives changes from second to second.
struct Chain {
    /// The disk's single-row commits per second.
    limit: f64,
    /// Steps, and so commits, per second while the chain is executed.
    rate: f64,
    /// That rate as a share of the limit.
    share: f64,
    /// The same with reading, checking and digesting the plan counted in.
    whole: f64,
}

fn chain_beside_disk(dir: &Path, shape: &str, log: Log) -> Result<Chain> {
    const PAIRS: usize = 9;
    let [mut limits, mut rates, mut shares, mut whole] = [const { Vec::new() }; 4];
    for _ in 0..PAIRS {
        let before = disk::commits_per_second(dir, 1000, log)?;
        let chain = measure(shape, dir)?;
        let rate = chain.executing_rate();
        let limit = f64::midpoint(before, disk::commits_per_second(dir, 1000, log)?);
        limits.push(limit);
        rates.push(rate);
        shares.push(rate / limit);
        whole.push(chain.rate() / limit);
    }
    Ok(Chain {
        limit: median(limits),
        rate: median(rates),
        share: median(shares),
        whole: median(whole),
    })
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Runs one shape in this process and prints what it took, for [`measure()`].
pub(crate) fn run_one(shape: &str, dir: &Path, url: Option<&str>) -> Result<()> {
    println!("{}", execute(shape, dir, url)?.to_line());
    Ok(())
}

/// The median of several measurements: neither the luckiest nor the unluckiest one. Each has a
/// process of its own, so that peak memory is its own too.
fn median_of(times: usize, shape: &str, dir: &Path) -> Result<Measured> {
    let mut measured = (0..times)
        .map(|_| measure(shape, dir))
        .collect::<Result<Vec<_>>>()?;
    measured.sort_by_key(|one| one.elapsed);
    Ok(measured.swap_remove(measured.len() / 2))
}

fn measure(shape: &str, dir: &Path) -> Result<Measured> {
    measure_in(shape, dir, None)
}

/// Measures a shape in a process of its own, in a new file or in the database at `url`.
pub(crate) fn measure_in(shape: &str, dir: &Path, url: Option<&str>) -> Result<Measured> {
    let store = tempfile::tempdir_in(dir)?;
    let output = Command::new(std::env::current_exe()?)
        .args(["bench-one", shape])
        .arg(store.path())
        .args(url)
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        output.status.success(),
        "{shape} failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Measured::from_line(&text).with_context(|| format!("{shape} printed {text:?}"))
}

fn one_step_process(dir: &Path, commits_per_second: f64) -> Result<(Duration, Duration)> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--release", "-p", "planwright"])
        .status()?;
    ensure!(built.success(), "the binary does not build");
    let binary: PathBuf = std::env::current_exe()?.with_file_name("planwright");
    let workspace = dir.join("one-step");
    std::fs::create_dir_all(&workspace)?;
    let mut times = Vec::new();
    for round in 0..20 {
        let plan = workspace.join("plan.json");
        std::fs::write(&plan, shapes::one_step(round))?;
        let started = Instant::now();
        let status = Command::new(&binary)
            .args(["run", "plan.json", "--yes", "--json"])
            // As a person starts it, also when an agent starts the measurement.
            .env_clear()
            .env("HOME", &workspace)
            .env("PLANWRIGHT_DIR", &workspace)
            .current_dir(&workspace)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .status()?;
        times.push(started.elapsed());
        ensure!(status.success(), "the one-step plan failed");
    }
    times.sort();
    let budget = Duration::from_secs_f64(3.0 / commits_per_second) + Duration::from_millis(20);
    Ok((times[times.len() / 2], budget))
}
