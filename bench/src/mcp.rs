//! What a call of an MCP server costs above the server's own round trip. The server is this program
//! itself, answering lines over its pipes; the same lines are first written and read by hand.

use anyhow::{Context as _, Result, bail, ensure};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::mcp::{McpOptions, McpServers, ServerSpec, ServerState, Transport};
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::plan::Budget;
use planwright_core::policy::{Mode, Policy};
use planwright_core::principal::Principal;
use planwright_core::tool::ToolName;
use planwright_engine::memory::MemoryArtifacts;
use planwright_engine::port::{AnswerSink, Call, ProgressSink, Tools as _};
use planwright_engine::{CallEvent, Engine, Session, SessionTerms, WantedByClient};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

pub(crate) const TEXT: &str = "say it again";
/// Rounds of one by hand and one through the client, so that both see the same machine.
const ROUNDS: usize = 9;
const CALLS: usize = 300;

/// Round trips at the median.
pub(crate) struct RoundTrips {
    pub(crate) by_hand: Duration,
    pub(crate) through_client: Duration,
    /// As calls of a session of the gateway, each journaled before it is made and after it came back.
    pub(crate) through_session: Duration,
}

impl RoundTrips {
    pub(crate) fn overhead_ms(&self) -> f64 {
        self.through_client
            .saturating_sub(self.by_hand)
            .as_secs_f64()
            * 1e3
    }
}

pub(crate) fn round_trips(dir: &Path) -> Result<RoundTrips> {
    // As the program itself has it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let mut by_hand = Lines::start(echo_server()?)?;
    let servers = runtime.block_on(connect(dir))?;
    let session = runtime.block_on(open_session(dir, &servers))?;
    let mut hand = Vec::new();
    let mut client = Vec::new();
    let mut journaled = Vec::new();
    for round in 0..=ROUNDS {
        let measured = (
            by_hand.calls()?,
            runtime.block_on(through_client(&servers))?,
            runtime.block_on(through_session(&session))?,
        );
        // In the first round everything is cold.
        if round > 0 {
            hand.extend(measured.0);
            client.extend(measured.1);
            journaled.extend(measured.2);
        }
    }
    runtime.block_on(session.close());
    runtime.block_on(servers.close());
    Ok(RoundTrips {
        by_hand: median(hand),
        through_client: median(client),
        through_session: median(journaled),
    })
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// A program that is spoken to over its pipes, with nothing in between.
pub(crate) struct Lines {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    asked: u64,
}

/// The command that starts the server.
pub(crate) fn echo_server() -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("bench-echo");
    Ok(command)
}

impl Lines {
    pub(crate) fn start(mut command: Command) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take().context("it has an input")?;
        let stdout = BufReader::new(child.stdout.take().context("it has an output")?);
        Ok(Self {
            child,
            stdin,
            stdout,
            asked: 0,
        })
    }

    /// Sends a request, and returns its answer with the time until it was there.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Result<(Value, Duration)> {
        self.asked += 1;
        let id = self.asked;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        let line = format!("{request}\n");
        let mut answer = String::new();
        let started = Instant::now();
        self.stdin.write_all(line.as_bytes())?;
        loop {
            answer.clear();
            self.stdout.read_line(&mut answer)?;
            let took = started.elapsed();
            ensure!(!answer.is_empty(), "the program ended");
            let answer: Value = serde_json::from_str(&answer)?;
            // What is told in between is no answer.
            if answer["id"] == id {
                return Ok((answer, took));
            }
        }
    }

    /// Sends many requests before reading any answer. Returns the answers in the order of the requests,
    /// with the time until the last was there.
    pub(crate) fn ask_at_once(
        &mut self,
        method: &str,
        params: &[Value],
    ) -> Result<(Vec<Value>, Duration)> {
        let first = self.asked + 1;
        let mut lines = String::new();
        for params in params {
            self.asked += 1;
            let id = self.asked;
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            writeln!(lines, "{request}")?;
        }
        let mut answers = vec![Value::Null; params.len()];
        let mut left = params.len();
        let started = Instant::now();
        self.stdin.write_all(lines.as_bytes())?;
        while left > 0 {
            let mut line = String::new();
            self.stdout.read_line(&mut line)?;
            ensure!(!line.is_empty(), "the program ended");
            let answer: Value = serde_json::from_str(&line)?;
            let Some(place) = answer["id"].as_u64().and_then(|id| id.checked_sub(first)) else {
                continue;
            };
            let place = usize::try_from(place)?;
            ensure!(answers[place].is_null(), "two answers to one request");
            answers[place] = answer;
            left -= 1;
        }
        Ok((answers, started.elapsed()))
    }

    pub(crate) fn tell(&mut self, method: &str) -> Result<()> {
        let message = json!({ "jsonrpc": "2.0", "method": method });
        writeln!(self.stdin, "{message}")?;
        Ok(())
    }

    fn calls(&mut self) -> Result<Vec<Duration>> {
        let params = json!({ "name": "echo", "arguments": { "text": TEXT } });
        let mut times = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            let (answer, took) = self.ask("tools/call", &params)?;
            let text = &answer["result"]["content"][0]["text"];
            ensure!(text == TEXT, "the server answered {answer}");
            times.push(took);
        }
        Ok(times)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

async fn connect(dir: &Path) -> Result<McpServers> {
    let program = std::env::current_exe()?
        .to_str()
        .context("the program has a plain name")?
        .to_owned();
    let transport = Transport::Stdio {
        command: program,
        args: vec!["bench-echo".to_owned()],
        env: std::collections::BTreeMap::new(),
        cwd: None,
    };
    let options = McpOptions::new(Arc::new(MemoryArtifacts::new()), dir.join("logs"));
    let servers = McpServers::new(vec![ServerSpec::new("echo", transport)], options)?;
    match servers.connect().await.pop().map(|status| status.state) {
        Some(ServerState::Connected(_)) => Ok(servers),
        other => bail!("the echo server did not start: {other:?}"),
    }
}

/// A session over a store on the disk, with a policy that lets the server be called.
async fn open_session(dir: &Path, servers: &McpServers) -> Result<Session> {
    let store = Arc::new(SqliteStore::open(&dir.join("planwright.db"))?);
    let artifacts = Arc::new(FileArtifacts::new(dir.join("artifacts")));
    let policy = json!({ "rules": [{ "tool": "echo.*", "then": "allow" }] });
    let policy = Policy::read(&serde_json::from_value(policy)?)?;
    let engine = Engine::builder(Arc::new(servers.clone()))
        .store(store, artifacts)
        .policy(Arc::new(policy))
        .build();
    let terms = SessionTerms {
        client: "bench".to_owned(),
        agent: Principal::agent("bench"),
        mode: Mode::Enforce,
        owner: Principal::person("bench"),
        budget: Budget::default(),
        servers: ["echo".to_owned()].into(),
    };
    Ok(engine.sessions().open(terms).await?)
}

/// Calls of a session. Fewer than the others: each costs commits.
async fn through_session(session: &Session) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(CALLS / 3);
    for _ in 0..CALLS / 3 {
        let started = Instant::now();
        let wanted = WantedByClient {
            tool: "echo.echo".to_owned(),
            args: json!({ "text": TEXT }),
            attended: false,
            progress: ProgressSink::default(),
            client: None,
        };
        let call = session.call(wanted).await;
        let call = call.map_err(|error| anyhow::anyhow!("{}: {}", error.code, error.message))?;
        let CallEvent::Ended(answer) = call.advance().await else {
            bail!("the call waits for a person");
        };
        times.push(started.elapsed());
        ensure!(
            answer.outcome.is_ok_and(|value| value == TEXT),
            "another answer"
        );
    }
    Ok(times)
}

async fn through_client(servers: &McpServers) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(CALLS);
    for _ in 0..CALLS {
        let call = call();
        let started = Instant::now();
        let value = servers.call(call).await?;
        times.push(started.elapsed());
        ensure!(value == TEXT, "the server answered {value}");
    }
    Ok(times)
}

fn call() -> Call {
    Call {
        tool: ToolName {
            server: "echo".into(),
            tool: "echo".into(),
        },
        args: [("text".to_owned(), Value::from(TEXT))]
            .into_iter()
            .collect(),
        definition: None,
        plan: "bench".parse().expect("this is an id"),
        run: "run_bench".parse().expect("this is an id"),
        top_run: "run_bench".parse().expect("this is an id"),
        acts_for: None,
        step: "call".parse().expect("this is an id"),
        attempt: 1,
        idempotency_key: "key".into(),
        cancelled: CancellationToken::new(),
        answered: Vec::new(),
        progress: ProgressSink::default(),
        trace: None,
        answer: AnswerSink::default(),
        client: None,
        person: None,
        files: Vec::new(),
    }
}

fn tool(name: &str, only_reads: bool) -> Value {
    json!({
        "name": name, "annotations": { "readOnlyHint": only_reads },
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } },
    })
}

/// The server: answers until its input ends.
pub(crate) fn serve() -> Result<()> {
    serve_tools(&[tool("echo", true), tool("change", false)])
}

/// Stands in front of the server, and passes on lines as they are: the least that anything which stands
/// there can cost.
pub(crate) fn pass_on() -> Result<()> {
    let mut server = Lines::start(echo_server()?)?;
    let mut stdout = std::io::stdout().lock();
    let mut answer = String::new();
    for line in std::io::stdin().lock().lines() {
        server.stdin.write_all(format!("{}\n", line?).as_bytes())?;
        answer.clear();
        server.stdout.read_line(&mut answer)?;
        stdout.write_all(answer.as_bytes())?;
        stdout.flush()?;
    }
    Ok(())
}

/// The same with these tools.
pub(crate) fn serve_tools(tools: &[Value]) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let Some(id) = message.get("id") else {
            continue;
        };
        let answer = match message["method"].as_str() {
            Some("initialize") => json!({ "result": {
                "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
                "serverInfo": { "name": "echo", "version": "1" },
            } }),
            Some("tools/list") => {
                json!({ "result": { "tools": tools } })
            }
            Some("tools/call") => json!({ "result": { "content": [
                { "type": "text", "text": message["params"]["arguments"]["text"] },
            ] } }),
            _ => json!({ "error": { "code": -32601, "message": "Method not found" } }),
        };
        let Value::Object(mut answer) = answer else {
            continue;
        };
        answer.insert("jsonrpc".to_owned(), json!("2.0"));
        answer.insert("id".to_owned(), id.clone());
        writeln!(stdout, "{}", Value::Object(answer))?;
        stdout.flush()?;
    }
    Ok(())
}
