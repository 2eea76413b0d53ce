//! Conditions, expectations, constraints, loops and questions, as the engine carries them out.

use crate::world::{World, approved, entries, options, person, report_of, status_of};
use planwright_core::principal::Principal;
use planwright_core::run::{Refusal, Reply, Run, RunEvent, StepState, StoredValue};
use planwright_engine::{CommandError, RunCommand, read_value};
use serde_json::{Map, Value, json};

async fn value_of(world: &World, run: &Run, step: &str) -> Value {
    read_value(&*world.artifacts, &report_of(run, step).value.unwrap())
        .await
        .unwrap()
}

fn error_of(run: &Run, step: &str) -> (String, String) {
    let error = report_of(run, step).error.unwrap();
    (error.code.to_string(), error.message)
}

/// The answer to what a step asks.
fn answer(run: &Run, step: &str, by: Principal, reply: Reply) -> RunCommand {
    let StepState::AwaitingInput { asked, .. } = run.step(run.find(step).unwrap()) else {
        panic!("{step} asks nothing")
    };
    RunCommand::GiveInput {
        step: step.into(),
        by,
        question: asked.digest(),
        replies: vec![reply],
    }
}

fn number(n: impl Into<Value>) -> Reply {
    Reply::Values(Map::from_iter([("n".to_owned(), n.into())]))
}

#[tokio::test(start_paused = true)]
async fn a_condition_skips_runs_or_fails_a_step_and_dependants_go_on() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "variables": {"limit": 3}, "steps": [
            {"id": "a", "tool": "r.read", "args": {"value": {"n": 5, "odd-key": 1}}, "result": "found"},
            {"id": "yes", "tool": "r.read", "when": "found.n > limit && steps.a.n == 5"},
            {"id": "no", "tool": "r.read", "when": "found.n < limit", "approvalRequired": true},
            {"id": "late", "tool": "r.read", "args": {"value": ["${no}"]}},
            {"id": "null", "tool": "r.read", "when": "steps.no == null"},
            {"id": "broken", "tool": "r.read", "when": "found.missing == 1", "critical": false},
            {"id": "number", "tool": "r.read", "when": "found.n", "critical": false},
            {"id": "blocked", "tool": "r.read", "dependsOn": ["broken"]},
        ]}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(
        error_of(&run, "no"),
        ("skipped".into(), "when: found.n < limit is false".into())
    );
    assert_eq!(value_of(&world, &run, "late").await, json!([null]));
    for step in ["yes", "null"] {
        assert_eq!(status_of(&run, step), "completed", "{step}");
    }
    for step in ["broken", "number"] {
        assert_eq!(error_of(&run, step).0, "condition_failed", "{step}");
    }
    assert_eq!(status_of(&run, "blocked"), "blocked");
    for step in ["no", "broken", "number", "blocked"] {
        assert_eq!(world.calls_of(step), 0, "{step} was called");
    }
    let asked = |entry: &_| matches!(entry, RunEvent::ApprovalRequested { .. });
    assert!(
        !entries(&*world.store, run.id())
            .iter()
            .any(|entry| asked(&entry.event)),
        "no person is asked in vain"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_not_expected_is_a_failure_and_retried_only_if_the_plan_says_so() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "good", "tool": "r.read", "args": {"value": {"rows": [1]}}, "expect": "size(result.rows) == 1"},
            {"id": "bad", "tool": "w.write", "args": {"value": "Error: no such table"}, "critical": false,
             "expect": "!result.startsWith('Error')", "retry": {"max": 3}},
            {"id": "again", "tool": "r.read", "args": {"value": 1}, "critical": false,
             "expect": "result == 2", "retry": {"max": 2, "on": ["expect_failed"]}},
            {"id": "args", "tool": "r.read", "args": {"value": 7}, "expect": "result == args.value && result == value"},
            {"id": "other", "tool": "r.read", "args": {"value": 7}, "expect": "result > good.rows[0]"},
            {"id": "nothing", "tool": "r.read", "args": {"value": null}, "critical": false, "expect": "result.x == 1"},
        ]}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    let (code, message) = error_of(&run, "bad");
    assert_eq!(code, "expect_failed");
    assert!(
        message.contains("!result.startsWith('Error')") && message.contains("no such table"),
        "{message}"
    );
    assert_eq!((world.calls_of("bad"), world.calls_of("again")), (1, 3));
    assert_eq!(error_of(&run, "nothing").0, "expect_failed");
    for step in ["good", "args", "other"] {
        assert_eq!(status_of(&run, step), "completed", "{step}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_violates_a_constraint_never_leaves() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "steps": [
            {"id": "a", "tool": "r.read", "args": {"value": {"path": "/etc/passwd", "n": 3}}},
            {"id": "fits", "tool": "w.write", "args": {"n": "${a.n}"}, "constraints": ["n < 5", "args.n == 3"]},
            {"id": "path", "tool": "w.write", "args": {"path": "${a.path}"}, "critical": false,
             "constraints": ["path.startsWith('out/')"]},
            {"id": "typo", "tool": "w.write", "args": {"path": "x"}, "critical": false,
             "constraints": ["args.pth == 'x'"]},
        ]}))
        .await;
    assert_eq!(status_of(&run, "fits"), "completed");
    for step in ["path", "typo"] {
        assert_eq!(error_of(&run, step).0, "constraint_violated", "{step}");
        assert_eq!(world.calls_of(step), 0, "{step} was called");
    }
    assert!(error_of(&run, "path").1.contains("/etc/passwd"));
}

#[tokio::test(start_paused = true)]
async fn a_loop_runs_once_per_element_and_gathers_in_order() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "limits": {"maxConcurrency": 10}, "steps": [
            {"id": "list", "tool": "r.read", "args": {"value": [{"n": "a", "ms": 30}, {"n": "b", "ms": 10}, {"n": "c", "ms": 20}]}},
            {"id": "each", "tool": "k.put", "forEach": "${list}", "maxParallel": 2, "result": "values",
             "args": {"value": "${item.n}${index}", "ms": "${item.ms}"}},
            {"id": "end", "tool": "r.read", "args": {"value": "${values}", "first": "${values[0]}"}},
        ]}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(
        value_of(&world, &run, "end").await,
        json!(["a0", "b1", "c2"])
    );
    assert_eq!(
        world.peak("k.put"),
        1,
        "writes of one server run one at a time"
    );
    let items = report_of(&run, "each").items.unwrap();
    assert_eq!(
        items
            .iter()
            .map(|item| (item.index, item.status.as_str()))
            .collect::<Vec<_>>(),
        [(0, "completed"), (1, "completed"), (2, "completed"),]
    );
    let mut keys: Vec<String> = world
        .made()
        .into_iter()
        .filter(|made| made.step.starts_with("each["))
        .map(|made| made.key)
        .collect();
    keys.dedup();
    assert_eq!(keys.len(), 3, "each element has a key of its own: {keys:?}");
}

#[tokio::test(start_paused = true)]
async fn the_elements_in_flight_are_bounded_by_the_loop_and_by_the_run() {
    for (max_parallel, limit, peak) in [(Some(3), 10, 3), (None, 4, 4), (Some(100), 2, 2)] {
        let world = World::new();
        let list: Vec<u32> = (0..20).collect();
        let mut step = json!({"id": "each", "tool": "r.read", "forEach": list, "args": {"ms": 10}});
        if let Some(most) = max_parallel {
            step["maxParallel"] = json!(most);
        }
        let run = world
            .run(json!({"id": "p", "limits": {"maxConcurrency": limit}, "steps": [step]}))
            .await;
        assert_eq!(run.status().as_str(), "completed");
        assert_eq!(world.peak("r.read"), peak);
    }
}

#[tokio::test(start_paused = true)]
async fn conditions_expectations_and_constraints_see_the_element() {
    let world = World::new();
    let run = world
        .run(json!({"id": "p", "variables": {"go": true}, "steps": [
            {"id": "each", "tool": "r.read", "forEach": [1, 2, 3, 4], "when": "item % 2 == 0 || index == 0",
             "args": {"value": "${item}"}, "expect": "result == item", "constraints": ["args.value == index + 1"]},
            {"id": "none", "tool": "r.read", "forEach": [1, 2], "when": "!go"},
            {"id": "bad", "tool": "r.read", "forEach": [1, 2, 3], "maxParallel": 1, "critical": false,
             "args": {"value": "${item}"}, "expect": "result != 2"},
        ]}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(value_of(&world, &run, "each").await, json!([1, 2, null, 4]));
    assert_eq!(status_of(&run, "none"), "skipped");
    let (code, message) = error_of(&run, "bad");
    assert_eq!(code, "expect_failed");
    assert!(message.starts_with("element 1: "), "{message}");
    assert_eq!(world.calls_of("bad[2]"), 0);
}

#[tokio::test(start_paused = true)]
async fn loops_over_nothing_over_no_list_and_over_too_much() {
    let world = World::new();
    let many: Vec<u32> = (0..10_001).collect();
    let run = world
        .run(
            json!({"id": "p", "variables": {"many": many, "text": "abc"}, "steps": [
                {"id": "nothing", "tool": "r.read", "forEach": []},
                {"id": "text", "tool": "r.read", "forEach": "${text}", "critical": false},
                {"id": "many", "tool": "r.read", "forEach": "${many}", "critical": false},
                {"id": "null", "tool": "r.read", "forEach": "${steps.skipped}", "critical": false},
                {"id": "skipped", "tool": "r.read", "when": "text == ''"},
            ]}),
        )
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(value_of(&world, &run, "nothing").await, json!([]));
    assert_eq!(error_of(&run, "text").0, "not_a_list");
    assert_eq!(error_of(&run, "null").0, "not_a_list");
    let (code, message) = error_of(&run, "many");
    assert_eq!(code, "too_many_elements");
    assert!(
        message.contains("10001") && message.contains("10000"),
        "{message}"
    );
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn large_lists_and_large_values_are_artifacts_and_come_back() {
    let world = World::new();
    let items: Vec<String> = (0..40)
        .map(|n| format!("{n}-{}", "x".repeat(5_000)))
        .collect();
    let large = "y".repeat(70_000);
    let run = world
        .run(json!({"id": "p", "variables": {"items": items, "large": large}, "steps": [
            {"id": "each", "tool": "r.read", "forEach": "${items}", "args": {"value": "${item}"}},
            {"id": "big", "tool": "r.read", "forEach": [1, 2], "args": {"value": {"n": "${item}", "t": "${large}"}}},
            {"id": "end", "tool": "r.read", "args": {"value": ["${each[39]}", "${big[1].n}"]}, "when": "size(big) == 2"},
        ]}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert!(matches!(
        report_of(&run, "each").value,
        Some(StoredValue::Artifact(_))
    ));
    assert_eq!(value_of(&world, &run, "end").await, json!([items[39], 2]));
    assert_eq!(value_of(&world, &run, "big").await[0]["t"], json!(large));
}

#[tokio::test(start_paused = true)]
async fn a_person_is_asked_and_only_a_fitting_answer_of_a_person_counts() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "variables": {"what": "apples"}, "steps": [
        {"id": "ask", "input": {"message": "How many ${what}?", "schema": {"type": "object",
            "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}}, "result": "said"},
        {"id": "plain", "input": {"message": "How many?", "schema": {"type": "integer"}}, "when": "said.n > 2"},
        {"id": "use", "tool": "r.read", "args": {"value": ["${said.n}", "${plain}"]}},
    ]});
    let id = approved(&engine, plan).await;
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    let StepState::AwaitingInput { asked, .. } = run.step(run.find("ask").unwrap()) else {
        panic!("it asks")
    };
    assert_eq!(asked.questions[0].message, "How many apples?");
    for (by, reply) in [
        (Principal::agent("planner"), number(3)),
        (Principal::service("cron"), number(3)),
        (Principal::read_only_policy(), number(3)),
    ] {
        let refused = engine
            .runs()
            .command(run.id(), answer(&run, "ask", by, reply))
            .await;
        let refused_who = matches!(
            refused,
            Err(CommandError::Refused(
                Refusal::MayNotAnswer(_) | Refusal::MayNot { .. }
            ))
        );
        assert!(refused_who, "{refused:?}");
    }
    for reply in [
        number(0),
        number("three"),
        Reply::Values(Map::new()),
        number("x".repeat(70_000)),
    ] {
        let refused = engine
            .runs()
            .command(run.id(), answer(&run, "ask", person(), reply))
            .await;
        assert!(
            matches!(
                refused,
                Err(CommandError::Refused(Refusal::BadInput { .. }))
            ),
            "{refused:?}"
        );
    }
    let given = answer(&run, "ask", person(), number(3));
    engine
        .runs()
        .command(run.id(), given.clone())
        .await
        .unwrap();
    assert!(
        engine
            .runs()
            .command(run.id(), given.clone())
            .await
            .is_err(),
        "it is answered once"
    );
    let run = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let RunCommand::GiveInput { question, .. } = given else {
        panic!("an answer")
    };
    let stale = RunCommand::GiveInput {
        step: "plain".into(),
        by: person(),
        question,
        replies: vec![number(3)],
    };
    let refused = engine.runs().command(run.id(), stale).await;
    assert!(
        matches!(
            refused,
            Err(CommandError::Refused(Refusal::OtherQuestion { .. }))
        ),
        "{refused:?}"
    );
    let value = Reply::Values(Map::from_iter([("value".to_owned(), json!(7))]));
    engine
        .runs()
        .command(run.id(), answer(&run, "plain", person(), value))
        .await
        .unwrap();
    let run = engine
        .runs()
        .resume(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(value_of(&world, &run, "use").await, json!([3, 7]));
}

#[tokio::test(start_paused = true)]
async fn what_a_tool_asks_waits_for_a_person_and_reaches_the_next_attempt() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write", "args": {"ask": 2, "value": "done"}},
        {"id": "b", "tool": "r.read", "dependsOn": ["a"]},
    ]});
    let id = approved(&engine, plan).await;
    let mut run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    for reply in [number(1), Reply::Decline] {
        assert_eq!(
            (run.status().as_str(), status_of(&run, "a")),
            ("waiting", "awaiting_input")
        );
        // Another engine: the question is in the journal, not in anybody's memory.
        let other = world.engine("two");
        other
            .runs()
            .command(run.id(), answer(&run, "a", person(), reply))
            .await
            .unwrap();
        run = other
            .runs()
            .resume(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
    }
    assert_eq!(run.status().as_str(), "completed");
    let made = world.made();
    assert_eq!(made.len(), 4);
    assert_eq!(made[0].answered, json!([]));
    let answered = &made[2].answered;
    assert_eq!(answered.as_array().map(Vec::len), Some(2));
    assert_eq!(
        answered[0]["asked"]["questions"][0]["message"],
        "question 0"
    );
    assert_eq!(
        (&answered[0]["replies"], &answered[1]["replies"]),
        (&json!([{"values": {"n": 1}}]), &json!(["decline"]))
    );
    assert_eq!(made[0].key, made[2].key);
}

#[tokio::test(start_paused = true)]
async fn a_fork_takes_over_what_a_loop_came_to() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "steps": [
        {"id": "each", "tool": "r.read", "forEach": [1, 2], "args": {"value": "${item}"}},
        {"id": "end", "tool": "r.read", "args": {"value": "${each}"}},
    ]});
    let id = approved(&engine, plan).await;
    let first = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    approved(
        &engine,
        json!(
            engine
                .plans()
                .load_review(&id)
                .await
                .unwrap()
                .0
                .current()
                .document
        ),
    )
    .await;
    let from = ["end".parse().unwrap()];
    let fork = engine
        .runs()
        .fork(first.id(), &from, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(fork.status().as_str(), "completed");
    assert_eq!(value_of(&world, &fork, "end").await, json!([1, 2]));
    assert_eq!(world.calls_of("each[0]"), 1);
}

#[tokio::test(start_paused = true)]
async fn many_elements_are_no_trouble() {
    let world = World::new();
    let many: Vec<u32> = (0..300).collect();
    let run = world
        .run(json!({"id": "p", "variables": {"many": many}, "limits": {"maxConcurrency": 64}, "steps": [
            {"id": "each", "tool": "r.read", "forEach": "${many}", "maxParallel": 50, "args": {"value": "${item}"}},
        ]}))
        .await;
    assert_eq!(run.status().as_str(), "completed");
    assert_eq!(value_of(&world, &run, "each").await, json!(many));
}
