//! A plan is created once, regardless of which caller is first.

use crate::faults::FaultyStore;
use crate::world::{World, document, person};
use planwright_core::id::PlanId;
use planwright_core::review::ReviewRefusal;
use planwright_engine::{Engine, ReviewError};
use serde_json::{Value, json};

fn plan(title: &str) -> Value {
    json!({"id": "p", "title": title, "steps": [{"id": "a", "tool": "r.read"}]})
}

async fn create(engine: &Engine, value: Value) -> Result<PlanId, ReviewError> {
    let by = person();
    let plans = engine.plans();
    let created = plans.create_plan(document(value), &by, false, None);
    let (review, _) = created.await?;
    Ok(review.id().clone())
}

#[tokio::test(start_paused = true)]
async fn of_several_who_create_one_plan_at_once_one_succeeds() {
    let world = World::new();
    let engine = FaultyStore::yielding(&world).engine(&world, "one");
    let titles = ["one", "two", "three", "four", "five", "six"];
    let creating = titles.map(|title| create(&engine, plan(title)));
    let created = futures::future::join_all(creating).await;
    let (won, lost): (Vec<_>, Vec<_>) = created.into_iter().partition(Result::is_ok);
    assert_eq!(won.len(), 1, "{lost:?}");
    for refused in lost {
        let exists = matches!(refused, Err(ReviewError::Refused(ReviewRefusal::Exists(_))));
        assert!(exists, "{refused:?}");
    }
    let (review, _) = engine
        .plans()
        .load_review(&"p".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(
        review.versions().len(),
        1,
        "the plan of one became the next version of another's"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_exists_is_not_created_again_with_the_same_content_either() {
    let world = World::new();
    let engine = world.engine("one");
    create(&engine, plan("one")).await.unwrap();
    let again = create(&engine, plan("one")).await;
    let exists = matches!(again, Err(ReviewError::Refused(ReviewRefusal::Exists(_))));
    assert!(exists, "{again:?}");
    // The id is taken, regardless of what is wrong with the rest.
    let broken = json!({"id": "p", "steps": [{"id": "a", "tool": "r.read", "dependsOn": ["b"]}]});
    let again = create(&engine, broken).await;
    let exists = matches!(again, Err(ReviewError::Refused(ReviewRefusal::Exists(_))));
    assert!(exists, "{again:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_plan_can_be_created_again_and_proposing_makes_the_next_version() {
    let world = World::new();
    let engine = world.engine("one");
    let id = create(&engine, plan("one")).await.unwrap();
    engine.plans().delete(&id, &person()).await.unwrap();
    create(&engine, plan("two")).await.unwrap();
    let (review, _) = engine
        .plans()
        .propose(document(plan("three")), &person())
        .await
        .unwrap();
    assert_eq!(review.current().number, 3);
}

#[tokio::test(start_paused = true)]
async fn plans_without_an_id_never_meet() {
    let world = World::new();
    let engine = world.engine("one");
    let mut nameless = plan("one");
    nameless.as_object_mut().unwrap().remove("id");
    let one = create(&engine, nameless.clone()).await.unwrap();
    let two = create(&engine, nameless).await.unwrap();
    assert_ne!(one, two);
}
