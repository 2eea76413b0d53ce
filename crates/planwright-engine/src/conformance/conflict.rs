//! The expected head decides who may append.

use super::fixture::{Chain, Subject, bodies};
use crate::port::{Append, AppendError, StoreError};
use planwright_core::digest::Digest;
use planwright_core::journal::Head;

async fn conflicts(store: &Subject, append: Append) -> Head {
    match store.append(vec![append]).await {
        Err(AppendError::Conflict { found, .. }) => found,
        other => panic!("expected a conflict, got {other:?}"),
    }
}

pub async fn a_head_with_another_number_conflicts(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store
        .append(vec![chain.grow(&["one", "two"])])
        .await
        .unwrap();
    let mut wrong = chain.clone();
    wrong.head.seq = 1;
    conflicts(&store, wrong.grow(&["x"])).await;
    wrong.head = Head {
        seq: 3,
        ..chain.head
    };
    conflicts(&store, wrong.grow(&["x"])).await;
    assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
}

pub async fn a_head_with_another_hash_conflicts(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    let mut wrong = chain.clone();
    wrong.head.hash = Digest::of_bytes(b"another");
    conflicts(&store, wrong.grow(&["x"])).await;
    assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
}

pub async fn beginning_a_stream_twice_conflicts(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let mut again = chain.clone();
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    conflicts(&store, again.grow(&["other"])).await;
    assert_eq!(bodies(&store, &chain.stream).await, ["one"]);
}

pub async fn expecting_records_in_an_empty_stream_conflicts(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let _never_sent = chain.grow(&["one"]);
    assert_eq!(conflicts(&store, chain.grow(&["two"])).await, Head::EMPTY);
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
}

pub async fn a_conflict_says_what_was_found(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let mut stale = chain.clone();
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    match store.append(vec![stale.grow(&["x"])]).await {
        Err(AppendError::Conflict {
            stream,
            expected,
            found,
        }) => {
            assert_eq!(
                (stream, expected, found),
                (chain.stream, Head::EMPTY, chain.head)
            );
        }
        other => panic!("expected a conflict, got {other:?}"),
    }
}

pub async fn a_stale_append_without_records_conflicts(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let stale = chain.nothing();
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    conflicts(&store, stale).await;
}

pub async fn records_that_do_not_follow_the_head_are_refused(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    let head = chain.head;
    let mut append = chain.grow(&["two", "three", "four"]);
    append.records.remove(1);
    let refused = store.append(vec![append]).await;
    assert!(
        matches!(refused, Err(AppendError::Store(StoreError::Failed(_)))),
        "{refused:?}"
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), head);
}

pub async fn a_refused_append_can_be_repeated_with_the_right_head(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let mut late = chain.clone();
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    late.head = conflicts(&store, late.clone().grow(&["two"])).await;
    store.append(vec![late.grow(&["two"])]).await.unwrap();
    assert_eq!(bodies(&store, &chain.stream).await, ["one", "two"]);
}

pub async fn the_second_of_two_appends_sees_the_first(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let mut twin = chain.clone();
    let appends = vec![chain.grow(&["one"]), twin.grow(&["also one"])];
    let refused = store.append(appends).await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
}
