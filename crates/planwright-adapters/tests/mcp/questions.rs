//! Servers that ask a person during a call.

use crate::scene::{Scene, answering, call, code};
use planwright_core::run::{Answered, Asked, Reply};
use planwright_engine::port::{Call, CallError, Outcome, PersonLine};
use serde_json::{Value, json};
use std::time::Duration;

fn asked(outcome: Outcome) -> Asked {
    match outcome {
        Err(CallError::InputRequired(asked) | CallError::AskedMidway(asked)) => *asked,
        other => panic!("it was to ask: {other:?}"),
    }
}

fn values(value: Value) -> Reply {
    let Value::Object(values) = value else {
        panic!("values are an object")
    };
    Reply::Values(values)
}

#[tokio::test]
async fn a_server_of_the_earlier_era_asks_and_is_answered_on_the_next_attempt() {
    let scene = Scene::hostile("elicits").connected().await;
    let asked = asked(scene.call("call", json!({})).await);
    assert_eq!(asked.questions.len(), 1);
    assert_eq!(asked.questions[0].message, "Your name?");
    assert_eq!(
        asked.questions[0].schema["properties"]["name"]["type"],
        "string"
    );
    let answered = |reply| Answered {
        asked: asked.clone(),
        replies: vec![reply],
    };
    let accepted = answering("call", answered(values(json!({"name": "Ada"}))));
    assert_eq!(
        scene.make(accepted, Duration::from_secs(10)).await,
        Ok(json!({"action": "accept", "content": {"name": "Ada"}}))
    );
    let declined = answering("call", answered(Reply::Decline));
    assert_eq!(
        scene.make(declined, Duration::from_secs(10)).await,
        Ok(json!({"action": "decline"}))
    );
    scene.end().await;
}

#[tokio::test]
async fn a_person_who_is_there_answers_within_the_call() {
    let scene = Scene::hostile("elicits").connected().await;
    let attended = Call {
        person: Some(PersonLine::new(|asked| {
            assert_eq!(asked.questions[0].message, "Your name?");
            Box::pin(async { Some(vec![values(json!({"name": "Ada"}))]) })
        })),
        ..call("call", json!({}))
    };
    assert_eq!(
        scene.make(attended, Duration::from_secs(10)).await,
        Ok(json!({"action": "accept", "content": {"name": "Ada"}}))
    );
    let absent = Call {
        person: Some(PersonLine::new(|_| Box::pin(async { None }))),
        ..call("call", json!({}))
    };
    let outcome = scene.make(absent, Duration::from_secs(10)).await;
    assert!(
        matches!(outcome, Err(CallError::AskedMidway(_))),
        "{outcome:?}"
    );
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_asks_and_hangs_is_ended() {
    let scene = Scene::hostile("elicits_and_hangs").connected().await;
    let outcome = scene
        .make(call("call", json!({})), Duration::from_secs(1))
        .await;
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    scene.end().await;
}

#[tokio::test]
async fn a_modern_server_gets_its_answers_and_its_note_back() {
    let scene = Scene::modern("elicits_modern").connected().await;
    let first = call("call", json!({"a": 1}));
    let asked = asked(scene.make(first, Duration::from_secs(10)).await);
    assert_eq!(asked.state.as_deref(), Some("opaque é"));
    let keys: Vec<_> = asked
        .questions
        .iter()
        .map(|question| question.key.as_str())
        .collect();
    assert_eq!(keys, ["who", "page"]);
    assert_eq!(
        asked.questions[1].url.as_deref(),
        Some("https://example.com/")
    );
    let replies = vec![values(json!({"name": "Ada"})), values(json!({}))];
    let mut second = answering("call", Answered { asked, replies });
    second.args.insert("a".into(), json!(1));
    assert_eq!(
        scene.make(second, Duration::from_secs(10)).await,
        Ok(
            json!({"state": "opaque é", "arguments": {"a": 1}, "responses": {
                "who": {"action": "accept", "content": {"name": "Ada"}}, "page": {"action": "accept"},
            }})
        )
    );
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_only_wants_to_be_asked_again_is() {
    let scene = Scene::modern("shares_load").connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;
    let scene = Scene::modern("shares_load_for_ever").connected().await;
    assert_eq!(code(&scene.call("call", json!({})).await), "tool_error");
    scene.end().await;
}

#[tokio::test]
async fn input_that_no_person_can_give_fails_the_call() {
    let scene = Scene::modern("wants_sampling").connected().await;
    assert_eq!(code(&scene.call("call", json!({})).await), "input_required");
    scene.end().await;
}

#[tokio::test]
async fn an_error_that_sends_a_person_to_a_page_is_a_question() {
    let scene = Scene::hostile("url_error").connected().await;
    let asked = asked(scene.call("call", json!({})).await);
    assert_eq!(
        asked.questions[0].url.as_deref(),
        Some("https://example.com/")
    );
    scene.end().await;
}
