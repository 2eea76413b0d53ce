//! Servers over HTTP, of both eras, with answers as JSON and as streams.

use crate::scene::{Scene, answering, call, code, fixture, peak_memory};
use planwright_adapters::mcp::{Connected, Era, ServerState, Transport};
use planwright_core::run::{Answered, Reply};
use planwright_engine::port::{CallError, Outcome, ProgressSink, Tools as _};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A server that ends with the test.
struct Web {
    process: Child,
    url: String,
}

impl Web {
    fn start(era: &str, shape: &str, behaviour: &str) -> Self {
        let mut process = Command::new("python3")
            .arg(fixture("http_server.py"))
            .args([era, shape, behaviour])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3 runs the server of this test");
        let mut port = String::new();
        BufReader::new(process.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        Self {
            process,
            url: format!("http://127.0.0.1:{}/mcp", port.trim()),
        }
    }
}

impl Drop for Web {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

async fn agreed(scene: &Scene) -> Connected {
    match scene.connect().await {
        ServerState::Connected(connected) => connected,
        other => panic!("it was to come up: {other:?}"),
    }
}

async fn outcome(era: &str, shape: &str, behaviour: &str) -> Outcome {
    let web = Web::start(era, shape, behaviour);
    let scene = Scene::http(&web.url, |_, _| {}).connected().await;
    let outcome = scene.call("call", json!({})).await;
    assert!(
        scene.call("again", json!({})).await.is_ok(),
        "after {behaviour}"
    );
    scene.end().await;
    outcome
}

#[tokio::test]
async fn both_eras_and_both_shapes_work() {
    for (era, expected) in [("legacy", Era::Earlier), ("modern", Era::Modern)] {
        for shape in ["json", "sse"] {
            let web = Web::start(era, shape, "good");
            let scene = Scene::http(&web.url, |_, _| {});
            let connected = agreed(&scene).await;
            assert_eq!(
                (connected.era, connected.tools),
                (expected, 2),
                "{era} {shape}"
            );
            let reports = Arc::new(AtomicU32::new(0));
            let counted = Arc::clone(&reports);
            let mut watched = call("call", json!({}));
            watched.progress = ProgressSink::new(move |_| {
                counted.fetch_add(1, Ordering::Relaxed);
            });
            let lines = Arc::new(AtomicU32::new(0));
            let heard = Arc::clone(&lines);
            watched.progress = watched.progress.with_log(move |line| {
                assert_eq!(line.text, "of this call");
                heard.fetch_add(1, Ordering::Relaxed);
            });
            assert_eq!(
                scene.make(watched, Duration::from_secs(10)).await,
                Ok(json!("fine")),
                "{era} {shape}"
            );
            assert_eq!(reports.load(Ordering::Relaxed), u32::from(shape == "sse"));
            assert_eq!(lines.load(Ordering::Relaxed), u32::from(shape == "sse"));
            scene.end().await;
        }
    }
}

#[tokio::test]
async fn modern_requests_repeat_themselves_in_headers() {
    let web = Web::start("modern", "json", "headers");
    let scene = Scene::http(&web.url, |_, _| {}).connected().await;
    let headers = scene.call("call", json!({"region": "eu"})).await.unwrap();
    assert_eq!(headers["mcp-method"], "tools/call");
    assert_eq!(headers["mcp-name"], "call");
    assert_eq!(headers["mcp-protocol-version"], "2026-07-28");
    assert_eq!(headers["mcp-param-region"], "eu");
    scene.end().await;
}

#[tokio::test]
async fn an_expired_session_is_opened_again_and_the_call_made_once() {
    for way in ["expires", "forgets", "forgets_all"] {
        let web = Web::start("legacy", "json", way);
        let scene = Scene::http(&web.url, |_, _| {}).connected().await;
        assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
        let counts = scene.call("again", json!({})).await.unwrap();
        let counts: Value = serde_json::from_str(counts.as_str().unwrap()).unwrap();
        assert_eq!(counts["session"], 2, "{way}");
        scene.end().await;
    }
}

#[tokio::test]
async fn statuses_say_what_is_known() {
    assert_eq!(
        code(&outcome("legacy", "json", "status_400").await),
        "http_status"
    );
    assert_eq!(
        code(&outcome("modern", "json", "error_in_400").await),
        "tool_error"
    );
    assert!(matches!(
        outcome("legacy", "json", "status_429").await,
        Err(CallError::Failed {
            retryable: true,
            ..
        })
    ));
    for behaviour in ["status_500", "html", "dies"] {
        let outcome = outcome("modern", "sse", behaviour).await;
        assert!(
            matches!(outcome, Err(CallError::Lost(_))),
            "{behaviour}: {outcome:?}"
        );
    }
}

#[tokio::test]
async fn answers_without_end_are_cut() {
    for (era, shape) in [
        ("legacy", "json"),
        ("legacy", "sse"),
        ("modern", "json"),
        ("modern", "sse"),
    ] {
        let before = peak_memory();
        assert_eq!(
            code(&outcome(era, shape, "huge").await),
            "output_too_large",
            "{era} {shape}"
        );
        // The kernel counts by the page and by the thread: what it says may shrink a little.
        let grown = peak_memory().saturating_sub(before);
        assert!(grown < 256, "{era} {shape} took {grown} MiB");
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_its_own_call_and_no_other() {
    for (era, shape) in [
        ("legacy", "json"),
        ("legacy", "sse"),
        ("modern", "json"),
        ("modern", "sse"),
    ] {
        let web = Web::start(era, shape, "huge_beside");
        let scene = Scene::http(&web.url, |_, _| {}).connected().await;
        let beside = scene.call("call", json!({}));
        let huge = async {
            let arrived = async || {
                let counts = scene.call("again", json!({})).await.unwrap();
                let counts: Value = serde_json::from_str(counts.as_str().unwrap()).unwrap();
                counts["call"] == 1
            };
            while !arrived().await {}
            scene.call("call", json!({})).await
        };
        let (beside, huge) = tokio::join!(beside, huge);
        assert_eq!(beside, Ok(json!("fine")), "{era} {shape}");
        assert_eq!(code(&huge), "output_too_large", "{era} {shape}");
        scene.end().await;
    }
}

#[tokio::test]
async fn cancelling_is_told_in_the_way_of_the_era() {
    for (era, count) in [("legacy", "cancelled"), ("modern", "closed")] {
        let web = Web::start(era, "sse", "hangs");
        let scene = Scene::http(&web.url, |_, _| {}).connected().await;
        let outcome = scene
            .make(call("call", json!({})), Duration::from_millis(300))
            .await;
        assert!(matches!(outcome, Err(CallError::Lost(_))), "{outcome:?}");
        // The server notices a closed stream when it next writes.
        let deadline = std::time::Instant::now() + Duration::from_secs(5);
        loop {
            let counts = scene.call("again", json!({})).await.unwrap();
            let counts: Value = serde_json::from_str(counts.as_str().unwrap()).unwrap();
            if counts[count].as_u64() >= Some(1) {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{era}: {counts}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        scene.end().await;
    }
}

#[tokio::test]
async fn credentials_are_sent_and_their_absence_is_named() {
    let web = Web::start("legacy", "json", "wants_header");
    let scene = Scene::http(&web.url, |_, _| {});
    let (reason, _) = scene.refusal().await;
    assert!(reason.contains("403"), "{reason}");
    let scene = Scene::http(&web.url, |spec, _| {
        let Transport::Http { headers, .. } = &mut spec.transport else {
            return;
        };
        headers.insert("Authorization".into(), "Bearer secret".into());
    })
    .connected()
    .await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;

    let web = Web::start("modern", "json", "unauthorized");
    let (reason, _) = Scene::http(&web.url, |_, _| {}).refusal().await;
    assert!(reason.contains("401"), "{reason}");
}

#[tokio::test]
async fn redirects_stay_on_the_origin() {
    let web = Web::start("legacy", "json", "redirect_here");
    let scene = Scene::http(&web.url, |_, _| {}).connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;
    let web = Web::start("legacy", "json", "redirect_elsewhere");
    let (reason, _) = Scene::http(&web.url, |_, _| {}).refusal().await;
    assert!(reason.contains("307"), "{reason}");
}

#[tokio::test]
async fn only_this_machine_is_spoken_to_in_the_clear() {
    for (url, why) in [
        ("http://example.com/mcp", "use https"),
        ("http://127.0.0.1.example.com/", "use https"),
        ("ftp://localhost/", "neither"),
        ("nonsense", "cannot be read"),
        ("http://127.0.0.1:1/mcp", "cannot be reached"),
    ] {
        let scene = Scene::http(url, |_, _| {});
        let (reason, _) = scene.refusal().await;
        assert!(reason.contains(why), "{url}: {reason}");
        assert!(matches!(
            scene.call("call", json!({})).await,
            Err(CallError::Unavailable(_))
        ));
    }
}

#[tokio::test]
async fn headers_of_the_protocol_cannot_be_set() {
    for name in ["Mcp-Session-Id", "accept", "Host", "bad header"] {
        let scene = Scene::http("http://127.0.0.1:1/", |spec, _| {
            let Transport::Http { headers, .. } = &mut spec.transport else {
                return;
            };
            headers.insert(name.into(), "secret".into());
        });
        let (reason, _) = scene.refusal().await;
        assert!(
            reason.contains("cannot be sent") && !reason.contains("secret"),
            "{name}: {reason}"
        );
    }
}

#[tokio::test]
async fn a_server_asks_on_the_stream_of_the_call() {
    let web = Web::start("legacy", "sse", "elicits");
    let scene = Scene::http(&web.url, |_, _| {}).connected().await;
    let asked = match scene.call("call", json!({})).await {
        Err(CallError::AskedMidway(asked)) => *asked,
        other => panic!("it was to ask: {other:?}"),
    };
    assert_eq!(asked.questions[0].message, "Your name?");
    let Value::Object(values) = json!({"name": "Ada"}) else {
        panic!("an object")
    };
    let answered = Answered {
        asked,
        replies: vec![Reply::Values(values)],
    };
    assert_eq!(
        scene
            .make(answering("call", answered), Duration::from_secs(10))
            .await,
        Ok(json!({"action": "accept", "content": {"name": "Ada"}}))
    );
    scene.end().await;
}

#[tokio::test]
async fn a_modern_server_tells_of_changed_tools_on_a_stream_of_its_own() {
    let web = Web::start("modern", "json", "changes_tools");
    let scene = Scene::http(&web.url, |_, _| {}).connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while scene.servers.catalog().resolve("s.added").is_err() {
        assert!(
            std::time::Instant::now() < deadline,
            "the list was not read again"
        );
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    scene.end().await;
}
