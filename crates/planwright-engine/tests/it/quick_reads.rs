//! Calls of clients that only read: their runs have no loop of their own unless something happens to
//! them, and nothing that can be found out about them differs.

use crate::faults::FaultyStore;
use crate::sessions::{ended, open, wanted};
use crate::world::{World, after, approved, entries, person};
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_core::policy::Mode;
use planwright_core::principal::Principal;
use planwright_core::run::RunEvent;
use planwright_core::secret::{SecretName, SecretText};
use planwright_core::tool::ToolName;
use planwright_engine::memory::MemorySecrets;
use planwright_engine::port::{Leases as _, StoreError, StreamIndex as _};
use planwright_engine::{
    CallEvent, ConcurrencyLimits, Engine, OpenCall, Redaction, RunCommand, Session,
};
use serde_json::{Value, json};
use std::sync::Arc;

const ALLOW: &str = r#"{"rules": [{"tool": "*", "then": "allow"}]}"#;

fn allowing(world: &World) -> Engine {
    world.engine_under("one", serde_json::from_str(ALLOW).unwrap())
}

async fn begin(session: &Session, tool: &str, args: Value) -> OpenCall {
    session.call(wanted(tool, args, false)).await.unwrap()
}

/// Whether the call had ended when it was begun: its run never had a loop.
fn is_quick(call: &OpenCall) -> bool {
    call.ended_at_once().is_some()
}

/// Everything that the journal of a call says, without what tells one call of a session from the next.
fn told(world: &World, run: &RunId) -> Vec<Value> {
    let journal = entries(&*world.store, run).into_iter();
    let told = journal.map(|entry| {
        let mut event = serde_json::to_value(&entry.event).unwrap();
        if let Some(parent) = event.pointer_mut("/run_started/parent/call") {
            *parent = Value::Null;
        }
        json!([entry.seq, entry.epoch, format!("{:?}", entry.cause), event])
    });
    told.collect()
}

fn find(world: &World, run: &RunId, is_it: impl Fn(&RunEvent) -> bool) -> bool {
    let journal = entries(&*world.store, run);
    journal.iter().any(|entry| is_it(&entry.event))
}

async fn status(world: &World, run: &RunId) -> (String, String) {
    let info = world.store.info(&StreamName::Run(run.clone())).await;
    let info = info.unwrap().unwrap();
    (format!("{:?}", info.status), info.status.label)
}

#[tokio::test(start_paused = true)]
async fn the_journal_of_a_read_is_the_same_with_and_without_a_loop() {
    let world = World::new();
    let limits = ConcurrencyLimits {
        per_tool: [("r.read".to_owned(), 1)].into(),
        ..ConcurrencyLimits::default()
    };
    let engine = world.engine_with("one", limits);
    let session = open(&engine, Mode::Enforce).await;
    let args = json!({"value": {"a": [1, "${x}", null]}, "text": "${step}"});
    let quick = begin(&session, "r.read", args.clone()).await;
    assert!(is_quick(&quick));
    // The next one of this tool has to wait, so its run has a loop from its first entry.
    let long = begin(&session, "r.read", json!({"ms": 500})).await;
    let slow = begin(&session, "r.read", args).await;
    assert_eq!(ended(&slow).await.unwrap(), json!({"a": [1, "${x}", null]}));
    // This one got its loop while its call was in flight.
    let handed_over = begin(&session, "r.look", json!({"ms": 40, "value": 1})).await;
    assert!(!is_quick(&handed_over));
    let at_once = begin(&session, "r.look", json!({"value": 1, "ms": 0})).await;
    assert!(is_quick(&at_once));
    ended(&long).await.unwrap();
    ended(&handed_over).await.unwrap();
    after(200).await;
    assert_eq!(told(&world, quick.run()), told(&world, slow.run()));
    assert_eq!(told(&world, quick.run()).len(), 4);
    let kinds = |run: &RunId| -> Vec<String> {
        let name = |told: Value| told[3].as_object().unwrap().keys().next().unwrap().clone();
        told(&world, run).into_iter().map(name).collect()
    };
    assert_eq!(kinds(handed_over.run()), kinds(at_once.run()));
    for call in [&quick, &slow, &handed_over, &at_once] {
        let lease = world.store.lease(call.run()).await.unwrap();
        let of_slow = world.store.lease(slow.run()).await.unwrap();
        assert_eq!(lease.is_none(), of_slow.is_none());
        assert_eq!(
            status(&world, call.run()).await,
            status(&world, slow.run()).await
        );
    }
    // What is made of the journals is the same for all of them.
    let sessions = engine.sessions();
    let recorded = sessions.recorded_calls(session.plan()).await.unwrap();
    let tools: Vec<&str> = recorded.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(tools, ["r.read", "r.read", "r.read", "r.look", "r.look"]);
    assert_eq!(recorded[0].result, recorded[2].result);
    drop((quick, slow, long, handed_over, at_once));
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_writes_down_the_definition_of_its_own_tool_only() {
    let world = World::new();
    let engine = allowing(&world);
    let session = open(&engine, Mode::Enforce).await;
    let of_session = entries(&*world.store, session.run());
    let RunEvent::RunStarted { consent, .. } = &of_session[0].event else {
        panic!("a journal begins with the start of its run");
    };
    let agreed = consent.clone().unwrap();
    assert!(agreed.pins.len() > 1);
    for tool in ["r.read", "w.write"] {
        let call = begin(&session, tool, json!({"value": 1})).await;
        if !is_quick(&call) {
            ended(&call).await.unwrap();
        }
        after(200).await;
        let of_call = entries(&*world.store, call.run());
        let RunEvent::RunStarted { consent, .. } = &of_call[0].event else {
            panic!("a journal begins with the start of its run");
        };
        let consent = consent.as_ref().unwrap();
        let pinned: Vec<_> = consent.pins.iter().collect();
        assert_eq!(pinned, [(&tool.to_owned(), &agreed.pins[tool])]);
        assert_eq!(consent.approved_by, agreed.approved_by);
    }
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn only_what_reads_and_is_let_by_policy_is_quick() {
    let world = World::new();
    let engine = allowing(&world);
    let session = open(&engine, Mode::Enforce).await;
    for (tool, quick) in [
        ("r.read", true),
        ("w.write", false),
        ("k.put", false),
        ("s.save", false),
    ] {
        let call = begin(&session, tool, json!({"value": 1})).await;
        assert_eq!(is_quick(&call), quick, "{tool}");
        if !quick {
            assert_eq!(ended(&call).await.unwrap(), json!(1));
        }
    }
    assert_eq!(world.made().len(), 4);
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_read_that_something_is_held_against_is_not_quick() {
    let asks = json!({"rules": [{"tool": "r.read", "then": "ask"}]});
    let guards = json!({"guarded_tools": ["r.read"], "rules": [{"tool": "*", "then": "allow"}]});
    for policy in [asks, guards] {
        let world = World::new();
        let engine = world.engine_under("one", policy.clone());
        for mode in [Mode::Observe, Mode::Warn] {
            let session = open(&engine, mode).await;
            let call = begin(&session, "r.read", json!({"value": 1})).await;
            assert!(call.let_through().is_some(), "{policy}");
            assert!(!is_quick(&call), "{policy}");
            assert_eq!(ended(&call).await.unwrap(), json!(1));
            drop(call);
            session.close().await;
        }
        let made = world.made().len();
        let session = open(&engine, Mode::Enforce).await;
        assert!(
            session
                .call(wanted("r.read", json!({}), false))
                .await
                .is_err()
        );
        assert_eq!(world.made().len(), made);
        session.close().await;
    }
    let world = World::new();
    let engine = world.engine_under(
        "one",
        json!({"rules": [{"tool": "r.read", "then": "deny"}]}),
    );
    let session = open(&engine, Mode::Observe).await;
    assert!(
        session
            .call(wanted("r.read", json!({}), true))
            .await
            .is_err()
    );
    // A person is asked about a call before it is made.
    let engine = world.engine_under("two", json!({"rules": [{"tool": "r.read", "then": "ask"}]}));
    let asked = open(&engine, Mode::Enforce).await;
    let call = asked.call(wanted("r.read", json!({}), true)).await.unwrap();
    assert!(!is_quick(&call));
    assert!(matches!(call.advance().await, CallEvent::Asks(_)));
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_another_one_by_now_is_not_read() {
    let world = World::new();
    let engine = allowing(&world);
    let session = open(&engine, Mode::Enforce).await;
    assert!(is_quick(&begin(&session, "r.read", json!({})).await));
    *world.tools.description.lock().unwrap() = "something else".to_owned();
    let refused = session.call(wanted("r.read", json!({}), false)).await;
    assert_eq!(refused.unwrap_err().code.as_str(), "tool_changed");
    assert_eq!(world.made().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_takes_long_can_be_cancelled_and_is_on_record_meanwhile() {
    let world = World::new();
    let engine = allowing(&world);
    let session = open(&engine, Mode::Enforce).await;
    let call = begin(&session, "r.read", json!({"ms": 60_000})).await;
    assert!(!is_quick(&call));
    after(150).await;
    let started = |event: &RunEvent| matches!(event, RunEvent::AttemptStarted { .. });
    assert!(find(&world, call.run(), started));
    let order = RunCommand::Cancel { by: person() };
    engine.runs().command(call.run(), order).await.unwrap();
    assert!(ended(&call).await.is_err());
    assert_eq!(world.told_to_stop().len(), 1);
    let cancelled = |event: &RunEvent| matches!(event, RunEvent::RunCancelled { .. });
    assert!(find(&world, call.run(), cancelled));
    drop(call);
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_read_that_fails_or_asks_goes_on_in_a_run_with_a_loop() {
    let world = World::new();
    let engine = allowing(&world);
    let session = open(&engine, Mode::Enforce).await;
    let asking = session.call(wanted("r.look", json!({"ask": 1}), true));
    let asking = asking.await.unwrap();
    assert!(matches!(asking.advance().await, CallEvent::Asks(_)));
    let failed = begin(&session, "r.read", json!({"fail": "no"})).await;
    let error = ended(&failed).await.unwrap_err();
    assert_eq!(error.code.as_str(), "tool_error");
    let panicked = begin(&session, "r.read", json!({"panic": true})).await;
    assert!(ended(&panicked).await.is_err());
    after(200).await;
    let over = |event: &RunEvent| matches!(event, RunEvent::RunFailed { .. });
    assert!(find(&world, failed.run(), over));
    let asked = |event: &RunEvent| matches!(event, RunEvent::InputRequested { .. });
    assert!(find(&world, asking.run(), asked));
}

#[tokio::test(start_paused = true)]
async fn a_read_whose_client_goes_away_is_recorded_to_its_end() {
    let world = World::new();
    let engine = allowing(&world);
    let session = open(&engine, Mode::Enforce).await;
    for (number, patience) in [1, 10, 24].into_iter().enumerate() {
        let reading = session.call(wanted("r.read", json!({"ms": 20}), false));
        tokio::select! {
            biased;
            _ = reading => assert!(patience > 20, "it takes 20 ms"),
            () = after(patience) => {}
        }
        after(300).await;
        assert_eq!(world.made().len(), number + 1);
        let run: RunId = world.made()[number].run.parse().unwrap();
        let completed = |event: &RunEvent| matches!(event, RunEvent::RunCompleted { .. });
        assert!(find(&world, &run, completed), "after {patience} ms");
    }
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_read_that_ends_while_the_store_cannot_be_written_is_recorded_when_it_can() {
    let opening = {
        let world = World::new();
        let store = FaultyStore::new(&world);
        let session = open(&engine_on(&world, &store), Mode::Enforce).await;
        session.close().await;
        store.appends()
    };
    let world = World::new();
    let trouble = opening..opening + 3;
    let store = FaultyStore::troubled(&world, trouble, StoreError::Busy("x".into()));
    let session = open(&engine_on(&world, &store), Mode::Enforce).await;
    let first = begin(&session, "r.read", json!({"value": 1})).await;
    assert!(is_quick(&first));
    after(90).await;
    // The group of the first is refused while this one is under way.
    let second = begin(&session, "r.read", json!({"value": 2, "ms": 20})).await;
    assert!(!is_quick(&second));
    let third = session.call(wanted("r.read", json!({}), false)).await;
    assert_eq!(third.unwrap_err().code.as_str(), "value_not_stored");
    assert_eq!(ended(&second).await.unwrap(), json!(2));
    after(10_000).await;
    let succeeded = |event: &RunEvent| matches!(event, RunEvent::AttemptSucceeded { .. });
    assert!(find(&world, first.run(), succeeded));
    assert!(find(&world, second.run(), succeeded));
    assert_eq!(world.made().len(), 2);
    drop((first, second));
    session.close().await;
}

fn engine_on(world: &World, store: &Arc<FaultyStore>) -> Engine {
    store.engine_of(world, world.builder("one"))
}

#[tokio::test(start_paused = true)]
async fn a_secret_is_masked_in_the_answer_and_in_the_record() {
    const KEY: &str = "hunter2-Hunter2";
    let world = World::with(|tools| tools.pages = vec![format!("the key is {KEY}.")]);
    let name = SecretName::new("KEY").unwrap();
    let secret = SecretText::new(KEY.to_owned()).unwrap();
    let redaction = Redaction::default();
    redaction.learn(&name, &secret).unwrap();
    let secrets = MemorySecrets::new([(name, secret)]);
    let builder = world.builder("one").secrets(Arc::new(secrets), redaction);
    let store = FaultyStore::new(&world);
    let engine = store.engine_of(&world, builder);
    let session = open(&engine, Mode::Enforce).await;
    let call = begin(&session, "r.read", json!({"page": 0})).await;
    let said = ended(&call).await.unwrap().to_string();
    assert!(said.contains("the key is") && !said.contains(KEY), "{said}");
    after(200).await;
    let journal = told(&world, call.run());
    assert_eq!(journal.len(), 4);
    assert!(!format!("{journal:?}").contains(KEY));
    drop(call);
    session.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_approved_is_found_by_the_next_call_also_when_another_process_approves() {
    let world = World::new();
    let engine = allowing(&world);
    let other = world.engine_under("two", serde_json::from_str(ALLOW).unwrap());
    let session = open(&engine, Mode::Enforce).await;
    let tool: ToolName = "r.read".to_owned().try_into().unwrap();
    for (number, approver) in [&engine, &other].into_iter().enumerate() {
        let args = json!({"value": number});
        let args = args.as_object().unwrap();
        let sessions = engine.sessions();
        for _ in 0..3 {
            assert_eq!(sessions.find_plan_of_call(&tool, args).await, None);
            // Calls of a session change nothing about plans.
            let read = begin(&session, "r.read", json!({"value": "x"})).await;
            assert!(is_quick(&read));
        }
        let plan = json!({"id": format!("p{number}"), "steps": [
            {"id": "look", "tool": "r.read", "args": {"value": number}},
        ]});
        let plan = approved(approver, plan).await;
        let found = sessions.find_plan_of_call(&tool, args).await;
        assert_eq!(found, Some(plan.clone()));
        let followed = sessions.follow(&plan, &Principal::agent("client")).await;
        let followed = followed.unwrap();
        let answer = followed.call(&tool, args, Default::default()).await;
        assert_eq!(answer.unwrap().step.as_str(), "look");
        after(100).await;
        assert!(followed.is_over());
        assert_eq!(sessions.find_plan_of_call(&tool, args).await, None);
    }
    session.close().await;
}
