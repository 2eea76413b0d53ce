//! Servers that misbehave during a call: a definite outcome in time, nothing left behind, and work
//! goes on afterwards.

use crate::scene::{Scene, call, code, peak_memory};
use planwright_core::run::CallEffect;
use planwright_engine::port::{CallError, Outcome, ProgressSink};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Calls once, then sees that another call works, and that nothing is left.
async fn once(behaviour: &str) -> Outcome {
    let scene = Scene::hostile(behaviour).connected().await;
    let outcome = scene.call("call", json!({})).await;
    assert_eq!(
        scene.call("again", json!({})).await,
        Ok(json!("fine")),
        "after {behaviour}"
    );
    scene.end().await;
    outcome
}

/// The same with little time for the call.
async fn hurried(behaviour: &str) -> Outcome {
    let scene = Scene::hostile(behaviour).connected().await;
    let outcome = scene
        .make(call("call", json!({})), Duration::from_millis(500))
        .await;
    assert_eq!(
        scene.call("again", json!({})).await,
        Ok(json!("fine")),
        "after {behaviour}"
    );
    scene.end().await;
    outcome
}

fn is_lost(outcome: &Outcome) -> bool {
    matches!(outcome, Err(CallError::Lost(_)))
}

#[tokio::test]
async fn a_server_that_dies_in_a_call_leaves_the_outcome_unknown() {
    let outcome = once("dies_in_call").await;
    assert!(
        matches!(&outcome, Err(CallError::Lost(why)) if why.contains("exit status: 7")),
        "{outcome:?}"
    );
}

#[tokio::test]
async fn all_calls_of_a_server_that_dies_are_resolved_at_once() {
    let scene = Scene::hostile("dies_in_call").connected().await;
    let calls = (0..8).map(|_| scene.call("call", json!({})));
    let outcomes = futures::future::join_all(calls).await;
    for outcome in outcomes {
        assert!(
            matches!(outcome, Err(CallError::Lost(_) | CallError::Unavailable(_))),
            "{outcome:?}"
        );
    }
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_dies_after_a_call_is_started_again() {
    let scene = Scene::hostile("dies_after_call").connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.lost().await;
    assert_eq!(scene.call("again", json!({})).await, Ok(json!("fine")));
    scene.end().await;
}

#[tokio::test]
async fn the_same_call_works_on_the_next_process() {
    let scene = Scene::hostile("dies_in_first_call").connected().await;
    assert!(is_lost(&scene.call("call", json!({})).await));
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;
}

#[tokio::test]
async fn a_server_that_hangs_is_told_to_stop_and_then_ended() {
    assert!(is_lost(&hurried("hangs").await));
    assert!(is_lost(&hurried("ignores_sigterm").await));
    assert!(is_lost(&hurried("ignores_cancel").await));
}

#[tokio::test]
async fn a_hanging_call_does_not_cost_the_calls_beside_it() {
    let scene = Scene::python("echo_server.py", &[], |_, _| {})
        .connected()
        .await;
    let (hung, other) = tokio::join!(
        scene.make(call("deaf", json!({})), Duration::from_millis(300)),
        scene.call("slow", json!({"seconds": 4})),
    );
    assert!(is_lost(&hung), "{hung:?}");
    assert_eq!(other, Ok(json!("slept")));
    assert_eq!(
        scene.call("echo", json!({"text": "on"})).await,
        Ok(json!("on"))
    );
    scene.end().await;
}

#[tokio::test]
async fn grandchildren_die_with_their_server() {
    let scene = Scene::hostile("grandchildren").connected().await;
    assert_eq!(scene.processes().len(), 3);
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.end().await;

    let scene = Scene::hostile("grandchildren_die_in_call")
        .connected()
        .await;
    assert!(is_lost(&scene.call("call", json!({})).await));
    crate::scene::gone(&format!("state={}", scene.path("state").display())).await;
    scene.end().await;
}

#[tokio::test]
async fn garbage_between_messages_is_ignored() {
    assert_eq!(once("garbage_around").await, Ok(json!("fine")));
}

#[tokio::test]
async fn text_that_is_no_text_fails_the_call_and_nothing_else() {
    assert_eq!(code(&once("invalid_utf8").await), "invalid_output");
    assert_eq!(code(&once("lone_surrogate").await), "invalid_output");
    assert_eq!(once("nul_text").await, Ok(json!("a\u{0}b\u{1b}[2Jc")));
}

#[tokio::test]
async fn endless_output_fails_at_once_and_costs_little_memory() {
    for behaviour in ["endless_line", "gigabyte", "deep", "wide"] {
        let before = peak_memory();
        let outcome = once(behaviour).await;
        // A line that is no message says nothing about the call.
        if behaviour == "endless_line" {
            assert!(is_lost(&outcome), "{outcome:?}");
        } else {
            assert_eq!(code(&outcome), "output_too_large", "{behaviour}");
        }
        let grown = peak_memory().saturating_sub(before);
        assert!(grown < 256, "{behaviour} took {grown} MiB");
    }
}

#[tokio::test]
async fn a_large_result_that_fits_arrives_whole() {
    let outcome = once("ten_mebibytes").await.unwrap();
    assert_eq!(outcome.as_str().map(str::len), Some(10 << 20));
}

#[tokio::test]
async fn answers_nobody_waits_for_are_ignored() {
    assert_eq!(once("wrong_id").await, Ok(json!("the right one")));
    assert_eq!(once("id_as_text").await, Ok(json!("fine")));
    assert_eq!(once("duplicate").await, Ok(json!("fine")));
    assert!(is_lost(&hurried("only_wrong_id").await));
}

#[tokio::test]
async fn an_answer_that_comes_after_the_cancellation_is_the_outcome() {
    assert_eq!(hurried("late").await, Ok(json!("late")));
}

#[tokio::test]
async fn answers_that_contradict_themselves_fail() {
    assert_eq!(code(&once("both").await), "invalid_output");
    assert_eq!(code(&once("neither").await), "invalid_output");
    assert_eq!(code(&once("result_is_no_object").await), "invalid_output");
    assert_eq!(code(&once("bad_base64").await), "invalid_output");
}

#[tokio::test]
async fn errors_are_definite_and_their_messages_bounded() {
    for behaviour in ["huge_error", "odd_error", "unknown_tool_error", "is_error"] {
        let Err(CallError::Failed {
            code,
            message,
            retryable,
            ..
        }) = once(behaviour).await
        else {
            panic!("{behaviour} was to fail")
        };
        assert_eq!(
            (code.as_str(), retryable),
            ("tool_error", false),
            "{behaviour}"
        );
        assert!(message.len() < 10_000, "{behaviour}");
    }
}

#[tokio::test]
async fn an_error_says_what_is_known_of_the_effect() {
    for (behaviour, known) in [
        ("unknown_tool_error", CallEffect::None),
        ("odd_error", CallEffect::Unknown),
        ("is_error", CallEffect::Unknown),
        ("both", CallEffect::Done),
        ("result_is_no_object", CallEffect::Done),
        ("breaks_schema", CallEffect::Done),
        ("deep", CallEffect::Done),
    ] {
        let scene = Scene::hostile(behaviour).connected().await;
        let outcome = scene.call("call", json!({})).await;
        assert!(
            matches!(&outcome, Err(CallError::Failed { effect, .. }) if *effect == known),
            "{behaviour}: {outcome:?}"
        );
        scene.end().await;
    }
}

#[tokio::test]
async fn results_of_unknown_kinds_leave_the_outcome_unknown() {
    assert!(is_lost(&once("makes_task").await));
}

#[tokio::test]
async fn progress_for_ever_does_not_keep_a_call_alive() {
    let reports = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&reports);
    let mut dripping = call("call", json!({}));
    dripping.progress = ProgressSink::new(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let scene = Scene::hostile("drips").connected().await;
    assert!(is_lost(&scene.make(dripping, Duration::from_secs(1)).await));
    let reports = reports.load(Ordering::Relaxed);
    assert!((1..=40).contains(&reports), "{reports} reports");
    scene.end().await;
}

#[tokio::test]
async fn a_million_notifications_cost_no_memory() {
    let before = peak_memory();
    let scene = Scene::hostile("floods").connected().await;
    // An unoptimized reader on a busy machine takes its time; what counts is the memory.
    assert_eq!(
        scene
            .make(call("call", json!({})), Duration::from_secs(120))
            .await,
        Ok(json!("fine"))
    );
    assert!(peak_memory().saturating_sub(before) < 256);
    scene.end().await;
}

#[tokio::test]
async fn a_flood_of_requests_ends_the_connection_or_is_answered() {
    let before = peak_memory();
    let outcome = once("floods_requests").await;
    assert!(
        matches!(outcome, Ok(_) | Err(CallError::Lost(_))),
        "{outcome:?}"
    );
    assert!(peak_memory().saturating_sub(before) < 256);
}

#[tokio::test]
async fn a_server_that_closes_its_pipes_is_gone() {
    assert!(is_lost(&once("closes_stdout").await));
    // It answered, so the call is done; the next one finds a server that does not read and gets
    // another.
    let scene = Scene::hostile("closes_stdin").connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    let next = scene.call("again", json!({})).await;
    assert!(
        matches!(
            next,
            Ok(_) | Err(CallError::Lost(_) | CallError::Unavailable(_))
        ),
        "{next:?}"
    );
    assert_eq!(scene.call("again", json!({})).await, Ok(json!("fine")));
    scene.end().await;
}

#[tokio::test]
async fn noise_on_stderr_stays_in_a_bounded_log() {
    let scene = Scene::hostile("stderr_flood").connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    let size = |name: &str| std::fs::metadata(scene.path(name)).map_or(0, |data| data.len());
    let total = size("logs/s.log") + size("logs/s.log.1");
    assert!((1..=1 << 20).contains(&total), "{total} bytes");
    scene.end().await;
}

#[tokio::test]
async fn the_last_words_of_a_server_are_in_its_log() {
    let scene = Scene::hostile("last_words").connected().await;
    assert_eq!(scene.call("call", json!({})).await, Ok(json!("fine")));
    scene.servers.close().await;
    let log = std::fs::read_to_string(scene.path("logs/s.log")).unwrap();
    assert!(
        log.ends_with("I am going\ngoodbye\n"),
        "{:?}",
        &log[log.len().saturating_sub(100)..]
    );
    scene.end().await;
}

#[tokio::test]
async fn every_request_of_a_server_is_answered() {
    let answers = once("asks").await.unwrap();
    assert_eq!(answers["ping"]["result"], json!({}), "{answers}");
    assert_eq!(answers["roots/list"]["result"]["roots"], json!([]));
    assert_eq!(answers["sampling/createMessage"]["error"]["code"], -32601);
    assert_eq!(answers["made/up"]["error"]["code"], -32601);
    assert_eq!(answers["elicitation/create"]["result"]["action"], "cancel");
}

#[tokio::test]
async fn a_child_sees_only_the_allowed_environment() {
    let scene = Scene::hostile_with("env", &[], |spec, _| {
        let planwright_adapters::mcp::Transport::Stdio { env, .. } = &mut spec.transport else {
            return;
        };
        env.insert("GIVEN".into(), "by the operator".into());
    })
    .connected()
    .await;
    let seen = scene.call("call", json!({})).await.unwrap();
    let seen = seen.as_object().unwrap();
    assert_eq!(seen["GIVEN"], "by the operator");
    assert!(seen.contains_key("PATH"));
    let allowed = |name: &str| {
        let own = [
            "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR",
            "TEMP", "TMP",
        ];
        let certificates = [
            "SSL_CERT_FILE",
            "SSL_CERT_DIR",
            "NODE_EXTRA_CA_CERTS",
            "REQUESTS_CA_BUNDLE",
            "CURL_CA_BUNDLE",
        ];
        own.contains(&name)
            || certificates.contains(&name)
            || name.starts_with("LC_")
            || name.starts_with("XDG_")
    };
    // What the interpreter itself sets does not come from us; it may be a shell script that starts
    // the real one.
    let by_shells =
        |name: &str| name.starts_with("PYENV") || ["PWD", "OLDPWD", "SHLVL", "_"].contains(&name);
    let ours = std::env::vars().filter(|(name, _)| !allowed(name) && !by_shells(name));
    let mut kept_back = 0;
    for (name, value) in ours {
        assert_ne!(seen.get(&name), Some(&json!(value)), "{name} leaked");
        kept_back += 1;
    }
    assert!(
        kept_back > 0,
        "this test needs a variable that is not for servers"
    );
    scene.end().await;
}
