//! Plans as tools of a model.

use crate::world::{World, document, person};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::review::Review;
use planwright_core::run::{Run, Shown};
use planwright_core::trace::TraceId;
use planwright_engine::chat::{ChatBudget, CountedTools, Spending};
use planwright_engine::memory::NoModel;
use planwright_engine::port::BoxFuture;
use planwright_engine::{
    Candidate, ConcurrencyLimits, Consented, Consenter, Engine, GivenApproval, PlanMaker, PlanTool,
    PlanToolCall, PlanTools, PlanWish, StoreOptions,
};
use serde_json::{Map, Value, json};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio_util::sync::CancellationToken;

/// Proposes this document regardless of the goal, or fails with these words.
#[derive(Debug)]
struct Maker {
    engine: Engine,
    plan: Result<Value, String>,
    asked: AtomicUsize,
    wish: Mutex<Option<PlanWish>>,
}

impl PlanMaker for Maker {
    fn make(
        &self,
        wish: PlanWish,
        by: Principal,
        trace: TraceId,
        _: CancellationToken,
    ) -> BoxFuture<'static, Result<Review, String>> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        *self.wish.lock().unwrap() = Some(wish);
        let engine = self.engine.clone();
        let plan = self.plan.clone();
        Box::pin(async move {
            let made = engine
                .plans()
                .store_document(
                    document(plan?),
                    &by,
                    StoreOptions {
                        trace: Some(trace),
                        ..StoreOptions::default()
                    },
                )
                .await;
            made.map(|(review, _)| review)
                .map_err(|error| error.to_string())
        })
    }
}

/// A person who always says the same.
#[derive(Debug, Default)]
struct Person {
    agrees: bool,
    shown: Mutex<Vec<String>>,
}

impl Consenter for Person {
    fn agree<'a>(
        &'a self,
        review: &'a Review,
        candidate: &'a Candidate,
    ) -> BoxFuture<'a, Consented> {
        self.shown.lock().unwrap().push(review.id().to_string());
        let given = GivenApproval::new(
            Shown::Digest(candidate.digest),
            person(),
            Assurance::Terminal,
        );
        Box::pin(std::future::ready(if self.agrees {
            Consented::Yes(Box::new(given))
        } else {
            Consented::No
        }))
    }

    fn decide<'a>(&'a self, _: &'a Run) -> BoxFuture<'a, bool> {
        Box::pin(std::future::ready(false))
    }
}

fn tools(engine: &Engine, plan: Result<Value, String>) -> (PlanTools, Arc<Maker>) {
    let maker = Arc::new(Maker {
        engine: engine.clone(),
        plan,
        asked: AtomicUsize::default(),
        wish: Mutex::default(),
    });
    let made: Arc<dyn PlanMaker> = Arc::<Maker>::clone(&maker);
    (
        PlanTools::new(engine.clone(), made, &Principal::agent("chat")),
        maker,
    )
}

fn plan(tool: &str) -> Value {
    json!({"id": "p", "title": "Two of them", "steps": [
        {"id": "a", "tool": tool, "args": {"value": {"x": 1}}, "result": "first"},
        {"id": "b", "title": "then", "tool": tool, "dependsOn": ["a"]},
    ]})
}

fn args(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).unwrap()
}

async fn call(tools: &PlanTools, tool: PlanTool, given: Value) -> Value {
    tools
        .call(&PlanToolCall::new(tool, args(given), "key-1"))
        .await
}

#[tokio::test(start_paused = true)]
async fn what_the_conversation_found_out_reaches_the_planner() {
    let world = World::new();
    let (plans, maker) = tools(&world.engine("one"), Ok(plan("r.read")));
    let said = json!({"goal": "Summarise it", "context": "the report is in notes/may.md"});
    let made = call(&plans, PlanTool::Create, said).await;
    assert_eq!(made["success"], true, "{made}");
    let wish = maker.wish.lock().unwrap().clone().unwrap();
    assert_eq!(wish.goal, "Summarise it");
    assert_eq!(
        wish.context.as_deref(),
        Some("the report is in notes/may.md")
    );
    let long = json!({"goal": "g", "context": "x".repeat(70_000)});
    let refused = call(&plans, PlanTool::Create, long).await;
    assert_eq!(refused["success"], false, "{refused}");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_done_is_a_json_error_and_never_a_crash() {
    let world = World::new();
    let engine = world.engine("one");
    let (working, _) = tools(&engine, Ok(plan("r.read")));
    let (broken, _) = tools(&engine, Err("the model gave no plan".to_owned()));
    let cases = [
        (&working, PlanTool::Create, json!({}), "`goal` is missing"),
        (
            &working,
            PlanTool::Create,
            json!({"goal": "  "}),
            "`goal` must not be empty",
        ),
        (
            &working,
            PlanTool::Create,
            json!({"goal": 7}),
            "`goal` must be a text",
        ),
        (
            &working,
            PlanTool::CreateAndExecute,
            json!({"goal": ""}),
            "`goal` must not be empty",
        ),
        (
            &working,
            PlanTool::CreateAndExecute,
            json!({"goal": "x".repeat(20_000)}),
            "bytes",
        ),
        (
            &working,
            PlanTool::Execute,
            json!({"planId": "nosuch"}),
            "nosuch",
        ),
        (
            &working,
            PlanTool::Execute,
            json!({"planId": "../escaped"}),
            "`planId`",
        ),
        (
            &working,
            PlanTool::Execute,
            json!({}),
            "`planId` is missing",
        ),
        (
            &working,
            PlanTool::Execute,
            json!({"planId": ""}),
            "`planId` must not be empty",
        ),
        (
            &working,
            PlanTool::Execute,
            json!({"planId": "p", "variables": 3}),
            "`variables`",
        ),
        (
            &broken,
            PlanTool::Create,
            json!({"goal": "do it"}),
            "the model gave no plan",
        ),
        (
            &broken,
            PlanTool::CreateAndExecute,
            json!({"goal": "do it"}),
            "the model gave no plan",
        ),
    ];
    for (tools, tool, given, words) in cases {
        let result = call(tools, tool, given.clone()).await;
        assert_eq!(result["success"], false, "{tool:?} {given}");
        assert!(
            result["error"].as_str().unwrap().contains(words),
            "{tool:?} {given}: {result}"
        );
    }
    assert!(world.called().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_plan_is_proposed_by_the_agent_and_nothing_runs() {
    let world = World::new();
    let engine = world.engine("one");
    let (tools, _) = tools(&engine, Ok(plan("r.read")));
    let result = call(&tools, PlanTool::Create, json!({"goal": "do it"})).await;
    assert_eq!(
        result,
        json!({"success": true, "planId": "p", "title": "Two of them", "status": "proposed", "steps": [
            {"id": "a", "title": null, "tool": "r.read", "dependsOn": []},
            {"id": "b", "title": "then", "tool": "r.read", "dependsOn": ["a"]},
        ]})
    );
    let (review, _) = engine
        .plans()
        .load_review(&"p".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(review.current().by.kind, PrincipalKind::Agent);
    assert!(world.called().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_only_reads_runs_by_policy() {
    let world = World::new();
    let engine = world.engine("one");
    let (tools, _) = tools(&engine, Ok(plan("r.read")));
    let result = call(&tools, PlanTool::CreateAndExecute, json!({"goal": "do it"})).await;
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(
        (&result["status"], &result["planId"]),
        (&json!("completed"), &json!("p"))
    );
    assert_eq!(
        (&result["stepsCompleted"], &result["stepsTotal"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(result["results"], json!({"first": {"x": 1}, "b": "b"}));
    assert!(
        result["duration"].is_number() && result.get("error").is_none(),
        "{result}"
    );
    let (review, _) = engine
        .plans()
        .load_review(&"p".parse().unwrap())
        .await
        .unwrap();
    assert_eq!(review.approvals()[0].by.kind, PrincipalKind::Policy);
}

#[tokio::test(start_paused = true)]
async fn what_needs_a_person_comes_back_as_pending_and_is_not_called() {
    let world = World::new();
    let engine = world.engine("one");
    let (tools, _) = tools(&engine, Ok(plan("w.write")));
    let result = call(&tools, PlanTool::CreateAndExecute, json!({"goal": "do it"})).await;
    assert_eq!(
        (&result["success"], &result["status"]),
        (&json!(false), &json!("pending_approval")),
        "{result}"
    );
    assert!(
        result["review"]
            .as_str()
            .unwrap()
            .contains("planwright approve p --digest sha256:"),
        "{result}"
    );
    assert!(world.called().is_empty());
    // Once a person agreed, the same plan runs.
    let (review, _) = engine
        .plans()
        .load_review(&"p".parse().unwrap())
        .await
        .unwrap();
    assert!(review.approvals().is_empty());
    let shown = Shown::Version(1);
    engine
        .plans()
        .approve(
            review.id(),
            &Map::new(),
            shown,
            &person(),
            Assurance::Terminal,
        )
        .await
        .unwrap();
    let result = call(&tools, PlanTool::Execute, json!({"planId": "p"})).await;
    assert_eq!(result["success"], true, "{result}");
    assert_eq!(world.called(), ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn a_person_who_is_there_is_asked_right_there() {
    for agrees in [true, false] {
        let world = World::new();
        let engine = world.engine("one");
        let (tools, _) = tools(&engine, Ok(plan("w.write")));
        let ada = Arc::new(Person {
            agrees,
            ..Person::default()
        });
        let asked: Arc<dyn Consenter> = Arc::<Person>::clone(&ada);
        let result = call(
            &tools.asking(asked),
            PlanTool::CreateAndExecute,
            json!({"goal": "do it"}),
        )
        .await;
        assert_eq!(*ada.shown.lock().unwrap(), ["p"]);
        assert_eq!(result["success"], agrees, "{result}");
        assert_eq!(world.called().len(), if agrees { 2 } else { 0 });
        assert_eq!(
            result["status"],
            if agrees { "completed" } else { "not_approved" }
        );
        let (review, _) = engine
            .plans()
            .load_review(&"p".parse().unwrap())
            .await
            .unwrap();
        let by: Vec<_> = review
            .approvals()
            .iter()
            .map(|approval| approval.by.clone())
            .collect();
        assert_eq!(by, if agrees { vec![person()] } else { Vec::new() });
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_says_which_step_and_why() {
    let world = World::new();
    let engine = world.engine("one");
    let failing = json!({"id": "p", "steps": [
        {"id": "a", "tool": "r.read"},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"], "args": {"fail": "no such file"}},
        {"id": "c", "tool": "r.read", "dependsOn": ["b"]},
    ]});
    let (tools, _) = tools(&engine, Ok(failing));
    let result = call(&tools, PlanTool::CreateAndExecute, json!({"goal": "do it"})).await;
    assert_eq!(
        (&result["success"], &result["status"]),
        (&json!(false), &json!("failed")),
        "{result}"
    );
    assert_eq!(result["error"], "step `b` failed: tool_error: no such file");
    assert_eq!(
        (&result["stepsCompleted"], &result["stepsTotal"]),
        (&json!(1), &json!(3))
    );
}

#[tokio::test(start_paused = true)]
async fn another_attempt_at_the_same_call_goes_on_with_what_was_begun() {
    let world = World::new();
    let engine = world.engine("one");
    let (tools, maker) = tools(&engine, Ok(plan("r.read")));
    let first = PlanToolCall::new(
        PlanTool::CreateAndExecute,
        args(json!({"goal": "do it"})),
        "key-1",
    );
    let done = tools.call(&first).await;
    let again = tools
        .call(&PlanToolCall {
            again: true,
            ..first.clone()
        })
        .await;
    assert_eq!(
        (&again["runId"], &again["results"]),
        (&done["runId"], &done["results"])
    );
    assert_eq!(
        (world.called().len(), maker.asked.load(Ordering::Relaxed)),
        (2, 1)
    );
    // Another call is another run.
    let other = PlanToolCall::new(PlanTool::Execute, args(json!({"planId": "p"})), "key-2");
    assert_ne!(tools.call(&other).await["runId"], done["runId"]);
    assert_eq!(world.called().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn a_call_that_is_not_wanted_any_more_cancels_its_run() {
    let world = World::new();
    let engine = world.engine("one");
    let slow = json!({"id": "p", "steps": [{"id": "a", "tool": "r.read", "args": {"ms": 60_000}}]});
    let (tools, _) = tools(&engine, Ok(slow));
    let order = PlanToolCall::new(
        PlanTool::CreateAndExecute,
        args(json!({"goal": "do it"})),
        "key-1",
    );
    let cancelled = order.cancelled.clone();
    let (result, ()) = tokio::join!(tools.call(&order), async {
        crate::world::after(100).await;
        cancelled.cancel();
    });
    assert_eq!(
        (&result["success"], &result["status"]),
        (&json!(false), &json!("cancelled")),
        "{result}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_run_from_a_chat_has_what_is_left_of_the_budget() {
    let world = World::new();
    let spending = Spending::new(ChatBudget {
        calls: Some(3),
        tokens: None,
    });
    let plain = world.engine("one");
    let counted = CountedTools::new(
        Arc::<crate::world::ScriptedTools>::clone(&world.tools),
        spending.clone(),
    );
    let engine = plain.fork_engine(
        Arc::new(counted),
        Arc::new(NoModel),
        ConcurrencyLimits::default(),
    );
    spending.before(2, []);
    let (tools, _) = tools(&engine, Ok(plan("r.read")));
    let result = call(&tools, PlanTool::CreateAndExecute, json!({"goal": "do it"})).await;
    assert_eq!(result["success"], false, "{result}");
    let error = result["error"].as_str().unwrap();
    assert!(
        error.contains("guard_blocked: Guard blocked: the budget of 3 calls is used up"),
        "{error}"
    );
    assert_eq!(
        (world.called(), spending.calls()),
        (vec!["a".to_owned()], 3)
    );
}
