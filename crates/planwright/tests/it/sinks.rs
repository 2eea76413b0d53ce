//! Secrets in what operators see: logs, spans, figures, answers and webhooks. Nowhere, in any
//! spelling.

use crate::secrets::{Canaries, PASSWORD, TOKEN, bench, echoes, echoing_server, workers};
use crate::service::Served;
use crate::telemetry::Collector;
use planwright_testing::steps::call;
use planwright_testing::wait::wait_until;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

/// Takes every request whole and answers 204.
fn receiver() -> (String, Arc<Mutex<Vec<u8>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let received: Arc<Mutex<Vec<u8>>> = Arc::default();
    let all = Arc::clone(&received);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let all = Arc::clone(&all);
            std::thread::spawn(move || {
                let mut buffer = [0; 65_536];
                while let Ok(count @ 1..) = stream.read(&mut buffer) {
                    all.lock().unwrap().extend(&buffer[..count]);
                    drop(stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n"));
                }
            });
        }
    });
    (url, received)
}

#[test]
fn no_spelling_of_a_secret_is_in_anything_that_operators_see() {
    let http = echoing_server();
    let bench = bench(&http.to_string());
    let canaries = Canaries::new();
    let collector = Collector::start();
    let (hook, hooked) = receiver();
    let config = format!(
        "{}HOOK = {{ env = \"SOME_HOOK\" }}\n[telemetry]\ncontent = true\n[serve]\nmetrics_public = true\n\
         [[webhooks]]\nname = \"a\"\nurl = \"{hook}\"\nsecret = \"HOOK\"\nallow_private = true\n",
        bench.read("planwright.toml")
    );
    bench.configure(&config);
    let mut steps = echoes(&bench, http);
    steps.extend(workers());
    // A title that repeats a secret is told to no sink either, once the secret is known.
    let mut told = call(
        "told",
        "demo.echo",
        json!({ "value": "${secret.TOKEN} ${secret.PASSWORD}" }),
        &[],
    );
    told["title"] = json!("told");
    steps.push(told);
    let count = steps.len();
    let title = format!("Canaries {TOKEN}");
    let plan = bench.document(
        json!({ "id": "p", "title": title, "limits": { "maxConcurrency": 8 }, "steps": steps }),
    );

    let environment = [
        ("SOME_TOKEN", TOKEN),
        ("SOME_HOOK", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"),
        ("PLANWRIGHT_LOG", "trace"),
        ("OTEL_BSP_SCHEDULE_DELAY", "100"),
    ];
    let endpoint = collector.url();
    for format in ["json", "text"] {
        let mut command = bench.command(&["run", &plan, "--yes", "--json", "--log-format", format]);
        command
            .envs(environment)
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(text.contains("the run was left"), "{text}");
        canaries.are_not_in(&format!("the {format} log"), &output.stderr);
    }
    let spans = collector.bytes();
    let text = String::from_utf8_lossy(&spans);
    assert!(
        text.matches("gen_ai.tool.call.result").count() >= count / 2,
        "results are in the spans"
    );
    assert!(text.contains("[secret TOKEN]"));
    canaries.are_not_in("the spans", &spans);

    let mut command = bench.command(&["serve", "--listen", ":0", "--json", "--log-format", "json"]);
    command
        .envs(environment)
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    let served = Served::start(command);
    served.wait_for_log("begins here");
    let again = bench.document(json!({ "id": "q", "title": "Again", "steps": [
        call("a", "demo.echo", json!({ "value": "${secret.TOKEN}" }), &[]),
    ] }));
    bench
        .command(&["run", &again, "--yes"])
        .envs(environment)
        .output()
        .unwrap();
    wait_until("the notice", || {
        String::from_utf8_lossy(&hooked.lock().unwrap()).contains("run.ended")
    });
    canaries.are_not_in("the webhooks", &hooked.lock().unwrap());
    let metrics = served.get("/metrics", &[]);
    assert!(
        metrics.body.contains("planwright_webhook_attempts_total"),
        "{}",
        metrics.body
    );
    canaries.are_not_in("the figures", metrics.body.as_bytes());
    canaries.are_not_in("the log of the service", served.logs().as_bytes());
    canaries.are_not_in("the spans of the service", &collector.bytes());
    assert!(canaries.hit(PASSWORD.as_bytes()).is_some(), "a hit is seen");
}

#[test]
fn no_spelling_of_a_secret_is_in_what_the_service_answers() {
    let http = echoing_server();
    let bench = bench(&http.to_string());
    let canaries = Canaries::new();
    let collector = Collector::start();
    let mut steps = echoes(&bench, http);
    steps.extend(workers());
    let count = steps.len();
    let plan = json!({ "id": "p", "title": "Canaries", "limits": { "maxConcurrency": 8 }, "steps": steps });
    let token = bench.run(&[
        "token", "create", "--role", "admin", "--kind", "person", "--name", "ada", "--json",
    ]);
    let bearer = format!("Bearer {}", token.json()["token"].as_str().unwrap());
    let mut command = bench.command(&["serve", "--listen", ":0", "--json", "--log-format", "json"]);
    command
        .env("SOME_TOKEN", TOKEN)
        .env("PLANWRIGHT_LOG", "trace")
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url());
    let served = Served::start(command);
    let headers = [
        ("authorization", bearer.as_str()),
        ("content-type", "application/json"),
    ];
    let post = |path: &str, body: &serde_json::Value| {
        let answer = served.ask("POST", path, &headers, &body.to_string());
        assert!(answer.status < 300, "{path}: {answer:?}");
        canaries.are_not_in(path, answer.body.as_bytes());
    };
    post("/plan", &plan);
    post(
        "/plan/p/approve",
        &json!({ "decision": "approve", "version": 1 }),
    );
    post("/plan/p/run", &json!({}));

    // The stream ends with the run.
    let stream = served.get(
        "/plan/p/events",
        &[headers[0], ("accept", "text/event-stream")],
    );
    assert!(stream.body.contains("run.completed"), "{}", stream.body);
    let completed = stream.body.matches("\"state\":\"completed\"").count();
    // Some are there to fail: what they say is looked at too.
    assert!(
        completed > count / 2 && stream.body.contains("\"state\":\"failed\""),
        "{completed} of {count}"
    );
    assert!(stream.body.contains("[secret TOKEN]"), "{}", stream.body);
    canaries.are_not_in("the stream of events", stream.body.as_bytes());
    let runs = served.get("/plan/p/runs", &[headers[0]]);
    let run = serde_json::from_str::<serde_json::Value>(&runs.body).unwrap();
    let run = format!("/plan/p/runs/{}", run[0]["id"].as_str().unwrap());
    for path in [
        "/plan/p/events",
        "/events",
        "/plan/p",
        "/plan",
        run.as_str(),
        "/approvals",
        "/stats",
        "/metrics",
    ] {
        let answer = served.get(
            path,
            &[headers[0], ("accept", "application/json, text/plain")],
        );
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        canaries.are_not_in(path, answer.body.as_bytes());
    }
    canaries.are_not_in("the log of the service", served.logs().as_bytes());
    wait_until("the spans", || collector.bytes().len() > 1_000);
    canaries.are_not_in("the spans of the service", &collector.bytes());
    let files = canaries.are_not_below(&bench.path(".plans"), Canaries::hit);
    assert!(files >= 4, "{files} files were looked at");
}
