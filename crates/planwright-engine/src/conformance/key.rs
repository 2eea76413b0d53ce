//! What may happen only once has a key, and the store refuses it the second time.

use super::fixture::{Chain, Subject, bodies};
use crate::port::AppendError;
use planwright_core::journal::Head;

pub async fn a_key_is_taken_once_in_its_stream(store: Subject) {
    let mut chain = Chain::of("run/r");
    store
        .append(vec![chain.grow_keyed(&[(Some("step/done"), "one")])])
        .await
        .unwrap();
    let head = chain.head;
    let refused = store
        .append(vec![chain.grow_keyed(&[(Some("step/done"), "two")])])
        .await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), head);
}

pub async fn a_duplicate_names_the_key(store: Subject) {
    let mut chain = Chain::of("run/r");
    store
        .append(vec![
            chain.grow_keyed(&[(Some("a"), "one"), (Some("b"), "two")]),
        ])
        .await
        .unwrap();
    match store
        .append(vec![
            chain.grow_keyed(&[(Some("c"), "three"), (Some("b"), "four")]),
        ])
        .await
    {
        Err(AppendError::Duplicate { stream, key }) => {
            assert_eq!((stream, key.as_str()), (chain.stream, "b"));
        }
        other => panic!("expected a duplicate, got {other:?}"),
    }
}

pub async fn the_same_key_is_free_in_other_streams(store: Subject) {
    for name in ["run/a", "run/b", "plan/a"] {
        let mut chain = Chain::of(name);
        store
            .append(vec![chain.grow_keyed(&[(Some("k"), "one")])])
            .await
            .unwrap();
    }
}

pub async fn a_key_twice_in_one_append_is_refused(store: Subject) {
    let mut chain = Chain::of("run/r");
    let refused = store
        .append(vec![
            chain.grow_keyed(&[(Some("k"), "one"), (Some("k"), "two")]),
        ])
        .await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
}

pub async fn a_key_twice_in_one_call_is_refused(store: Subject) {
    let mut chain = Chain::of("run/r");
    let appends = vec![
        chain.grow_keyed(&[(Some("k"), "one")]),
        chain.grow_keyed(&[(Some("k"), "two")]),
    ];
    let refused = store.append(appends).await;
    assert!(
        matches!(refused, Err(AppendError::Duplicate { .. })),
        "{refused:?}"
    );
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
}

pub async fn records_without_keys_never_collide(store: Subject) {
    let mut chain = Chain::of("run/r");
    store
        .append(vec![chain.grow(&["same", "same"])])
        .await
        .unwrap();
    store.append(vec![chain.grow(&["same"])]).await.unwrap();
    assert_eq!(
        bodies(&store, &chain.stream).await,
        ["same", "same", "same"]
    );
}
