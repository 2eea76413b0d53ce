//! Looking for what waits or is due: only what can matter is read, and nothing that matters is
//! missed.

use crate::faults::FaultyStore;
use crate::world::{World, after, approved, chain, document, options, person};
use planwright_core::id::PlanId;
use planwright_core::journal::StreamName;
use planwright_core::principal::Assurance;
use planwright_core::run::Shown;
use planwright_core::status::{CachedStatus, PlanStatus};
use planwright_engine::port::{Append, Journal as _, LeaseRule, StreamStatus};
use planwright_engine::{Engine, MaintenanceNotice, Retention, RunCommand};
use serde_json::{Map, Value, json};

const DAY: u64 = 24 * 60 * 60 * 1000;

fn named(id: &str, gated: bool) -> Value {
    json!({"id": id, "steps": [{"id": "a", "tool": "r.read", "approvalRequired": gated}]})
}

async fn proposed(engine: &Engine, id: &str) -> PlanId {
    engine
        .plans()
        .propose(document(named(id, false)), &person())
        .await
        .unwrap()
        .0
        .id()
        .clone()
}

async fn over(engine: &Engine, id: &str) -> PlanId {
    let plan = approved(engine, named(id, false)).await;
    engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    plan
}

async fn waiting(engine: &Engine, id: &str) -> PlanId {
    let plan = approved(engine, named(id, true)).await;
    let run = engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    plan
}

async fn word(engine: &Engine, plan: &PlanId) -> String {
    engine
        .journals()
        .info(&StreamName::Plan(plan.clone()))
        .await
        .unwrap()
        .unwrap()
        .status
        .status
        .to_string()
}

async fn plans_awaiting_people(engine: &Engine) -> Vec<String> {
    let found = engine.inbox().plans_awaiting_people().await.unwrap().plans;
    let mut ids: Vec<String> = found
        .iter()
        .map(|info| info.status.plan.to_string())
        .collect();
    ids.sort();
    ids
}

async fn plans_with_status(engine: &Engine, word: &str) -> Vec<String> {
    let found = engine
        .inbox()
        .plans_with_status(word.parse().unwrap())
        .await
        .unwrap();
    let mut ids: Vec<String> = found
        .iter()
        .map(|info| info.status.plan.to_string())
        .collect();
    ids.sort();
    ids
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_not_read_by_those_who_look_for_what_is_not() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let engine = store.engine(&world, "one");
    for number in 0..20 {
        over(&engine, &format!("over-{number}")).await;
    }
    proposed(&engine, "fresh").await;
    let run = waiting(&engine, "gated").await;
    engine.maintenance().run_maintenance().await.unwrap();
    let before = store.reads();
    assert!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .next_at
            .is_some(),
        "it is known when the fresh plan expires"
    );
    assert_eq!(plans_awaiting_people(&engine).await, ["fresh", "gated"]);
    assert_eq!(plans_with_status(&engine, "proposed").await, ["fresh"]);
    assert_eq!(plans_with_status(&engine, "waiting").await, ["gated"]);
    assert_eq!(plans_with_status(&engine, "completed").await.len(), 20);
    assert_eq!(store.reads(), before, "not one journal was read");
    assert_eq!(
        engine.inbox().plans_awaiting_people().await.unwrap().runs[&run].len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn everything_that_waits_for_a_person_is_found() {
    let world = World::new();
    let engine = world.engine("one");
    proposed(&engine, "fresh").await;
    for (id, times) in [("sent-back", 1), ("given-up", 3)] {
        for version in 1..=times {
            let steps = json!([{"id": "a", "tool": "r.read", "args": {"value": version}}]);
            let (review, _) = engine
                .plans()
                .propose(document(json!({"id": id, "steps": steps})), &person())
                .await
                .unwrap();
            let shown = Shown::Version(review.current().number);
            engine
                .plans()
                .reject(review.id(), shown, &person(), "no")
                .await
                .unwrap();
        }
    }
    over(&engine, "over").await;
    // A new version of what is over waits again, also while nothing else tells it from what is
    // over.
    let again = over(&engine, "again").await;
    assert_eq!(word(&engine, &again).await, "opened");
    engine
        .plans()
        .propose(document(named("again", true)), &person())
        .await
        .unwrap();
    assert_eq!(word(&engine, &again).await, "proposed");
    waiting(&engine, "gated").await;
    // A run that waits is found, regardless of what is decided about its plan meanwhile.
    waiting(&engine, "edited").await;
    engine
        .plans()
        .propose(document(named("edited", false)), &person())
        .await
        .unwrap();
    let paused = approved(&engine, chain(2, "r.read", 1000)).await;
    let mut handle = engine.runs().start(&paused, options()).await.unwrap();
    after(10).await;
    engine
        .runs()
        .command(handle.run_id(), RunCommand::Pause { by: person() })
        .await
        .unwrap();
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "paused");
    let gone = proposed(&engine, "gone").await;
    engine.plans().delete(&gone, &person()).await.unwrap();
    let away = over(&engine, "away").await;
    engine.plans().archive(&away, &person()).await.unwrap();
    let ready = approved(&engine, named("ready", false)).await;
    let expected = [
        "again",
        "edited",
        "fresh",
        "gated",
        "given-up",
        paused.as_str(),
    ];
    let mut expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    expected.sort();
    assert_eq!(
        plans_awaiting_people(&engine).await,
        expected,
        "and not {ready}, which waits for being run"
    );
}

#[tokio::test(start_paused = true)]
async fn every_plan_is_found_where_it_stands() {
    let world = World::new();
    let engine = world.engine("one");
    proposed(&engine, "fresh").await;
    over(&engine, "over").await;
    let away = over(&engine, "away").await;
    engine.plans().archive(&away, &person()).await.unwrap();
    waiting(&engine, "gated").await;
    waiting(&engine, "edited").await;
    engine
        .plans()
        .propose(document(named("edited", false)), &person())
        .await
        .unwrap();
    let gone = over(&engine, "gone").await;
    engine.plans().delete(&gone, &person()).await.unwrap();
    approved(&engine, named("ready", false)).await;
    let again = over(&engine, "again").await;
    engine
        .plans()
        .propose(document(named("again", true)), &person())
        .await
        .unwrap();
    engine
        .plans()
        .reject(&again, Shown::Version(2), &person(), "no")
        .await
        .unwrap();
    for info in engine.journals().plans().await.unwrap() {
        let plan = info.status.plan;
        let (review, _) = engine.plans().load_review(&plan).await.unwrap();
        let status = engine.plans().status(&review).await.unwrap();
        let found = plans_with_status(&engine, status.as_str()).await;
        assert!(
            found.contains(&plan.to_string()),
            "{plan} is {} and not in {found:?}",
            status.as_str()
        );
    }
    assert_eq!(
        plans_with_status(&engine, "waiting").await,
        ["edited", "gated"]
    );
    assert!("no such word".parse::<PlanStatus>().is_err());
}

/// Writes the word that an earlier release kept.
async fn as_before(world: &World, engine: &Engine, plan: &PlanId) {
    let stream = StreamName::Plan(plan.clone());
    let info = engine.journals().info(&stream).await.unwrap().unwrap();
    assert_eq!(info.status.status.as_str(), "opened");
    let status = Some(StreamStatus {
        status: CachedStatus::Proposed,
        ..info.status
    });
    let expected = engine.journals().head(&stream).await.unwrap();
    let records = Vec::new();
    let answers = Vec::new();
    let append = Append {
        stream,
        expected,
        records,
        lease: LeaseRule::None,
        status,
        answers,
        requests: Vec::new(),
        brought: Vec::new(),
        offers: Vec::new(),
    };
    world.store.append(vec![append]).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_words_of_an_earlier_release_are_made_right_and_hide_nothing_before() {
    let world = World::new();
    let one = world.engine("one");
    let old = over(&one, "old").await;
    let other = over(&one, "other").await;
    let fresh = proposed(&one, "fresh").await;
    after(DAY).await;
    as_before(&world, &one, &old).await;
    as_before(&world, &one, &other).await;
    let unchanged = async || {
        let plans = one.journals().plans().await.unwrap();
        plans
            .iter()
            .map(|info| (info.status.plan.clone(), info.updated_at))
            .collect::<Vec<_>>()
    };
    let before = unchanged().await;
    assert_eq!(plans_with_status(&one, "completed").await, ["old", "other"]);
    world
        .store
        .damage(&StreamName::Plan(other.clone()), "a test damaged it");
    let two = world
        .builder("two")
        .store(world.store.clone(), world.artifacts.clone())
        .retention(Retention {
            archive_after: Some(std::time::Duration::from_hours(2 * 24)),
            ..Retention::default()
        })
        .build();
    assert!(
        two.maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices
            .is_empty()
    );
    assert_eq!(
        (
            word(&two, &old).await.as_str(),
            word(&two, &fresh).await.as_str()
        ),
        ("opened", "proposed")
    );
    assert_eq!(
        word(&two, &other).await,
        "proposed",
        "what is damaged is left alone"
    );
    assert_eq!(unchanged().await, before, "nothing happened to the plans");
    after(2 * DAY).await;
    assert_eq!(
        two.maintenance().run_maintenance().await.unwrap().notices,
        [MaintenanceNotice::PlanArchived { plan: old }]
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_approved_again_is_not_taken_for_over() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = over(&engine, "p").await;
    assert_eq!(word(&engine, &plan).await, "opened");
    engine
        .plans()
        .approve(
            &plan,
            &Map::new(),
            Shown::Version(1),
            &person(),
            Assurance::Terminal,
        )
        .await
        .unwrap();
    assert_eq!(word(&engine, &plan).await, "approved");
    assert_eq!(plans_with_status(&engine, "approved").await, ["p"]);
    after(31 * DAY).await;
    let notices = engine
        .maintenance()
        .run_maintenance()
        .await
        .unwrap()
        .notices;
    assert_eq!(
        notices,
        [MaintenanceNotice::PlanExpired {
            plan: plan.clone(),
            after_days: 30
        }]
    );
    assert_eq!(word(&engine, &plan).await, "expired");
}
