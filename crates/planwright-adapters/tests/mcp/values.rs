//! What a call sends, and what its result becomes.

use crate::scene::{Scene, call, code, fixture};
use planwright_adapters::mcp::{SeenShapes, Transport};
use planwright_adapters::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_engine::port::{
    ArtifactRef, Artifacts as _, Call, CallError, LogLevel, LoggedLine, Progress, ProgressSink,
    Tools as _,
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
async fn what_results_looked_like_is_remembered_without_what_was_in_them() {
    let kept = tempfile::tempdir().unwrap();
    let folder = kept.path().join("shapes");
    // The same server both times: what starts it is part of what a tool is.
    let scene = || {
        Scene::python("echo_server.py", &[], |spec, options| {
            let state = format!("state={}", kept.path().join("state").display());
            let script = fixture("echo_server.py").display().to_string();
            spec.transport = Transport::Stdio {
                command: "python3".into(),
                args: vec!["-u".to_owned(), script, state],
                env: Default::default(),
                cwd: None,
            };
            options.shapes = Some(SeenShapes::new(&folder, Arc::new(Cipher::Plain)));
        })
    };
    let seen = |scene: &Scene, tool: &str| {
        let catalog = scene.servers.catalog();
        let tool = catalog.resolve(&format!("s.{tool}")).unwrap();
        tool.seen_shape().and_then(|seen| seen.write(200))
    };
    let files = || std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let first = scene().connected().await;
    assert_eq!(seen(&first, "echo"), None);
    for text in ["{\"user\": \"canary\", \"n\": 1}", "{\"user\": null}"] {
        let said = first.call("echo", json!({ "text": text })).await;
        assert_eq!(said, Ok(json!(text)));
    }
    let expected = Some("{n?: number, user: string}".to_owned());
    assert_eq!(seen(&first, "echo"), expected);
    // A tool that says what it returns needs no memory.
    first.call("json_text", json!({})).await.unwrap();
    assert_eq!(seen(&first, "json_text"), None);
    let is_kept = || {
        files().any(|file| {
            let text = std::fs::read_to_string(file.path()).unwrap_or_default();
            text.contains("user") && text.contains("false")
        })
    };
    let waits = async {
        while !is_kept() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), waits)
        .await
        .unwrap();
    first.end().await;
    assert_eq!(files().count(), 1);
    for file in files() {
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains("canary"), "{text}");
    }
    let second = scene().connected().await;
    assert_eq!(seen(&second, "echo"), expected);
    second.end().await;
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
        Ok(json!({"content": [image], "artifact": picture}))
    );
    assert_eq!(
        scene.call("several", json!({})).await,
        Ok(
            json!({"content": [{"type": "text", "text": "look"}, image, {"type": "text", "text": "done"}], "artifact": picture})
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
        }}], "artifact": Digest::of_bytes(b"blob")}))
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

/// A call that logs, and what is heard of it.
fn logging_call() -> (Call, Arc<Mutex<Vec<LoggedLine>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&heard);
    let mut watched = call("logs", json!({}));
    watched.progress =
        ProgressSink::default().with_log(move |line| sink.lock().unwrap().push(line));
    (watched, heard)
}

fn logged(level: LogLevel, logger: Option<&str>, text: &str) -> LoggedLine {
    LoggedLine {
        level,
        logger: logger.map(str::to_owned),
        text: text.to_owned(),
    }
}

#[tokio::test]
async fn what_a_server_logs_is_told_of_the_call_that_is_alone() {
    for modern in [false, true] {
        let scene = echo(modern).await;
        let (watched, heard) = logging_call();
        let done = scene.make(watched, Duration::from_secs(30)).await;
        assert_eq!(done, Ok(json!("done")));
        let expected = [
            logged(LogLevel::Warning, Some("db"), r#"{"rows":3}"#),
            logged(LogLevel::Info, None, "in words"),
        ];
        assert_eq!(*heard.lock().unwrap(), expected, "modern: {modern}");
        scene.end().await;
    }
}

#[tokio::test]
async fn standard_error_is_told_of_a_call_where_the_operator_wants_it() {
    let scene = Scene::python("echo_server.py", &[], |spec, _| spec.logs_stderr = true)
        .connected()
        .await;
    let (watched, heard) = logging_call();
    let done = scene.make(watched, Duration::from_secs(30)).await;
    assert_eq!(done, Ok(json!("done")));
    let line = logged(LogLevel::Info, Some("stderr"), "on stderr");
    assert!(heard.lock().unwrap().contains(&line), "{heard:?}");
    scene.end().await;
}

#[tokio::test]
async fn lines_that_may_be_of_another_call_are_told_of_none() {
    let scene = echo(false).await;
    let (watched, heard) = logging_call();
    let other = scene.make(call("slow", json!({"seconds": 2})), Duration::from_secs(30));
    let watching = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        scene.make(watched, Duration::from_secs(30)).await
    };
    let (slept, done) = tokio::join!(other, watching);
    assert_eq!(slept, Ok(json!("slept")));
    assert_eq!(done, Ok(json!("done")));
    assert!(heard.lock().unwrap().is_empty(), "{heard:?}");
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
