//! Goals as people write them, over servers that others wrote, planned by a model that knows the
//! language: its answers were written from the recorded requests alone and lie in `goals/`, apart
//! from this code. Each plan has to be valid in the first round, run, and leave behind what was
//! asked for, which `goals/outcome.py` looks up without asking Planwright.
//!
//! All of them are slow, so `cargo xtask prove goals` installs the servers and runs them; the check
//! runs the few whose servers it installs anyway.

use planwright_core::planning::estimate_tokens;
use planwright_testing::peers::{Project, installed};
use planwright_testing::provider::{Provider, RecordedRequest, ScriptedReply};
use planwright_testing::workbench::{Said, said};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The servers of the office, besides the tools that are part of the program.
const SERVERS: [&str; 8] = [
    "filesystem",
    "memory",
    "git",
    "time",
    "sqlite",
    "fetch",
    "workbooks",
    "duck",
];

/// The exit code of a run that waits for a person.
const WAITING: i32 = 4;
/// Gates that follow each other in a plan.
const MAX_GATES: usize = 8;

/// Of thirty goals so many have to be reached in the first round.
const REACHED: usize = 28;

/// The tokens that the first request for a plan may have: these servers have 113 tools.
const MOST_TOKENS: usize = 12_000;

/// What `fetch` finds on the pages of this machine.
const PAGES: [(&str, &str, &str); 3] = [
    (
        "/status.json",
        "application/json",
        r#"{"services": [{"name": "shop", "up": true}, {"name": "mail", "up": false}, {"name": "depot", "up": true}]}"#,
    ),
    (
        "/prices.html",
        "text/html",
        "<html><head><title>Prices</title></head><body><h1>Prices</h1><p>Lamp: 42 EUR</p><p>Chair: 60 EUR</p>\
         <p>Desk: 310 EUR</p></body></html>",
    ),
    (
        "/rates.json",
        "application/json",
        r#"{"base": "EUR", "date": "2026-10-16", "rates": {"USD": 1.1, "GBP": 0.85}}"#,
    ),
];

/// How far a goal got.
struct Attempt {
    name: String,
    valid: bool,
    ran: bool,
    met: bool,
    /// The size of the first request for the plan: later ones also have what the planner looked up.
    tokens: usize,
    /// What was said, if it did not get to the end.
    said: String,
}

fn goals_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/goals")
}

/// Serves the pages until the test program ends.
fn serve_pages() -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            answer_page(stream);
        }
    });
    format!("http://127.0.0.1:{port}")
}

fn answer_page(mut stream: TcpStream) {
    let mut asked = [0; 4096];
    let read = stream.read(&mut asked).unwrap_or_default();
    let asked = String::from_utf8_lossy(&asked[..read]);
    let path = asked.split(' ').nth(1).unwrap_or_default();
    let page = PAGES.iter().find(|(at, _, _)| *at == path);
    let (status, kind, text) = match page {
        Some((_, kind, text)) => ("200 OK", *kind, *text),
        None => ("404 Not Found", "text/plain", ""),
    };
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close");
    let length = text.len();
    drop(write!(
        stream,
        "{head}\r\nContent-Length: {length}\r\n\r\n{text}"
    ));
}

/// How the servers are started that only the long proof installs.
fn entry(project: &Project, name: &str) -> Value {
    let program = |program: &str, args: Value| {
        let command = installed(&format!("py-strangers/bin/{program}"));
        json!({ "command": command, "args": args })
    };
    match name {
        "fetch" => program(
            "mcp-server-fetch",
            json!(["--ignore-robots-txt", "--allow-private-ips"]),
        ),
        "workbooks" => program("excel-mcp-server", json!(["stdio"])),
        "duck" => program(
            "mcp-server-motherduck",
            json!(["--db-path", project.file("sales.duckdb"), "--read-write"]),
        ),
        known => project.entry(known),
    }
}

/// The interpreter that knows workbooks and warehouses, if there are servers for them.
fn python(servers: &[&str]) -> PathBuf {
    match servers.contains(&"duck") {
        true => installed("py-strangers/bin/python"),
        false => installed("py/bin/python"),
    }
}

fn run_python(servers: &[&str], script: &str, args: &[&str]) -> Result<(), String> {
    let mut command = Command::new(python(servers));
    command.arg(goals_folder().join(script)).args(args);
    let done = said(command.output().unwrap());
    match done.code {
        0 => Ok(()),
        _ => Err(format!("{}{}", done.out, done.err)),
    }
}

/// An office with these servers.
fn open_office(servers: &[&str]) -> Project {
    let project = Project::with(&[]);
    run_python(servers, "office.py", &[&project.file("")]).unwrap();
    let entries = servers
        .iter()
        .map(|&name| (name.to_owned(), entry(&project, name)));
    project.name(&json!(entries.collect::<serde_json::Map<String, Value>>()));
    project
}

/// The model: gives each of its answers once, in their order. An answer to something that a run asks
/// says which words of it are its reason, and is given only where they are.
fn model(mut answers: Vec<Value>) -> Provider {
    Provider::answering(move |asked| {
        let words = words_of(asked);
        let sees = |answer: &Value| {
            let seen = answer["sees"].as_array().into_iter().flatten();
            seen.filter_map(Value::as_str)
                .all(|part| words.contains(part))
        };
        match answers.iter().position(sees) {
            Some(place) => reply(&answers.remove(place), asked),
            None => ScriptedReply::status(500, format!("nothing was written for {words}")),
        }
    })
}

/// What the model reads.
fn words_of(asked: &RecordedRequest) -> String {
    let messages = asked.body["messages"].as_array().into_iter().flatten();
    let texts = messages.filter_map(|message| message["content"].as_str());
    texts.collect::<Vec<_>>().join("\n")
}

/// An answer in the words of the provider. A model calls only what it is offered.
fn reply(answer: &Value, asked: &RecordedRequest) -> ScriptedReply {
    if let Some(calls) = answer["calls"].as_array() {
        let calls: Vec<(&str, Value)> = calls
            .iter()
            .map(|call| (call["tool"].as_str().unwrap(), call["args"].clone()))
            .collect();
        let offered = asked.body["tools"].as_array().into_iter().flatten();
        let offered: Vec<&str> = offered
            .filter_map(|tool| tool["function"]["name"].as_str())
            .collect();
        let missing = calls.iter().find(|(tool, _)| !offered.contains(tool));
        return match missing {
            Some((tool, _)) => {
                ScriptedReply::status(400, format!("{tool} is not offered: {offered:?}"))
            }
            None => ScriptedReply::calls(calls),
        };
    }
    if let Some(text) = answer["text"].as_str() {
        return ScriptedReply::text(text);
    }
    let value = answer.get("plan").or_else(|| answer.get("json")).unwrap();
    ScriptedReply::json(value.clone())
}

/// Plans for a goal and runs the plan. A plan that is not valid is not sent back.
fn attempt(name: &str, servers: &[&str], pages: &str) -> Attempt {
    let project = open_office(servers);
    let root = project.file("");
    let read = |file: &str| {
        let text = std::fs::read_to_string(goals_folder().join(name).join(file)).unwrap();
        text.replace("{{root}}", root.trim_end_matches('/'))
            .replace("{{pages}}", pages)
    };
    let model = model(serde_json::from_str(&read("answers.json")).unwrap());
    project.configure(&model.config());
    let goal = read("goal.txt");
    let created = project.run(&["create", goal.trim(), "--rounds", "0", "--json"]);
    let tokens = record_requests(name, &model.asked());
    let mut attempt = Attempt {
        name: name.to_owned(),
        valid: created.code == 0,
        ran: false,
        met: false,
        tokens,
        said: format!("{}{}", created.out, created.err),
    };
    if !attempt.valid {
        return attempt;
    }
    let plan = created.json()["id"].as_str().unwrap().to_owned();
    let run = run_to_the_end(&project, &plan);
    attempt.ran = run.code == 0;
    attempt.said = format!("{}{}", run.out, run.err);
    let outcome = goals_folder().join(name).join("outcome.json");
    match run_python(servers, "outcome.py", &[&root, outcome.to_str().unwrap()]) {
        Ok(()) => attempt.met = true,
        Err(reason) => attempt.said.push_str(&reason),
    }
    attempt
}

/// Runs the plan, and agrees to each step at which it waits for that.
fn run_to_the_end(project: &Project, plan: &str) -> Said {
    let mut said = project.run(&["run", plan, "--yes", "--json"]);
    for _ in 0..MAX_GATES {
        if said.code != WAITING {
            break;
        }
        let state = said.json();
        let digest = state["digest"].as_str().unwrap();
        for step in waiting_steps(&state) {
            let agreed = project.run(&["approve", plan, "--step", &step, "--digest", digest]);
            if agreed.code != 0 {
                return agreed;
            }
        }
        said = project.run(&["resume", plan, "--json"]);
    }
    said
}

/// The steps, and the turns of loops, that wait for a person to agree.
fn waiting_steps(state: &Value) -> Vec<String> {
    let mut waiting = Vec::new();
    for step in state["steps"].as_array().into_iter().flatten() {
        let id = step["id"].as_str().unwrap();
        let waits = |part: &&Value| part["status"] == "awaiting_approval";
        waiting.extend(Some(step).filter(waits).map(|_| id.to_owned()));
        let turns = step["items"].as_array().into_iter().flatten();
        waiting.extend(
            turns
                .filter(waits)
                .map(|turn| format!("{id}[{}]", turn["index"])),
        );
    }
    waiting
}

/// Writes down what the model was asked for the plan, for people who want to read it, and returns the
/// size of the first request.
fn record_requests(name: &str, asked: &[RecordedRequest]) -> usize {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.ancestors().nth(2).unwrap().join("goals").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    for (turn, request) in asked.iter().enumerate() {
        let file = folder.join(format!("request-{}.json", turn + 1));
        std::fs::write(file, request.text()).unwrap();
    }
    let first = asked.first().map(RecordedRequest::text);
    estimate_tokens(&first.unwrap_or_default())
}

fn table(attempts: &[Attempt]) -> String {
    let word = |is: bool| if is { "yes" } else { "NO" };
    let mut text =
        "goal                  valid at once  ran  criterion met  tokens of the request\n"
            .to_owned();
    for attempt in attempts {
        let Attempt {
            name,
            valid,
            ran,
            met,
            tokens,
            said: _,
        } = attempt;
        let valid = word(*valid);
        let ran = word(*ran);
        let met = word(*met);
        writeln!(
            text,
            "{name:20}  {valid:13}  {ran:3}  {met:13}  {tokens:>6}"
        )
        .unwrap();
    }
    text
}

#[test]
fn a_strong_model_reaches_a_goal_in_one_round() {
    let servers = ["filesystem", "memory", "sqlite"];
    for name in ["08-actions-table", "09-remember-people"] {
        let attempt = attempt(name, &servers, "");
        assert!(
            attempt.valid && attempt.ran && attempt.met,
            "{name}: {}",
            attempt.said
        );
    }
}

#[test]
#[ignore = "thirty goals over eight servers: cargo xtask prove goals"]
fn a_strong_model_reaches_thirty_goals_over_eight_servers() {
    let pages = serve_pages();
    let folders = std::fs::read_dir(goals_folder()).unwrap().flatten();
    let mut names: Vec<String> = folders
        .filter(|entry| entry.path().join("goal.txt").is_file())
        .map(|entry| entry.file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 30);
    let attempts: Vec<Attempt> = names
        .iter()
        .map(|name| attempt(name, &SERVERS, &pages))
        .collect();
    let is_reached = |attempt: &&Attempt| attempt.valid && attempt.ran && attempt.met;
    let reached = attempts.iter().filter(is_reached).count();
    println!(
        "{}{reached} of {} reached",
        table(&attempts),
        attempts.len()
    );
    let missed = attempts.iter().filter(|attempt| !is_reached(attempt));
    let missed: Vec<String> = missed
        .map(|attempt| format!("{}: {}", attempt.name, attempt.said))
        .collect();
    assert!(reached >= REACHED, "{}", missed.join("\n\n"));
    println!("{}", missed.join("\n\n"));
    let largest = attempts.iter().map(|attempt| attempt.tokens).max();
    assert!(largest <= Some(MOST_TOKENS), "{largest:?} tokens were sent");
}
