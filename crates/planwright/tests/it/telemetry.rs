//! Logs and spans of the real program, and a collector that only listens.

use crate::service::Served;
use planwright_testing::steps::{call, echo, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// Takes what is exported, over HTTP.
pub(crate) struct Collector {
    address: SocketAddr,
    received: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let received: Arc<Mutex<Vec<u8>>> = Arc::default();
        let all = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let all = Arc::clone(&all);
                std::thread::spawn(move || take(stream.unwrap(), &all));
            }
        });
        Self { address, received }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.received.lock().unwrap().clone()
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).into_owned()
    }
}

fn take(stream: TcpStream, all: &Mutex<Vec<u8>>) {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0_usize;
        let mut line = String::new();
        loop {
            line.clear();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).unwrap();
        all.lock().unwrap().extend(body);
        drop(
            reader
                .get_mut()
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
        );
    }
}

fn with_collector(mut command: Command, url: &str) -> Said {
    said(
        command
            .env("OTEL_EXPORTER_OTLP_ENDPOINT", url)
            .output()
            .unwrap(),
    )
}

fn objects(text: &str) -> Vec<Value> {
    let lines = text.lines().filter(|line| line.starts_with('{'));
    lines
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn a_run_and_its_calls_are_spans_with_the_names_of_the_conventions() {
    let bench = Bench::new();
    let collector = Collector::start();
    let mut fails = call("fails", "demo.fail", json!({ "message": "no" }), &[]);
    fails["critical"] = json!(false);
    let plan = bench.plan("p", json!([echo("a", "a value", &[]), fails]));
    with_collector(bench.command(&["run", &plan, "--yes"]), &collector.url());
    let text = collector.text();
    for word in [
        "planwright",
        "invoke_workflow plan",
        "execute_tool demo.echo",
        "gen_ai.operation.name",
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "planwright.plan.id",
        "planwright.plan.digest",
        "planwright.run.id",
        "planwright.step.id",
        "error.type",
    ] {
        assert!(text.contains(word), "{word} is missing");
    }
    assert!(
        !text.contains("a value"),
        "no arguments unless they are wanted"
    );
    let seen = collector.bytes().len();

    bench.configure(&format!(
        "[telemetry]\ncontent = true\notlp_endpoint = \"{}\"\n",
        collector.url()
    ));
    bench.run(&["run", "p", "--yes"]);
    let more = String::from_utf8_lossy(&collector.bytes()[seen..]).into_owned();
    assert!(
        more.contains("gen_ai.tool.call.arguments") && more.contains("a value"),
        "they are wanted"
    );
}

#[test]
fn a_collector_that_never_answers_keeps_no_run_from_ending() {
    let bench = Bench::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let plan = bench.plan("p", json!([sleep("a", 1, &[]), echo("b", "x", &["a"])]));
    with_collector(bench.command(&["run", &plan, "--yes"]), &url).ends(0);
    with_collector(bench.command(&["run", "p", "--yes"]), "http://127.0.0.1:9").ends(0);
    with_collector(bench.command(&["run", "p", "--yes"]), "no url")
        .complains(2, "spans cannot be exported");
}

#[test]
fn a_trace_goes_from_the_request_to_its_answer_and_its_log() {
    let bench = Bench::new();
    let collector = Collector::start();
    let mut command = bench.command(&["serve", "--listen", ":0", "--json", "--log-format", "json"]);
    command
        .env("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url())
        .env("OTEL_BSP_SCHEDULE_DELAY", "100");
    let served = Served::start(command);
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = "4bf92f35-77b3-4da6-a3ce-929d0e0e4736";
    let answer = served.get("/plan", &[("traceparent", parent)]);
    assert_eq!(
        (answer.status, answer.header("x-trace-id")),
        (401, Some(trace))
    );
    let other = served.get("/plan/nothing", &[("traceparent", "00-nonsense")]);
    assert_ne!(other.header("x-trace-id"), Some(trace));
    served.wait_for_log("/plan/{id}");
    let logs = objects(&served.logs());
    let line = logs.iter().find(|line| line["traceId"] == trace).unwrap();
    assert_eq!(
        (&line["level"], &line["fields"]["status"]),
        (&json!("info"), &json!(401))
    );
    assert!(
        line["timestamp"].is_string() && line["target"].as_str().unwrap().starts_with("planwright")
    );
    let id: Vec<u8> = (0..16)
        .map(|at| u8::from_str_radix(&parent[3 + 2 * at..5 + 2 * at], 16).unwrap())
        .collect();
    wait_until("the span", || {
        collector.bytes().windows(16).any(|window| window == id)
    });
    assert!(collector.text().contains("GET /plan"));
    // A number is a number: 401 as a varint in the value of the attribute.
    let status = [
        b"http.response.status_code".as_slice(),
        &[0x12, 3, 0x18, 0x91, 3],
    ]
    .concat();
    let found = collector.bytes();
    assert!(found.windows(status.len()).any(|window| window == status));
    for word in ["url.path", "url.scheme"] {
        assert!(collector.text().contains(word), "{word} is missing");
    }
}

#[test]
fn the_service_says_how_it_is_and_shows_its_figures_to_those_who_may() {
    let bench = Bench::new();
    bench.configure("[serve]\nmetrics_public = true\n");
    let served = Served::start(bench.command(&["serve", "--listen", ":0", "--json"]));
    let alive = served.get("/healthz", &[]);
    assert_eq!(
        (alive.status, alive.body.as_str()),
        (200, "{\"alive\":true}")
    );
    let ready = served.get("/readyz", &[]);
    assert_eq!(
        (ready.status, ready.body.as_str()),
        (200, "{\"ready\":true,\"reasons\":[]}")
    );
    let plan = bench.plan("p", json!([echo("a", "x", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let metrics = served.get("/metrics", &[]);
    assert_eq!(metrics.status, 200);
    for words in [
        "planwright_build_info{version=",
        "planwright_plans{review=\"opened\"} 1",
        "planwright_runs{status=\"completed\"} 1",
        "http_server_request_duration_seconds_bucket{http_request_method=\"GET\",http_route=\"/healthz\"",
        "process_resident_memory_bytes",
        "process_uptime_seconds",
    ] {
        assert!(
            metrics.body.contains(words),
            "{words} is not in {}",
            metrics.body
        );
    }
    // It may still look whether the run that another process began goes on.
    let idle = "planwright_supervised_runs{state=\"executing\"} 0";
    wait_until("nothing is executed", || {
        served.get("/metrics", &[]).body.contains(idle)
    });
}

#[test]
fn commands_log_nothing_unless_something_is_wrong_or_they_are_asked() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", "x", &[])]));
    assert!(
        !bench
            .run(&["run", &plan, "--yes"])
            .ends(0)
            .err
            .contains("INFO")
    );
    let said = bench
        .run(&[
            "run",
            "p",
            "--yes",
            "--log-level",
            "planwright=info",
            "--log-format",
            "json",
        ])
        .ends(0);
    let left = objects(&said.err)
        .into_iter()
        .find(|line| line["message"] == "the run was left")
        .unwrap();
    assert_eq!(
        (
            &left["fields"]["status"],
            &left["fields"]["planwright.plan.id"]
        ),
        (&json!("completed"), &json!("p"))
    );
    bench
        .run(&["list", "--log-level", "planwright=loud"])
        .complains(2, "the log filter cannot be read");
}
