//! Results in what reflectors and planners are told: adjustments, plans of the rest, criteria.

use super::{Besieged, LOGIN};
use crate::world::options;
use planwright_core::model::ModelRole;
use planwright_core::run::{Reflection, Run};
use planwright_engine::RunOptions;
use serde_json::{Value, json};

const TEAM: &str = "team@example.org";

/// Reads a page and fails to send it.
fn failing(page: usize) -> Value {
    json!({"id": "p", "goal": "send the page to the team", "successCriteria": ["the team has the page"], "steps": [
        {"id": LOGIN, "tool": "r.look", "args": {"value": "Bearer ${secret.KEY}"}},
        {"id": "read", "tool": "r.read", "args": {"page": page}},
        {"id": "send", "tool": "w.write", "dependsOn": [LOGIN],
         "args": {"to": TEAM, "text": "${read}", "fail": "no route"}},
    ]})
}

/// Checks before it deploys, and the check fails.
fn guarded(page: usize) -> Value {
    json!({"id": "p", "goal": "deploy", "steps": [
        {"id": LOGIN, "tool": "r.look", "args": {"value": "Bearer ${secret.KEY}"}},
        {"id": "read", "tool": "r.read", "args": {"page": page}},
        {"id": "send", "tool": "r.look", "dependsOn": [LOGIN, "read"], "args": {"fail": "the tests are red"}},
        {"id": "deploy", "tool": "w.write", "dependsOn": ["send"], "args": {"to": TEAM}},
    ]})
}

fn reflecting(max_replans: u32) -> RunOptions {
    let reflection = Reflection {
        max_cycles: 3,
        max_replans,
        ..Reflection::default()
    };
    RunOptions {
        reflection: Some(reflection),
        ..options()
    }
}

/// Goes on as long as anybody lets it.
async fn pursued(
    besieged: &Besieged,
    plan: Value,
    order: RunOptions,
    late: &[(&str, &str)],
) -> Run {
    let id = besieged.approved(plan, late).await;
    let mut run = Box::pin(besieged.engine.runs().start(&id, order))
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    for _ in 0..2 {
        let Ok(mut handle) = Box::pin(besieged.engine.runs().resume(&id, options())).await else {
            break;
        };
        run = handle.wait().await.unwrap();
    }
    run
}

/// Every attack in a few disguises: what a reflector or a planner answers is the attack's,
/// regardless of the disguise it came in.
fn few() -> impl Iterator<Item = usize> {
    (0..Besieged::cases()).filter(|page| matches!(page % 8, 0 | 5))
}

/// Policy may agree to what only reads; now and then it leaves everything to people.
fn policies(page: usize) -> Vec<Value> {
    let mut policies = vec![json!({"adjust": "auto"})];
    policies.extend(page.is_multiple_of(8).then(|| json!({})));
    policies
}

fn sent(besieged: &Besieged, page: usize) -> (&'static str, Value) {
    (
        "w.write",
        json!({"to": TEAM, "text": besieged.corpus[page].text, "fail": "no route"}),
    )
}

#[tokio::test(start_paused = true)]
async fn a_reflector_that_obeys_changes_nothing_that_nobody_agreed_to() {
    for page in 0..Besieged::cases() {
        for policy in policies(page) {
            let besieged = Besieged::under(policy);
            let injected = besieged.corpus[page].clone();
            let run = pursued(&besieged, failing(page), reflecting(0), &[("send", "any")]).await;
            assert!(
                besieged.model.asked(ModelRole::Reflector) > 0,
                "{}",
                injected.attack
            );
            assert_ne!(
                run.status().as_str(),
                "completed",
                "{}: a failed step is no success",
                injected.attack
            );
            besieged.holds(&injected, &[sent(&besieged, page)]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_check_that_failed_is_not_talked_away() {
    for page in few() {
        for policy in policies(page) {
            let besieged = Besieged::under(policy);
            let injected = besieged.corpus[page].clone();
            pursued(&besieged, guarded(page), reflecting(0), &[]).await;
            assert!(
                besieged.model.asked(ModelRole::Reflector) > 0,
                "{}",
                injected.attack
            );
            besieged.holds(&injected, &[]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_planner_of_the_rest_that_obeys_only_proposes() {
    for page in few() {
        let besieged = Besieged::under(json!({"adjust": "auto"}));
        let injected = besieged.corpus[page].clone();
        let order = RunOptions {
            reflection: Some(Reflection {
                max_cycles: 0,
                max_replans: 2,
                ..Reflection::default()
            }),
            ..options()
        };
        pursued(&besieged, failing(page), order, &[("send", "any")]).await;
        assert!(
            besieged.model.asked(ModelRole::Planner) > 0,
            "{}",
            injected.attack
        );
        besieged.holds(&injected, &[sent(&besieged, page)]);
    }
}

#[tokio::test(start_paused = true)]
async fn criteria_that_an_attack_says_are_met_change_no_run() {
    for page in few() {
        let besieged = Besieged::new();
        let injected = besieged.corpus[page].clone();
        let run = besieged.run(failing(page), &[("send", "any")]).await;
        assert_eq!(run.status().as_str(), "failed");
        let checked = besieged
            .engine
            .runs()
            .check_criteria(run.id(), None)
            .await
            .unwrap();
        assert_eq!(checked.status().as_str(), "failed", "{}", injected.attack);
        besieged.holds(&injected, &[sent(&besieged, page)]);
    }
}
