//! What a call sends, and what its result becomes.

use crate::scene::{Scene, call, code};
use planwright_core::digest::Digest;
use planwright_engine::port::{
    ArtifactRef, Artifacts as _, Call, CallError, Progress, ProgressSink,
};
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

async fn echo(modern: bool) -> Scene {
    let args: &[&str] = if modern { &["modern"] } else { &[] };
    Scene::python("echo_server.py", args, |_, _| {})
        .connected()
        .await
}

#[tokio::test]
async fn text_stays_text_unless_the_tool_declares_json() {
    for modern in [false, true] {
        let scene = echo(modern).await;
        assert_eq!(
            scene.call("echo", json!({"text": "{\"a\": 1}"})).await,
            Ok(json!("{\"a\": 1}"))
        );
        assert_eq!(scene.call("number", json!({})).await, Ok(json!("123")));
        assert_eq!(
            scene.call("json_text", json!({})).await,
            Ok(json!({"n": 1}))
        );
        assert_eq!(scene.call("nothing", json!({})).await, Ok(json!(null)));
        scene.end().await;
    }
}

#[tokio::test]
async fn structured_content_is_the_value() {
    let scene = echo(false).await;
    assert_eq!(
        scene.call("structured", json!({})).await,
        Ok(json!({"a": [1, null, {"b": 2}]}))
    );
    assert_eq!(
        scene.call("undeclared", json!({})).await,
        Ok(json!({"a": 1}))
    );
    scene.end().await;
}

#[tokio::test]
async fn a_result_that_breaks_its_schema_fails() {
    for behaviour in ["breaks_schema", "text_breaks_schema"] {
        let scene = Scene::hostile(behaviour).connected().await;
        assert_eq!(code(&scene.call("call", json!({})).await), "invalid_output");
        scene.end().await;
    }
}

#[tokio::test]
async fn bytes_become_artifacts_and_links_stay_links() {
    let scene = echo(false).await;
    let picture = Digest::of_bytes(b"\x89PNG picture");
    let image = json!({"type": "image", "mimeType": "image/png", "artifact": picture, "bytes": 12});
    assert_eq!(
        scene.call("image", json!({})).await,
        Ok(json!({"content": [image]}))
    );
    assert_eq!(
        scene.call("several", json!({})).await,
        Ok(
            json!({"content": [{"type": "text", "text": "look"}, image, {"type": "text", "text": "done"}]})
        )
    );
    let reference = ArtifactRef {
        digest: picture,
        bytes: 12,
    };
    assert_eq!(
        scene.artifacts.get(&reference).await.unwrap(),
        b"\x89PNG picture"
    );
    assert_eq!(
        scene.call("resource", json!({})).await,
        Ok(json!({"content": [{"type": "resource", "resource": {
            "uri": "file:///a", "mimeType": "application/x", "artifact": Digest::of_bytes(b"blob"), "bytes": 4,
        }}]}))
    );
    assert_eq!(
        scene.call("link", json!({})).await,
        Ok(
            json!({"content": [{"type": "resource_link", "uri": "http://127.0.0.1:1/never", "name": "n"}]})
        )
    );
    scene.end().await;
}

#[tokio::test]
async fn the_idempotency_key_goes_with_the_call() {
    for modern in [false, true] {
        let args: &[&str] = if modern { &["modern"] } else { &[] };
        let scene = Scene::python("echo_server.py", args, |_, options| {
            options
                .tools
                .key_arguments
                .insert("s.seen".into(), "key".into());
        })
        .connected()
        .await;
        let seen = scene.call("seen", json!({})).await.unwrap();
        assert_eq!(seen["meta"]["planwright/idempotencyKey"], "key-d");
        // Where a tool takes the key as an argument, the caller has put it there: what was judged
        // is what is sent.
        assert_eq!(seen["arguments"], json!({}));
        assert!(!seen["meta"]["progressToken"].is_null());
        let version = &seen["meta"]["io.modelcontextprotocol/protocolVersion"];
        assert_eq!(version.as_str(), modern.then_some("2026-07-28"));
        scene.end().await;
    }
}

#[tokio::test]
async fn the_place_in_a_trace_goes_with_the_call() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for modern in [false, true] {
        let scene = echo(modern).await;
        let traced = Call {
            trace: Some(parent.parse().unwrap()),
            ..call("seen", json!({}))
        };
        let seen = scene.make(traced, Duration::from_secs(10)).await.unwrap();
        assert_eq!(seen["meta"]["traceparent"], parent);
        let seen = scene.call("seen", json!({})).await.unwrap();
        assert!(seen["meta"]["traceparent"].is_null());
        scene.end().await;
    }
}

#[tokio::test]
async fn arguments_that_do_not_fit_are_not_sent() {
    let scene = echo(false).await;
    assert_eq!(
        code(&scene.call("echo", json!({"text": 7})).await),
        "invalid_args"
    );
    assert!(matches!(
        scene.call("made_up", json!({})).await,
        Err(CallError::Unavailable(_))
    ));
    scene.end().await;
}

#[tokio::test]
async fn progress_reaches_the_caller() {
    let scene = echo(false).await;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut watched = call("progress", json!({}));
    let sink = Arc::clone(&heard);
    watched.progress = ProgressSink::new(move |progress| sink.lock().unwrap().push(progress));
    assert_eq!(
        scene.make(watched, Duration::from_secs(10)).await,
        Ok(json!("done"))
    );
    let heard = heard.lock().unwrap().clone();
    let first = Progress {
        done: 1.0,
        total: Some(3.0),
        message: Some("step 1".into()),
    };
    assert_eq!(heard.first(), Some(&first));
    assert!(heard.len() <= 3);
    scene.end().await;
}

#[tokio::test]
async fn a_cancelled_call_is_told_to_the_server() {
    let scene = echo(false).await;
    let outcome = scene
        .make(
            call("slow", json!({"seconds": 60})),
            Duration::from_millis(300),
        )
        .await;
    assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
    scene.end().await;

    let scene = Scene::python("echo_server.py", &["confirms"], |_, _| {})
        .connected()
        .await;
    let outcome = scene
        .make(
            call("slow", json!({"seconds": 60})),
            Duration::from_millis(300),
        )
        .await;
    assert_eq!(code(&outcome), "tool_error");
    scene.end().await;
}

#[tokio::test]
async fn many_calls_share_one_connection() {
    let scene = echo(false).await;
    let calls = (0..200).map(|number| scene.call("echo", json!({"text": format!("n{number}")})));
    let outcomes = futures::future::join_all(calls).await;
    for (number, outcome) in outcomes.into_iter().enumerate() {
        assert_eq!(outcome, Ok(json!(format!("n{number}"))));
    }
    assert_eq!(scene.processes().len(), 1);
    scene.end().await;
}
