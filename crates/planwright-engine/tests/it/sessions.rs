//! Sessions of clients of the gateway: each call is judged by itself, journaled as a run of its own,
//! and made only if policy or a person lets it.

use crate::world::{World, after, entries, person};
use planwright_core::plan::Budget;
use planwright_core::policy::Mode;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{CallFate, Run, RunEvent, Shown, StepError, StepState};
use planwright_engine::port::{Clock as _, OwnerId, ProgressSink};
use planwright_engine::{
    CallEvent, Engine, OpenCall, RunCommand, RunOptions, Session, SessionTerms, WantedByClient,
};
use serde_json::{Value, json};

fn agent() -> Principal {
    Principal::agent("client")
}

fn terms(mode: Mode) -> SessionTerms {
    SessionTerms {
        client: "a client".to_owned(),
        agent: agent(),
        mode,
        owner: person(),
        budget: Budget::default(),
        servers: ["r", "w", "k", "s"].map(str::to_owned).into(),
    }
}

pub(crate) async fn open(engine: &Engine, mode: Mode) -> Session {
    engine.sessions().open(terms(mode)).await.unwrap()
}

pub(crate) fn wanted(tool: &str, args: Value, attended: bool) -> WantedByClient {
    WantedByClient {
        tool: tool.to_owned(),
        args,
        attended,
        client: None,
        progress: ProgressSink::default(),
    }
}

pub(crate) async fn ended(call: &OpenCall) -> Result<Value, StepError> {
    match call.advance().await {
        CallEvent::Ended(answer) => answer.outcome,
        CallEvent::Asks(run) => panic!("{} waits for a person", run.id()),
    }
}

async fn refused(session: &Session, tool: &str, attended: bool) -> StepError {
    let call = session.call(wanted(tool, json!({}), attended)).await;
    call.unwrap_err()
}

/// A call that waits for a person, and its run.
async fn asking(session: &Session, tool: &str, args: Value) -> (OpenCall, Box<Run>) {
    let call = session.call(wanted(tool, args, true)).await.unwrap();
    match call.advance().await {
        CallEvent::Asks(run) => (call, run),
        CallEvent::Ended(answer) => panic!("{answer:?}"),
    }
}

fn answer_to(run: &Run, yes: bool) -> RunCommand {
    let ix = run.schedule().waiting().next().unwrap();
    let StepState::AwaitingApproval {
        call: Some(asked), ..
    } = run.step(ix)
    else {
        panic!("{:?}", run.step(ix));
    };
    let step = run.step_id(ix).to_string();
    let shown = Shown::Digest(asked.digest).into();
    if yes {
        RunCommand::Approve {
            step,
            by: person(),
            assurance: Assurance::HostMediated,
            shown,
        }
    } else {
        RunCommand::Deny {
            step,
            by: person(),
            shown,
            reason: "no".to_owned(),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_reads_is_called_and_journaled_as_a_run_of_its_own() {
    let world = World::new();
    let engine = world.engine("one");
    let session = open(&engine, Mode::Enforce).await;
    let call = session.call(wanted("r.read", json!({"value": 7}), false));
    let call = call.await.unwrap();
    assert_eq!(ended(&call).await.unwrap(), json!(7));
    // The record of a read is written a moment later.
    after(150).await;
    let journal = entries(&*world.store, call.run());
    let succeeded = |event: &RunEvent| matches!(event, RunEvent::AttemptSucceeded { .. });
    assert!(journal.iter().any(|entry| succeeded(&entry.event)));
    let plan = session.plan().clone();
    let run = session.run().clone();
    drop(call);
    session.close().await;
    let (review, _) = engine.plans().load_review(&plan).await.unwrap();
    let (ended, _) = engine.runs().load_run(&run, &review).await.unwrap();
    assert_eq!(ended.status().as_str(), "completed");
}

#[tokio::test(start_paused = true)]
async fn what_a_person_has_to_agree_to_is_refused_where_none_can_be_asked() {
    let world = World::new();
    let engine = world.engine("one");
    let session = open(&engine, Mode::Enforce).await;
    for tool in ["w.write", "w.erase", "k.put", "s.save"] {
        let error = refused(&session, tool, false).await;
        assert_eq!(error.code.as_str(), "needs_person", "{error:?}");
    }
    assert!(world.made().is_empty());
    // What was refused is on record too.
    let refusals = entries(&*world.store, session.run())
        .into_iter()
        .filter_map(|entry| match entry.event {
            RunEvent::AgentTurn { calls, .. } => Some(calls),
            _ => None,
        })
        .flatten()
        .filter(|call| matches!(call.fate, CallFate::Refused(_)));
    assert_eq!(refusals.count(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_is_asked_decides_about_exactly_one_call() {
    let world = World::new();
    let engine = world.engine("one");
    let session = open(&engine, Mode::Enforce).await;
    let (call, run) = asking(&session, "w.write", json!({"value": 1})).await;
    assert!(world.made().is_empty());
    let runs = engine.runs();
    // The agent itself is not a person, and its word for one is none.
    let by_agent = RunCommand::Approve {
        step: "call".to_owned(),
        by: agent(),
        assurance: Assurance::HostMediated,
        shown: Shown::Version(1).into(),
    };
    assert!(runs.command(run.id(), by_agent).await.is_err());
    runs.command(run.id(), answer_to(&run, true)).await.unwrap();
    assert_eq!(ended(&call).await.unwrap(), json!(1));
    assert_eq!(world.made().len(), 1);
    // The same call again is asked about again, and a no is a no.
    let (call, run) = asking(&session, "w.write", json!({"value": 1})).await;
    runs.command(run.id(), answer_to(&run, false))
        .await
        .unwrap();
    assert_eq!(ended(&call).await.unwrap_err().code.as_str(), "denied");
    assert_eq!(world.made().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_guarded_tool_is_refused_outside_an_approved_plan_also_where_a_rule_allows_it() {
    let world = World::new();
    let policy = json!({"guarded_tools": ["w.*"],
        "rules": [{"tool": "*", "then": "allow"}]});
    let engine = world.engine_under("one", policy);
    let session = open(&engine, Mode::Enforce).await;
    for attended in [false, true] {
        let error = refused(&session, "w.write", attended).await;
        assert_eq!(error.code.as_str(), "guarded_tool", "{error:?}");
    }
    assert!(world.made().is_empty());
    let call = session.call(wanted("s.save", json!({"value": 2}), false));
    assert_eq!(ended(&call.await.unwrap()).await.unwrap(), json!(2));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_observes_lets_calls_through_and_says_which_it_would_have_refused() {
    let world = World::new();
    let policy = json!({"guarded_tools": ["w.erase"],
        "rules": [{"tool": "k.put", "then": "deny"}]});
    let engine = world.engine_under("one", policy);
    let session = open(&engine, Mode::Observe).await;
    for (tool, code) in [("w.write", "needs_person"), ("w.erase", "guarded_tool")] {
        let call = session.call(wanted(tool, json!({"value": 3}), true));
        let call = call.await.unwrap();
        assert_eq!(call.let_through().unwrap().code.as_str(), code);
        assert_eq!(ended(&call).await.unwrap(), json!(3));
    }
    // What policy denies is denied in every mode.
    let error = refused(&session, "k.put", true).await;
    assert_eq!(error.code.as_str(), "policy_denied");
    assert_eq!(world.made().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_session_spends_no_more_than_its_budget() {
    let world = World::new();
    let engine = world.engine("one");
    let budget = Budget {
        calls: Some(3),
        per_tool: [("r.look".to_owned(), 1)].into(),
        ..Budget::default()
    };
    let terms = SessionTerms {
        budget,
        ..terms(Mode::Enforce)
    };
    let session = engine.sessions().open(terms).await.unwrap();
    for tool in ["r.look", "r.read", "r.read"] {
        let call = session.call(wanted(tool, json!({}), false)).await.unwrap();
        ended(&call).await.unwrap();
        if tool == "r.look" {
            let error = refused(&session, "r.look", false).await;
            assert_eq!(error.code.as_str(), "guard_blocked");
        }
    }
    assert!(
        session
            .call(wanted("r.read", json!({}), false))
            .await
            .is_err()
    );
    assert_eq!(world.made().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_called_in_a_session_that_a_person_ended() {
    let world = World::new();
    let engine = world.engine("one");
    let session = open(&engine, Mode::Observe).await;
    let order = RunCommand::Cancel { by: person() };
    engine.runs().command(session.run(), order).await.unwrap();
    after(50).await;
    assert!(session.is_over());
    let error = refused(&session, "r.read", true).await;
    assert_eq!(error.code.as_str(), "stopped", "{error:?}");
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn names_that_are_no_tools_and_arguments_that_are_no_objects_are_refused() {
    let world = World::new();
    let engine = world.engine("one");
    let session = open(&engine, Mode::Enforce).await;
    for name in [
        "",
        "nothing",
        "r.read ",
        "R.READ",
        "r.reаd",
        "planwright.agent",
        "client",
    ] {
        assert!(
            session.call(wanted(name, json!({}), true)).await.is_err(),
            "{name}"
        );
    }
    for args in [json!(null), json!([]), json!("x")] {
        let call = session.call(wanted("r.read", args, true)).await;
        assert_eq!(call.unwrap_err().code.as_str(), "invalid_args");
    }
    assert!(world.made().is_empty());
}

#[test]
fn what_a_client_left_when_its_process_died_is_settled_by_the_next_one() {
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        builder.enable_all().start_paused(true).build().unwrap()
    };
    let first = runtime();
    let (world, run, at) = first.block_on(async {
        let world = World::new();
        let engine = world.engine("one");
        let session = open(&engine, Mode::Observe).await;
        let call = session.call(wanted("w.write", json!({"ms": 60_000}), true));
        let call = call.await.unwrap();
        tokio::select! {
            biased;
            _ = call.advance() => panic!("it takes a minute"),
            () = after(50) => {}
        }
        let at = world.clock.now();
        let run = session.run().clone();
        // A process that is killed ends nothing.
        std::mem::forget((session, call));
        (world, run, at)
    });
    drop(first);
    world.store.kill_owner(&OwnerId("one".into()));
    assert_eq!(world.made().len(), 1);
    runtime().block_on(async {
        world.clock.carry_over(at);
        let next = world.engine("two");
        let runs = next.runs();
        let resumed = runs.resume_run(&run, RunOptions::new(person()));
        let stands = resumed.await.unwrap().wait().await.unwrap();
        // The call may have happened: a person says, and nothing is called again.
        assert!(!stands.state().is_terminal(), "{:?}", stands.status());
        assert_eq!(world.made().len(), 1);
    });
}
