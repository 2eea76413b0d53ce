//! What the operator decided holds for every call, and an approval for exactly what it was given
//! for.

use crate::world::{
    World, after, approved, chain, document, options, person, report_of, status_of,
};
use planwright_core::id::PlanId;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{Review, ReviewStage, ReviewState};
use planwright_core::run::{Run, RunEvent, Shown, StepState};
use planwright_engine::{Engine, GivenApproval, ReviewError, RunCommand};
use serde_json::{Map, Value, json};

/// `a` reads, and `b` writes what `a` returned.
fn late(value: &str) -> Value {
    json!({"id": "p", "steps": [
        {"id": "a", "tool": "r.read", "args": {"value": value}},
        {"id": "b", "tool": "w.write", "args": {"to": "${a}"}},
    ]})
}

async fn approve_by(engine: &Engine, id: &PlanId, name: &str) -> Result<Review, ReviewError> {
    let by = Principal::person(name);
    engine
        .plans()
        .approve(id, &Map::new(), Shown::Version(1), &by, Assurance::Terminal)
        .await
}

async fn approve_late(engine: &Engine, id: &PlanId, choice: &str) {
    let mut given = GivenApproval::new(Shown::Version(1), person(), Assurance::Terminal);
    given.late.insert("b".to_owned(), choice.parse().unwrap());
    engine
        .plans()
        .approve_on_terms(id, &Map::new(), &given)
        .await
        .unwrap();
}

async fn proposed(engine: &Engine, value: Value) -> PlanId {
    engine
        .plans()
        .propose(document(value), &person())
        .await
        .unwrap()
        .0
        .id()
        .clone()
}

fn code_of(run: &Run, step: &str) -> String {
    report_of(run, step)
        .error
        .map(|error| error.code.to_string())
        .unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changes_under_a_run_is_not_called_and_the_change_is_shown() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(2, "w.write", 1_000)).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    after(500).await;
    "deletes everything".clone_into(&mut world.tools.description.lock().unwrap());
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (status_of(&run, "s1"), status_of(&run, "s2")),
        ("completed", "failed")
    );
    let error = report_of(&run, "s2").error.unwrap();
    assert_eq!(error.code.as_str(), "tool_changed");
    assert_eq!(
        error.message,
        "`w.write` changed since the plan was approved: description: \"scripted\" → \"deletes everything\""
    );
    assert_eq!(world.called(), ["s1"]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changed_since_the_approval_starts_no_run_and_resumes_none() {
    let world = World::new();
    let engine = world.engine("one");
    let mut gated = chain(1, "w.write", 1);
    gated["steps"][0]["approvalRequired"] = json!(true);
    let id = approved(&engine, gated.clone()).await;
    "other".clone_into(&mut world.tools.description.lock().unwrap());
    let refused = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("description: \"scripted\" → \"other\""),
        "{refused}"
    );
    "scripted".clone_into(&mut world.tools.description.lock().unwrap());
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    "other".clone_into(&mut world.tools.description.lock().unwrap());
    let refused = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap_err()
        .to_string();
    assert!(
        refused.contains("changed since the run started") && refused.contains("→ \"other\""),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rule_over_arguments_is_decided_on_what_is_sent() {
    let rule = json!({"rules": [{"name": "no evil", "tool": "write", "if": "args.to == 'evil'", "then": "deny",
                                 "reason": "it is evil"}]});
    for (value, expected) in [("evil", "failed"), ("good", "completed")] {
        let world = World::new();
        let engine = world.engine_under("one", rule.clone());
        let id = approved(&engine, late(value)).await;
        let run = engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(status_of(&run, "b"), expected);
        if expected == "failed" {
            let error = report_of(&run, "b").error.unwrap();
            assert_eq!(
                (error.code.as_str(), error.message.as_str()),
                ("policy_denied", "Policy denied: no evil: it is evil")
            );
            assert_eq!(world.called(), ["a"]);
        }
    }
    // Known before it runs, it is not even approved.
    let world = World::new();
    let engine = world.engine_under("one", rule);
    let mut plan = late("x");
    plan["steps"][1]["args"]["to"] = json!("evil");
    let id = proposed(&engine, plan).await;
    let refused = approve_by(&engine, &id, "ada").await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Policy denied: step `b`: no evil: it is evil"
    );
}

#[tokio::test(start_paused = true)]
async fn a_constraint_of_the_approver_holds_for_the_bytes_that_are_sent() {
    for (value, expected) in [("a@good.org", "completed"), ("a@evil.org", "failed")] {
        let world = World::new();
        let engine = world.engine("one");
        let id = proposed(&engine, late(value)).await;
        approve_late(&engine, &id, "args.to.endsWith('@good.org')").await;
        let run = engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(status_of(&run, "b"), expected, "{value}");
        if expected == "failed" {
            assert_eq!(code_of(&run, "b"), "constraint_violated");
            assert_eq!(world.called(), ["a"]);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_asked_about_again_is_made_only_with_exactly_those_arguments() {
    let world = World::new();
    let engine = world.engine("one");
    let id = proposed(&engine, late("x")).await;
    approve_late(&engine, &id, "ask").await;
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    let StepState::AwaitingApproval {
        call: Some(asked), ..
    } = run.step(run.plan().find("b").unwrap())
    else {
        panic!("{:?}", run.step(run.plan().find("b").unwrap()))
    };
    let approve = |by: Principal, shown: Shown| RunCommand::Approve {
        step: "b".into(),
        by,
        assurance: Assurance::Terminal,
        shown: shown.into(),
    };
    let call = Shown::Digest(asked.digest);
    for (by, shown) in [
        (person(), Shown::Digest(run.start().digest)),
        (person(), Shown::Version(1)),
        (Principal::agent("planner"), call),
        (Principal::service("ci"), call),
    ] {
        assert!(
            engine
                .runs()
                .command(run.id(), approve(by, shown))
                .await
                .is_err()
        );
    }
    engine
        .runs()
        .command(run.id(), approve(person(), call))
        .await
        .unwrap();
    assert!(
        engine
            .runs()
            .command(run.id(), approve(person(), call))
            .await
            .is_err(),
        "it was decided already"
    );
    let run = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(world.called(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn two_people_have_to_agree_and_neither_may_be_the_author() {
    let world = World::new();
    let engine = world.engine_under(
        "one",
        json!({"approval": {"four_eyes": true, "required": 2}}),
    );
    let id = proposed(&engine, chain(1, "w.write", 1)).await;
    let author = approve_by(&engine, &id, "ada").await.unwrap_err();
    assert!(author.to_string().contains("another person"), "{author}");
    let review = approve_by(&engine, &id, "bob").await.unwrap();
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
    let refused = engine.runs().start(&id, options()).await.unwrap_err();
    assert_eq!(refused.to_string(), "1 of 2 people have approved it");
    let twice = approve_by(&engine, &id, "bob").await.unwrap_err();
    assert!(
        twice.to_string().contains("approved by you already"),
        "{twice}"
    );
    let review = approve_by(&engine, &id, "eve").await.unwrap();
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Approved));
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "completed");
    let by = &run.start().consent.as_ref().unwrap().approved_by;
    assert_eq!(by.len(), 2);
    assert_eq!(
        engine
            .runs()
            .start(&id, options())
            .await
            .unwrap_err()
            .to_string(),
        "the plan is not approved"
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_expires_and_that_is_not_a_rejection() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"expires_after": "10s"}}));
    let id = approved(&engine, chain(1, "w.write", 1)).await;
    after(10_000).await;
    let refused = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("expired"), "{refused}");
    assert!(world.made().is_empty());
    approve_by(&engine, &id, "ada").await.unwrap();
    after(9_999).await;
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(world.called(), ["s1"]);
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_good_for_as_many_runs_as_policy_grants() {
    let world = World::new();
    let engine = world.engine_under(
        "one",
        json!({"approval": {"uses": 2, "expires_after": "1h"}}),
    );
    let id = approved(&engine, chain(1, "w.write", 1)).await;
    for _ in 0..2 {
        engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
    }
    assert_eq!(
        engine
            .runs()
            .start(&id, options())
            .await
            .unwrap_err()
            .to_string(),
        "the plan is not approved"
    );
    assert_eq!(world.made().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_a_step_that_nobody_gives_in_time_fails_it() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"step_expires_after": "5s"}}));
    let mut gated = chain(1, "w.write", 1);
    gated["steps"][0]["approvalRequired"] = json!(true);
    let id = approved(&engine, gated).await;
    let mut lingering = options();
    lingering.linger = true;
    // A caller that lingers sees it happen; no caller has to come back for it.
    let run = engine
        .runs()
        .start(&id, lingering)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), code_of(&run, "s1").as_str()),
        ("failed", "approval_expired")
    );
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_late_yes_to_a_step_is_refused_even_if_nobody_noticed_the_time() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"step_expires_after": "5s"}}));
    let mut gated = chain(1, "w.write", 1);
    gated["steps"][0]["approvalRequired"] = json!(true);
    let id = approved(&engine, gated).await;
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    after(5_000).await;
    let shown = Shown::Version(1).into();
    let step = "s1".to_owned();
    let assurance = Assurance::Terminal;
    let command = RunCommand::Approve {
        step,
        by: person(),
        assurance,
        shown,
    };
    let refused = engine
        .runs()
        .command(run.id(), command)
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.contains("has expired"), "{refused}");
    let run = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(code_of(&run, "s1"), "approval_expired");
}

#[tokio::test(start_paused = true)]
async fn of_two_who_decide_at_once_one_wins() {
    let world = World::new();
    let one = world.engine("one");
    let other = world.engine("other");
    for round in 0..20 {
        let mut plan = chain(1, "w.write", 1);
        plan["id"] = json!(format!("p{round}"));
        let id = proposed(&one, plan).await;
        let eve = Principal::person("eve");
        let (approved, rejected) = tokio::join!(approve_by(&one, &id, "bob"), async {
            other
                .plans()
                .reject(&id, Shown::Version(1), &eve, "no")
                .await
        });
        let (review, _) = one.plans().load_review(&id).await.unwrap();
        // The principal who came second was told, or decided on what the first had done.
        match (approved.is_ok(), rejected.is_ok()) {
            (true, false) => assert_eq!(review.state(), ReviewState::Active(ReviewStage::Approved)),
            (_, true) => assert_eq!(review.state(), ReviewState::Active(ReviewStage::Rejected)),
            (false, false) => panic!("neither won"),
        }
        let (first, second) =
            tokio::join!(async { one.runs().start(&id, options()).await }, async {
                other.runs().start(&id, options()).await
            });
        let begun = [first.is_ok(), second.is_ok()]
            .iter()
            .filter(|&&begun| begun)
            .count();
        assert_eq!(
            begun,
            usize::from(review.stage() == Some(ReviewStage::Approved)),
            "two runs on one approval"
        );
        for mut handle in [first, second].into_iter().flatten() {
            handle.wait().await.unwrap();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_operators_caps_hold_whoever_switches_the_guards_off() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"caps": {"w.*": 2}}));
    let id = approved(&engine, chain(3, "w.write", 1)).await;
    let mut careless = options();
    careless.guards = false;
    let run = engine
        .runs()
        .start(&id, careless)
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(world.called(), ["s1", "s2"]);
    let error = report_of(&run, "s3").error.unwrap();
    assert_eq!(error.code.as_str(), "guard_blocked");
    assert!(error.message.contains("w.*"), "{}", error.message);
}

#[tokio::test(start_paused = true)]
async fn a_runaway_is_stopped_by_the_operator_too() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"same_call": 2}));
    let same = |id: &str, after: &[&str]| json!({"id": id, "tool": "w.write", "dependsOn": after, "args": {"n": 1}});
    let plan = json!({"id": "p", "steps": [same("a", &[]), same("b", &["a"]), same("c", &["b"])]});
    let id = approved(&engine, plan).await;
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(world.called(), ["a", "b"]);
    assert!(
        report_of(&run, "c")
            .error
            .unwrap()
            .message
            .contains("runaway")
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_carries_its_consent_and_its_pins() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, late("x")).await;
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let entries = crate::world::entries(&*world.store, run.id());
    let RunEvent::RunStarted {
        consent: Some(consent),
        ..
    } = &entries[0].event
    else {
        panic!("given elsewhere")
    };
    assert_eq!(consent.approved_by, [person()]);
    assert_eq!(
        consent.pins.keys().collect::<Vec<_>>(),
        ["r.read", "w.write"]
    );
    assert!(consent.pins.values().all(|pin| pin.definition.is_some()));
    assert_eq!(
        serde_json::to_value(&consent.late).unwrap(),
        json!({"b": ["any"]})
    );
}

#[tokio::test(start_paused = true)]
async fn policy_alone_approves_nothing_that_it_asks_about() {
    let world = World::new();
    let engine = world.engine("one");
    let id = proposed(&engine, late("x")).await;
    let by = engine.policy().principal();
    let refused = engine
        .plans()
        .approve(&id, &Map::new(), Shown::Version(1), &by, Assurance::Policy)
        .await
        .unwrap_err();
    assert!(
        refused.to_string().contains("only a person may approve"),
        "{refused}"
    );
}
