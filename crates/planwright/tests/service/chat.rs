//! `POST /chat`: a thin way through to a model.

use crate::client::Service;
use crate::provider::{Provider, Reply};
use crate::workbench::wait_until;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

fn question() -> Value {
    json!({ "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Summarize the diff." },
    ] })
}

fn streamed() -> Value {
    let mut question = question();
    question["stream"] = json!(true);
    question
}

/// The events of a stream: name and data.
fn events(body: &[u8]) -> Vec<(String, Value)> {
    let text = String::from_utf8(body.to_vec()).unwrap();
    let blocks = text.split("\n\n").filter(|block| block.contains("event: "));
    blocks
        .map(|block| {
            let field = |name: &str| {
                block
                    .lines()
                    .find_map(|line| line.strip_prefix(name))
                    .unwrap()
                    .to_owned()
            };
            (
                field("event: "),
                serde_json::from_str(&field("data: ")).unwrap(),
            )
        })
        .collect()
}

#[test]
fn the_answer_of_the_model_comes_with_a_trace() {
    let provider = Provider::scripted([Reply::text("Two files changed.")]);
    let service = Service::configured(&provider.config());
    let answer = service.post("/chat", &question()).ends(200);
    let said = answer.json();
    assert_eq!(said["response"], "Two files changed.");
    assert_eq!(said["traceId"].as_str(), answer.header("x-trace-id"));
    assert_eq!(said["model"], "scripted/model");
    assert_eq!(
        said["usage"],
        json!({ "inputTokens": 100, "outputTokens": 20 })
    );
    let asked = provider.asked().remove(0).body;
    assert_eq!(asked["messages"][0]["content"], "Be brief.");
    assert_eq!(
        asked["messages"][1],
        json!({ "role": "user", "content": "Summarize the diff." })
    );
    assert!(
        asked.get("tools").is_none(),
        "a thin way through has no tools: {asked}"
    );
}

#[test]
fn the_answer_is_told_as_it_comes_to_those_who_want_a_stream() {
    let provider = Provider::scripted([Reply::text("Größe: two files"), Reply::text("again")]);
    let service = Service::configured(&provider.config());
    let answer = service.post("/chat", &streamed()).ends(200);
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let told = events(&answer.body);
    let deltas: String = told
        .iter()
        .filter(|(name, _)| name == "chat.delta")
        .map(|(_, data)| data["text"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, "Größe: two files");
    let (name, done) = told.last().unwrap();
    assert_eq!(
        (name.as_str(), &done["response"]),
        ("chat.done", &json!("Größe: two files"))
    );
    assert_eq!(done["traceId"].as_str(), answer.header("x-trace-id"));
    let by_header = service
        .request("POST", "/chat")
        .header("Accept", "text/event-stream")
        .json(&question())
        .send();
    assert_eq!(
        events(&by_header.ends(200).body).last().unwrap().0,
        "chat.done"
    );
}

#[test]
fn what_the_provider_does_wrong_is_a_bad_gateway() {
    let refusal = || Reply::status(401, r#"{"error": {"message": "no such key"}}"#);
    let provider = Provider::scripted([refusal(), refusal(), Reply::text("cut off here").cut(2)]);
    let service = Service::configured(&provider.config());
    service
        .post("/chat", &question())
        .refuses(502, "scripted/model");
    let answer = service.post("/chat", &streamed()).ends(200);
    let told = events(&answer.body);
    let (name, problem) = &told[0];
    assert_eq!(
        (name.as_str(), &problem["status"]),
        ("chat.error", &json!(502)),
        "{told:?}"
    );
    assert!(problem["traceId"].is_string());
    // An answer that breaks off ends in an error, whatever was told of it.
    let told = events(&service.post("/chat", &streamed()).ends(200).body);
    assert_eq!(told.last().unwrap().0, "chat.error", "{told:?}");
}

#[test]
fn what_is_asked_is_checked_before_a_model_is_asked() {
    let provider = Provider::scripted([]);
    let service = Service::configured(&provider.config());
    let message = |content: &str| json!({ "role": "user", "content": content });
    for bad in [
        json!({ "messages": [message("")] }),
        json!({ "messages": vec![message("x"); 1001] }),
        json!({ "messages": [message("x")], "model": "nobody/knows" }),
        json!({ "messages": [message("x")], "maxTokens": 0 }),
        json!({ "messages": [message("x")], "stream": "yes" }),
        json!({ "messages": [message("x")], "tools": [] }),
    ] {
        assert_eq!(service.post("/chat", &bad).status, 400, "{bad}");
    }
    let plain = service
        .request("POST", "/chat")
        .header("Accept", "text/html")
        .json(&question())
        .send();
    plain.refuses(406, "text/event-stream");
    let viewer = service.token("viewer", "person", "bob");
    service
        .request("POST", "/chat")
        .token(&viewer)
        .json(&question())
        .send()
        .refuses(403, "may not");
    assert!(provider.asked().is_empty());
}

#[test]
fn whoever_goes_away_wants_no_answer_any_more() {
    let endless = Reply::text("This answer goes on and on").hanging(2);
    let provider = Provider::scripted([endless, Reply::text("still there")]);
    let service = Service::configured(&provider.config());
    let body = streamed().to_string();
    let mut stream = TcpStream::connect(&service.host).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let head = format!(
        "POST /chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        service.host,
        service.admin,
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    while !seen.contains("chat.delta") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    drop(stream);
    let open = || {
        let figures = service.get("/metrics").ends(200).text();
        let line = figures
            .lines()
            .find(|line| line.starts_with("planwright_sse_clients"))
            .map(str::to_owned);
        line.unwrap_or_default()
    };
    wait_until("the stream to be closed", || open().ends_with(" 0"));
    assert_eq!(
        service.post("/chat", &question()).ends(200).json()["response"],
        "still there"
    );
}
