use crate::workbench::{Workbench, call};
use futures::FutureExt as _;
use planwright_core::run::CallEffect;
use planwright_engine::port::{CallError, Tools as _};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[tokio::test]
async fn echo_returns_exactly_what_it_was_given() {
    let bench = Workbench::new();
    let values = [
        json!(null),
        json!("${secret.KEY} and $${x}"),
        json!("123"),
        json!(1.5e300),
        json!(9_007_199_254_740_993_u64),
        json!({ "value": { "content": "x", "other": [1, null, "\u{0}\u{1f600}"] } }),
    ];
    for value in values {
        assert_eq!(
            bench.call("demo.echo", json!({ "value": value })).await,
            Ok(value)
        );
    }
}

#[test]
fn echo_is_ready_at_once_and_needs_no_runtime() {
    let bench = Workbench::new();
    let answer = bench
        .tools
        .call(call("demo.echo", json!({ "value": 1 })))
        .now_or_never();
    assert_eq!(answer, Some(Ok(json!(1))));
}

#[tokio::test]
async fn sleep_returns_its_value_after_the_time() {
    let bench = Workbench::new();
    let started = Instant::now();
    assert_eq!(
        bench
            .call("demo.sleep", json!({ "ms": 30, "value": [1] }))
            .await,
        Ok(json!([1]))
    );
    assert!(started.elapsed() >= Duration::from_millis(30));
    assert_eq!(
        bench.call("demo.sleep", json!({ "ms": 0 })).await,
        Ok(Value::Null)
    );
}

#[tokio::test]
async fn sleep_stops_at_once_when_cancelled() {
    let bench = Workbench::new();
    let call = call("demo.sleep", json!({ "ms": 60_000 }));
    let cancelled = call.cancelled.clone();
    let started = Instant::now();
    let (outcome, ()) = tokio::join!(bench.tools.call(call), async { cancelled.cancel() });
    assert_eq!(outcome, Err(CallError::Cancelled));
    assert!(started.elapsed() < Duration::from_secs(5));
}

#[tokio::test]
async fn fail_fails_as_often_as_asked_then_succeeds() {
    let bench = Workbench::new();
    for attempt in 1..=3 {
        let mut call = call(
            "demo.fail",
            json!({ "times": 2, "message": "no", "retryable": false }),
        );
        call.attempt = attempt;
        let expected = if attempt <= 2 {
            Err(CallError::Failed {
                code: "demo_failure".into(),
                message: "no".into(),
                retryable: false,
                effect: CallEffect::None,
            })
        } else {
            Ok(json!({ "attempts": 3 }))
        };
        assert_eq!(bench.tools.call(call).await, expected);
    }
}

#[tokio::test]
async fn fail_without_a_number_fails_for_ever_and_may_be_retried() {
    let bench = Workbench::new();
    let mut call = call("demo.fail", json!({}));
    call.attempt = 1_000_000;
    assert!(matches!(
        bench.tools.call(call).await,
        Err(CallError::Failed {
            retryable: true,
            ..
        })
    ));
}

#[tokio::test]
async fn random_bytes_have_the_length_asked_for_and_differ() {
    let bench = Workbench::new();
    for (n, length) in [(0, 0), (1, 4), (48, 64), (100_000, 133_336)] {
        let text = bench
            .call("demo.random_bytes", json!({ "n": n }))
            .await
            .unwrap();
        assert_eq!(text.as_str().unwrap().len(), length);
    }
    let one = bench.call("demo.random_bytes", json!({ "n": 16 })).await;
    assert_ne!(
        one,
        bench.call("demo.random_bytes", json!({ "n": 16 })).await
    );
    assert_eq!(
        bench
            .code("demo.random_bytes", json!({ "n": (64 << 20) + 1 }))
            .await,
        "invalid_args"
    );
}
