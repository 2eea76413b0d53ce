//! Text that people give to plans and runs is masked before it is written, also by a process that
//! has never used the secret.

use crate::world::{World, after, approved, document, options, person};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::principal::Principal;
use planwright_core::run::{Reply, Resolution, Run, Shown, StepState, StoredValue};
use planwright_core::secret::{SecretName, SecretText};
use planwright_engine::memory::MemorySecrets;
use planwright_engine::port::{
    BoxFuture, Journal as _, Leases as _, Mailbox as _, OwnerId, SecretError, Secrets,
};
use planwright_engine::{
    Editing, Engine, NewComment, Redaction, RunCommand, ShownText, Supervisor, SupervisorOptions,
};
use serde_json::{Map, Value, json};
use std::sync::Arc;

const KEY: &str = "hunter2-Hunter2";

fn name(name: &str) -> SecretName {
    SecretName::new(name).unwrap()
}

fn known_secrets() -> MemorySecrets {
    MemorySecrets::new([(name("KEY"), SecretText::new(KEY.to_owned()).unwrap())])
}

/// A process of its own: it knows where the secret is and has never read it.
fn process(world: &World, owner: &str) -> Engine {
    process_with(world, owner, Arc::new(known_secrets()))
}

fn process_with(world: &World, owner: &str, secrets: Arc<dyn Secrets>) -> Engine {
    let store = Arc::clone(&world.store);
    let artifacts = Arc::clone(&world.artifacts);
    world
        .builder(owner)
        .store(store, artifacts)
        .secrets(secrets, Redaction::default())
        .build()
}

/// Secrets that cannot be read right now.
#[derive(Debug)]
struct Unreadable;

impl Secrets for Unreadable {
    fn get<'a>(&'a self, name: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>> {
        let reason = "the keyring is locked".to_owned();
        let name = name.clone();
        Box::pin(std::future::ready(Err(SecretError::Unreadable {
            name,
            reason,
        })))
    }
}

/// Secrets whose source never answers.
#[derive(Debug)]
struct Silent;

impl Secrets for Silent {
    fn get<'a>(&'a self, _: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>> {
        Box::pin(std::future::pending())
    }
}

/// A plan that names the secret, and asks a person before anything else.
fn asking() -> Value {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
    json!({"id": "p", "steps": [
        {"id": "ask", "input": {"message": "Your name?", "schema": schema}},
        {"id": "use", "tool": "r.read", "dependsOn": ["ask"],
            "args": {"value": "${secret.KEY}", "other": "${ask}"}},
    ]})
}

/// Everything the store holds: all streams of the plan and all mail.
async fn kept(world: &World, run: Option<&RunId>) -> String {
    let mut text = String::new();
    let plan = StreamName::Plan("p".parse().unwrap());
    let runs = run.map(|run| StreamName::Run(run.clone()));
    for stream in std::iter::once(plan).chain(runs) {
        for record in world.store.read(&stream, 0, usize::MAX).await.unwrap() {
            text.push_str(&String::from_utf8_lossy(&record.body));
            text.push('\n');
        }
    }
    for message in world.store.mail().await.unwrap() {
        text.push_str(&String::from_utf8_lossy(&message.body));
    }
    text
}

#[track_caller]
fn assert_masked(text: &str) {
    assert!(text.contains("[secret KEY]"), "nothing was masked: {text}");
    assert!(!text.contains(KEY), "the secret was written: {text}");
}

/// A run that waits for a person, and that no process executes.
async fn parked(world: &World) -> Run {
    let engine = process(world, "one");
    let id = approved(&engine, asking()).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    handle.wait().await.unwrap()
}

fn answer(run: &Run, text: &str) -> RunCommand {
    let StepState::AwaitingInput { asked, .. } = run.step(run.find("ask").unwrap()) else {
        panic!("nothing is asked")
    };
    let values = Map::from_iter([("name".to_owned(), json!(text))]);
    RunCommand::GiveInput {
        step: "ask".into(),
        by: person(),
        question: asked.digest(),
        replies: vec![Reply::Values(values)],
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_masked_by_a_process_that_never_used_the_secret() {
    let world = World::new();
    let run = parked(&world).await;
    let other = process(&world, "two");
    other
        .runs()
        .command(run.id(), answer(&run, KEY))
        .await
        .unwrap();
    assert_masked(&kept(&world, Some(run.id())).await);
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_masked_by_the_supervisor_that_takes_the_run_over() {
    let world = World::new();
    let run = parked(&world).await;
    let other = process(&world, "two");
    let supervisor = Supervisor::start(other, &SupervisorOptions::default());
    supervisor
        .command(run.id(), answer(&run, KEY))
        .await
        .unwrap();
    assert_masked(&kept(&world, Some(run.id())).await);
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_only_an_earlier_version_names_is_masked_too() {
    let world = World::new();
    let engine = process(&world, "one");
    let (review, _) = engine
        .plans()
        .propose(document(asking()), &person())
        .await
        .unwrap();
    let mut plain = asking();
    plain["steps"][1]["args"] = json!({"other": "${ask}"});
    let editing = Editing {
        based_on: 1,
        by: person(),
        reason: Some(format!("{KEY} is not needed")),
    };
    let edited = engine
        .plans()
        .edit(review.id(), document(plain), &editing)
        .await;
    edited.unwrap();
    let shown = Shown::Version(2);
    let given = engine
        .plans()
        .approve(
            review.id(),
            &Map::new(),
            shown,
            &person(),
            planwright_core::principal::Assurance::Terminal,
        )
        .await;
    given.unwrap();
    let mut handle = engine.runs().start(review.id(), options()).await.unwrap();
    let run = handle.wait().await.unwrap();
    for writer in [
        process(&world, "two"),
        // The process that executes the run is no exception.
        engine,
    ] {
        let reason = format!("it was {KEY}");
        let by = person();
        let step = "use".to_owned();
        let given = writer
            .runs()
            .command(run.id(), RunCommand::LeaveOut { step, by, reason })
            .await;
        drop(given);
        assert_masked(&kept(&world, Some(run.id())).await);
    }
}

#[tokio::test(start_paused = true)]
async fn reasons_given_to_runs_are_masked_whichever_process_writes_them() {
    let reason = || format!("because of {KEY}");
    let commands = [
        RunCommand::GiveUp {
            by: person(),
            reason: reason(),
        },
        RunCommand::LeaveOut {
            step: "use".into(),
            by: person(),
            reason: reason(),
        },
    ];
    for command in commands {
        let world = World::new();
        let run = parked(&world).await;
        let other = process(&world, "two");
        other.runs().command(run.id(), command).await.unwrap();
        assert_masked(&kept(&world, Some(run.id())).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_denial_is_masked() {
    let world = World::new();
    let engine = process(&world, "one");
    let mut plan = asking();
    plan["steps"][0] = json!({"id": "ask", "tool": "r.read", "approvalRequired": true});
    let id = approved(&engine, plan).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let run = handle.wait().await.unwrap();
    let denial = RunCommand::Deny {
        step: "ask".into(),
        by: person(),
        shown: ShownText::Version(1),
        reason: format!("not with {KEY}"),
    };
    let other = process(&world, "two");
    other.runs().command(run.id(), denial).await.unwrap();
    assert_masked(&kept(&world, Some(run.id())).await);
}

#[tokio::test(start_paused = true)]
async fn the_value_of_a_resolved_call_is_masked_in_the_journal_and_as_an_artifact() {
    for size in [1, 100_000] {
        let world = World::new();
        let engine = process(&world, "one");
        let plan = json!({"id": "p", "steps": [
            {"id": "lost", "tool": "w.write", "args": {"ms": 1_000_000, "value": "${secret.KEY}"}},
        ]});
        let id = approved(&engine, plan).await;
        let handle = engine.runs().start(&id, options()).await.unwrap();
        let run = handle.run_id().clone();
        after(10).await;
        // Its process dies with the call in flight.
        world.store.kill_owner(&OwnerId("one".into()));
        let other = process(&world, "two");
        let said = json!(format!("{}{KEY}", "x".repeat(size)));
        let resolution = other
            .runs()
            .resolution_with_value(&run, said)
            .await
            .unwrap();
        let Resolution::Happened { value } = &resolution else {
            panic!("it happened")
        };
        assert_eq!(
            matches!(value, StoredValue::Artifact(_)),
            size > 1,
            "large values are artifacts"
        );
        let read = planwright_engine::read_value(&*world.artifacts, value).await;
        assert_masked(&read.unwrap().to_string());
        let resolve = RunCommand::Resolve {
            step: "lost".into(),
            by: person(),
            resolution,
        };
        other.runs().command(&run, resolve).await.unwrap();
        assert!(!kept(&world, Some(&run)).await.contains(KEY));
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_to_the_owner_is_masked_before_it_is_left() {
    let world = World::new();
    let run = parked(&world).await;
    // An owner that is alive and does not look at its mail.
    let owner = OwnerId("deaf".into());
    let ttl = std::time::Duration::from_secs(3600);
    world.store.acquire(run.id(), &owner, ttl).await.unwrap();
    let other = process(&world, "two");
    let unheard = other.runs().command(run.id(), answer(&run, KEY)).await;
    assert!(unheard.is_err(), "the owner never answers");
    let mail = world.store.mail().await.unwrap();
    assert_eq!(mail.len(), 1, "the message stays in the mailbox");
    assert_masked(&String::from_utf8_lossy(&mail[0].body));
}

async fn proposed(engine: &Engine) -> PlanId {
    let (review, _) = engine
        .plans()
        .propose(document(asking()), &person())
        .await
        .unwrap();
    review.id().clone()
}

#[tokio::test(start_paused = true)]
async fn what_people_say_about_a_plan_is_masked() {
    let reason = format!("because of {KEY}");
    let shown = Shown::Version(1);
    for said in ["reject", "request changes", "comment", "edit", "revoke"] {
        let world = World::new();
        let id = proposed(&process(&world, "one")).await;
        // Each in a process that has never seen the plan run.
        let other = process(&world, "two");
        match said {
            "reject" => drop(
                other
                    .plans()
                    .reject(&id, shown, &person(), &reason)
                    .await
                    .unwrap(),
            ),
            "request changes" => drop(
                other
                    .plans()
                    .request_changes(&id, shown, &person(), &reason)
                    .await
                    .unwrap(),
            ),
            "comment" => {
                let comment = NewComment {
                    text: reason.clone(),
                    ..NewComment::default()
                };
                drop(
                    other
                        .plans()
                        .comment(&id, comment, &person())
                        .await
                        .unwrap(),
                );
            }
            "edit" => {
                let mut changed = asking();
                changed["title"] = json!("changed");
                let editing = Editing {
                    based_on: 1,
                    by: person(),
                    reason: Some(reason.clone()),
                };
                drop(
                    other
                        .plans()
                        .edit(&id, document(changed), &editing)
                        .await
                        .unwrap(),
                );
            }
            _ => {
                let given = other
                    .plans()
                    .approve(
                        &id,
                        &Map::new(),
                        shown,
                        &person(),
                        planwright_core::principal::Assurance::Terminal,
                    )
                    .await;
                drop(given.unwrap());
                let revoked = other
                    .plans()
                    .revoke_approval(&id, &person(), &person(), Some(reason.clone()))
                    .await;
                drop(revoked.unwrap());
            }
        }
        assert_masked(&kept(&world, None).await);
    }
}

#[tokio::test(start_paused = true)]
async fn a_secret_that_cannot_be_read_does_not_keep_a_person_from_deciding() {
    let sources: [Arc<dyn Secrets>; 2] = [Arc::new(Unreadable), Arc::new(Silent)];
    for secrets in sources {
        let world = World::new();
        let id = proposed(&process(&world, "one")).await;
        let other = process_with(&world, "two", secrets);
        let by = person();
        let plans = other.plans();
        let reject = plans.reject(&id, Shown::Version(1), &by, "no");
        let limit = std::time::Duration::from_secs(10);
        tokio::time::timeout(limit, reject).await.unwrap().unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_document_is_kept_word_for_word() {
    // It is what was approved and what runs: a masked argument would be another call.
    let world = World::new();
    let engine = process(&world, "one");
    let mut plan = asking();
    plan["steps"][1]["args"]["literal"] = json!(KEY);
    let author = Principal::person("ada");
    let (review, _) = engine
        .plans()
        .propose(document(plan), &author)
        .await
        .unwrap();
    let args = &review.current().document.steps[1].args;
    assert_eq!(args["literal"], KEY);
}
