//! New versions: made to the version that was looked at, and agreed to for what changed.

use crate::world::{
    World, approved, candidate_of, chain, document, options, person, report_of, status_of,
};
use planwright_core::id::PlanId;
use planwright_core::plan::Edit;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::review::{ReviewRefusal, ReviewStage, ReviewState};
use planwright_core::run::Shown;
use planwright_engine::{Editing, Engine, Reapproval, ReviewError};
use serde_json::{Map, Value, json};

fn editing(based_on: u32) -> Editing {
    Editing {
        based_on,
        by: person(),
        reason: Some("better".into()),
    }
}

fn edit(value: Value) -> Edit {
    serde_json::from_value(value).unwrap()
}

fn set(path: &str, value: Value) -> Edit {
    edit(json!({"op": "set", "path": path, "value": value}))
}

async fn since_agreed(engine: &Engine, id: &PlanId) -> Option<Reapproval> {
    let (review, candidate) = candidate_of(engine, id).await;
    engine.runs().reapproval(&review, &candidate).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn of_two_edits_of_the_same_version_the_second_hears_of_the_first() {
    let world = World::new();
    let one = world.engine("one");
    let two = world.engine("two");
    let (review, _) = one
        .plans()
        .propose(document(chain(2, "r.read", 1)), &person())
        .await
        .unwrap();
    let id = review.id().clone();
    let first = [set("title", json!("one"))];
    let second = [set("title", json!("two"))];
    let looked_at = editing(1);
    let other = editing(1);
    let (first, second) = tokio::join!(
        async { one.plans().edit_by(&id, &first, &looked_at).await },
        async { two.plans().edit_by(&id, &second, &other).await }
    );
    let lost = [first, second]
        .into_iter()
        .filter_map(Result::err)
        .collect::<Vec<_>>();
    assert!(
        matches!(
            lost[..],
            [ReviewError::Refused(ReviewRefusal::Conflict {
                based_on: 1,
                current: 2
            })]
        ),
        "{lost:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn only_steps_that_are_as_they_were_agreed_to_need_no_second_look() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "variables": {"who": "ada"}, "steps": [
        {"id": "a", "tool": "w.write", "args": {"to": "x"}},
        {"id": "b", "tool": "w.write", "args": {"to": "${who}"}},
        {"id": "c", "tool": "w.write", "args": {"to": "z"}, "dependsOn": ["a"]},
        {"id": "d", "tool": "w.write", "args": {"to": "z"}},
    ]});
    let id = approved(&engine, plan).await;
    assert!(since_agreed(&engine, &id).await.is_none());
    let edits = [
        set("variables.who", json!("eve")),
        set("steps.c.dependsOn", json!(["b"])),
        set("steps.d.title", json!("words")),
    ];
    let (review, _) = engine
        .plans()
        .edit_by(&id, &edits, &editing(1))
        .await
        .unwrap();
    assert_eq!(review.state(), ReviewState::Active(ReviewStage::Proposed));
    let since = since_agreed(&engine, &id).await.unwrap();
    let agreed: Vec<String> = since.agreed.iter().map(ToString::to_string).collect();
    assert_eq!(
        agreed,
        ["a", "d"],
        "`b` sends another value, `c` waits for another step"
    );
    assert_eq!(since.since.version, 1);
    // With another tool than the one that was agreed to, everything is another call.
    "other".clone_into(&mut world.tools.description.lock().unwrap());
    assert!(since_agreed(&engine, &id).await.unwrap().agreed.is_empty());
    "scripted".clone_into(&mut world.tools.description.lock().unwrap());
    let shown = Shown::Version(2);
    let review = engine
        .plans()
        .approve(&id, &Map::new(), shown, &person(), Assurance::Terminal)
        .await
        .unwrap();
    assert_eq!(review.approvals()[1].terms.builds_on, Some(since.since));
    assert_eq!(
        engine
            .runs()
            .start(&id, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap()
            .status()
            .as_str(),
        "completed"
    );
}

#[tokio::test(start_paused = true)]
async fn an_edit_of_words_runs_on_the_approval_there_was_and_a_tool_that_changed_does_not() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(1, "w.write", 1)).await;
    engine
        .plans()
        .edit_by(&id, &[set("title", json!("other words"))], &editing(1))
        .await
        .unwrap();
    "other".clone_into(&mut world.tools.description.lock().unwrap());
    let refused = engine.runs().start(&id, options()).await.unwrap_err();
    assert!(refused.to_string().contains("→ \"other\""), "{refused}");
    "scripted".clone_into(&mut world.tools.description.lock().unwrap());
    let run = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(
        (run.status().as_str(), run.start().version),
        ("completed", 2)
    );
    assert!(
        engine.runs().start(&id, options()).await.is_err(),
        "it was used up"
    );
}

#[tokio::test(start_paused = true)]
async fn a_step_that_is_left_out_calls_nothing_and_asks_nobody() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = json!({"id": "p", "steps": [
        {"id": "a", "tool": "w.write", "approvalRequired": true, "skip": true},
        {"id": "b", "input": {"schema": {"type": "object"}}, "skip": true},
        {"id": "c", "tool": "w.write", "forEach": [1, 2], "args": {"to": "${item}"}, "skip": true},
        {"id": "d", "tool": "gone.away", "skip": true},
        {"id": "e", "tool": "r.read", "dependsOn": ["a", "b", "c", "d"]},
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
    assert_eq!(run.status().as_str(), "completed");
    for step in ["a", "b", "c", "d"] {
        assert_eq!(status_of(&run, step), "skipped");
        assert_eq!(
            report_of(&run, step).error.unwrap().message,
            "left out by an edit"
        );
    }
    assert_eq!(world.called(), ["e"]);
}

#[tokio::test(start_paused = true)]
async fn drafts_that_begin_with_the_same_words_are_plans_of_their_own() {
    let world = World::new();
    let engine = world.engine("one");
    let goal = || document(json!({"goal": "the same", "steps": []}));
    let (one, _) = engine
        .plans()
        .draft(goal(), &Principal::agent("planner"))
        .await
        .unwrap();
    let (two, _) = engine
        .plans()
        .draft(goal(), &Principal::agent("planner"))
        .await
        .unwrap();
    assert_ne!(one.id(), two.id());
    assert_eq!(engine.plans().status(&one).await.unwrap().as_str(), "draft");
    let refused = engine
        .plans()
        .propose_draft(one.id(), &person())
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ReviewError::Refused(ReviewRefusal::NoSteps)),
        "{refused}"
    );
    let add = edit(json!({"op": "add", "step": {"tool": "r.read"}}));
    let (draft, _) = engine
        .plans()
        .edit_by(one.id(), &[add], &editing(1))
        .await
        .unwrap();
    assert_eq!(draft.state(), ReviewState::Active(ReviewStage::Draft));
    assert_eq!(
        engine
            .plans()
            .propose_draft(one.id(), &person())
            .await
            .unwrap()
            .state(),
        ReviewState::Active(ReviewStage::Proposed)
    );
}

#[tokio::test(start_paused = true)]
async fn an_earlier_version_comes_back_as_the_next_one() {
    let world = World::new();
    let engine = world.engine("one");
    let id = approved(&engine, chain(2, "w.write", 1)).await;
    engine
        .plans()
        .edit_by(
            &id,
            &[edit(json!({"op": "remove", "steps": ["s2"]}))],
            &editing(1),
        )
        .await
        .unwrap();
    let (review, _) = engine.plans().restore(&id, 1, &editing(2)).await.unwrap();
    assert_eq!(
        (review.current().number, review.current().restored_from),
        (3, Some(1))
    );
    let first = engine.plans().load_version(&review, 1).await.unwrap();
    assert_eq!(review.current().document, first.unwrap().document);
    let none = engine.plans().load_version(&review, 4).await.unwrap();
    assert!(none.is_none());
    assert_eq!(
        review.state(),
        ReviewState::Active(ReviewStage::Proposed),
        "what an edit voided stays void"
    );
    let refused = engine
        .plans()
        .restore(&id, 9, &editing(3))
        .await
        .unwrap_err();
    assert!(
        matches!(
            refused,
            ReviewError::Refused(ReviewRefusal::NoSuchVersion(9))
        ),
        "{refused}"
    );
    let mut other = document(chain(2, "w.write", 1));
    other.id = Some("another".parse().unwrap());
    let refused = engine
        .plans()
        .edit(&id, other, &editing(3))
        .await
        .unwrap_err();
    assert!(
        matches!(refused, ReviewError::OtherPlan { .. }),
        "{refused}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_another_process_changed_is_read_as_it_is_now() {
    let world = World::new();
    let one = world.engine("one");
    let two = world.engine("two");
    let id = approved(&one, chain(2, "w.write", 1)).await;
    let (before, _) = one.plans().load_review(&id).await.unwrap();
    assert_eq!(before.current().number, 1);
    for version in 1..=3 {
        let set = json!({"op": "set", "path": "title", "value": format!("{version}")});
        let edits = [edit(set)];
        two.plans()
            .edit_by(&id, &edits, &editing(version))
            .await
            .unwrap();
        let (read, head) = one.plans().load_review(&id).await.unwrap();
        let (folded, end) = one.journals().load_review(&id).await.unwrap();
        assert_eq!(read.current().number, version + 1);
        assert_eq!(read.current().document, folded.current().document);
        assert_eq!((head, read.seq()), (end, folded.seq()));
    }
    let second = one.plans().load_version(&before, 1).await.unwrap().unwrap();
    assert_eq!(second.document, before.current().document);
}
