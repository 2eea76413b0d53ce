//! `POST /chat`: a thin way through to a model.

use crate::service::Service;
use planwright_core::model::{Message, ModelRole};
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::{BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest};
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
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
    let provider = ScriptedModel::default().says("Two files changed.");
    let service = Service::with_model(provider.clone());
    let answer = service.post("/chat", &question()).ends(200);
    let said = answer.json();
    assert_eq!(said["response"], "Two files changed.");
    assert_eq!(said["traceId"].as_str(), answer.header("x-trace-id"));
    assert_eq!(said["model"], "scripted/model");
    assert_eq!(
        said["usage"],
        json!({ "inputTokens": 10, "outputTokens": 5 })
    );
    let asked = provider.requests().remove(0);
    let said = [
        Message::system("Be brief."),
        Message::user("Summarize the diff."),
    ];
    assert_eq!(asked.messages, said);
    assert!(asked.tools.is_empty(), "a thin way through has no tools");
}

#[test]
fn the_answer_is_told_as_it_comes_to_those_who_want_a_stream() {
    let provider = ScriptedModel::default()
        .says("Größe: two files")
        .says("again");
    let service = Service::with_model(provider);
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
    let model = ScriptedModel::NAME.to_owned();
    let refused = ModelError::Refused {
        model: model.clone(),
        status: 401,
        message: "no such key".to_owned(),
    };
    let broken = ModelError::Unreadable {
        model,
        message: "it broke off".to_owned(),
    };
    let script = ScriptedModel::default()
        .then(Err(refused.clone()))
        .then(Err(refused))
        .then(Err(broken));
    let service = Service::with_model(script);
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
    // An answer that breaks off ends in an error, regardless of what was told of it.
    let told = events(&service.post("/chat", &streamed()).ends(200).body);
    assert_eq!(told.last().unwrap().0, "chat.error", "{told:?}");
}

#[test]
fn what_is_asked_is_checked_before_a_model_is_asked() {
    let provider = ScriptedModel::default();
    let service = Service::with_model(provider.clone());
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
    assert!(provider.requests().is_empty());
}

#[test]
fn whoever_goes_away_wants_no_answer_any_more() {
    let model = EndlessModel::default();
    let service = Service::with_model(model.clone());
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
    let mut seen = String::new();
    let mut buffer = [0; 4096];
    while !seen.contains("chat.delta") {
        let count = stream.read(&mut buffer).unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    drop(stream);
    wait_until("the stream to be closed", || {
        service.http().events.streams() == 0
    });
    wait_until("the model to be told", || model.unwanted());
}

/// A model that says something and never ends, and notices that its answer is not wanted any more.
#[derive(Debug, Clone, Default)]
struct EndlessModel(Arc<AtomicBool>);

impl EndlessModel {
    fn unwanted(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Model for EndlessModel {
    fn models(&self) -> Vec<ModelInfo> {
        ScriptedModel::default().models()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        ScriptedModel::default().resolve(role, model)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let unwanted = Arc::clone(&self.0);
        tokio::spawn(async move {
            request.told.tell("This answer goes on and on");
            request.cancelled.cancelled().await;
            unwanted.store(true, Ordering::SeqCst);
        });
        Box::pin(std::future::pending())
    }
}
