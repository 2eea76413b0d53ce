//! Webhooks against a real receiver, which checks the signatures with code of its own.

use crate::service::Served;
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::steps::echo;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, Said, said};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

const FIRST_KEY: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const SECOND_KEY: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

struct Receiver {
    child: Child,
    port: u16,
}

impl Receiver {
    fn start(bench: &Bench) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/receiver.py");
        let mut child = Command::new("python3")
            .args([script, bench.path("received.jsonl").to_str().unwrap()])
            .env("HOOK_KEYS", format!("{FIRST_KEY} {SECOND_KEY}"))
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 is needed");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        Self {
            child,
            port: line.trim().parse().unwrap(),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn received(bench: &Bench, path: &str) -> Vec<Value> {
    let lines = bench.read("received.jsonl");
    // The last line may still be on its way.
    let all = lines
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    all.filter(|request| request["path"] == path).collect()
}

fn kinds(requests: &[Value]) -> Vec<&str> {
    requests
        .iter()
        .map(|request| request["body"]["type"].as_str().unwrap())
        .collect()
}

fn endpoint(name: &str, url: &str, more: &str) -> String {
    format!(
        "[[webhooks]]\nname = \"{name}\"\nurl = \"{url}\"\nsecret = \"ONE\"\nallow_private = true\n{more}\n"
    )
}

fn with_keys(mut command: Command) -> Command {
    command
        .env("PLANWRIGHT_SECRET_ONE", FIRST_KEY)
        .env("PLANWRIGHT_SECRET_TWO", SECOND_KEY);
    command
}

fn serve(bench: &Bench) -> Served {
    Served::start(with_keys(
        bench.command(&["serve", "--listen", ":0", "--json"]),
    ))
}

fn run(bench: &Bench, args: &[&str]) -> Said {
    said(with_keys(bench.command(args)).output().unwrap())
}

fn listed(bench: &Bench, name: &str) -> Value {
    let list = run(bench, &["webhooks", "list", "--json"]).ends(0).json();
    list.as_array()
        .unwrap()
        .iter()
        .find(|one| one["name"] == name)
        .unwrap()
        .clone()
}

/// Waits until every endpoint knows where it begins: it is told what happens from then on.
fn settled(served: &Served, endpoints: usize) {
    wait_until("the endpoints to be known", || {
        served.logs().matches("begins here").count() == endpoints
    });
}

#[test]
fn endpoints_are_told_in_order_and_signed_and_do_not_disturb_each_other() {
    let bench = Bench::new();
    let receiver = Receiver::start(&bench);
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", receiver.port);
    let config = [
        endpoint(
            "ok",
            &url("/ok"),
            "secrets = [\"TWO\"]\nservice_url = \"https://plans.example.com/\"",
        ),
        endpoint(
            "cloud",
            &url("/cloud"),
            "format = \"cloudevents\"\nevents = [\"run.*\"]",
        ),
        endpoint("gone", &url("/gone"), ""),
        endpoint("moved", &url("/moved"), "events = [\"run.ended\"]"),
        endpoint(
            "busy",
            &url("/busy"),
            "events = [\"run.ended\", \"run.started\"]",
        ),
        endpoint("nobody", "http://127.0.0.1:9/", ""),
    ];
    bench.configure(&config.join("\n"));
    let served = serve(&bench);
    settled(&served, 6);

    let plan = bench.plan("p", json!([echo("a", "x", &[]), echo("b", "${a}", &["a"])]));
    // No endpoint, whether it can be told or not, changes what the run comes to.
    run(&bench, &["run", &plan, "--yes"]).ends(0);

    let ended = |path: &str| {
        let told = received(&bench, path);
        told.iter().any(|request| {
            request["body"]["type"]
                .as_str()
                .unwrap()
                .contains("run.ended")
        })
    };
    wait_until("run.ended", || {
        ended("/ok") && ended("/cloud") && ended("/busy") && ended("/moved")
    });
    let told = received(&bench, "/ok");
    assert_eq!(
        kinds(&told),
        [
            "plan.proposed",
            "approval.requested",
            "approval.decided",
            "run.started",
            "run.ended"
        ]
    );
    assert!(
        told.iter().all(|request| request["verified"] == 2),
        "both keys sign: {told:#?}"
    );
    assert!(
        told.iter()
            .all(|request| request["bytes"].as_u64().unwrap() < 20_000)
    );
    let ids: BTreeSet<&str> = told
        .iter()
        .map(|request| request["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids.len(), told.len());
    let last = &told[4]["body"];
    crate::documents::assert_shown("docs/webhooks.md", "run.ended", last);
    assert_eq!(
        (
            &last["data"]["planId"],
            &last["data"]["status"],
            &last["data"]["title"],
            &last["data"]["url"]
        ),
        (
            &json!("p"),
            &json!("completed"),
            &json!("Plan p"),
            &json!("https://plans.example.com/plan/p")
        )
    );
    assert!(
        last["data"]["runId"].as_str().unwrap().starts_with("run_")
            && last["timestamp"].is_string()
    );

    let cloud = received(&bench, "/cloud");
    assert_eq!(
        kinds(&cloud),
        [
            "dev.planwright.run.started.v1",
            "dev.planwright.run.ended.v1"
        ]
    );
    assert_eq!(cloud[1]["contentType"], "application/cloudevents+json");
    assert_eq!(
        (
            &cloud[1]["body"]["specversion"],
            &cloud[1]["body"]["subject"]
        ),
        (&json!("1.0"), &json!("p"))
    );
    assert_eq!(
        (&cloud[1]["body"]["id"], &cloud[1]["verified"]),
        (&cloud[1]["id"], &json!(1))
    );

    // The busy one was left alone as long as it asked, then up to date, the first notice again
    // with its id.
    let busy = received(&bench, "/busy");
    assert_eq!(kinds(&busy)[..2], ["run.started", "run.started"]);
    assert_eq!(busy[0]["id"], busy[1]["id"]);
    let pause = busy[1]["at"].as_f64().unwrap() - busy[0]["at"].as_f64().unwrap();
    assert!(pause >= 6.9, "it came back after {pause} s");

    wait_until("the one that is gone", || {
        listed(&bench, "gone")["disabled"].is_string()
    });
    assert_eq!(received(&bench, "/gone").len(), 1);
    assert_eq!(
        received(&bench, "/stolen").len(),
        0,
        "a redirect is not followed"
    );
    assert!(
        listed(&bench, "moved")["lastError"]
            .as_str()
            .unwrap()
            .contains("redirects are not followed")
    );
    assert!(
        listed(&bench, "nobody")["lastError"]
            .as_str()
            .unwrap()
            .contains("refused")
    );
    assert_eq!(listed(&bench, "nobody")["waiting"], 5);
    assert_eq!(
        (
            &listed(&bench, "ok")["waiting"],
            &listed(&bench, "ok")["dead"]
        ),
        (&json!(0), &json!(0))
    );

    let metrics = served.get("/metrics", &[]);
    assert_eq!(metrics.status, 401);
}

#[test]
fn calls_of_an_executor_are_no_runs_in_notices_and_figures() {
    let bench = Bench::new();
    let receiver = Receiver::start(&bench);
    let append = json!({ "path": "effects.txt", "content": "once" });
    let provider = Provider::scripted([
        ScriptedReply::calls([("demo__echo", json!({ "value": 1 }))]),
        ScriptedReply::calls([("local__append_file", append)]),
        ScriptedReply::text("Done."),
    ]);
    let url = format!("http://127.0.0.1:{}/ok", receiver.port);
    let cloud = format!("http://127.0.0.1:{}/cloud", receiver.port);
    let config = [
        "[serve]\nmetrics_public = true\n".to_owned(),
        endpoint("ok", &url, ""),
        endpoint(
            "cloud",
            &cloud,
            "format = \"cloudevents\"\nevents = [\"run.*\", \"approval.requested\"]",
        ),
        provider.config(),
    ];
    bench.configure(&config.join("\n"));
    let plan = bench.document(
        json!({ "id": "p", "title": "P", "toolsRequired": ["demo.echo", "append_file"],
        "steps": [{ "id": "work", "agent": { "instruction": "note it" } }] }),
    );
    bench.run(&["import", &plan]).ends(0);
    let token = [
        "token", "create", "--role", "admin", "--kind", "person", "--name", "ada", "--json",
    ];
    let bearer = format!(
        "Bearer {}",
        bench.run(&token).ends(0).json()["token"].as_str().unwrap()
    );
    let served = serve(&bench);
    settled(&served, 2);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let post = |path: &str, body: &Value| {
        let answer = served.ask("POST", path, &headers, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
    };
    post(
        "/plan/p/approve",
        &json!({ "decision": "approve", "version": 1 }),
    );
    post("/plan/p/run", &json!({}));
    let asked = || {
        let told = received(&bench, "/ok");
        told.into_iter()
            .find(|request| request["body"]["type"] == "approval.requested")
    };
    wait_until("the call that waits", || asked().is_some());
    let asked = asked().unwrap()["body"].clone();
    crate::documents::assert_shown("docs/webhooks.md", "approval.requested", &asked);
    let asked = asked["data"].clone();
    assert_eq!(
        (&asked["planId"], &asked["stepId"]),
        (&json!("p"), &json!("call"))
    );
    let parent = &asked["parent"];
    assert_eq!(
        (&parent["planId"], &parent["stepId"]),
        (&json!("p"), &json!("work"))
    );
    assert_ne!(parent["runId"], asked["runId"]);
    post(
        "/plan/p/steps/work:call/approve",
        &json!({ "decision": "approve", "digest": asked["digest"] }),
    );
    let ended = |path: &str| {
        let told = received(&bench, path);
        told.iter().any(|request| {
            request["body"]["type"]
                .as_str()
                .unwrap()
                .contains("run.ended")
        })
    };
    wait_until("run.ended", || ended("/ok") && ended("/cloud"));
    let told = received(&bench, "/ok");
    assert_eq!(
        kinds(&told),
        [
            "approval.decided",
            "run.started",
            "approval.requested",
            "approval.decided",
            "run.ended"
        ]
    );
    assert_eq!(
        (
            &told[4]["body"]["data"]["runId"],
            &told[4]["body"]["data"]["parent"]
        ),
        (&parent["runId"], &Value::Null)
    );
    let cloud = received(&bench, "/cloud");
    let named = |word: &str| format!("dev.planwright.{word}.v1");
    assert_eq!(
        kinds(&cloud),
        ["run.started", "approval.requested", "run.ended"].map(named)
    );
    assert_eq!(cloud[1]["body"]["data"]["parent"], *parent);
    let counted = |words: &str| served.get("/metrics", &[]).body.contains(words);
    wait_until("the run is left", || {
        counted("planwright_runs_executing 0\n")
    });
    assert!(counted(
        "planwright_runs_ended_total{status=\"completed\"} 1\n"
    ));
}

#[test]
fn a_restart_in_the_middle_loses_nothing() {
    let bench = Bench::new();
    let receiver = Receiver::start(&bench);
    bench.configure(&endpoint(
        "slow",
        &format!("http://127.0.0.1:{}/slow", receiver.port),
        "",
    ));
    let served = serve(&bench);
    settled(&served, 1);
    let plan = bench.plan("p", json!([echo("a", "x", &[])]));
    for _ in 0..3 {
        run(&bench, &["run", &plan, "--yes"]).ends(0);
    }
    wait_until("the first notices", || received(&bench, "/slow").len() >= 2);
    served.kill();
    // What happens while no server delivers is told later.
    run(&bench, &["run", &plan, "--yes"]).ends(0);
    let _served = serve(&bench);
    run(&bench, &["webhooks", "retry", "slow"]);
    let ended = || {
        kinds(&received(&bench, "/slow"))
            .iter()
            .filter(|kind| **kind == "run.ended")
            .count()
    };
    wait_until("the last notice", || {
        ended() >= 4 && listed(&bench, "slow")["waiting"] == 0
    });
    let told = received(&bench, "/slow");
    let of = |kind: &str| {
        let of_kind = told
            .iter()
            .filter(|request| request["body"]["type"] == kind);
        of_kind
            .map(|request| request["id"].as_str().unwrap())
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!(
        (of("run.started"), of("run.ended"), of("approval.decided")),
        (4, 4, 4)
    );
    assert!(told.iter().all(|request| request["verified"] == 1));
}

#[test]
fn an_endpoint_can_be_tested_and_used_again() {
    let bench = Bench::new();
    let receiver = Receiver::start(&bench);
    let url = |path: &str| format!("http://127.0.0.1:{}{path}", receiver.port);
    let config = [
        endpoint("ok", &url("/ok"), ""),
        endpoint("broken", &url("/broken"), ""),
    ];
    bench.configure(&config.join("\n"));
    run(&bench, &["webhooks", "test", "ok"]).ends(0);
    let told = received(&bench, "/ok");
    assert_eq!(
        (kinds(&told), &told[0]["verified"]),
        (vec!["webhook.test"], &json!(1))
    );
    run(&bench, &["webhooks", "test", "broken"]).complains(1, "500");
    run(&bench, &["webhooks", "test", "okk"]).complains(2, "there is no webhook");
    bench
        .run(&["webhooks", "test", "ok"])
        .complains(1, "PLANWRIGHT_SECRET_ONE");

    // A new endpoint is told nothing of the past.
    let plan = bench.plan("p", json!([echo("a", "x", &[])]));
    run(&bench, &["run", &plan, "--yes"]).ends(0);
    run(&bench, &["webhooks", "retry", "ok"]).ends(0);
    assert_eq!(received(&bench, "/ok").len(), 1);
    run(&bench, &["run", &plan, "--yes"]).ends(0);
    run(&bench, &["webhooks", "retry", "ok"]).ends(0);
    assert_eq!(
        kinds(&received(&bench, "/ok"))[1..],
        ["approval.decided", "run.started", "run.ended"]
    );
}

#[test]
fn a_webhook_that_cannot_be_used_is_refused_when_it_is_read() {
    let wrong = [
        (
            "url = \"http://example.com/\"\nsecret = \"A\"",
            "only https",
        ),
        (
            "url = \"https://127.0.0.1/\"\nsecret = \"A\"",
            "no public address",
        ),
        (
            "url = \"https://[::ffff:7f00:1]/\"\nsecret = \"A\"",
            "no public address",
        ),
        (
            "url = \"https://169.254.169.254/\"\nsecret = \"A\"\nallow_private = true",
            "no public address",
        ),
        ("url = \"https://example.com/\"", "no secret"),
        (
            "url = \"https://example.com/\"\nsecret = \"A\"\nevents = [\"run.finished\"]",
            "matches nothing",
        ),
        (
            "url = \"https://me:you@example.com/\"\nsecret = \"A\"",
            "user name",
        ),
        (
            "url = \"https://example.com/\"\nsecret = \"A\"\nformat = \"xml\"",
            "xml",
        ),
    ];
    for (table, words) in wrong {
        let bench = Bench::new();
        bench.write(
            "planwright.toml",
            &format!("[[webhooks]]\nname = \"a\"\n{table}\n"),
        );
        bench.run(&["webhooks", "list"]).complains(2, words);
    }
}

#[test]
fn a_name_that_leads_inside_is_not_told() {
    let bench = Bench::new();
    bench.configure(
        "[[webhooks]]\nname = \"inside\"\nurl = \"https://localhost:1/\"\nsecret = \"ONE\"\n",
    );
    run(&bench, &["webhooks", "test", "inside"]).complains(1, "no public address");
}

impl Served {
    fn kill(self) {
        let running: Running = self.into_running();
        running.kill();
    }
}
