//! Schemathesis reads the OpenAPI document and tries everything it allows and forbids.

use crate::client::Service;
use serde_json::{Value, json};
use std::process::Command;

/// Fewer requests prove little. Most of them come from what the document says, the others are made
/// up: some in a check, many in a proof.
const LEAST: u64 = 7_500;

/// Limits that one impatient client does not reach.
const UNHURRIED: &str = "[serve]\nrequests_per_second = 100000\nburst = 100000\n";

/// How often each operation is tried with data of its own.
fn examples() -> String {
    std::env::var("PLANWRIGHT_TRIES").unwrap_or_else(|_| "3".to_owned())
}

/// The same data every time, so that a change is blamed for what it broke; with
/// `PLANWRIGHT_TRY_SEED=new` other data.
fn seed() -> Vec<String> {
    let given = std::env::var("PLANWRIGHT_TRY_SEED").unwrap_or_else(|_| "7526".to_owned());
    if given == "new" {
        Vec::new()
    } else {
        vec!["--seed".to_owned(), given]
    }
}

/// Plans in many states, so that not everything ends at "there is no such plan".
fn furnish(service: &Service) -> (Vec<String>, Vec<String>) {
    let note = json!({ "id": "note", "tool": "demo.echo", "args": { "value": 1 } });
    let gate = json!({ "id": "gate", "tool": "demo.echo", "args": { "value": 2 }, "approvalRequired": true });
    let ask = json!({ "id": "ask", "input": { "message": "How many?", "schema":
        { "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] } } });
    let draft = service
        .post("/plan", &json!({ "goal": "Ship it" }))
        .ends(201)
        .json();
    let mut plans = vec![draft["plan"]["id"].as_str().unwrap().to_owned()];
    service.plan("proposed", json!([note]));
    service.plan("doomed", json!([note]));
    service.plan("approved", json!([note]));
    service.approve("approved");
    let mut runs = Vec::new();
    for (id, step, status) in [
        ("over", &note, "completed"),
        ("gated", &gate, "waiting"),
        ("asking", &ask, "waiting"),
    ] {
        service.plan(id, json!([step]));
        service.approve(id);
        runs.push(service.run(id));
        service.wait_for(id, status);
    }
    plans.extend(["proposed", "approved", "over", "gated", "asking"].map(str::to_owned));
    (plans, runs)
}

/// What schemathesis is told besides the document.
fn configuration(plans: &[String], runs: &[String]) -> String {
    // Data that fits its schema is accepted, except for what no schema can say: that there is no such plan, that it was
    // decided about a moment ago, that its steps form a circle.
    let refused = json!(["2xx", 401, 403, 404, 409, 412, 422, 429]);
    let rejected = json!([
        400, 401, 403, 404, 405, 406, 409, 410, 412, 413, 415, 416, 422, 428, 429, 431
    ]);
    let dictionary = |name: &str| json!({ "dictionary": name, "probability": 0.7 });
    let lines = [
        // Threads of one process get into each other's way while they make up data.
        "workers = 1".to_owned(),
        format!("checks.positive_data_acceptance.expected-statuses = {refused}"),
        format!("checks.negative_data_rejection.expected-statuses = {rejected}"),
        format!("checks.missing_required_header.expected-statuses = {rejected}"),
        format!("dictionaries.plans.values = {}", json!(plans)),
        format!("dictionaries.runs.values = {}", json!(runs)),
        "dictionaries.steps.values = [\"note\", \"gate\", \"ask\"]".to_owned(),
        format!("parameters.id = {}", inline(&dictionary("plans"))),
        format!("parameters.run = {}", inline(&dictionary("runs"))),
        format!("parameters.step = {}", inline(&dictionary("steps"))),
        // What is deleted is gone for all that follow.
        "dictionaries.doomed.values = [\"doomed\"]".to_owned(),
        format!(
            "[[operations]]\ninclude-method = \"DELETE\"\nparameters.id = {}",
            inline(&dictionary("doomed"))
        ),
        operations(
            &["/chat"],
            &[
                "checks.not_a_server_error.expected-statuses = [\"2xx\", \"4xx\", 503]",
                "checks.positive_data_acceptance.expected-statuses = [\"2xx\", \"4xx\", 503]",
            ],
        ),
        // Cursors are given by the service, models and policies by its operator, and which of two has to be named
        // depends on the other.
        operations(
            &[
                "/plan",
                "/approvals",
                "/templates",
                "/tools",
                "/plan/{id}/comments",
                "/plan/{id}/journal",
                "/plan/{id}/runs",
                "/plan/{id}/runs/{run}",
                "/plan/{id}/runs/{run}/journal",
                "/plan/{id}/versions",
                "/plan/{id}/regenerate",
                "/plan/{id}/check",
                "/plan/{id}/undo",
                "/plan/{id}/steps/{step}/input",
                "/planning",
                "/policy/explain",
            ],
            &[
                "checks.positive_data_acceptance.expected-statuses = [\"2xx\", 400, 401, 403, 404, 409, 422, 429]",
            ],
        ),
        // They say what is wrong with what they are given.
        operations(
            &["/validate", "/plan/{id}/edits/preview", "/policy/check"],
            &["checks.negative_data_rejection.expected-statuses = [\"2xx\", \"4xx\"]"],
        ),
    ];
    lines.join("\n")
}

/// What holds for these routes besides.
fn operations(paths: &[&str], settings: &[&str]) -> String {
    let each = paths.iter().map(|path| {
        let settings = settings.join("\n");
        format!("[[operations]]\ninclude-path = \"{path}\"\n{settings}")
    });
    each.collect::<Vec<_>>().join("\n")
}

/// An object as TOML writes it in a line.
fn inline(object: &Value) -> String {
    let pairs = object
        .as_object()
        .unwrap()
        .iter()
        .map(|(key, value)| format!("{key} = {value}"));
    format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
}

#[test]
fn nothing_that_schemathesis_tries_breaks_a_promise() {
    let program = planwright_testing::peers::installed("py-http/bin/schemathesis");
    let service = Service::configured(UNHURRIED);
    let (plans, runs) = furnish(&service);
    service
        .bench
        .write("schemathesis.toml", &configuration(&plans, &runs));
    let tried = Command::new(program)
        .current_dir(service.bench.root())
        .args(["--config-file", "schemathesis.toml", "run"])
        .arg(format!("http://{}/openapi.json", service.host))
        .args([
            "--header",
            &format!("Authorization: Bearer {}", service.admin),
        ])
        .args([
            "--checks",
            "all",
            "--max-examples",
            &examples(),
            "--no-shrink",
            "--continue-on-failure",
        ])
        .args(seed())
        .args([
            "--phases",
            "examples,coverage,fuzzing",
            "--suppress-health-check",
            "all",
        ])
        .args(["--report", "json", "--report-json-path", "report.json"])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&tried.stdout);
    let report: Value =
        serde_json::from_str(&service.bench.read("report.json")).expect("it writes a report");
    assert_eq!(report["failures"], json!([]), "{said}");
    assert!(
        tried.status.success(),
        "{said}\n{}",
        String::from_utf8_lossy(&tried.stderr)
    );
    let sent = report["test_cases"]["generated"].as_u64().unwrap();
    assert!(sent >= LEAST, "only {sent} requests were made");
    println!("{sent} requests");
    // It is still there, and nothing was lost on the way.
    service.get("/readyz").ends(200);
    let verified = service.bench.run(&["verify"]);
    assert_eq!(verified.code, 0, "{}", verified.err);
}
