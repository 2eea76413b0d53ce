//! What the gateway costs: the program as it is shipped stands between a client and the server, and
//! the same calls are made with and without it, in turn.

use crate::mcp::{Lines, TEXT, median};
use anyhow::{Result, anyhow, ensure};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 9;
const CALLS: usize = 200;
/// Calls of one kind that follow each other: what is done after an answer is paid by the next call, which
/// should be of the same kind.
const IN_A_ROW: usize = 20;

/// Round trips at the median.
pub(crate) struct Gateway {
    pub(crate) direct: Duration,
    /// Through a program that does nothing but pass on lines.
    pub(crate) passed_on: Duration,
    /// A call that changes something, as the server says.
    pub(crate) change: Duration,
    /// A call that only reads.
    pub(crate) read: Duration,
    /// A request that is answered without a call.
    pub(crate) no_call: Duration,
}

impl Gateway {
    pub(crate) fn measure(program: &Path, dir: &Path) -> Result<Self> {
        prepare(program, dir)?;
        let mut direct = Lines::start(crate::mcp::echo_server()?)?;
        let mut passed_on = Command::new(std::env::current_exe()?);
        passed_on.arg("bench-pass");
        let mut passed_on = Lines::start(passed_on)?;
        let mut gateway = open(program, dir)?;
        let mut times = [const { Vec::new() }; 5];
        for round in 0..=ROUNDS {
            for _ in 0..CALLS / IN_A_ROW {
                let mut measure = |kind: usize, client: &mut Lines, method, params: Value| {
                    for _ in 0..IN_A_ROW {
                        let (answer, took) = client.ask(method, &params)?;
                        ensure!(answer.get("error").is_none(), "{answer}");
                        ensure!(answer["result"]["isError"] != true, "{answer}");
                        // In the first round everything is cold.
                        if round > 0 {
                            times[kind].push(took);
                        }
                    }
                    anyhow::Ok(())
                };
                measure(0, &mut direct, "tools/call", call("change"))?;
                measure(1, &mut passed_on, "tools/call", call("change"))?;
                measure(2, &mut gateway, "tools/call", call("echo__change"))?;
                measure(3, &mut gateway, "tools/call", call("echo__echo"))?;
                measure(4, &mut gateway, "ping", json!({}))?;
            }
        }
        let [direct, passed_on, change, read, no_call] = times.map(median);
        Ok(Self {
            direct,
            passed_on,
            change,
            read,
            no_call,
        })
    }
}

/// Calls that one client makes before it reads an answer.
pub(crate) const AT_ONCE: usize = 100;
/// Clients, each with a gateway of its own, on one store.
pub(crate) const CLIENTS: usize = 8;

/// What a call costs when there are many.
pub(crate) struct Crowd {
    /// One of [`AT_ONCE`], as a share of the time for all of them, at the median.
    pub(crate) at_once: Duration,
    /// A call of one of [`CLIENTS`], at the median.
    pub(crate) of_clients: Duration,
}

impl Crowd {
    pub(crate) fn measure(program: &Path, dir: &Path) -> Result<Self> {
        prepare(program, dir)?;
        Ok(Self {
            at_once: many_at_once(program, dir)?,
            of_clients: many_clients(program, dir)?,
        })
    }
}

/// Calls of each kind that are watched.
const WATCHED: usize = 50;

/// How often the gateway asks the disk to keep what was written, per call.
pub(crate) struct Syncs {
    pub(crate) change: f64,
    pub(crate) read: f64,
}

impl Syncs {
    /// Watches the gateway with strace. Nothing where there is no strace.
    pub(crate) fn count(program: &Path, dir: &Path) -> Result<Option<Self>> {
        let mut strace = Command::new("strace");
        let strace = strace.arg("-V").stdout(Stdio::null());
        if !strace.status().is_ok_and(|status| status.success()) {
            return Ok(None);
        }
        prepare(program, dir)?;
        Ok(Some(Self {
            change: syncs_per_call(program, dir, "echo__change")?,
            read: syncs_per_call(program, dir, "echo__echo")?,
        }))
    }
}

fn syncs_per_call(program: &Path, dir: &Path, tool: &str) -> Result<f64> {
    let log = dir.join(format!("{tool}.strace"));
    let mut watched = Command::new("strace");
    watched
        .args(["-f", "-qq", "-e", "trace=fsync,fdatasync", "-o"])
        .arg(&log)
        .arg(program)
        .args(["mcp", "--gateway"])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", dir.join("home"))
        .current_dir(workspace(dir));
    let mut gateway = Lines::start(watched)?;
    begin(&mut gateway)?;
    // The first call begins the session.
    gateway.ask("tools/call", &call(tool))?;
    let before = count_syncs(&log)?;
    for _ in 0..WATCHED {
        gateway.ask("tools/call", &call(tool))?;
    }
    // What is written a moment later counts too.
    std::thread::sleep(Duration::from_millis(300));
    let syncs = count_syncs(&log)? - before;
    Ok(f64::from(u32::try_from(syncs)?) / f64::from(u32::try_from(WATCHED)?))
}

fn count_syncs(log: &Path) -> Result<usize> {
    let log = std::fs::read_to_string(log)?;
    Ok(log.lines().filter(|line| line.contains("sync(")).count())
}

fn many_at_once(program: &Path, dir: &Path) -> Result<Duration> {
    let mut gateway = open(program, dir)?;
    let texts: Vec<String> = (0..AT_ONCE).map(|number| format!("say {number}")).collect();
    let calls: Vec<Value> = texts
        .iter()
        .map(|text| json!({ "name": "echo__echo", "arguments": { "text": text } }))
        .collect();
    let mut times = Vec::new();
    for round in 0..=ROUNDS {
        let (answers, took) = gateway.ask_at_once("tools/call", &calls)?;
        for (answer, text) in answers.iter().zip(&texts) {
            let said = &answer["result"]["content"][0]["text"];
            ensure!(said == text.as_str(), "{text} was answered with {answer}");
        }
        if round > 0 {
            times.push(took / u32::try_from(AT_ONCE)?);
        }
    }
    Ok(median(times))
}

fn many_clients(program: &Path, dir: &Path) -> Result<Duration> {
    let measured: Vec<Result<Vec<Duration>>> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..CLIENTS)
            .map(|_| {
                scope.spawn(|| {
                    let mut gateway = open(program, dir)?;
                    let mut times = Vec::with_capacity(CALLS);
                    for _ in 0..CALLS {
                        let (answer, took) = gateway.ask("tools/call", &call("echo__echo"))?;
                        let said = &answer["result"]["content"][0]["text"];
                        ensure!(said == TEXT, "{answer}");
                        times.push(took);
                    }
                    Ok(times)
                })
            })
            .collect();
        let joined = clients.into_iter().map(std::thread::ScopedJoinHandle::join);
        joined
            .map(|times| times.unwrap_or_else(|_| Err(anyhow!("a client panicked"))))
            .collect()
    });
    let times = measured.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(median(times.concat()))
}

/// A client that has begun to talk to the gateway.
fn open(program: &Path, dir: &Path) -> Result<Lines> {
    let mut gateway = command(program, dir);
    gateway.args(["mcp", "--gateway"]);
    let mut gateway = Lines::start(gateway)?;
    begin(&mut gateway)?;
    Ok(gateway)
}

fn call(tool: &str) -> Value {
    json!({ "name": tool, "arguments": { "text": TEXT } })
}

fn begin(gateway: &mut Lines) -> Result<()> {
    let (begun, _) = gateway.ask(
        "initialize",
        &json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" },
        }),
    )?;
    ensure!(begun["result"].is_object(), "the gateway said {begun}");
    gateway.tell("notifications/initialized")
}

/// A workspace with the server, trusted, and a policy that lets it be called.
fn prepare(program: &Path, dir: &Path) -> Result<()> {
    let server = json!({ "mcpServers": { "echo": {
        "command": std::env::current_exe()?, "args": ["bench-echo"],
    } } });
    let workspace = workspace(dir);
    std::fs::create_dir_all(&workspace)?;
    std::fs::write(workspace.join(".mcp.json"), server.to_string())?;
    let policy = "[[policy.rules]]\ntool = \"echo.*\"\nthen = \"allow\"\n";
    std::fs::write(workspace.join("planwright.toml"), policy)?;
    let mut trust = command(program, dir);
    let trusted = trust.args(["trust", "--yes"]).stderr(Stdio::null());
    ensure!(trusted.status()?.success(), "the folder is not trusted");
    Ok(())
}

/// The program of a user whose own files are in this directory.
fn command(program: &Path, dir: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env_clear()
        .env("HOME", dir.join("home"))
        .current_dir(workspace(dir))
        .stdout(Stdio::null());
    command
}

/// Beside the home of the user: what is trusted is never recorded inside a workspace.
fn workspace(dir: &Path) -> PathBuf {
    dir.join("workspace")
}
