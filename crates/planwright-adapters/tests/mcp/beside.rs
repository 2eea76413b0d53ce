//! An answer that is too large beside another call on the same connection: it is the end of its own
//! call and of no other.

use crate::scene::{Scene, call, code};
use planwright_adapters::mcp::{ServerSpec, Transport};
use planwright_engine::port::{CallError, Outcome};
use planwright_testing::bank::bank_script;
use serde_json::json;
use std::time::Duration;

/// A bank, with the log of its effects and the log of its starts in the scene's directory.
pub(crate) async fn bank(change: impl FnOnce(&mut ServerSpec)) -> Scene {
    Scene::python("echo_server.py", &[], |spec, options| {
        change(spec);
        let directory = options.logs.parent().unwrap().to_owned();
        let log = |name: &str| directory.join(name).display().to_string();
        let Transport::Stdio { args, .. } = &mut spec.transport else {
            return;
        };
        let marker = args.pop().unwrap();
        let script = bank_script().display().to_string();
        *args = vec!["-u".into(), script, log("effects"), log("starts"), marker];
        spec.start_timeout = ServerSpec::START_TIMEOUT;
    })
    .connected()
    .await
}

pub(crate) fn lines(scene: &Scene, name: &str) -> usize {
    let text = std::fs::read_to_string(scene.path(name)).unwrap_or_default();
    text.lines().count()
}

/// A payment and a read in flight together, and what came of both.
async fn beside(scene: &Scene, shape: &str) -> (Outcome, Outcome) {
    let limit = Duration::from_secs(60);
    tokio::join!(
        scene.make(call("pay", json!({})), limit),
        scene.make(call("read", json!({ "shape": shape })), limit),
    )
}

#[tokio::test]
async fn an_answer_that_is_too_large_ends_its_own_call_and_no_other() {
    for shape in ["head", "tail", "text", "inner", "deep", "wide", "error"] {
        let scene = bank(|_| {}).await;
        let (paid, read) = beside(&scene, shape).await;
        assert_eq!(paid, Ok(json!("paid")), "{shape}");
        assert_eq!(code(&read), "output_too_large", "{shape}");
        assert_eq!(lines(&scene, "effects"), 1, "{shape}");
        assert_eq!(scene.call("read", json!({})).await, Ok(json!("read")));
        assert_eq!(lines(&scene, "starts"), 1, "{shape}: it was started again");
        scene.end().await;
    }
}

#[tokio::test]
async fn an_answer_that_is_too_large_and_nobodys_leaves_all_outcomes_unknown() {
    for shape in ["unnamed", "two_ids"] {
        let scene = bank(|_| {}).await;
        let (paid, read) = beside(&scene, shape).await;
        for outcome in [paid, read] {
            assert!(
                matches!(&outcome, Err(CallError::Lost(why)) if why.contains("too large")),
                "{shape}: {outcome:?}"
            );
        }
        assert_eq!(lines(&scene, "effects"), 1, "{shape}");
        scene.end().await;
    }
}

#[tokio::test]
async fn an_answer_without_end_ends_its_own_call_and_the_others_are_lost() {
    let scene = bank(|_| {}).await;
    let (paid, read) = beside(&scene, "endless").await;
    assert!(matches!(paid, Err(CallError::Lost(_))), "{paid:?}");
    assert_eq!(code(&read), "output_too_large");
    assert_eq!(lines(&scene, "effects"), 1);
    scene.end().await;
}

#[tokio::test]
async fn what_is_too_large_and_no_answer_costs_no_call() {
    for (shape, said) in [
        ("notice", "read"),
        ("noise", "read"),
        ("question", r#"["error", "id", "jsonrpc"]"#),
    ] {
        let scene = bank(|_| {}).await;
        let (paid, read) = beside(&scene, shape).await;
        assert_eq!(paid, Ok(json!("paid")), "{shape}");
        assert_eq!(read, Ok(json!(said)), "{shape}");
        assert_eq!(lines(&scene, "starts"), 1, "{shape}: it was started again");
        scene.end().await;
    }
}
