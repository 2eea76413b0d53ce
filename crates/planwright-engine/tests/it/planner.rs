//! Plans that a model writes: rounds of repair, what is kept of them, and what is never stored.

use crate::world::{World, approved, document, options, person};
use planwright_core::model::{Cost, Message, ModelRole, ModelUse, TokenUsage, WantedCall};
use planwright_core::planning::ContextText;
use planwright_core::principal::Principal;
use planwright_core::review::{ReviewRefusal, ReviewStage, ReviewState};
use planwright_engine::memory::ScriptedModel;
use planwright_engine::port::{
    BoxFuture, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, StreamIndex as _,
};
use planwright_engine::{
    CreateError, CreateOrder, Engine, PlannerEvent, PlannerOptions, PlannerSink, RegenerateOrder,
    ReviewError, StoreOptions, WrittenPlan,
};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

const GOOD: &str = r#"{"title": "Look twice", "steps": [
    {"id": "s1", "title": "Look", "tool": "r.read", "args": {}},
    {"id": "s2", "title": "Look again", "tool": "r.look", "args": {"value": "${s1}"}, "dependsOn": ["s1"]}]}"#;
const UNKNOWN_TOOL: &str =
    r#"{"title": "T", "steps": [{"id": "s1", "tool": "r.raed", "args": {}}]}"#;

fn engine(world: &World, model: &ScriptedModel) -> Engine {
    world
        .builder("planner")
        .store(
            Arc::<planwright_engine::memory::MemoryStore>::clone(&world.store),
            Arc::clone(&world.artifacts) as _,
        )
        .model(Arc::new(model.clone()))
        .build()
}

fn order(goal: &str) -> CreateOrder {
    CreateOrder::new(goal, person())
}

fn answer(text: &str, cut: bool, cost: Option<Cost>) -> ModelAnswer {
    let usage = TokenUsage {
        input: 100,
        output: 20,
        cached: 0,
        estimated: false,
    };
    let used = ModelUse {
        role: ModelRole::Planner,
        model: ScriptedModel::NAME.to_owned(),
        usage,
        cost,
    };
    ModelAnswer {
        text: text.to_owned(),
        calls: Vec::new(),
        used,
        cut,
    }
}

fn text(message: &Message) -> &str {
    match message {
        Message::System { text }
        | Message::User { text }
        | Message::Assistant { text, .. }
        | Message::Tool { text, .. } => text,
    }
}

async fn stored_plans(world: &World) -> usize {
    world.store.plans().await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn a_goal_becomes_a_proposed_plan_with_what_it_cost() {
    let world = World::new();
    let model = ScriptedModel::default().then(Ok(answer(GOOD, false, Some(Cost(1_500)))));
    let engine = engine(&world, &model);
    let WrittenPlan {
        review,
        findings,
        planning,
    } = engine
        .planner()
        .create(order("look at it twice"))
        .await
        .unwrap();
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
    assert!(
        !findings
            .iter()
            .any(planwright_core::plan::Finding::is_error),
        "{findings:?}"
    );
    assert_eq!(review.current().by, person());
    assert_eq!(
        review.current().document.goal.as_deref(),
        Some("look at it twice")
    );
    assert_eq!(
        review.current().document.planner_model.as_deref(),
        Some(ScriptedModel::NAME)
    );
    assert_eq!(
        (planning.rounds, planning.cost(), planning.usage().total()),
        (1, Some(Cost(1_500)), 120)
    );
    // What was said about it is in the journal, and nowhere else.
    let (again, _) = engine.plans().load_review(review.id()).await.unwrap();
    assert_eq!(again.current().planning.as_deref(), Some(&planning));
    let asked = model.requests();
    assert_eq!(asked[0].role, ModelRole::Planner);
    assert!(asked[0].schema.is_some());
    assert!(
        text(&asked[0].messages[1]).ends_with("look at it twice\n```"),
        "the goal comes last"
    );
}

#[tokio::test(start_paused = true)]
async fn findings_go_back_until_the_plan_is_valid() {
    let world = World::new();
    let model = ScriptedModel::default()
        .says("I would rather not.")
        .then(Ok(answer(GOOD, true, None)))
        .says(UNKNOWN_TOOL)
        .says(format!("Sure!\n```json\n{{\"plan\": {GOOD}}}\n```"));
    let engine = engine(&world, &model);
    let events = Arc::new(Mutex::new(Vec::new()));
    let mut order = order("look at it twice");
    let sink = Arc::clone(&events);
    order.options.told = PlannerSink::new(move |event| sink.lock().unwrap().push(event));
    order.options.explore = false;
    let created = engine.planner().create(order).await.unwrap();
    assert_eq!(created.planning.rounds, 4);
    assert_eq!(created.planning.used.len(), 4);
    let asked = model.requests();
    assert_eq!(asked.len(), 4);
    for later in &asked[1..] {
        assert_eq!(
            later.messages.len(),
            4,
            "the request, the last answer, what is wrong with it"
        );
        assert_eq!(
            later.messages[..2],
            asked[0].messages[..],
            "the original request is kept"
        );
    }
    assert!(text(&asked[1].messages[3]).contains("no JSON object"));
    assert!(text(&asked[2].messages[3]).contains("cut off"));
    let told = text(&asked[3].messages[3]);
    assert!(
        told.contains("E0120") && told.contains("r.raed") && told.contains("r.read"),
        "{told}"
    );
    let events = events.lock().unwrap();
    let sent_back = events
        .iter()
        .filter(|event| matches!(event, PlannerEvent::SentBack { .. }))
        .count();
    assert_eq!(sent_back, 3);
    assert!(
        events
            .iter()
            .any(|event| matches!(event, PlannerEvent::Heard { bytes } if *bytes > 0))
    );
}

#[tokio::test(start_paused = true)]
async fn when_the_rounds_are_over_every_reason_is_told_and_nothing_is_stored() {
    let world = World::new();
    let model = ScriptedModel::default()
        .says("no")
        .says("never")
        .says(UNKNOWN_TOOL)
        .says("no");
    let engine = engine(&world, &model);
    let error = engine.planner().create(order("look")).await.unwrap_err();
    let CreateError::Failed(failed) = &error else {
        panic!("{error}")
    };
    assert_eq!(failed.rounds.len(), 4);
    assert_eq!(
        failed.planning.usage().total(),
        4 * 15,
        "what it cost is told all the same"
    );
    let message = error.to_string();
    assert!(
        message.contains("in 4 rounds") && message.contains("round 3: E0120"),
        "{message}"
    );
    assert_eq!(stored_plans(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_be_asked_ends_it_at_once() {
    let world = World::new();
    let down = ModelError::Unavailable {
        model: "m".into(),
        message: "down".into(),
    };
    let model = ScriptedModel::default().says("no").then(Err(down.clone()));
    let error = engine(&world, &model)
        .planner()
        .create(order("look"))
        .await
        .unwrap_err();
    let CreateError::Failed(failed) = error else {
        panic!("{error}")
    };
    assert_eq!((failed.rounds.len(), failed.cause), (1, Some(down)));
    let none = world
        .engine("none")
        .planner()
        .create(order("look"))
        .await
        .unwrap_err();
    assert!(
        none.to_string()
            .contains("no model is configured for the planner"),
        "{none}"
    );
    assert_eq!(stored_plans(&world).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_goal_that_says_nothing_or_too_much_is_refused_before_anybody_is_asked() {
    let world = World::new();
    let model = ScriptedModel::default();
    let engine = engine(&world, &model);
    assert!(matches!(
        engine.planner().create(order(" \n")).await,
        Err(CreateError::NoGoal)
    ));
    let long = engine.planner().create(order(&"x".repeat(10_001))).await;
    assert!(matches!(
        long,
        Err(CreateError::GoalTooLong { found: 10_001, .. })
    ));
    assert!(model.requests().is_empty());
}

/// A model that never answers.
#[derive(Debug, Default)]
struct Silent(Mutex<Option<tokio_util::sync::CancellationToken>>);

impl Model for Silent {
    fn models(&self) -> Vec<ModelInfo> {
        ScriptedModel::default().models()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        ScriptedModel::default().resolve(role, model)
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        *self.0.lock().unwrap() = Some(request.cancelled);
        Box::pin(std::future::pending())
    }
}

#[tokio::test(start_paused = true)]
async fn nobody_is_asked_on_behalf_of_somebody_who_left() {
    let world = World::new();
    let silent = Arc::new(Silent::default());
    let engine = world
        .builder("silent")
        .model(Arc::clone(&silent) as _)
        .build();
    let mut wanted = order("look");
    let cancelled = wanted.options.cancelled.clone();
    let (created, ()) = tokio::join!(async { engine.planner().create(wanted).await }, async {
        tokio::task::yield_now().await;
        cancelled.cancel();
    });
    assert!(matches!(created, Err(CreateError::Cancelled(_))));
    wanted = order("look");
    let left = tokio::time::timeout(
        std::time::Duration::from_secs(1),
        engine.planner().create(wanted),
    )
    .await;
    assert!(left.is_err());
    assert!(
        silent.0.lock().unwrap().as_ref().unwrap().is_cancelled(),
        "the request ends with its future"
    );
}

#[tokio::test(start_paused = true)]
async fn what_the_policy_denies_is_not_offered_and_not_accepted() {
    let world = World::new();
    let policy = json!({"rules": [{"tool": "r.*", "then": "deny", "reason": "not here"}]});
    let policy =
        planwright_core::policy::Policy::read(&serde_json::from_value(policy).unwrap()).unwrap();
    let model = ScriptedModel::default()
        .says(GOOD)
        .says(r#"{"title": "T", "steps": [{"tool": "k.put", "args": {}}]}"#);
    let engine = world
        .builder("denied")
        .policy(Arc::new(policy))
        .model(Arc::new(model.clone()))
        .build();
    let created = engine.planner().create(order("look")).await.unwrap();
    assert_eq!(created.planning.rounds, 2);
    let asked = model.requests();
    let offered = text(&asked[0].messages[0]);
    assert!(
        !offered.contains("\"r.read\"") && offered.contains("\"k.put\""),
        "{offered}"
    );
    assert!(text(&asked[1].messages[3]).contains("not here"));
}

#[tokio::test(start_paused = true)]
async fn only_the_servers_that_were_named_are_offered() {
    let world = World::new();
    let mut wanted = order("look");
    wanted.options.servers = vec!["r".to_owned()];
    wanted.options.context = vec![ContextText {
        name: "note".into(),
        text: "remember the milk".into(),
    }];
    let prompt = world
        .engine("dry")
        .planner()
        .planner_prompt(&wanted)
        .await
        .unwrap();
    let system = text(&prompt.messages[0]);
    let user = text(&prompt.messages[1]);
    assert!(
        system.contains("r.read") && !system.contains("w.write"),
        "{system}"
    );
    assert!(user.contains("remember the milk"));
}

#[tokio::test(start_paused = true)]
async fn too_many_steps_go_back() {
    let world = World::new();
    let model = ScriptedModel::default()
        .says(GOOD)
        .says(r#"{"title": "T", "steps": [{"tool": "r.read"}]}"#);
    let mut wanted = order("look");
    wanted.options.max_steps = Some(1);
    let created = engine(&world, &model)
        .planner()
        .create(wanted)
        .await
        .unwrap();
    assert_eq!(created.review.current().document.steps.len(), 1);
    assert!(text(&model.requests()[1].messages[3]).contains("at most 1"));
}

#[tokio::test(start_paused = true)]
async fn a_fallback_is_a_draft_that_only_a_person_puts_forward() {
    let world = World::new();
    let engine = world.engine("none");
    let created = engine
        .planner()
        .create_fallback(order("read the notes, then write them down"))
        .await
        .unwrap();
    assert_eq!(
        created.review.state(),
        ReviewState::Active(ReviewStage::Draft)
    );
    assert!(created.planning.fallback && created.review.current().is_fallback());
    let tools: Vec<_> = created
        .review
        .current()
        .document
        .steps
        .iter()
        .map(|step| step.tool.clone().unwrap())
        .collect();
    assert_eq!(tools, ["r.read", "w.write"]);
    let id = created.review.id();
    let refused = engine
        .plans()
        .propose_draft(id, &Principal::agent("eager"))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ReviewError::Refused(ReviewRefusal::Fallback)),
        "{refused}"
    );
    assert!(
        engine.runs().start(id, options()).await.is_err(),
        "a draft does not run"
    );
    engine.plans().propose_draft(id, &person()).await.unwrap();
}

fn two_steps() -> Value {
    json!({"id": "p", "goal": "look", "variables": {"n": 1}, "steps": [
        {"id": "a", "title": "First", "tool": "r.read", "args": {"value": "${n}"}, "labels": ["kept"]},
        {"id": "b", "tool": "r.read", "args": {}, "dependsOn": ["a"]},
        {"id": "c", "tool": "r.read", "args": {}, "dependsOn": ["b"]},
    ]})
}

fn regenerate(steps: &[&str]) -> RegenerateOrder {
    RegenerateOrder {
        by: person(),
        steps: steps.iter().map(|&step| step.to_owned()).collect(),
        feedback: Some("use another tool".to_owned()),
        any_tool: false,
        options: PlannerOptions::default(),
    }
}

#[tokio::test(start_paused = true)]
async fn steps_nobody_asked_about_come_back_as_they_were() {
    let world = World::new();
    // The model rewrites what it was not asked to, and is not heard.
    let model = ScriptedModel::default().says(
        r#"{"title": "Mine now", "steps": [{"id": "b", "tool": "r.look", "args": {}, "dependsOn": ["a"]},
            {"id": "a", "tool": "w.erase", "args": {}}]}"#,
    );
    let engine = engine(&world, &model);
    let (before, _) = engine
        .plans()
        .propose(document(two_steps()), &person())
        .await
        .unwrap();
    let done = engine
        .planner()
        .regenerate(before.id(), regenerate(&["b"]))
        .await
        .unwrap();
    let old = &before.current().document;
    let new = &done.review.current().document;
    assert_eq!(
        (done.review.current().number, done.review.state()),
        (2, ReviewState::Active(ReviewStage::Proposed))
    );
    assert_eq!(
        done.review.current().reason.as_deref(),
        Some("use another tool")
    );
    assert_eq!(
        (&new.steps[0], &new.steps[2]),
        (&old.steps[0], &old.steps[2])
    );
    assert_eq!(new.steps[1].tool.as_deref(), Some("r.look"));
    assert_eq!((&new.title, &new.variables), (&old.title, &old.variables));
    assert!(!done.diff.is_empty());
    assert!(done.review.current().planning.is_some());
    let asked = &model.requests()[0];
    assert!(text(&asked.messages[1]).contains("use another tool"));
    let schema = asked.schema.as_ref().unwrap().schema.to_string();
    assert!(schema.contains(r#""enum":["b"]"#), "{schema}");
}

#[tokio::test(start_paused = true)]
async fn what_people_said_is_told_to_whoever_writes_the_plan_again() {
    let world = World::new();
    let model = ScriptedModel::default().says(GOOD);
    let engine = engine(&world, &model);
    let (review, _) = engine
        .plans()
        .propose(document(two_steps()), &person())
        .await
        .unwrap();
    let shown = planwright_core::run::Shown::Version(1);
    engine
        .plans()
        .reject(review.id(), shown, &person(), "it looks\nonly once")
        .await
        .unwrap();
    let order = RegenerateOrder {
        feedback: None,
        ..regenerate(&[])
    };
    let done = engine
        .planner()
        .regenerate(review.id(), order)
        .await
        .unwrap();
    assert_eq!(done.review.current().document.steps.len(), 2);
    assert_eq!(
        done.review.current().document.goal.as_deref(),
        Some("look"),
        "what it is for stays"
    );
    assert!(text(&model.requests()[0].messages[1]).contains("it looks only once"));
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_is_executing_is_not_written_again() {
    let world = World::new();
    let model = ScriptedModel::default().says(GOOD);
    let engine = engine(&world, &model);
    let id = approved(
        &engine,
        json!({"id": "p", "steps": [{"id": "a", "tool": "r.read", "args": {"ms": 1000}}]}),
    )
    .await;
    let mut handle = engine.runs().start(&id, options()).await.unwrap();
    let refused = engine.planner().regenerate(&id, regenerate(&[])).await;
    assert!(
        matches!(refused, Err(CreateError::Executing(_))),
        "{refused:?}"
    );
    handle.wait().await.unwrap();
    assert!(matches!(
        engine.planner().regenerate(&id, regenerate(&["zzz"])).await,
        Err(CreateError::NoSuchStep(_))
    ));
    assert!(
        engine
            .planner()
            .regenerate(&id, regenerate(&[]))
            .await
            .is_ok()
    );
}

#[tokio::test(start_paused = true)]
async fn the_rest_of_a_failed_run_is_planned_again_around_what_was_done() {
    let world = World::new();
    let model = ScriptedModel::default()
        .says(r#"{"title": "T", "steps": [{"id": "s1", "tool": "k.put", "args": {"value": "${a}"}, "dependsOn": ["a"]}]}"#);
    let engine = engine(&world, &model);
    let id = approved(
        &engine,
        json!({"id": "p", "goal": "look", "steps": [
            {"id": "a", "tool": "r.read", "args": {"value": "found it"}},
            {"id": "b", "tool": "r.read", "args": {"fail": "it is locked"}, "dependsOn": ["a"]},
            {"id": "c", "tool": "r.read", "args": {}, "dependsOn": ["b"]}]}),
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
    assert_eq!(run.status().as_str(), "failed");
    let replanned = engine
        .planner()
        .replan(&run, &PlannerOptions::default())
        .await
        .unwrap();
    let ids: Vec<_> = replanned
        .document
        .steps
        .iter()
        .map(|step| step.id.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(ids, ["a", "s1"]);
    assert_eq!(replanned.document.steps[0], run.plan().document().steps[0]);
    assert_eq!(replanned.planning.rounds, 1);
    let asked = model.requests();
    let told = text(&asked[0].messages[1]);
    assert!(
        told.contains("it is locked") && told.contains("found it"),
        "{told}"
    );
    let (review, _) = engine.plans().load_review(&id).await.unwrap();
    assert_eq!(review.current().number, 1, "nothing is stored");
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_lists_its_tools_is_written_again_with_those_only() {
    let outside = r#"{"title": "T", "steps": [{"id": "s1", "tool": "r.look", "args": {}}]}"#;
    let inside = r#"{"title": "T", "steps": [{"id": "s1", "tool": "r.read", "args": {}}]}"#;
    let world = World::new();
    let model = ScriptedModel::default();
    let engine = engine(&world, &model);
    let scoped = |scope: &[&str]| {
        let mut plan = two_steps();
        plan["toolsRequired"] = json!(scope);
        document(plan)
    };
    let offered = || {
        let asked = model.requests().last().unwrap().clone();
        let told = asked.messages.iter().map(text).collect::<String>();
        (told.contains("r.look"), told.contains("r.read"))
    };
    let (before, _) = engine
        .plans()
        .propose(scoped(&["read"]), &person())
        .await
        .unwrap();
    drop(model.clone().says(outside).says(inside));
    let done = engine
        .planner()
        .regenerate(before.id(), regenerate(&[]))
        .await
        .unwrap();
    assert_eq!(
        done.planning.rounds, 2,
        "what is outside the scope goes back"
    );
    let first = &model.requests()[0];
    assert!(
        !first
            .messages
            .iter()
            .any(|message| text(message).contains("r.look"))
    );
    assert!(offered().1);
    assert_eq!(done.review.current().document.tools_required, ["read"]);

    // A caller that asks for any tool gets all of them, and what is used is in the scope from then
    // on.
    drop(model.clone().says(outside));
    let order = RegenerateOrder {
        any_tool: true,
        ..regenerate(&[])
    };
    let done = engine
        .planner()
        .regenerate(before.id(), order)
        .await
        .unwrap();
    assert_eq!(offered(), (true, true));
    assert_eq!(
        done.review.current().document.tools_required,
        ["read", "r.look"]
    );

    // A scope that was not written down narrows nothing.
    let (open, _) = engine
        .plans()
        .propose(scoped(&[]), &person())
        .await
        .unwrap();
    drop(model.clone().says(outside));
    let done = engine
        .planner()
        .regenerate(open.id(), regenerate(&[]))
        .await
        .unwrap();
    assert!(offered().0 && done.review.current().document.tools_required.is_empty());
}

#[tokio::test(start_paused = true)]
async fn without_any_tool_of_the_scope_nobody_is_asked() {
    let world = World::new();
    let model = ScriptedModel::default();
    let engine = engine(&world, &model);
    let plan = json!({"id": "p", "goal": "look", "toolsRequired": ["gone.tool"], "steps": []});
    let (review, _) = engine
        .plans()
        .store_document(document(plan), &person(), StoreOptions::draft())
        .await
        .unwrap();
    let refused = engine
        .planner()
        .regenerate(review.id(), regenerate(&[]))
        .await;
    assert!(
        matches!(refused, Err(CreateError::NothingInScope(_))),
        "{refused:?}"
    );
    assert!(model.requests().is_empty());
}

fn look(id: &str, tool: &str) -> WantedCall {
    WantedCall {
        id: id.to_owned(),
        name: tool.to_owned(),
        args: json!({}),
    }
}

#[tokio::test(start_paused = true)]
async fn a_planner_looks_before_it_plans_and_the_calls_are_journaled() {
    let world = World::new();
    let calls = vec![look("a", "r.read"), look("b", "d.write")];
    let model = ScriptedModel::default()
        .wants(calls)
        .says(UNKNOWN_TOOL)
        .says(GOOD);
    let engine = engine(&world, &model);
    let written = engine
        .planner()
        .create(order("look at it twice"))
        .await
        .unwrap();
    let explored = written.planning.explored.unwrap();
    assert_eq!(explored.calls, 2);
    // The call is in a journal, and the one that would have changed something was not made.
    let made = engine
        .sessions()
        .recorded_calls(&explored.session)
        .await
        .unwrap();
    let made: Vec<&str> = made.iter().map(|call| call.tool.as_str()).collect();
    assert_eq!(made, ["r.read"]);
    let asked = model.requests();
    assert_eq!(asked.len(), 3);
    let offered: Vec<&str> = asked[0]
        .tools
        .iter()
        .map(|tool| tool.name.as_str())
        .collect();
    assert!(offered.contains(&"r.read"), "{offered:?}");
    assert!(
        !offered.iter().any(|name| name.starts_with("d.")),
        "{offered:?}"
    );
    let told: Vec<&str> = asked[1].messages[3..].iter().map(text).collect();
    assert_eq!(told.len(), 2);
    assert!(told[1].contains("not offered here"), "{told:?}");
    // A repair goes on without calls, and still knows what was seen.
    assert!(asked[2].tools.is_empty());
    assert!(text(&asked[2].messages[1]).contains("## What you saw"));
    assert!(text(&asked[2].messages[1]).ends_with("look at it twice\n```"));
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_call_tools_plans_without_looking() {
    let world = World::new();
    let refused = ModelError::Refused {
        model: ScriptedModel::NAME.to_owned(),
        status: 400,
        message: "no tools here".to_owned(),
    };
    let model = ScriptedModel::default().then(Err(refused)).says(GOOD);
    let engine = engine(&world, &model);
    let written = engine.planner().create(order("look")).await.unwrap();
    assert_eq!(
        (written.planning.rounds, written.planning.explored),
        (1, None)
    );
    let asked = model.requests();
    assert!(!asked[0].tools.is_empty() && asked[1].tools.is_empty());
    assert!(!text(&asked[1].messages[1]).contains("Looking around"));
}

#[tokio::test(start_paused = true)]
async fn a_planner_that_only_looks_is_stopped() {
    let world = World::new();
    let mut model = ScriptedModel::default();
    for turn in 0..12 {
        model = model.wants(vec![look(&turn.to_string(), "r.read")]);
    }
    let model = model.says(GOOD);
    let engine = engine(&world, &model);
    let written = engine.planner().create(order("look")).await.unwrap();
    assert_eq!(written.planning.explored.unwrap().calls, 12);
    let asked = model.requests();
    assert_eq!(asked.len(), 13);
    assert!(asked[12].tools.is_empty());
}
