//! What every answer keeps to: the document that describes them, headers, methods, media types and
//! limits.

use crate::service::Service;
use planwright_engine::port::LogLevel;
use serde_json::{Value, json};
use std::path::Path;

/// The document as it is checked in.
fn checked_in() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json")
}

#[test]
fn the_openapi_document_that_is_checked_in_is_the_one_that_is_served() {
    let service = Service::new();
    let served = service.bare("GET", "/openapi.json").send().ends(200).json();
    let text = format!("{}\n", serde_json::to_string_pretty(&served).unwrap());
    if std::env::var_os("PLANWRIGHT_REWRITE").is_some() {
        std::fs::write(checked_in(), &text).unwrap();
    }
    let kept = std::fs::read_to_string(checked_in()).unwrap_or_default();
    assert!(
        kept == text,
        "docs/openapi.json is not up to date: run this test with PLANWRIGHT_REWRITE=1"
    );
}

#[test]
fn every_operation_of_the_document_is_complete() {
    let service = Service::new();
    let document = service.bare("GET", "/openapi.json").send().ends(200).json();
    assert_eq!(document["openapi"], "3.1.0");
    let mut ids = std::collections::BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let name = format!("{method} {path}");
            assert!(
                ids.insert(operation["operationId"].as_str().unwrap().to_owned()),
                "{name}"
            );
            assert!(
                operation["summary"].is_string() && operation["tags"].is_array(),
                "{name}"
            );
            let public = operation["x-planwright-action"] == "public";
            assert_eq!(operation["security"] == json!([]), public, "{name}");
            for status in ["400", "403", "500"] {
                assert!(
                    operation["responses"][status].is_object(),
                    "{name} {status}"
                );
            }
            check_refs(&document, operation);
        }
    }
    check_refs(&document, &document["components"]);
}

#[test]
fn the_levels_of_logs_are_those_of_the_protocol() {
    let service = Service::new();
    let document = service.bare("GET", "/openapi.json").send().ends(200).json();
    let levels = LogLevel::ALL.map(LogLevel::as_str);
    let described = &document["components"]["schemas"]["LogLevel"]["enum"];
    assert_eq!(*described, json!(levels));
}

#[test]
fn a_parameter_that_cannot_be_read_is_named_with_what_it_may_be() {
    let service = Service::new();
    let refused = service.get("/approvals?risk=extreme").ends(400).json();
    assert_eq!(
        refused["detail"],
        "risk: unknown variant `extreme`, expected one of `low`, `medium`, `high`"
    );
}

/// Every reference leads somewhere.
#[track_caller]
fn check_refs(document: &Value, value: &Value) {
    match value {
        Value::Object(object) => {
            if let Some(Value::String(reference)) = object.get("$ref") {
                let pointer = reference
                    .strip_prefix('#')
                    .unwrap_or_else(|| panic!("{reference}"));
                assert!(
                    document.pointer(pointer).is_some(),
                    "{reference} leads nowhere"
                );
            }
            object
                .values()
                .for_each(|value| check_refs(document, value));
        }
        Value::Array(list) => list.iter().for_each(|value| check_refs(document, value)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[test]
fn every_answer_has_its_trace_and_headers_that_keep_pages_apart() {
    let service = Service::new();
    for path in ["/healthz", "/plan", "/docs", "/nothing", "/plan/nosuch"] {
        let answer = service.get(path);
        assert!(answer.header("x-trace-id").is_some(), "{path}");
        assert_eq!(answer.header("cache-control"), Some("no-store"), "{path}");
        assert_eq!(
            answer.header("x-content-type-options"),
            Some("nosniff"),
            "{path}"
        );
        assert_eq!(
            answer.header("referrer-policy"),
            Some("no-referrer"),
            "{path}"
        );
        let policy = answer.header("content-security-policy").unwrap();
        assert!(
            policy.starts_with("default-src 'none'") && policy.contains("frame-ancestors 'none'"),
            "{path}"
        );
    }
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = service
        .request("GET", "/plan")
        .header("traceparent", parent)
        .send();
    assert_eq!(
        answer.header("x-trace-id"),
        Some("4bf92f35-77b3-4da6-a3ce-929d0e0e4736")
    );
}

#[test]
fn what_a_route_cannot_do_is_said_with_what_it_can() {
    let service = Service::new();
    let answer = service
        .request("PUT", "/plan")
        .send()
        .refuses(405, "cannot be done");
    assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"));
    let answer = service
        .bare("DELETE", "/healthz")
        .send()
        .refuses(405, "cannot be done");
    assert_eq!(answer.header("allow"), Some("GET, HEAD"));
    let head = service.request("HEAD", "/plan").send().ends(200);
    assert!(head.body.is_empty());
    service.get("/nothing").refuses(404, "nothing here");
    service.get("/plan/..%2fescaped").refuses(400, "id");
    service.get("/plan/%2e%2e").refuses(400, "id");
}

#[test]
fn only_json_is_read_and_not_too_much_of_it() {
    let service = Service::new();
    let post = |kind: &str, body: &[u8]| service.request("POST", "/plan").body(kind, body).send();
    post("text/plain", b"{\"goal\":\"x\"}").refuses(415, "application/json");
    post("application/x-www-form-urlencoded", b"goal=x").refuses(415, "application/json");
    post("application/json; charset=latin1", b"{\"goal\":\"x\"}").refuses(415, "application/json");
    post("application/json; charset=UTF-8", b"{\"goal\":\"x\"}").ends(201);
    post("application/json", b"{\"goal\":\"x\"").refuses(400, "JSON");
    post("application/json", b"{\"goal\":\"x\",\"goal\":\"y\"}").refuses(400, "twice");
    post("application/json", b"\xff\xfe").ends(400);
    post("application/json", "[".repeat(100_000).as_bytes()).ends(400);
    post("application/json", &vec![b' '; (1 << 20) + 1]).refuses(413, "larger");
    let long = format!("/plan?cursor={}", "x".repeat(9_000));
    service.get(&long).refuses(414, "characters");
    let answer = service
        .request("GET", "/plan")
        .header("X-Large", &"x".repeat(60_000))
        .send();
    assert_eq!(answer.status, 431);
}

#[test]
fn chat_checks_what_it_is_told_before_it_says_that_there_is_no_model() {
    let service = Service::new();
    let good = json!({ "messages": [{ "role": "user", "content": "Summarize the diff." }] });
    let problem = service.post("/chat", &good).refuses(503, "no model").json();
    assert!(problem["hint"].is_string());
    for bad in [
        json!({}),
        json!({ "messages": [] }),
        json!({ "messages": [{ "role": "x", "content": "y" }] }),
    ] {
        assert_eq!(service.post("/chat", &bad).status, 400, "{bad}");
    }
}

#[test]
fn the_documentation_page_loads_nothing_from_elsewhere() {
    let service = Service::new();
    for path in ["/docs", "/docs/docs.js", "/docs/docs.css"] {
        let page = service.bare("GET", path).send().ends(200);
        let text = String::from_utf8(page.body.clone()).unwrap();
        assert!(
            !text.contains("http://") && !text.contains("https://") && !text.contains("innerHTML"),
            "{path}"
        );
    }
    let page = service.bare("GET", "/docs").send();
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.contains("script-src 'self'") && !policy.contains("unsafe"),
        "{policy}"
    );
}
