//! Requests that are repeated with their key are done once.

use crate::client::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::effect;
use serde_json::{Value, json};

fn post(service: &Service, token: &str, path: &str, key: &str, body: &Value) -> HttpReply {
    service
        .bare("POST", path)
        .token(token)
        .header("Idempotency-Key", key)
        .json(body)
        .send()
}

#[test]
fn the_same_request_is_answered_again_and_done_once_also_after_a_restart() {
    let mut service = Service::new();
    let goal = json!({ "goal": "once" });
    let first = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(
        (&again.body, again.header("location")),
        (&first.body, first.header("location"))
    );
    assert_eq!(service.stop(), 0);
    service.start();
    let later = post(&service, &service.admin, "/plan", "key-1", &goal).ends(201);
    assert_eq!(
        (later.header("idempotency-replayed"), &later.body),
        (Some("true"), &first.body)
    );
    assert_eq!(
        service.get("/plan").json()["items"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

/// The points that a killed service passes for one request, and a few after it.
const MAX_POINTS: u64 = 60;

/// How many points the service has passed.
fn points(service: &Service) -> u64 {
    service.bench.read("points").parse().unwrap_or(0)
}

/// A request that may never be answered.
fn try_post(service: &Service, path: &str, body: &Value) -> Option<HttpReply> {
    let request = service
        .bare("POST", path)
        .token(&service.admin)
        .header("Idempotency-Key", "once")
        .json(body);
    request.try_send()
}

/// Kills the service at each point that it passes while it does a request, starts it again and
/// repeats the request. `check` sees what came of both.
fn kill_at_every_point(
    prepare: fn(&Service),
    path: &str,
    body: &Value,
    check: fn(&Service, &HttpReply),
) {
    let mut killed = 0;
    let mut first = None;
    for beyond in 1..=MAX_POINTS {
        let mut service = Service::prepared("");
        let text = |name: &str| service.bench.path(name).to_str().unwrap().to_owned();
        service.environment = vec![("PLANWRIGHT_CRASH_COUNT", text("points"))];
        service.start();
        prepare(&service);
        assert_eq!(service.stop(), 0);
        // How many points a start takes is found out once; what happens beside it differs little.
        service.start();
        let passed = *first.get_or_insert_with(|| points(&service));
        assert_eq!(service.stop(), 0);
        let at = passed + beyond;
        service.environment = vec![("PLANWRIGHT_CRASH_AT", at.to_string())];
        if !service.try_start() {
            service.environment.clear();
            service.start();
            continue;
        }
        let answer = try_post(&service, path, body);
        let was_killed = answer.is_none();
        killed += u64::from(was_killed);
        service.kill();
        service.environment.clear();
        service.start();
        let again = post(&service, &service.admin, path, "once", body);
        if let Some(answer) = &answer {
            assert_eq!(again.body, answer.body, "the same answer");
        }
        check(&service, &again);
        if !was_killed {
            break;
        }
    }
    assert!(killed >= 8, "the service was killed {killed} times only");
}

#[test]
fn a_plan_is_created_once_wherever_the_service_dies() {
    let goal = json!({ "goal": "once" });
    kill_at_every_point(
        |_| {},
        "/plan",
        &goal,
        |service, again| {
            assert!(matches!(again.status, 201 | 409), "{}", again.text());
            let plans = service.get("/plan").json();
            let plans = plans["items"].as_array().unwrap().clone();
            assert_eq!(plans.len(), 1, "{plans:?} {}", again.text());
            if again.status == 409 {
                assert_eq!(again.json()["planId"], plans[0]["id"], "{}", again.text());
            }
        },
    );
}

#[test]
fn a_run_is_started_once_wherever_the_service_dies() {
    let prepare = |service: &Service| {
        service.plan("p", json!([effect("a", &[])]));
        service.approve("p");
    };
    kill_at_every_point(prepare, "/plan/p/run", &json!({}), |service, again| {
        assert!(matches!(again.status, 202 | 409), "{}", again.text());
        let runs = service.get("/plan/p/runs").json();
        let runs = runs.as_array().unwrap().clone();
        assert_eq!(runs.len(), 1, "{runs:?} {}", again.text());
        if again.status == 409 {
            assert_eq!(again.json()["planId"], "p", "{}", again.text());
            assert!(again.json()["runId"].is_string(), "{}", again.text());
        }
        let effects = service.bench.read("effects.txt");
        assert!(matches!(effects.as_str(), "" | "a\n"), "{effects}");
    });
}
