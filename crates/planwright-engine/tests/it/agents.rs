//! Steps that models work on: what they are told, what they may do, what becomes of them.

use crate::world::{World, approved, document, entries, options, person, report_of, status_of};
use planwright_core::id::{PlanId, RunId};
use planwright_core::model::{Message, ModelRole, ModelUse, TokenUsage, WantedCall};
use planwright_core::policy::{LateChoice, Policy};
use planwright_core::principal::Assurance;
use planwright_core::run::{
    CallFate, Reply, Run, RunEvent, Shown, StepErrorCode, StepState, StoredValue,
};
use planwright_core::status::RunStatus;
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::{ModelAnswer, ModelError};
use planwright_engine::{
    AgentSettings, Engine, GivenApproval, RunCommand, ShownText, StartRunError,
};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) fn wants(tool: &str, args: Value) -> Vec<WantedCall> {
    vec![WantedCall {
        id: "c1".into(),
        name: tool.into(),
        args,
    }]
}

fn engine(world: &World, model: &ScriptedModel) -> Engine {
    engine_with(world, model, AgentSettings::default())
}

fn engine_with(world: &World, model: &ScriptedModel, agents: AgentSettings) -> Engine {
    let builder = world.builder("one").store(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.artifacts) as _,
    );
    builder
        .model(Arc::new(model.clone()))
        .agents(agents)
        .build()
}

/// Agrees to a plan, and to every call of its step `work`, on the terms of `choice`.
async fn approved_any(engine: &Engine, plan: Value, choice: &str) -> PlanId {
    let (review, _) = engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap();
    let late = BTreeMap::from_iter([("work".to_owned(), choice.parse::<LateChoice>().unwrap())]);
    let shown = Shown::Version(review.current().number);
    let given = GivenApproval {
        shown,
        by: person(),
        assurance: Assurance::Terminal,
        late,
    };
    engine
        .plans()
        .approve_on_terms(review.id(), &Map::new(), &given)
        .await
        .unwrap();
    review.id().clone()
}

async fn run_any(engine: &Engine, plan: Value) -> Run {
    let id = approved_any(engine, plan, "any").await;
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap()
}

async fn run(engine: &Engine, plan: Value) -> Run {
    let id = approved(engine, plan).await;
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap()
}

fn agent_plan(tools: &[&str]) -> Value {
    json!({"id": "p", "goal": "tidy up", "toolsRequired": tools, "steps": [
        {"id": "before", "tool": "r.read", "args": {"value": {"n": 7}}},
        {"id": "work", "agent": {"instruction": "use ${before.n}"}, "dependsOn": ["before"], "result": "said"},
        {"id": "after", "tool": "r.read", "args": {"value": "${said}"}},
    ]})
}

fn value_of(run: &Run, step: &str) -> Value {
    match report_of(run, step).value {
        Some(StoredValue::Inline(value)) => (*value).clone(),
        other => panic!("no small value: {other:?}"),
    }
}

fn turns(world: &World, run: &RunId) -> Vec<(String, CallFate)> {
    let calls = entries(&*world.store, run)
        .into_iter()
        .filter_map(|entry| match entry.event {
            RunEvent::AgentTurn { calls, .. } => Some(calls),
            _ => None,
        });
    calls.flatten().map(|call| (call.tool, call.fate)).collect()
}

fn refused(world: &World, run: &Run) -> Vec<String> {
    let refused = turns(world, run.id())
        .into_iter()
        .filter_map(|(_, fate)| match fate {
            CallFate::Refused(error) => Some(error.message),
            CallFate::Run(_) => None,
        });
    refused.collect()
}

#[tokio::test(start_paused = true)]
async fn a_think_step_asks_the_model_and_its_answer_is_its_value() {
    let world = World::new();
    let model = ScriptedModel::default().says("forty-two");
    let engine = engine(&world, &model);
    let plan = json!({"id": "p", "limits": {"budget": {"tokens": 100}}, "steps": [
        {"id": "a", "tool": "r.read", "args": {"value": "six"}},
        {"id": "t", "think": {"prompt": "times ${a}"}, "result": "x"},
        {"id": "b", "tool": "r.read", "args": {"value": "${x}!"}},
    ]});
    let run = run(&engine, plan).await;
    assert_eq!(
        (run.status().as_str(), value_of(&run, "b")),
        ("completed", json!("forty-two!"))
    );
    let asked = model.requests();
    assert_eq!((asked.len(), asked[0].role), (1, ModelRole::Executor));
    assert!(matches!(&asked[0].messages[1], Message::User { text } if text == "times six"));
    assert_eq!(run.tokens(), 15);
    let journal = entries(&*world.store, run.id());
    let used = journal
        .iter()
        .position(|entry| matches!(entry.event, RunEvent::ModelUsed { .. }))
        .unwrap();
    assert!(
        matches!(journal[used + 1].event, RunEvent::AttemptSucceeded { .. }),
        "one commit"
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_fit_its_schema_is_sent_back_once() {
    let schema =
        json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer"}}});
    let plan =
        json!({"id": "p", "steps": [{"id": "t", "think": {"prompt": "?", "schema": schema}}]});
    let world = World::new();
    let model = ScriptedModel::default()
        .says("seven")
        .says("```json\n{\"n\": 7}\n```");
    let run_once = run(&engine(&world, &model), plan.clone()).await;
    assert_eq!(
        (run_once.status().as_str(), value_of(&run_once, "t")),
        ("completed", json!({"n": 7}))
    );
    assert_eq!((model.requests().len(), run_once.tokens()), (2, 30));

    let world = World::new();
    let model = ScriptedModel::default()
        .says("seven")
        .says("eight")
        .says("{\"n\": 1}");
    let failed = run(&engine(&world, &model), plan).await;
    assert_eq!(failed.status().as_str(), "failed");
    assert_eq!(
        (model.requests().len(), failed.tokens()),
        (2, 30),
        "what was spent is counted also on failure"
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_is_not_there_fails_the_step_and_is_asked_again_by_its_retry() {
    let down = || {
        Err(ModelError::Unavailable {
            model: "m".into(),
            message: "down".into(),
        })
    };
    let world = World::new();
    let model = ScriptedModel::default().then(down()).says("there");
    let retried =
        json!({"id": "p", "steps": [{"id": "t", "think": {"prompt": "?"}, "retry": {"max": 1}}]});
    assert_eq!(
        run(&engine(&world, &model), retried)
            .await
            .status()
            .as_str(),
        "completed"
    );

    let world = World::new();
    let model = ScriptedModel::default().then(down()).says("never");
    let failed = run(&engine(&world, &model), agent_plan(&["r.read"])).await;
    assert_eq!(
        (
            failed.status().as_str(),
            report_of(&failed, "work").error.unwrap().code.as_str()
        ),
        ("failed", "model_unavailable")
    );
}

#[tokio::test(start_paused = true)]
async fn without_a_model_nothing_starts_and_the_error_says_what_is_missing() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, agent_plan(&["r.read"])).await;
    let error = engine.runs().start(&id, options()).await.unwrap_err();
    assert!(
        matches!(error, StartRunError::MissingExecutor(_)),
        "{error:?}"
    );
    assert_eq!(
        error.to_string(),
        "step `work` needs a model for the executor and none is configured"
    );
    let (_, findings) = engine
        .plans()
        .propose(document(agent_plan(&["r.read"])), &person())
        .await
        .unwrap();
    assert!(
        findings
            .iter()
            .any(|finding| finding.code.as_str() == "W0157" && !finding.is_error())
    );
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_fails_sees_the_error_and_corrects_its_arguments() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.read", json!({"fail": "no such file"})))
        .wants(wants("r.read", json!({"value": "found"})))
        .says("it says found");
    let run = run(&engine(&world, &model), agent_plan(&["r.read"])).await;
    assert_eq!(
        (run.status().as_str(), value_of(&run, "after")),
        ("completed", json!("it says found"))
    );
    assert_eq!(world.calls_of("call"), 2);
    let asked = model.requests();
    assert_eq!(asked.len(), 3);
    assert_eq!(
        asked[0]
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect::<Vec<_>>(),
        ["r.read"]
    );
    let said = format!("{:?}", asked[0].messages);
    assert!(
        said.contains("use 7")
            && said.contains("tidy up")
            && said.contains("Result of step `before`"),
        "{said}"
    );
    assert!(
        matches!(asked[1].messages.last(), Some(Message::Tool { text, .. }) if text.contains("no such file"))
    );
    assert!(
        matches!(asked[2].messages.last(), Some(Message::Tool { text, .. }) if text.contains("found"))
    );
    let calls = run
        .child_runs(run.find("work").unwrap())
        .agent_calls()
        .count();
    assert_eq!(calls, 2);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_calls_nothing_does_not_complete_an_agent_step_on_its_word() {
    let world = World::new();
    let model = ScriptedModel::default().says("I have tidied everything up");
    let told = run(&engine(&world, &model), agent_plan(&["r.read"])).await;
    assert_eq!(told.status(), RunStatus::Failed);
    let report = report_of(&told, "work");
    let error = report.error.expect("it failed");
    assert_eq!(error.code, StepErrorCode::NothingDone);
    assert!(error.message.contains("no tool was called"), "{error:?}");

    // A step that may call nothing is done when it has answered.
    let model = ScriptedModel::default().says("seven");
    let mut answers = agent_plan(&["r.read"]);
    answers["id"] = json!("q");
    answers["steps"][1]["agent"]["maxCalls"] = json!(0);
    let told = run(&engine(&world, &model), answers).await;
    assert_eq!(told.status(), RunStatus::Completed);
    assert_eq!(value_of(&told, "work"), json!("seven"));
}

#[tokio::test(start_paused = true)]
async fn what_is_outside_the_scope_is_refused_with_the_list_and_never_called() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("w.write", json!({})))
        .wants(wants("nonsense", json!({})))
        .says("could not");
    let run = run_any(&engine(&world, &model), agent_plan(&["r.read", "r.look"])).await;
    // What was refused is no work.
    assert_eq!(
        (run.status().as_str(), world.calls_of("call")),
        ("failed", 0)
    );
    let expected = |name| {
        format!("Tool {name} not available in plan scope. Only [r.read, r.look] are available.")
    };
    assert_eq!(
        refused(&world, &run),
        [expected("w.write"), expected("nonsense")]
    );
    let told = format!("{:?}", model.requests()[1].messages.last());
    assert!(told.contains(&expected("w.write")), "{told}");
}

#[tokio::test(start_paused = true)]
async fn without_a_list_the_scope_is_what_the_steps_name() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.look", json!({})))
        .says("done");
    let run = run(&engine(&world, &model), agent_plan(&[])).await;
    assert_eq!(
        refused(&world, &run),
        ["Tool r.look not available in plan scope. Only [r.read] are available."]
    );
}

#[tokio::test(start_paused = true)]
async fn in_observe_mode_what_is_outside_the_scope_is_noted_and_asked_about_unless_it_reads() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.look", json!({"value": 1})))
        .wants(wants("w.write", json!({"value": 2})))
        .says("done");
    let observing = AgentSettings {
        observe_scope: true,
    };
    let engine = engine_with(&world, &model, observing);
    let run = run_any(&engine, agent_plan(&["r.read"])).await;
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "work"),
            world.calls_of("call")
        ),
        ("waiting", "awaiting_plan", 1)
    );
    approve_call(&engine, &run).await;
    let run = engine
        .runs()
        .resume(&"p".parse().unwrap(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), world.calls_of("call")),
        ("completed", 2)
    );
}

#[tokio::test(start_paused = true)]
async fn what_was_said_about_a_steps_calls_is_not_about_tools_outside_the_scope() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.look", json!({})))
        .says("done");
    let policy =
        Policy::read(&serde_json::from_value(json!({"guarded_tools": ["look"]})).unwrap()).unwrap();
    let builder = world.builder("one").store(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.artifacts) as _,
    );
    let builder = builder.policy(Arc::new(policy)).agents(AgentSettings {
        observe_scope: true,
    });
    let engine = builder.model(Arc::new(model)).build();
    let run = run_any(&engine, agent_plan(&["r.read"])).await;
    assert_eq!(
        (run.status().as_str(), world.calls_of("call")),
        ("waiting", 0)
    );
    approve_call(&engine, &run).await;
    let run = engine
        .runs()
        .resume(&"p".parse().unwrap(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), world.calls_of("call")),
        ("completed", 1)
    );
}

/// Agrees to the call that the step `work` waits for.
async fn approve_call(engine: &Engine, run: &Run) -> Run {
    let StepState::AwaitingPlan { run: child, .. } = run.step(run.find("work").unwrap()) else {
        panic!("it does not wait: {}", status_of(run, "work"));
    };
    let (review, _) = engine.plans().load_review(run.plan().id()).await.unwrap();
    let (waiting, _) = engine.runs().load_run(child, &review).await.unwrap();
    let StepState::AwaitingApproval {
        call: Some(call), ..
    } = waiting.step(waiting.find("call").unwrap())
    else {
        panic!("nothing is asked: {}", waiting.status().as_str());
    };
    let shown = ShownText::Digest(call.digest);
    let step = "call".to_owned();
    let assurance = Assurance::Terminal;
    engine
        .runs()
        .command(
            child,
            RunCommand::Approve {
                step,
                by: person(),
                assurance,
                shown,
            },
        )
        .await
        .unwrap();
    waiting
}

#[tokio::test(start_paused = true)]
async fn a_guarded_call_waits_for_a_person_and_goes_on_where_it_was() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.read", json!({"value": 1})))
        .wants(wants(
            "w.write",
            json!({"value": "${before.n} ${secret.KEY} $${x}"}),
        ))
        .says("written");
    let engine = engine(&world, &model);
    let waiting = run(&engine, agent_plan(&["r.read", "w.write"])).await;
    assert_eq!(
        (waiting.status().as_str(), world.calls_of("call")),
        ("waiting", 1)
    );
    let child = approve_call(&engine, &waiting).await;
    assert!(child.is_agent_call());
    let run = engine
        .runs()
        .resume(&"p".parse().unwrap(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), value_of(&run, "work")),
        ("completed", json!("written"))
    );
    let made = world.made();
    let written = made.iter().rfind(|made| made.step == "call").unwrap();
    assert_eq!(
        written.args["value"], "${before.n} ${secret.KEY} $${x}",
        "what a model writes is no reference"
    );
    assert_eq!(
        (world.calls_of("call"), model.requests().len()),
        (2, 3),
        "nothing was called or asked twice"
    );
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_person_denies_is_told_to_the_model_as_refused() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("w.write", json!({})))
        .says("then not");
    let engine = engine(&world, &model);
    let waiting = run(&engine, agent_plan(&["r.read", "w.write"])).await;
    let StepState::AwaitingPlan { run: child, .. } = waiting.step(waiting.find("work").unwrap())
    else {
        panic!()
    };
    let (review, _) = engine
        .plans()
        .load_review(waiting.plan().id())
        .await
        .unwrap();
    let (asking, _) = engine.runs().load_run(child, &review).await.unwrap();
    let StepState::AwaitingApproval {
        call: Some(call), ..
    } = asking.step(asking.find("call").unwrap())
    else {
        panic!()
    };
    let shown = ShownText::Digest(call.digest);
    let reason = "not today".to_owned();
    let deny = RunCommand::Deny {
        step: "call".into(),
        by: person(),
        shown,
        reason,
    };
    engine.runs().command(child, deny).await.unwrap();
    let run = engine
        .runs()
        .resume(&"p".parse().unwrap(), options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), world.calls_of("call")),
        ("completed", 0)
    );
    assert!(
        format!("{:?}", model.requests()[1].messages.last())
            .contains("a person said no: not today")
    );
}

#[tokio::test(start_paused = true)]
async fn a_constraint_of_the_approver_holds_for_what_would_be_asked_about() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.read", json!({"value": "elsewhere"})))
        .wants(wants("w.write", json!({"path": "out/a"})))
        .wants(wants("w.write", json!({"path": "etc/passwd"})))
        .says("done");
    let engine = engine(&world, &model);
    let id = approved_any(
        &engine,
        agent_plan(&["r.read", "w.write"]),
        "args.path.startsWith('out/')",
    )
    .await;
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), world.calls_of("call")),
        ("completed", 2)
    );
    assert!(
        format!("{:?}", model.requests()[3].messages.last()).contains("not what was agreed to")
    );
}

#[tokio::test(start_paused = true)]
async fn turns_calls_tokens_and_repetition_are_bounded() {
    let agent = |fields: Value, limits: Value| {
        let mut plan = agent_plan(&["r.read"]);
        plan["limits"] = limits;
        for (key, value) in fields.as_object().unwrap() {
            plan["steps"][1]["agent"][key] = value.clone();
        }
        plan
    };
    let endless = || {
        let mut model = ScriptedModel::default();
        for n in 0..30 {
            model = model.wants(wants("r.read", json!({"value": n % 2})));
        }
        model
    };
    let cases = [
        (json!({"maxTurns": 3}), json!({}), "too_many_turns", 2, 3),
        (json!({}), json!({}), "too_many_turns", 19, 20),
        (json!({"maxTokens": 40}), json!({}), "guard_blocked", 2, 3),
        (
            json!({}),
            json!({"budget": {"tokens": 40}}),
            "guard_blocked",
            2,
            3,
        ),
        (json!({"maxCalls": 2}), json!({}), "too_many_turns", 2, 20),
        (
            json!({}),
            json!({"budget": {"calls": 4}}),
            "too_many_turns",
            3,
            20,
        ),
        (
            json!({}),
            json!({"budget": {"perTool": {"r.read": 4}}}),
            "too_many_turns",
            3,
            20,
        ),
        (
            json!({}),
            json!({"budget": {"sameCall": 2}}),
            "too_many_turns",
            4,
            20,
        ),
    ];
    for (fields, limits, code, calls, asked) in cases {
        let world = World::new();
        let model = endless();
        let run = run(
            &engine(&world, &model),
            agent(fields.clone(), limits.clone()),
        )
        .await;
        let error = report_of(&run, "work").error.unwrap();
        let found = (
            run.status().as_str(),
            error.code.as_str(),
            world.calls_of("call"),
            model.requests().len(),
        );
        assert_eq!(found, ("failed", code, calls, asked), "{fields} {limits}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_conversation_asks_for_the_next_message_and_ends_when_nothing_more_is_said() {
    let world = World::new();
    let mut model = ScriptedModel::default();
    for n in 0..15 {
        model = model.says(format!("answer {n}"));
    }
    let engine = engine(&world, &model);
    let plan = json!({"id": "p", "toolsRequired": ["r.read"], "steps": [
        {"id": "work", "agent": {"instruction": "hello", "converse": true}},
    ]});
    let mut run = run(&engine, plan).await;
    for n in 0..15 {
        let StepState::AwaitingInput { asked, .. } = run.step(run.find("work").unwrap()) else {
            panic!("nothing is asked: {}", status_of(&run, "work"));
        };
        assert_eq!(asked.questions[0].message, format!("answer {n}"));
        let said = Map::from_iter([("message".to_owned(), json!(format!("message {n}")))]);
        let reply = if n == 14 {
            Reply::Decline
        } else {
            Reply::Values(said)
        };
        let step = "work".to_owned();
        let question = asked.digest();
        let command = RunCommand::GiveInput {
            step,
            by: person(),
            question,
            replies: vec![reply],
        };
        engine.runs().command(run.id(), command).await.unwrap();
        run = engine
            .runs()
            .resume(&"p".parse().unwrap(), options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
    }
    assert_eq!(
        (run.status().as_str(), value_of(&run, "work")),
        ("completed", json!("answer 14"))
    );
    let last = model.requests().pop().unwrap();
    assert_eq!(last.role, ModelRole::Chat);
    assert_eq!(last.messages.len(), 2 + 2 * 14);
}

#[tokio::test(start_paused = true)]
async fn cancelling_stops_the_executor_and_the_call_it_waits_for() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.read", json!({"ms": 60_000})))
        .says("never");
    let engine = engine(&world, &model);
    let id = approved(&engine, agent_plan(&["r.read"])).await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    crate::world::after(1000).await;
    handle.cancel(person()).await.unwrap();
    let run = handle.wait().await.unwrap();
    assert_eq!(
        (
            run.status().as_str(),
            status_of(&run, "work"),
            model.requests().len()
        ),
        ("cancelled", "cancelled", 1)
    );
    assert_eq!(world.told_to_stop().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_takes_too_long_fails_and_its_call_is_stopped() {
    let world = World::new();
    let model = ScriptedModel::default()
        .wants(wants("r.read", json!({"ms": 60_000})))
        .says("never");
    let mut plan = agent_plan(&["r.read"]);
    plan["steps"][1]["timeoutSeconds"] = json!(5);
    let run = run(&engine(&world, &model), plan).await;
    assert_eq!(
        (
            run.status().as_str(),
            report_of(&run, "work").error.unwrap().code.as_str()
        ),
        ("failed", "timeout")
    );
    assert_eq!(world.told_to_stop().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_step_that_works_once_per_element_keeps_the_calls_of_its_elements_apart() {
    let world = World::new();
    let mut model = ScriptedModel::default();
    for n in 0..2 {
        model = model
            .wants(wants("r.read", json!({"value": n})))
            .says(format!("said {n}"));
    }
    let plan = json!({"id": "p", "toolsRequired": ["r.read"], "steps": [
        {"id": "work", "agent": {"instruction": "do ${item}"}, "forEach": ["a", "b"], "maxParallel": 1},
    ]});
    let run = run(&engine(&world, &model), plan).await;
    assert_eq!(
        (run.status().as_str(), value_of(&run, "work")),
        ("completed", json!(["said 0", "said 1"]))
    );
    assert_eq!(world.calls_of("call"), 2);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_cut_off_is_no_turn_and_its_tokens_count() {
    let world = World::new();
    let cut = ModelAnswer {
        text: "I would".into(),
        calls: Vec::new(),
        used: ModelUse {
            role: ModelRole::Executor,
            model: ScriptedModel::NAME.into(),
            usage: TokenUsage {
                input: 100,
                output: 50,
                ..TokenUsage::default()
            },
            cost: None,
        },
        cut: true,
    };
    let model = ScriptedModel::default().then(Ok(cut)).says("done");
    let mut plan = agent_plan(&["r.read"]);
    plan["steps"][1]["retry"] = json!({"max": 1});
    plan["steps"][1]["agent"]["maxCalls"] = json!(0);
    let run = run(&engine(&world, &model), plan).await;
    assert_eq!(
        (run.status().as_str(), value_of(&run, "work")),
        ("completed", json!("done"))
    );
    // What the script says by itself costs 15.
    assert_eq!(run.tokens(), 150 + 15);
}
