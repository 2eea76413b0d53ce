//! What time does to plans and runs, and how people go on from there.

use crate::world::{World, after, approved, chain, document, entries, options, person, report_of};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::run::{Run, RunEvent, Shown};
use planwright_engine::port::{Clock as _, OwnerId};
use planwright_engine::{Engine, MaintenanceNotice, NewComment, Retention, RunCommand};
use serde_json::{Map, json};
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};

const DAY: u64 = 24 * 60 * 60 * 1000;
const HOUR: u64 = 60 * 60 * 1000;

fn keeping(world: &World, name: &str, keeping: Retention) -> Engine {
    world
        .builder(name)
        .store(world.store.clone(), world.artifacts.clone())
        .retention(keeping)
        .build()
}

async fn status(engine: &Engine, plan: &PlanId) -> String {
    let (review, _) = engine.plans().load_review(plan).await.unwrap();
    engine
        .plans()
        .status(&review)
        .await
        .unwrap()
        .as_str()
        .to_owned()
}

async fn reload(engine: &Engine, run: &RunId) -> Run {
    let plan = engine.journals().plan_of_run(run).await.unwrap();
    let (review, _) = engine.plans().load_review(&plan).await.unwrap();
    engine.runs().load_run(run, &review).await.unwrap().0
}

#[tokio::test(start_paused = true)]
async fn a_plan_that_nobody_touched_expires_once_and_a_new_proposal_brings_it_back() {
    let world = World::new();
    let engine = world.engine("one");
    let (review, _) = engine
        .plans()
        .propose(document(chain(1, "r.read", 1)), &person())
        .await
        .unwrap();
    let plan = review.id().clone();
    after(29 * DAY).await;
    let report = engine.maintenance().run_maintenance().await.unwrap();
    assert!(report.notices.is_empty());
    assert!(
        report.next_at.is_some(),
        "it is known when the plan expires"
    );

    // A comment touches it.
    engine
        .plans()
        .comment(
            &plan,
            NewComment {
                text: "soon".into(),
                ..NewComment::default()
            },
            &person(),
        )
        .await
        .unwrap();
    after(29 * DAY).await;
    assert!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices
            .is_empty()
    );
    after(DAY).await;
    let two = world.engine("two");
    let three = world.engine("three");
    let (first, second) =
        tokio::join!(async { two.maintenance().run_maintenance().await }, async {
            three.maintenance().run_maintenance().await
        });
    let mut notices = first.unwrap().notices;
    notices.extend(second.unwrap().notices);
    assert_eq!(
        notices,
        [MaintenanceNotice::PlanExpired {
            plan: plan.clone(),
            after_days: 30
        }],
        "noted once"
    );
    assert_eq!(status(&engine, &plan).await, "expired");
    let refused = engine
        .plans()
        .approve(
            &plan,
            &Map::new(),
            Shown::Version(1),
            &person(),
            Assurance::Terminal,
        )
        .await;
    assert_eq!(
        refused.unwrap_err().to_string(),
        "the plan expired because it was not touched for too long: propose it again"
    );
    let (review, _) = engine
        .plans()
        .propose(document(chain(1, "r.read", 1)), &person())
        .await
        .unwrap();
    assert_eq!(
        (
            review.current().number,
            status(&engine, &plan).await.as_str()
        ),
        (2, "proposed")
    );
}

#[tokio::test(start_paused = true)]
async fn templates_and_plans_that_ran_do_not_expire() {
    let world = World::new();
    let engine = world.engine("one");
    let template =
        json!({"id": "t", "inputs": {"type": "object"}, "steps": [{"id": "a", "tool": "r.read"}]});
    engine
        .plans()
        .propose(document(template), &person())
        .await
        .unwrap();
    let plan = approved(&engine, chain(1, "r.read", 1)).await;
    engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    after(400 * DAY).await;
    assert!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices
            .is_empty()
    );
    assert_eq!(status(&engine, &plan).await, "completed");
}

#[tokio::test(start_paused = true)]
async fn zero_days_mean_never() {
    let world = World::new();
    let never = Retention {
        stale_after_days: 0,
        ..Retention::default()
    };
    let engine = keeping(&world, "one", never);
    engine
        .plans()
        .propose(document(chain(1, "r.read", 1)), &person())
        .await
        .unwrap();
    after(4000 * DAY).await;
    assert_eq!(
        engine.maintenance().run_maintenance().await.unwrap(),
        planwright_engine::MaintenanceReport::default()
    );
}

#[tokio::test(start_paused = true)]
async fn an_approval_that_was_not_used_in_time_expires_which_is_not_a_denial() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"expires_after": "2h"}}));
    let plan = approved(&engine, chain(1, "w.write", 1)).await;
    after(HOUR).await;
    let report = engine.maintenance().run_maintenance().await.unwrap();
    assert!(report.notices.is_empty() && report.next_at.is_some());
    after(HOUR).await;
    let report = engine.maintenance().run_maintenance().await.unwrap();
    assert_eq!(
        report.notices,
        [MaintenanceNotice::ApprovalExpired { plan: plan.clone() }]
    );
    assert_eq!(
        status(&engine, &plan).await,
        "proposed",
        "not rejected: it can be approved again"
    );
    assert!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices
            .is_empty()
    );
    let refused = engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap_err()
        .to_string();
    assert!(refused.starts_with("the approval expired at"), "{refused}");
    engine
        .plans()
        .approve(
            &plan,
            &Map::new(),
            Shown::Version(1),
            &person(),
            Assurance::Terminal,
        )
        .await
        .unwrap();
    engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap()
}

/// A run whose owner dies in the middle of a call; then what `then` does in another process.
fn abandoned(tool: &str, then: impl AsyncFn(World, PlanId, RunId)) {
    let runtime_of_owner = runtime();
    let (world, plan, run, at) = runtime_of_owner.block_on(async {
        let world = World::new();
        let one = world.engine("one");
        let plan = approved(&one, chain(3, tool, 10_000)).await;
        let handle = one.runs().start(&plan, options()).await.unwrap();
        after(15_000).await;
        (
            world.clone(),
            plan,
            handle.run_id().clone(),
            world.clock.now(),
        )
    });
    drop(runtime_of_owner);
    world.store.kill_owner(&OwnerId("one".into()));
    runtime().block_on(async {
        world.clock.carry_over(at);
        then(world, plan, run).await;
    });
}

#[test]
fn a_run_that_nobody_executes_is_stalled_and_resuming_clears_it() {
    abandoned("r.read", async |world, plan, run| {
        let two = world.engine("two");
        after(20 * 60_000).await;
        assert!(
            two.maintenance()
                .run_maintenance()
                .await
                .unwrap()
                .notices
                .is_empty(),
            "not yet"
        );
        after(11 * 60_000).await;
        let notices = two.maintenance().run_maintenance().await.unwrap().notices;
        let [
            MaintenanceNotice::RunStalled {
                completed: 1,
                steps: 3,
                ..
            },
        ] = notices.as_slice()
        else {
            panic!("{notices:?}")
        };
        assert!(
            two.maintenance()
                .run_maintenance()
                .await
                .unwrap()
                .notices
                .is_empty(),
            "noted once"
        );
        assert_eq!(status(&two, &plan).await, "stalled");
        assert!(matches!(
            entries(&*world.store, &run).last().unwrap().event,
            RunEvent::RunStalled { .. }
        ));
        assert!(!two.runs().is_executed(&run).await.unwrap());

        let resumed = two
            .runs()
            .resume(&plan, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(resumed.status().as_str(), "completed");
        let resumed = entries(&*world.store, &run);
        assert!(
            resumed
                .iter()
                .any(|entry| matches!(entry.event, RunEvent::RunResumed { .. }))
        );
    });
}

#[test]
fn a_stalled_run_can_be_failed_or_cancelled() {
    for (command, ends) in [
        (
            RunCommand::GiveUp {
                by: person(),
                reason: "the host is gone".into(),
            },
            "failed",
        ),
        (RunCommand::Cancel { by: person() }, "cancelled"),
    ] {
        abandoned("r.read", async |world, plan, run| {
            let two = world.engine("two");
            after(HOUR).await;
            assert_eq!(
                two.maintenance()
                    .run_maintenance()
                    .await
                    .unwrap()
                    .notices
                    .len(),
                1
            );
            two.runs().command(&run, command.clone()).await.unwrap();
            assert_eq!(status(&two, &plan).await, ends);
            let ended = reload(&two, &run).await;
            assert!(ended.state().is_terminal());
            let unfinished = report_of(&ended, "s3");
            assert_eq!(unfinished.status.as_str(), "cancelled");
            if ends == "failed" {
                let reason = unfinished.error.unwrap().message;
                assert_eq!(
                    reason,
                    "not run: person ada gave the run up: the host is gone"
                );
            }
            let again = RunCommand::GiveUp {
                by: person(),
                reason: String::new(),
            };
            let refused = two
                .runs()
                .command(&run, again)
                .await
                .unwrap_err()
                .to_string();
            assert!(refused.starts_with("the run has ended"), "{refused}");
        });
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_in_flight_is_not_given_up_under_its_owner() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = approved(&engine, chain(1, "r.read", 10_000)).await;
    let mut handle = engine.runs().start(&plan, options()).await.unwrap();
    after(1000).await;
    let command = RunCommand::GiveUp {
        by: person(),
        reason: String::new(),
    };
    let refused = engine
        .runs()
        .command(handle.run_id(), command)
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "the run is being executed (1 call is in flight): cancel it instead"
    );
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
}

#[tokio::test(start_paused = true)]
async fn a_run_with_a_living_owner_is_never_stalled() {
    let world = World::new();
    let one = world.engine("one");
    let plan = approved(&one, chain(1, "r.read", 10 * HOUR)).await;
    let mut handle = one.runs().start(&plan, options()).await.unwrap();
    for _ in 0..5 {
        after(HOUR).await;
        assert!(
            world
                .engine("two")
                .maintenance()
                .run_maintenance()
                .await
                .unwrap()
                .notices
                .is_empty()
        );
    }
    assert_eq!(handle.wait().await.unwrap().status().as_str(), "completed");
}

#[test]
fn an_unsafe_call_of_a_stalled_run_is_not_made_again_by_itself() {
    abandoned("w.write", async |world, plan, _| {
        let two = world.engine("two");
        after(HOUR).await;
        assert_eq!(
            two.maintenance()
                .run_maintenance()
                .await
                .unwrap()
                .notices
                .len(),
            1
        );
        let resumed = two
            .runs()
            .resume(&plan, options())
            .await
            .unwrap()
            .wait()
            .await
            .unwrap();
        assert_eq!(
            (
                resumed.status().as_str(),
                report_of(&resumed, "s2").status.as_str()
            ),
            ("waiting", "outcome_unknown")
        );
        assert_eq!(world.calls_of("s2"), 1);
    });
}

#[tokio::test(start_paused = true)]
async fn a_step_that_nobody_approved_in_time_fails_although_nobody_executes_the_run() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"step_expires_after": "1h"}}));
    let gated =
        json!({"id": "p", "steps": [{"id": "gate", "tool": "r.read", "approvalRequired": true}]});
    let plan = approved(&engine, gated).await;
    let run = engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    assert_eq!(run.status().as_str(), "waiting");
    after(2 * HOUR).await;
    let notices = engine
        .maintenance()
        .run_maintenance()
        .await
        .unwrap()
        .notices;
    let expected = MaintenanceNotice::StepExpired {
        plan: plan.clone(),
        run: run.id().clone(),
        step: "gate".to_owned(),
    };
    assert_eq!(notices, [expected]);
    assert_eq!(status(&engine, &plan).await, "failed");
    let error = report_of(&reload(&engine, run.id()).await, "gate")
        .error
        .unwrap();
    assert_eq!(
        error.code.as_str(),
        "approval_expired",
        "which is not `denied`"
    );
}

#[tokio::test(start_paused = true)]
async fn what_is_over_is_put_away_and_deleted_when_its_time_has_come() {
    let world = World::new();
    let rules = Retention {
        archive_after: Some(std::time::Duration::from_hours(7 * 24)),
        delete_after: Some(std::time::Duration::from_hours(30 * 24)),
        ..Retention::default()
    };
    let engine = keeping(&world, "one", rules);
    let plan = approved(&engine, chain(1, "r.read", 1)).await;
    let refused = engine.plans().archive(&plan, &person()).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the plan is approved: only a finished plan can be archived"
    );
    engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    after(6 * DAY).await;
    assert!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices
            .is_empty()
    );
    after(2 * DAY).await;
    assert_eq!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices,
        [MaintenanceNotice::PlanArchived { plan: plan.clone() }]
    );
    let info = engine
        .journals()
        .info(&StreamName::Plan(plan.clone()))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(info.status.status.as_str(), "archived");
    let refused = engine.runs().start(&plan, options()).await.unwrap_err();
    assert_eq!(refused.to_string(), "the plan is archived");
    engine.plans().unarchive(&plan, &person()).await.unwrap();
    assert_eq!(status(&engine, &plan).await, "completed");
    engine.plans().archive(&plan, &person()).await.unwrap();
    after(31 * DAY).await;
    assert_eq!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices,
        [MaintenanceNotice::PlanDeleted { plan: plan.clone() }]
    );
    assert_eq!(status(&engine, &plan).await, "deleted");
    assert!(
        engine
            .maintenance()
            .run_maintenance()
            .await
            .unwrap()
            .notices
            .is_empty()
    );
}

#[tokio::test(start_paused = true)]
async fn changes_can_be_asked_for_without_a_rejection() {
    let world = World::new();
    let engine = world.engine("one");
    let plan = approved(&engine, chain(1, "w.write", 1)).await;
    let agent = Principal::agent("planner");
    let refused = engine
        .plans()
        .request_changes(&plan, Shown::Version(1), &agent, "no")
        .await
        .unwrap_err();
    assert!(refused.to_string().contains("may not approve"), "{refused}");
    let review = engine
        .plans()
        .request_changes(&plan, Shown::Version(1), &person(), "name the file")
        .await
        .unwrap();
    assert_eq!(status(&engine, &plan).await, "changes_requested");
    assert_eq!(
        (review.rejections().len(), review.change_requests().len()),
        (0, 1)
    );
    let refused = engine
        .runs()
        .start(&plan, options())
        .await
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "changes were requested: edit the plan and propose it again"
    );
    engine
        .plans()
        .propose(document(chain(2, "w.write", 1)), &agent)
        .await
        .unwrap();
    assert_eq!(status(&engine, &plan).await, "proposed");
}

#[tokio::test(start_paused = true)]
async fn open_threads_block_an_approval_where_the_policy_says_so() {
    let world = World::new();
    let engine = world.engine_under("one", json!({"approval": {"open_comments": "block"}}));
    let (review, _) = engine
        .plans()
        .propose(document(chain(1, "w.write", 1)), &person())
        .await
        .unwrap();
    let plan = review.id().clone();
    let agent = Principal::agent("planner");
    let on = Some("s1".to_owned());
    let new = NewComment {
        on,
        text: "is this safe?".into(),
        ..NewComment::default()
    };
    let (comment, _) = engine.plans().comment(&plan, new, &agent).await.unwrap();
    let nothing = Map::new();
    let ada = person();
    let plans = engine.plans();
    let approve = || {
        plans.approve(
            &plan,
            &nothing,
            Shown::Version(1),
            &ada,
            Assurance::Terminal,
        )
    };
    let refused = approve().await.unwrap_err().to_string();
    assert_eq!(
        refused,
        format!("1 comment is left to discuss, the first of them {comment}")
    );
    engine
        .plans()
        .resolve_comment(&plan, comment.as_str(), &person())
        .await
        .unwrap();
    engine
        .plans()
        .reopen_comment(&plan, comment.as_str(), &agent)
        .await
        .unwrap();
    engine
        .plans()
        .resolve_comment(&plan, comment.as_str(), &agent)
        .await
        .unwrap();
    approve().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_supervisor_notes_what_is_due() {
    use planwright_engine::{Supervisor, SupervisorOptions};
    let world = World::new();
    let keeper = keeping(
        &world,
        "one",
        Retention {
            stale_after_days: 1,
            stalled_after: Duration::from_mins(1),
            ..Retention::default()
        },
    );
    let (review, _) = keeper
        .plans()
        .propose(document(chain(1, "r.read", 1)), &person())
        .await
        .unwrap();
    let supervisor = Supervisor::start(keeper.clone(), &SupervisorOptions::default());
    after(2 * DAY).await;
    assert_eq!(status(&keeper, review.id()).await, "expired");
    drop(supervisor);
}
