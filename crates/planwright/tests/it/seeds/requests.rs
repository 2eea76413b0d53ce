//! Rows of `docs/seeds.md` that are requests to the service, and servers.

use super::rows::{Row, Show};
use super::shows::printed;
use crate::documents::{Stage, Typed};
use crate::service::Served;
use planwright_testing::http::{HttpReply, HttpRequest};
use planwright_testing::mcp_client::McpClient;
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::steps::{echo, effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

pub(super) const SHOWS: &[(&str, Show)] = &[
    ("2.14", tools_for_agents),
    ("3.7", events),
    ("3.12", a_page),
    ("4.1", a_goal),
    ("4.2", a_goal_without_a_model),
    ("4.3", the_printed_answer),
    ("4.4", fields_of_a_step),
    ("4.5", files),
    ("4.6", queued),
    ("4.7", replayed),
    ("4.8", traces),
    ("4.9", chat),
    ("4.10", gates),
    ("4.12", structured_logs),
    ("4.16", a_durable_queue),
];

/// A service that was started, and a person who may do everything there.
struct Open {
    stage: Stage,
    token: String,
}

impl Open {
    fn of(bench: Bench) -> Self {
        let words = [
            "token", "create", "--role", "admin", "--kind", "person", "--name", "ada", "--json",
        ];
        let made = bench.run(&words).ends(0).json();
        let token = made["token"].as_str().unwrap().to_owned();
        let mut stage = Stage::new(bench);
        stage.play(&Typed::of("planwright serve")).unwrap();
        Self { stage, token }
    }

    fn new() -> Self {
        Self::of(Bench::new())
    }

    fn with_model(replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        let provider = Provider::scripted(replies);
        let bench = Bench::new();
        bench.configure(&provider.config());
        let mut open = Self::of(bench);
        open.stage.provider = Some(provider);
        open
    }

    fn request(&self, method: &str, path: &str) -> HttpRequest {
        HttpRequest::new(self.stage.service(), method, path).token(&self.token)
    }

    fn post(&self, path: &str, body: &Value) -> HttpReply {
        self.request("POST", path).json(body).send()
    }

    fn get(&self, path: &str) -> Value {
        self.request("GET", path).send().ends(200).json()
    }

    /// The request of the row, `METHOD /path`, with the plan and step it is about.
    fn asked(&self, row: &Row) -> HttpRequest {
        let (method, path) = row.shown.split_once(' ').unwrap();
        let path = path.replace("ID", "p").replace("STEP", "a");
        self.request(method, &path)
    }

    /// Stores a plan and runs it to its end.
    fn run(&self, steps: Value) {
        let plan = json!({ "id": "p", "goal": "a test", "steps": steps });
        self.post("/plan", &plan).ends(201);
        self.post("/plan/p/run", &json!({})).ends(202);
        wait_until("the run to end", || {
            self.get("/plan/p")["status"] == "completed"
        });
    }
}

fn tools_for_agents(row: &Row) {
    let bench = Bench::new();
    let words: Vec<&str> = row.shown.split_whitespace().skip(1).collect();
    let mut client = McpClient::legacy(bench.command(&words), json!({}));
    let listed = client.ask("tools/list", json!({}));
    let listed = listed["result"]["tools"].as_array().unwrap();
    for name in [
        "plan_propose",
        "plan_list",
        "plan_get",
        "plan_approve",
        "plan_reject",
    ] {
        assert!(listed.iter().any(|tool| tool["name"] == name), "{name}");
    }
    let plan = json!({ "id": "p", "title": "T", "steps": [effect("a", &[])] });
    let proposed = client.call("plan_propose", json!({ "plan": plan }));
    assert_ne!(proposed["isError"], true, "{proposed:#}");
    client.call("plan_approve", json!({ "plan_id": "p" }));
    client.close();
    assert_eq!(bench.status("p"), "proposed", "an agent approves nothing");
}

fn events(row: &Row) {
    let open = Open::new();
    open.run(json!([echo("a", 1, &[])]));
    let stream = open.asked(row).header("Accept", "text/event-stream").send();
    let text = stream.ends(200).text();
    for words in ["event: plan.step", "event: run.", "id: "] {
        assert!(text.contains(words), "{words} is not in {text}");
    }
}

fn a_page(row: &Row) {
    let mut stage = Stage::new(Bench::new());
    row.play(&mut stage);
    let page = HttpRequest::new(stage.service(), "GET", "/").header("Accept", "text/html");
    let page = page.send().ends(200);
    assert!(page.text().contains("<html"), "{}", page.text());
}

fn planned() -> Value {
    json!({ "title": "Look", "steps": [{ "id": "s1", "title": "List", "tool": "local.list_dir", "args": { "path": "." },
        "capability": "files.read", "timeoutSeconds": 30, "approvalRequired": false }] })
}

fn a_goal(row: &Row) {
    let open = Open::with_model([ScriptedReply::json(planned())]);
    let made = open
        .asked(row)
        .json(&json!({ "goal": "look around" }))
        .send();
    let made = made.ends(201).json();
    assert_eq!(made["plan"]["steps"][0]["tool"], "local.list_dir");
    assert!(made["traceId"].is_string());
}

fn a_goal_without_a_model(row: &Row) {
    let made = Open::new()
        .asked(row)
        .json(&json!({ "goal": "look around" }))
        .send();
    assert_eq!(made.ends(201).json()["plan"]["status"], "draft");
}

fn the_printed_answer(row: &Row) {
    let printed: Value = serde_json::from_str(printed!("ship_milestone.json")).unwrap();
    let open = Open::new();
    let made = open.asked(row).json(&printed).send().ends(201).json();
    assert_eq!(made["plan"]["id"], "plan-a1b2c3d4");
    let back = &made["plan"]["steps"][1];
    let sent = printed["plan"]["steps"][1].as_object().unwrap();
    for (name, value) in sent {
        assert_eq!(back[name], *value, "{name} of {made:#}");
    }
}

fn fields_of_a_step(row: &Row) {
    let open = Open::new();
    let step = json!({ "id": "a", "action": "greet", "tool": "demo.echo", "args": { "value": 1 }, "capability": "talk",
        "capabilityLabel": "Talk", "labels": ["talk"], "timeoutSeconds": 30, "approvalRequired": true });
    open.post("/plan", &json!({ "id": "p", "goal": "g", "steps": [step] }))
        .ends(201);
    let shown = open.asked(row).send().ends(200).json();
    assert_eq!(shown["steps"][0]["title"], "greet");
    let others = step
        .as_object()
        .unwrap()
        .iter()
        .filter(|(name, _)| *name != "action");
    for (name, value) in others {
        assert_eq!(shown["steps"][0][name], *value, "{name} of {shown:#}");
    }
}

fn files(row: &Row) {
    let open = Open::new();
    let plan = json!({ "id": "p", "goal": "g", "steps": [echo("a", 1, &[])] });
    open.asked(row).json(&plan).send().ends(201);
    for name in ["plan.json", "plan.md"] {
        assert!(
            open.stage.bench.path(&format!(".plans/p/{name}")).is_file(),
            "{name}"
        );
    }
}

fn listed(open: &Open, row: &Row) -> Vec<Value> {
    let list = open.asked(row).header("Accept", "application/json").send();
    list.ends(200).json()["events"].as_array().unwrap().clone()
}

fn queued(row: &Row) {
    let open = Open::new();
    open.run(json!([echo("a", 1, &[]), echo("b", 2, &["a"])]));
    let events = listed(&open, row);
    for id in ["a", "b"] {
        let queued =
            |event: &Value| event["step"]["id"] == id && event["step"]["state"] == "queued";
        assert!(events.iter().any(queued), "{id}: {events:#?}");
    }
}

fn replayed(row: &Row) {
    let open = Open::new();
    open.run(json!([echo("a", 1, &[])]));
    let events = listed(&open, row);
    let states: Vec<&str> = events
        .iter()
        .filter_map(|event| event["step"]["state"].as_str())
        .collect();
    assert!(
        states.contains(&"running") && states.contains(&"completed"),
        "{events:#?}"
    );
}

fn traces(row: &Row) {
    assert_eq!(row.shown, "any request");
    let open = Open::new();
    for (method, path) in [
        ("GET", "/plan/none"),
        ("POST", "/plan"),
        ("GET", "/approvals"),
    ] {
        let reply = open.request(method, path).send();
        let headers = ["traceparent", "x-trace-id", "trace-id"];
        let named = headers.iter().any(|name| reply.header(name).is_some());
        let told = serde_json::from_slice::<Value>(&reply.body).unwrap_or_default();
        assert!(
            named || told["traceId"].is_string(),
            "{method} {path}: {reply:?}"
        );
    }
}

fn chat(row: &Row) {
    let open = Open::with_model([ScriptedReply::text("It moves a file.")]);
    let body = json!({ "messages": [{ "role": "user", "content": "What does it do?" }] });
    let told = open.asked(row).json(&body).send().ends(200).json();
    assert_eq!(told["response"], "It moves a file.");
    assert!(told["traceId"].is_string());
}

fn gates(row: &Row) {
    let open = Open::new();
    let mut gate = echo("a", 1, &[]);
    gate["approvalRequired"] = json!(true);
    open.post("/plan", &json!({ "id": "p", "goal": "g", "steps": [gate] }))
        .ends(201);
    open.post(
        "/plan/p/approve",
        &json!({ "decision": "approve", "version": 1 }),
    );
    open.post("/plan/p/run", &json!({})).ends(202);
    wait_until("the gate", || open.get("/plan/p")["status"] == "waiting");
    let body = json!({ "decision": "approve", "version": 1 });
    open.asked(row).json(&body).send().ends(200);
    wait_until("the end", || open.get("/plan/p")["status"] == "completed");
}

fn structured_logs(row: &Row) {
    let bench = Bench::new();
    let mut words: Vec<&str> = row.shown.split_whitespace().skip(1).collect();
    words.extend(["--listen", ":0", "--json", "--log-level", "info"]);
    let served = Served::start(bench.command(&words));
    served.get("/plan/none", &[]);
    served.wait_for_log("\"answered\"");
    let logs = served.logs();
    let answered = logs.lines().find(|line| line.contains("\"answered\""));
    let line: Value = serde_json::from_str(answered.unwrap()).unwrap();
    assert!(
        line["level"].is_string() && line["traceId"].is_string(),
        "{line}"
    );
}

fn a_durable_queue(row: &Row) {
    let open = Open::new();
    let plan =
        json!({ "id": "p", "goal": "g", "steps": [sleep("a", 500, &[]), effect("b", &["a"])] });
    open.post("/plan", &plan).ends(201);
    open.post(
        "/plan/p/approve",
        &json!({ "decision": "approve", "version": 1 }),
    )
    .ends(200);
    open.post("/plan/p/run", &json!({})).ends(202);
    let mut stage = open.stage;
    stage.kill_service();
    row.play(&mut stage);
    wait_until("the run to end", || stage.bench.status("p") == "completed");
    assert_eq!(stage.bench.read("effects.txt"), "b\n");
}
