//! `POST /chat` of the real program: a model of a real provider answers.

use crate::client::Service;
use planwright_testing::provider::{Provider, ScriptedReply};
use serde_json::{Value, json};

fn question() -> Value {
    json!({ "messages": [
        { "role": "system", "content": "Be brief." },
        { "role": "user", "content": "Summarize the diff." },
    ] })
}

#[test]
fn the_answer_of_the_model_comes_with_a_trace() {
    let provider = Provider::scripted([ScriptedReply::text("Two files changed.")]);
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
