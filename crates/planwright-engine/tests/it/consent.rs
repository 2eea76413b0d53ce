//! What runs, and what is refused before anything does.

use crate::faults::FaultyStore;
use crate::world::{World, approved, chain, document, options, person, report_of};
use planwright_core::policy::LateChoice;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::ReviewRefusal;
use planwright_core::run::Shown;
use planwright_engine::{GivenApproval, ShownPlan, StartRunError};
use serde_json::{Map, json};
use std::collections::BTreeMap;

#[tokio::test(start_paused = true)]
async fn every_missing_tool_is_named_before_anything_runs() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "steps": [
        {"id": "1", "tool": "x.one"}, {"id": "2", "tool": "r.read"}, {"id": "3", "tool": "y.two"},
    ]});
    let (review, _) = engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap();
    let shown = Shown::Version(1);
    let refused = engine
        .plans()
        .approve(
            review.id(),
            &Map::new(),
            shown,
            &person(),
            Assurance::Terminal,
        )
        .await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "Required tools not available: x.one, y.two"
    );
    let refused = engine
        .runs()
        .start(review.id(), options())
        .await
        .unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Required tools not available: x.one, y.two"
    );
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_plan_nobody_approved_does_not_run() {
    let world = World::new();
    let engine = world.engine("one");
    let (review, _) = engine
        .plans()
        .propose(document(chain(1, "r.read", 1)), &person())
        .await
        .unwrap();
    let refused = engine
        .runs()
        .start(review.id(), options())
        .await
        .unwrap_err();
    assert_eq!(refused.to_string(), "the plan is not approved");
    let agent = Principal::agent("planner");
    let approval = engine
        .plans()
        .approve(
            review.id(),
            &Map::new(),
            Shown::Version(1),
            &agent,
            Assurance::Program,
        )
        .await;
    assert!(approval.unwrap_err().to_string().contains("people approve"));
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_for_one_run_of_what_was_shown() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(1, "r.read", 1)).await;
    let mut other = options();
    other.variables.insert("x".into(), json!(1));
    let changed = engine.runs().start(&id, other).await.unwrap_err();
    assert!(changed.to_string().contains("would run"), "{changed}");
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let again = engine.runs().start(&id, options()).await.unwrap_err();
    assert_eq!(again.to_string(), "the plan is not approved");
    assert_eq!(world.made().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_changed_since_the_approval_needs_a_new_one() {
    let world = World::new();
    let engine = world.engine("one");
    let mut plan = chain(1, "r.read", 1);
    plan["steps"][0]["approvalRequired"] = json!(true);
    let id = approved(&engine, plan).await;
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    world.tools.hidden.lock().unwrap().insert("r.read".into());
    let refused = engine.runs().resume(&id, options()).await.unwrap_err();
    assert!(
        matches!(refused, StartRunError::ToolsChanged { .. }),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn two_starts_at_once_spend_one_approval_once() {
    let world = World::new();
    let one = world.engine("one");
    let two = world.engine("two");
    let id = approved(&one, chain(1, "w.write", 10)).await;
    let (first, second) = tokio::join!(async { one.runs().start(&id, options()).await }, async {
        two.runs().start(&id, options()).await
    });
    let started = [first, second].into_iter().flatten().collect::<Vec<_>>();
    assert_eq!(started.len(), 1);
    for mut handle in started {
        assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
    }
    assert_eq!(world.made().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_guard_says_why_and_the_call_is_not_made() {
    let cases = [
        (
            json!({"calls": 1}),
            "Guard blocked: the budget of 1 calls is used up",
        ),
        (
            json!({"perTool": {"r.read": 1}}),
            "Guard blocked: `r.read` has reached its limit of 1 per run",
        ),
        (
            json!({"seconds": 0.05}),
            "Guard blocked: the budget of 0.05 seconds is used up",
        ),
        (
            json!({"sameCall": 1}),
            "Guard blocked: the same call was already made 1 times: this looks like a runaway",
        ),
    ];
    for (budget, words) in cases {
        let world = World::new();
        let mut plan = chain(2, "r.read", 100);
        plan["limits"] = json!({"budget": budget});
        let run = world.run(plan.clone()).await;
        let error = report_of(&run, "s2").error.unwrap();
        assert_eq!(
            (error.code.as_str(), error.message.as_str()),
            ("guard_blocked", words)
        );
        assert_eq!(
            (
                run.status().as_str(),
                world.made().len(),
                report_of(&run, "s2").attempts
            ),
            ("failed", 1, 0)
        );

        let world = World::new();
        let engine = world.engine("one");
        let id = approved(&engine, plan).await;
        let mut unguarded = options();
        unguarded.guards = false;
        let run = engine
            .runs()
            .start(&id, unguarded)
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(
            (run.status().as_str(), world.made().len()),
            ("completed", 2),
            "guards can be off"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_what_was_shown_reads_the_plan_once() {
    let world = World::new();
    let store = FaultyStore::new(&world);
    let plans = store.engine(&world, "one").plans();
    let plan = json!({"id": "p", "steps": [{"id": "a", "tool": "r.read"}]});
    plans.propose(document(plan), &person()).await.unwrap();
    let given = GivenApproval {
        shown: Shown::Version(1),
        by: person(),
        assurance: Assurance::CommandLine,
        late: BTreeMap::new(),
    };
    let before = store.reads();
    let (review, head) = plans.load_review(&"p".parse().unwrap()).await.unwrap();
    let candidate = plans.candidate(&review, &Map::new()).await.unwrap();
    let judged = plans.judge(&candidate.plan);
    let shown_plan = ShownPlan {
        review,
        head,
        candidate,
        judged,
    };
    let approved = plans
        .approve_shown_plan(shown_plan, &Map::new(), &given)
        .await
        .unwrap();
    assert_eq!(approved.approvals().len(), 1);
    assert_eq!(store.reads() - before, 1, "one read of a short journal");
}

#[tokio::test(start_paused = true)]
async fn an_approval_of_what_has_changed_since_it_was_loaded_is_decided_again() {
    let world = World::new();
    let plans = world.engine("one").plans();
    let plan =
        |title: &str| json!({"id": "p", "title": title, "steps": [{"id": "a", "tool": "r.read"}]});
    plans
        .propose(document(plan("one")), &person())
        .await
        .unwrap();
    let given = |shown: Shown| GivenApproval {
        shown,
        by: person(),
        assurance: Assurance::CommandLine,
        late: BTreeMap::new(),
    };
    let id = "p".parse().unwrap();
    for (meanwhile, is_approved) in [("two", false), ("comment", true)] {
        let (review, head) = plans.load_review(&id).await.unwrap();
        let shown = Shown::Version(review.current().number);
        let candidate = plans.candidate(&review, &Map::new()).await.unwrap();
        let judged = plans.judge(&candidate.plan);
        let shown_plan = ShownPlan {
            review,
            head,
            candidate,
            judged,
        };
        if is_approved {
            let comment = planwright_engine::NewComment {
                text: meanwhile.into(),
                ..planwright_engine::NewComment::default()
            };
            plans.comment(&id, comment, &person()).await.unwrap();
        } else {
            plans
                .propose(document(plan(meanwhile)), &person())
                .await
                .unwrap();
        }
        let done = plans
            .approve_shown_plan(shown_plan, &Map::new(), &given(shown))
            .await;
        assert_eq!(done.is_ok(), is_approved, "{done:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_order_that_wants_a_run_narrower_than_it_was_agreed_to_is_refused() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "r.read", "args": {"ms": 10}},
        {"id": "b", "tool": "w.write", "args": {"to": "${a}"}},
    ]});
    let late = |choice: LateChoice| BTreeMap::from([("b".to_owned(), choice)]);
    let narrow = || {
        let mut options = options();
        options.late = late(LateChoice::Ask);
        options
    };
    let (review, _) = engine
        .plans()
        .propose(document(plan), &person())
        .await
        .unwrap();
    let id = review.id().clone();
    let approve = async || {
        let shown = Shown::Digest(review.current().digest);
        let mut given = GivenApproval::new(shown, person(), Assurance::Terminal);
        given.late = late(LateChoice::Any);
        let plans = engine.plans();
        plans.approve_on_terms(&id, &Map::new(), &given).await
    };
    approve().await.unwrap();
    let is_wider = |error: &StartRunError| {
        matches!(
            error,
            StartRunError::Refused(ReviewRefusal::ApprovedWider { .. })
        )
    };
    let refused = engine.runs().start(&id, narrow()).await.unwrap_err();
    assert!(is_wider(&refused), "{refused}");
    assert!(world.made().is_empty());
    // Nothing was spent.
    let mut begun = engine.runs().start(&id, options()).await.unwrap();
    let run = begun.run_id().clone();
    let refused = engine.runs().resume_run(&run, narrow()).await.unwrap_err();
    assert!(is_wider(&refused), "{refused}");
    begun.wait().await.unwrap();
    let made = world.made().len();
    assert_eq!(made, 2);
    approve().await.unwrap();
    let from = ["b".parse().unwrap()];
    let refused = engine.runs().fork(&run, &from, narrow()).await.unwrap_err();
    assert!(is_wider(&refused), "{refused}");
    // Policy's own yes has no choices either.
    let mut agreed = narrow();
    agreed.late = late("args.to == 'x'".parse().unwrap());
    let refused = engine.runs().start(&id, agreed).await.unwrap_err();
    assert!(is_wider(&refused), "{refused}");
    assert_eq!(world.made().len(), made);
}
