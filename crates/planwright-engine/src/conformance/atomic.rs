//! All or nothing: a refusal leaves no trace.

use super::fixture::{Chain, LONG, Subject, bodies, owner, status};
use crate::port::{AcquireError, Append, AppendError, LeaseRule};
use planwright_core::journal::Head;

/// An append that conflicts whenever it is tried.
fn impossible() -> Append {
    let mut chain = Chain::of("plan/impossible");
    let _never_sent = chain.grow(&["never"]);
    chain.grow(&["impossible"])
}

pub async fn a_plan_and_a_run_are_written_together(store: Subject) {
    let mut plan = Chain::of("plan/p");
    let mut run = Chain::of("run/r");
    store
        .append(vec![plan.grow(&["run opened"]), run.grow(&["opened"])])
        .await
        .unwrap();
    assert_eq!(bodies(&store, &plan.stream).await, ["run opened"]);
    assert_eq!(bodies(&store, &run.stream).await, ["opened"]);
}

pub async fn a_run_is_opened_and_ended_in_one_call(store: Subject) {
    let mut parent = Chain::of("run/parent");
    parent.open(&store, "a", LONG).await;
    let mut run = Chain::of("run/r");
    let held = |append| Append {
        lease: LeaseRule::Held { epoch: 1 },
        ..append
    };
    let opened = Append {
        lease: LeaseRule::Open {
            owner: owner("a"),
            ttl: LONG,
        },
        status: status("p", "executing"),
        ..run.grow(&["opened", "started"])
    };
    let ended = Append {
        lease: LeaseRule::Release { epoch: 1 },
        status: status("p", "completed"),
        ..run.grow(&["ended"])
    };
    let first = held(parent.grow(&["decided"]));
    let second = held(parent.grow(&["decided again"]));
    let written = store.append(vec![first, opened, second, ended]).await;
    written.unwrap();
    assert_eq!(
        bodies(&store, &run.stream).await,
        ["opened", "started", "ended"]
    );
    assert_eq!(store.head(&parent.stream).await.unwrap(), parent.head);
    assert_eq!(store.lease(run.run()).await.unwrap(), None);
    let info = store.info(&run.stream).await.unwrap().unwrap();
    assert_eq!(Some(info.status), status("p", "completed"));
    let lease = store.acquire(run.run(), &owner("b"), LONG).await.unwrap();
    assert_eq!(lease.epoch, 2);
}

pub async fn a_conflict_in_the_second_append_takes_the_first_back(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    let head = chain.head;
    let refused = store.append(vec![chain.grow(&["two"]), impossible()]).await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), head);
    assert_eq!(bodies(&store, &chain.stream).await, ["one"]);
}

pub async fn a_duplicate_in_the_second_append_takes_the_first_back(store: Subject) {
    let mut one = Chain::of("plan/one");
    let mut two = Chain::of("plan/two");
    store
        .append(vec![two.grow_keyed(&[(Some("k"), "first")])])
        .await
        .unwrap();
    let refused = store
        .append(vec![
            one.grow(&["one"]),
            two.grow_keyed(&[(Some("k"), "second")]),
        ])
        .await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&one.stream).await.unwrap(), Head::EMPTY);
}

pub async fn a_fenced_second_append_takes_the_first_back(store: Subject) {
    let mut plan = Chain::of("plan/p");
    let mut run = Chain::of("run/r");
    run.open(&store, "a", LONG).await;
    let stale = Append {
        lease: LeaseRule::Held { epoch: 9 },
        ..run.grow(&["stale"])
    };
    let refused = store.append(vec![plan.grow(&["one"]), stale]).await;
    assert!(
        matches!(refused, Err(AppendError::Fenced { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&plan.stream).await.unwrap(), Head::EMPTY);
}

pub async fn a_refused_append_changes_no_status(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let begin = Append {
        status: status("p", "draft"),
        ..chain.grow(&["one"])
    };
    store.append(vec![begin]).await.unwrap();
    let change = Append {
        status: status("p", "approved"),
        ..chain.grow(&["two"])
    };
    store.append(vec![change, impossible()]).await.unwrap_err();
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    assert_eq!(info.status.status.as_str(), "draft");
    let new = Chain::of("plan/new");
    let begin = Append {
        status: status("new", "draft"),
        ..new.nothing()
    };
    store.append(vec![begin, impossible()]).await.unwrap_err();
    assert_eq!(store.plans().await.unwrap().len(), 1);
}

pub async fn a_refused_append_answers_no_message(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
    let answer = Append {
        answers: vec![(message, Ok(()))],
        ..chain.nothing()
    };
    store.append(vec![answer, impossible()]).await.unwrap_err();
    assert_eq!(store.answer(message).await.unwrap(), None);
    assert_eq!(store.messages(chain.run()).await.unwrap().len(), 1);
}

pub async fn a_refused_append_opens_no_lease(store: Subject) {
    let mut chain = Chain::of("run/r");
    let open = LeaseRule::Open {
        owner: owner("a"),
        ttl: LONG,
    };
    let open = Append {
        lease: open,
        ..chain.grow(&["opened"])
    };
    store.append(vec![open, impossible()]).await.unwrap_err();
    assert_eq!(store.lease(chain.run()).await.unwrap(), None);
    let absent = store.acquire(chain.run(), &owner("b"), LONG).await;
    assert!(
        matches!(absent, Err(AcquireError::NoSuchRun(_))),
        "{absent:?}"
    );
}

pub async fn a_refused_append_gives_no_lease_back(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    let release = Append {
        lease: LeaseRule::Release { epoch: 1 },
        ..chain.nothing()
    };
    store.append(vec![release, impossible()]).await.unwrap_err();
    assert!(store.lease(chain.run()).await.unwrap().is_some());
    chain
        .put(&store, "still held", LeaseRule::Held { epoch: 1 })
        .await;
}

pub async fn a_refused_append_claims_no_key(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let keyed = chain.grow_keyed(&[(Some("k"), "one")]);
    store
        .append(vec![keyed.clone(), impossible()])
        .await
        .unwrap_err();
    store.append(vec![keyed]).await.unwrap();
    assert_eq!(bodies(&store, &chain.stream).await, ["one"]);
}
