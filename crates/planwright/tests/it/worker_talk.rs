//! What calls say while workers make them: how far they are, what their servers log, and what their tools ask a person.

use crate::service::Served;
use crate::workers::{Hand, TOKEN, Team, with_capability};
use planwright_testing::http::HttpRequest;
use planwright_testing::postgres::server;
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::{call, effect, step};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

/// A team with a worker whose tool asks, and services that pass it on.
struct Office {
    team: Team,
    desk: Hand,
    token: String,
}

/// A call that is made once, says how far it is for so long, and asks so many questions then.
fn pay(id: &str, seconds: f64, questions: u32) -> Value {
    let args = json!({ "account": id, "seconds": seconds, "questions": questions, "token": "Bearer ${secret.BANK_TOKEN}" });
    with_capability(call(id, "desk.pay", args, &[]), "billing")
}

fn hire_desk(team: &Team) -> Hand {
    let bench = Bench::new();
    bench.write("desk.py", include_str!("asking_bank.py"));
    let token = bench.write("token", TOKEN);
    std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o600)).unwrap();
    bench.configure(
        "[dispatch]\nclaim = \"3s\"\n[secrets]\nBANK_TOKEN = { file = \"token\", tools = [\"desk.*\"] }\n",
    );
    let modern = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../planwright-adapters/tests/mcp/hostile_server.py"
    );
    let servers = json!({ "mcpServers": {
        "desk": { "command": "python3", "args": ["desk.py"] },
        "form": { "command": "python3", "args": [modern, "elicits_modern", "modern"] },
    } });
    bench.write("desk.json", &servers.to_string());
    team.hire(bench, "billing", &["--servers", "desk.json"])
}

impl Office {
    fn new(database: &str) -> Self {
        let team = Team::new(database);
        let desk = hire_desk(&team);
        let create = "token create --role admin --kind person --name ada --json".split(' ');
        let made = team.run(&create.collect::<Vec<_>>()).ends(0).json();
        Self {
            team,
            desk,
            token: made["token"].as_str().unwrap().to_owned(),
        }
    }

    /// Another service of the same store.
    fn serve(&self) -> (Served, ServiceClient) {
        let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
        let served = Served::start(self.team.command(&self.team.owner, &serve));
        let client = ServiceClient {
            host: served.address().to_owned(),
            admin: self.token.clone(),
        };
        (served, client)
    }

    fn paid(&self) -> usize {
        self.desk.bench.read("paid.txt").lines().count()
    }
}

/// What is asked of a person now.
fn wait_for_question(client: &ServiceClient, id: &str) -> Value {
    let find = || {
        let mut inbox = client.inbox().into_iter();
        inbox.rfind(|item| item["planId"] == id && item["kind"] == "input")
    };
    wait_until("the question", || find().is_some());
    find().unwrap()
}

fn answer(client: &ServiceClient, asked: &Value, name: &str) {
    let (plan, run) = (asked["planId"].as_str().unwrap(), &asked["runId"]);
    let step = asked["step"].as_str().unwrap();
    let key = asked["questions"][0]["key"].as_str().unwrap();
    let body =
        json!({ "run": run, "question": asked["digest"], "answers": { key: { "name": name } } });
    client
        .post(&format!("/plan/{plan}/steps/{step}/input"), &body)
        .ends(200);
}

#[test]
fn how_far_a_workers_call_is_and_what_its_server_logs_reach_those_who_watch_the_run() {
    let office = Office::new("worker_progress");
    let (_served, client) = office.serve();
    client.plan("p", json!([pay("pay", 6.0, 0)]));
    client.approve("p");
    let watched = HttpRequest::new(&client.host, "GET", "/plan/p/events")
        .token(&office.token)
        .header("Accept", "text/event-stream");
    let stream = watched.try_open().unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let run = client.run("p");
    let mut told: Vec<Value> = Vec::new();
    for line in BufReader::new(stream).lines().map_while(Result::ok) {
        let Some(data) = line.strip_prefix("data: ") else {
            continue;
        };
        told.extend(serde_json::from_str::<Value>(data));
        if told.last().is_some_and(|it| it["event"] == "run.completed") {
            break;
        }
    }
    let named = |name: &str| {
        told.iter()
            .filter(|it| it["event"] == name)
            .collect::<Vec<_>>()
    };
    let progress = named("plan.progress");
    // Thirty notifications in six seconds: a few are passed on, the newest each time.
    assert!((2..=12).contains(&progress.len()), "{progress:#?}");
    let done: Vec<f64> = progress
        .iter()
        .map(|it| it["done"].as_f64().unwrap())
        .collect();
    assert!(done.is_sorted(), "{done:?}");
    assert!(
        progress
            .iter()
            .all(|it| it["total"] == 30.0 && it["step"]["id"] == "pay")
    );
    let lines = named("plan.log");
    assert!(lines.len() > 10, "{} lines", lines.len());
    let all = json!(told).to_string();
    assert!(
        all.contains("[secret BANK_TOKEN]") && !all.contains(TOKEN),
        "{all}"
    );
    // Nothing of it is in the journal, and the lines are kept beside it.
    let kinds = office.team.kinds("p");
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| *kind == "attempt_started")
            .count(),
        1
    );
    assert!(
        !kinds.iter().any(|kind| kind.contains("progress")),
        "{kinds:?}"
    );
    let shown = client.result("p", &run);
    assert!(
        step(&shown, "pay")["log"]
            .as_array()
            .is_some_and(|log| !log.is_empty()),
        "{shown:#}"
    );
    let sql = "SELECT count(*) FROM planwright.call_news";
    assert_eq!(server().sql(&office.team.database, sql), "1");
}

#[test]
fn what_a_workers_call_asks_is_a_question_of_the_run_and_the_call_goes_on_with_the_answer() {
    let office = Office::new("worker_questions");
    let (_served, client) = office.serve();
    client.plan("p", json!([pay("pay", 0.0, 2)]));
    client.approve("p");
    let run = client.run("p");
    let first = wait_for_question(&client, "p");
    assert_eq!(first["questions"][0]["message"], "Who signs?", "{first:#}");
    assert_eq!(
        step(&client.result("p", &run), "pay")["status"],
        "awaiting_input"
    );
    // It is durable before it is shown, and the claim outlives the wait.
    assert!(
        office
            .team
            .kinds("p")
            .contains(&"input_requested".to_owned())
    );
    std::thread::sleep(Duration::from_secs(4));
    answer(&client, &first, "Ada");
    // The same words again are another question.
    wait_until("the second question", || {
        let kinds = office.team.kinds("p");
        kinds
            .iter()
            .filter(|kind| *kind == "input_requested")
            .count()
            == 2
    });
    let second = wait_for_question(&client, "p");
    answer(&client, &second, "Bob");
    client.wait_for("p", "completed");
    let shown = client.result("p", &run);
    assert_eq!(
        step(&shown, "pay")["value"],
        "signed by Ada, Bob",
        "{shown:#}"
    );
    assert_eq!(office.paid(), 1, "the call was made again");
    office.team.run(&["verify"]).ends(0);
}

#[test]
fn another_owner_takes_over_a_question_that_a_workers_call_asked() {
    let office = Office::new("worker_question_taken_over");
    let (served, client) = office.serve();
    client.plan("p", json!([pay("pay", 0.0, 2)]));
    client.approve("p");
    client.run("p");
    answer(&client, &wait_for_question(&client, "p"), "Ada");
    wait_until("the second question", || {
        let kinds = office.team.kinds("p");
        kinds
            .iter()
            .filter(|kind| *kind == "input_requested")
            .count()
            == 2
    });
    served.into_running().kill();
    let (_other, client) = office.serve();
    let asked = wait_for_question(&client, "p");
    answer(&client, &asked, "Bob");
    client.wait_for("p", "completed");
    // The worker got both answers in their order, and the question was journaled once.
    let kinds = office.team.kinds("p");
    let count = |name: &str| kinds.iter().filter(|kind| *kind == name).count();
    assert_eq!(
        (count("input_requested"), count("input_given")),
        (2, 2),
        "{kinds:?}"
    );
    let shown = office.team.run(&["show", "p", "--json"]).ends(0).out;
    assert_eq!(office.paid(), 1, "{shown}");
    office.team.run(&["verify"]).ends(0);
}

#[test]
fn a_worker_that_is_killed_while_its_call_waits_for_a_person_leaves_an_unknown_outcome() {
    let mut office = Office::new("worker_question_killed");
    let (_served, client) = office.serve();
    client.plan("p", json!([pay("pay", 0.0, 1)]));
    client.approve("p");
    let run = client.run("p");
    wait_for_question(&client, "p");
    office.desk.kill();
    wait_until("the unknown outcome", || {
        step(&client.result("p", &run), "pay")["status"] == "outcome_unknown"
    });
    assert!(client.inbox().iter().all(|item| item["kind"] != "input"));
    assert_eq!(office.paid(), 1);
}

#[test]
fn a_question_of_the_current_era_parks_the_run_and_the_servers_note_comes_back_unread() {
    let office = Office::new("worker_question_parked");
    let (served, client) = office.serve();
    let form = with_capability(call("form", "form.call", json!({}), &[]), "billing");
    client.plan("p", json!([form, effect("after", &["form"])]));
    client.approve("p");
    let run = client.run("p");
    let asked = wait_for_question(&client, "p");
    // Nothing is held: the run is parked, and outlives its process.
    served.into_running().kill();
    let (_other, client) = office.serve();
    let keys = asked["questions"].as_array().unwrap().iter();
    let keys = keys.map(|question| question["key"].as_str().unwrap());
    let answers: serde_json::Map<String, Value> = keys
        .map(|key| {
            (
                key.to_owned(),
                json!(if key == "who" {
                    json!({ "name": "Ada" })
                } else {
                    json!({})
                }),
            )
        })
        .collect();
    let body = json!({ "run": run, "question": asked["digest"], "answers": answers });
    client.post("/plan/p/steps/form/input", &body).ends(200);
    client.wait_for("p", "completed");
    let shown = client.result("p", &run);
    let value = &step(&shown, "form")["value"];
    assert_eq!(value["state"], "opaque é", "{shown:#}");
    assert_eq!(
        value["responses"]["who"]["content"]["name"], "Ada",
        "{shown:#}"
    );
}
