//! Tools that only read and reach beyond this machine: what an executor wants to send there is asked
//! about, unless the approver of the step said that it may.

use crate::world::{candidate_of, document, options, person};
use planwright_core::id::PlanId;
use planwright_core::model::WantedCall;
use planwright_core::policy::LateChoice;
use planwright_core::principal::Assurance;
use planwright_core::run::{Run, Shown};
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::memory::ScriptedModel;
use planwright_engine::{Engine, FunctionTools, GivenApproval, RunOptions};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// What reached the tools, in order.
type Sent = Arc<Mutex<Vec<Value>>>;

/// An engine with a tool that fetches and one that looks around here, and a model that wants one of
/// them.
fn engine(tool: &str) -> (Engine, Sent) {
    let sent = Sent::default();
    let mut tools = FunctionTools::new();
    for (server, name, open) in [("web", "fetch", true), ("here", "look", false)] {
        let annotations = Annotations {
            open_world_hint: Some(open),
            ..Annotations::read_only()
        };
        let definition = ToolDefinition::new(server, name, "Reads.", json!({"type": "object"}));
        let log = Arc::clone(&sent);
        tools = tools.with(definition.with_annotations(annotations), move |call| {
            log.lock().unwrap().push(Value::Object(call.args));
            std::future::ready(Ok(json!("found")))
        });
    }
    let wanted = WantedCall {
        id: "c".to_owned(),
        name: tool.to_owned(),
        args: json!({"url": "https://sink.example/?d=what-it-read"}),
    };
    let model = ScriptedModel::default().wants(vec![wanted]).says("done");
    let engine = Engine::builder(Arc::new(tools))
        .model(Arc::new(model))
        .build();
    (engine, sent)
}

async fn propose(engine: &Engine, tool: &str) -> PlanId {
    let plan = json!({"id": "p", "goal": "g", "toolsRequired": [tool], "steps": [
        {"id": "e", "agent": {"instruction": "look it up"}}]});
    let proposed = engine.plans().propose(document(plan), &person()).await;
    proposed.unwrap().0.id().clone()
}

/// Runs the plan, with policy's approval if it gives one, else with a person's and this choice.
async fn run(engine: &Engine, id: &PlanId, late: Option<LateChoice>) -> (Run, bool) {
    let (review, candidate) = candidate_of(engine, id).await;
    let by_policy = engine.plans().consent_of_policy(&review, &candidate);
    let is_policys = by_policy.is_some();
    let approval = by_policy.unwrap_or_else(|| {
        let shown = Shown::Digest(candidate.digest);
        let mut given = GivenApproval::new(shown, person(), Assurance::Terminal);
        given.late.extend(late.map(|late| ("e".to_owned(), late)));
        given
    });
    let options = RunOptions {
        approval: Some(approval),
        ..options()
    };
    let mut handle = engine.runs().start(id, options).await.unwrap();
    (handle.wait().await.unwrap(), is_policys)
}

#[tokio::test(start_paused = true)]
async fn what_an_executor_wants_to_send_beyond_this_machine_is_asked_about() {
    let (engine, sent) = engine("web.fetch");
    let id = propose(&engine, "web.fetch").await;
    let (run, by_policy) = run(&engine, &id, None).await;
    assert!(!by_policy, "policy alone lets no executor send anything");
    assert_eq!(run.status().as_str(), "waiting");
    assert!(sent.lock().unwrap().is_empty(), "{sent:?}");
}

#[tokio::test(start_paused = true)]
async fn an_approver_may_say_in_advance_that_it_may() {
    for (late, calls) in [
        (LateChoice::Any, 1),
        (
            "args.url.startsWith('https://sink.example/')"
                .parse()
                .unwrap(),
            1,
        ),
        (
            "args.url.startsWith('https://docs.example/')"
                .parse()
                .unwrap(),
            0,
        ),
    ] {
        let (engine, sent) = engine("web.fetch");
        let id = propose(&engine, "web.fetch").await;
        let (run, _) = run(&engine, &id, Some(late.clone())).await;
        assert_eq!(
            sent.lock().unwrap().len(),
            calls,
            "{late} {:?}",
            run.status()
        );
    }
}

#[tokio::test(start_paused = true)]
async fn what_only_looks_around_here_runs_by_policy_as_before() {
    let (engine, sent) = engine("here.look");
    let id = propose(&engine, "here.look").await;
    let (run, by_policy) = run(&engine, &id, None).await;
    assert!(by_policy);
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(sent.lock().unwrap().len(), 1);
}
