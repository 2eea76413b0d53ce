//! Commands from another engine on the same store reach the run once, regardless of which engine
//! executes it.

use crate::world::{World, after, approved, chain, entries, options, person, status_of};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::Head;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Resolution, Run, RunEvent};
use planwright_engine::port::{Leases as _, Mailbox as _, OwnerId};
use planwright_engine::{CommandError, Engine, RunCommand, RunHandle, ShownText};
use serde_json::{Value, json};
use std::time::Duration;

fn approve(step: &str) -> RunCommand {
    let shown = ShownText::Version(1);
    RunCommand::Approve {
        step: step.into(),
        by: person(),
        assurance: Assurance::CommandLine,
        shown,
    }
}

fn deny(step: &str) -> RunCommand {
    let shown = ShownText::Version(1);
    RunCommand::Deny {
        step: step.into(),
        by: person(),
        shown,
        reason: "too risky".into(),
    }
}

/// A step that needs approval, and two after it.
fn gated() -> Value {
    let mut plan = chain(3, "r.read", 100);
    plan["steps"][0]["approvalRequired"] = json!(true);
    plan
}

async fn start(engine: &Engine, plan: Value, linger: bool) -> (PlanId, RunHandle) {
    let id = approved(engine, plan).await;
    let mut options = options();
    options.linger = linger;
    let handle = engine.runs().start(&id, options).await.unwrap();
    (id, handle)
}

fn count(world: &World, run: &RunId, wanted: impl Fn(&RunEvent) -> bool) -> usize {
    entries(&*world.store, run)
        .iter()
        .filter(|entry| wanted(&entry.event))
        .count()
}

async fn finish(mut handle: RunHandle) -> Run {
    handle.wait().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn an_approval_from_another_engine_is_heard_once() {
    let world = World::new();
    let (_, handle) = start(&world.engine("one"), gated(), true).await;
    let run_id = handle.run_id().clone();
    after(100).await;
    assert!(
        world.made().is_empty(),
        "a gated step is not called before a person agreed"
    );
    let other = world.engine("two");
    other.runs().command(&run_id, approve("s1")).await.unwrap();
    let again = other.runs().command(&run_id, approve("s1")).await;
    assert!(
        matches!(again, Err(CommandError::RefusedElsewhere(_))),
        "{again:?}"
    );
    let run = finish(handle).await;
    assert_eq!(
        (run.status().as_str(), world.calls_of("s1")),
        ("completed", 1)
    );
    assert_eq!(
        count(&world, &run_id, |event| matches!(
            event,
            RunEvent::ApprovalGranted { .. }
        )),
        1
    );
    assert!(world.store.mail().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_denial_from_another_engine_blocks_what_follows() {
    let world = World::new();
    let (_, handle) = start(&world.engine("one"), gated(), true).await;
    let run_id = handle.run_id().clone();
    world
        .engine("two")
        .runs()
        .command(&run_id, deny("s1"))
        .await
        .unwrap();
    let run = finish(handle).await;
    assert_eq!(run.status().as_str(), "failed");
    assert_eq!(
        ["s1", "s2", "s3"].map(|step| status_of(&run, step)),
        ["denied", "blocked", "blocked"]
    );
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn pause_and_cancel_from_another_engine_are_heard_once() {
    for (command, status, called) in [
        (RunCommand::Pause { by: person() }, "paused", 2),
        (RunCommand::Cancel { by: person() }, "cancelled", 2),
    ] {
        let world = World::new();
        let (_, handle) = start(&world.engine("one"), chain(3, "r.read", 100), false).await;
        let run_id = handle.run_id().clone();
        after(150).await;
        world
            .engine("two")
            .runs()
            .command(&run_id, command)
            .await
            .unwrap();
        let run = finish(handle).await;
        assert_eq!(
            (run.status().as_str(), world.made().len()),
            (status, called)
        );
        let heard = |event: &RunEvent| {
            matches!(
                event,
                RunEvent::RunPaused { .. } | RunEvent::CancelRequested { .. }
            )
        };
        assert_eq!(count(&world, &run_id, heard), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_come_back_in_the_owners_words() {
    let world = World::new();
    let (_, handle) = start(&world.engine("one"), gated(), true).await;
    let run_id = handle.run_id().clone();
    let other = world.engine("two");
    let agent = Principal::agent("planner");
    let shown = ShownText::Version(1);
    let by_agent = RunCommand::Approve {
        step: "s1".into(),
        by: agent,
        assurance: Assurance::Program,
        shown,
    };
    let stale = RunCommand::Deny {
        step: "s1".into(),
        by: person(),
        shown: ShownText::Version(2),
        reason: "old".into(),
    };
    let resolve = RunCommand::Resolve {
        step: "s1".into(),
        by: person(),
        resolution: Resolution::RunAgain,
    };
    for (command, words) in [
        (by_agent, "people approve"),
        (stale, "the plan changed since it was shown"),
        (approve("nowhere"), "no step `nowhere`"),
        (approve("s2"), "it is not waiting for approval"),
        (resolve, "its outcome is not unknown"),
    ] {
        let refused = other
            .runs()
            .command(&run_id, command)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!(
        count(&world, &run_id, |event| matches!(
            event,
            RunEvent::RunStarted { .. }
        )),
        1
    );
    handle.cancel(person()).await.unwrap();
    assert_eq!(finish(handle).await.status().as_str(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nobody_executes_takes_commands_too() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, handle) = start(&engine, gated(), false).await;
    let run = finish(handle).await;
    assert_eq!(
        (run.status().as_str(), status_of(&run, "s1")),
        ("waiting", "awaiting_approval")
    );
    let other = world.engine("two");
    other.runs().command(run.id(), approve("s1")).await.unwrap();
    assert!(world.made().is_empty(), "an approval alone calls nothing");
    let run = finish(other.runs().resume(&id, options()).await.unwrap()).await;
    assert_eq!(
        (run.status().as_str(), world.calls_of("s1")),
        ("completed", 1)
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_was_read_before_a_decision_is_brought_up_to_date() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, handle) = start(&engine, gated(), false).await;
    let run = finish(handle).await;
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    let runs = engine.runs();
    let (mut known, head) = runs.load_run(run.id(), &review).await.unwrap();
    let same = runs.bring_up_to_date(&mut known, head).await.unwrap();
    assert_eq!((same, status_of(&known, "s1")), (head, "awaiting_approval"));
    let other = world.engine("two");
    other.runs().command(run.id(), approve("s1")).await.unwrap();
    let now = runs.bring_up_to_date(&mut known, head).await.unwrap();
    let (loaded, end) = runs.load_run(run.id(), &review).await.unwrap();
    assert_eq!((now, known.steps_digest()), (end, loaded.steps_digest()));
    assert_ne!(status_of(&known, "s1"), "awaiting_approval");
    // A head that the journal never had is no place to go on from.
    let (mut read, _) = runs.load_run(run.id(), &review).await.unwrap();
    let wrong = Head { seq: 1, ..end };
    assert!(runs.bring_up_to_date(&mut read, wrong).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_run_that_nobody_executes_ends_it_without_a_call() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, handle) = start(&engine, gated(), false).await;
    let run = finish(handle).await;
    world
        .engine("two")
        .runs()
        .command(run.id(), RunCommand::Cancel { by: person() })
        .await
        .unwrap();
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    let (run, _) = engine.runs().load_run(run.id(), &review).await.unwrap();
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "s1"),
            world.made().len()
        ),
        ("cancelled", "cancelled", 0)
    );
    let refused = engine
        .runs()
        .command(run.id(), RunCommand::Pause { by: person() })
        .await;
    assert!(
        matches!(refused, Err(CommandError::Refused(_))),
        "{refused:?}"
    );
    let resumed = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap_err()
        .to_string();
    assert!(resumed.contains("already ended (cancelled)"), "{resumed}");
}

/// The owner dies between getting the message and answering it; its sender takes over. No owner may
/// hear it twice.
#[tokio::test(start_paused = true)]
async fn a_command_given_by_taking_over_does_not_stay_in_the_mailbox() {
    let world = World::new();
    let engine = world.engine("one");
    let (id, handle) = start(&engine, gated(), false).await;
    let run_id = finish(handle).await.id().clone();
    let ghost = OwnerId("ghost".into());
    world
        .store
        .acquire(&run_id, &ghost, Duration::from_secs(5))
        .await
        .unwrap();
    let other = world.engine("two");
    other
        .runs()
        .command(&run_id, RunCommand::Pause { by: person() })
        .await
        .unwrap();
    assert!(
        world.store.mail().await.unwrap().is_empty(),
        "the message was dealt with"
    );
    other.runs().command(&run_id, approve("s1")).await.unwrap();
    let run = finish(other.runs().resume(&id, options()).await.unwrap()).await;
    assert_eq!(run.status().as_str(), "completed", "the pause came back");
    assert_eq!(
        count(&world, &run_id, |event| matches!(
            event,
            RunEvent::RunPaused { .. }
        )),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_command_refused_while_taking_over_does_not_stay_in_the_mailbox() {
    let world = World::new();
    let (_, handle) = start(&world.engine("one"), gated(), false).await;
    let run_id = finish(handle).await.id().clone();
    world
        .store
        .acquire(&run_id, &OwnerId("ghost".into()), Duration::from_secs(5))
        .await
        .unwrap();
    let refused = world
        .engine("two")
        .runs()
        .command(&run_id, approve("s2"))
        .await;
    assert!(
        matches!(refused, Err(CommandError::Refused(_))),
        "{refused:?}"
    );
    assert!(
        world.store.mail().await.unwrap().is_empty(),
        "the message was dealt with"
    );
    assert!(
        world.store.lease(&run_id).await.unwrap().is_none(),
        "the lease was given back"
    );
}
