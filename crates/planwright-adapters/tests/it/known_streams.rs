//! The writer remembers the streams that it wrote last, and nobody can tell.

use crate::scene::{Chain, LONG, Scene, owner};
use planwright_engine::port::{Append, AppendError, Journal as _, LeaseRule, Leases as _};

const HELD: LeaseRule = LeaseRule::Held { epoch: 1 };

#[tokio::test]
async fn an_owner_that_was_replaced_by_another_process_is_fenced_at_its_next_append() {
    let scene = Scene::new();
    let (store, other) = (scene.open(), scene.open());
    let mut chain = Chain::of("run/r");
    chain.open(&store, "first", std::time::Duration::ZERO).await;
    chain.try_put(&store, HELD).await.unwrap();
    let lease = other.acquire(chain.run(), &owner("second"), LONG).await;
    assert_eq!(lease.unwrap().epoch, 2);
    let refused = chain.try_put(&store, HELD).await;
    assert!(
        matches!(
            refused,
            Err(AppendError::Fenced {
                ours: 1,
                found: 2,
                ..
            })
        ),
        "{refused:?}"
    );
}

#[tokio::test]
async fn a_lease_that_was_given_back_holds_nothing() {
    let scene = Scene::new();
    let store = scene.open();
    for with_entry in [true, false] {
        let mut chain = Chain::of(&format!("run/{with_entry}"));
        chain.open(&store, "owner", LONG).await;
        chain.try_put(&store, HELD).await.unwrap();
        let release = LeaseRule::Release { epoch: 1 };
        if with_entry {
            chain.try_put(&store, release).await.unwrap();
        } else {
            let append = Append {
                lease: release,
                records: Vec::new(),
                ..chain.clone().grow(b"not written")
            };
            store.append(vec![append]).await.unwrap();
        }
        let refused = chain.try_put(&store, HELD).await;
        assert!(
            matches!(refused, Err(AppendError::Fenced { .. })),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn what_another_process_wrote_is_seen_by_the_next_append() {
    let scene = Scene::new();
    let (store, other) = (scene.open(), scene.open());
    let mut chain = Chain::of("run/r");
    chain.put(&store, "one").await;
    let mut stale = chain.clone();
    chain.put(&other, "two").await;
    let refused = stale.try_put(&store, LeaseRule::None).await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { .. })),
        "{refused:?}"
    );
    chain.put(&store, "three").await;
}

#[tokio::test]
async fn a_refused_request_leaves_nothing_to_remember() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    let mut other = Chain::of("run/other");
    chain.put(&store, "one").await;
    other.put(&store, "one").await;
    let stale = Chain::of("run/other").grow(b"again");
    let both = vec![chain.clone().grow(b"two"), stale];
    let refused = store.append(both).await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { .. })),
        "{refused:?}"
    );
    chain.put(&store, "another two").await;
    let records = store.read(&chain.stream, 0, 9).await.unwrap();
    assert_eq!(records, chain.records);
}

#[tokio::test]
async fn records_that_do_not_follow_are_refused_in_a_stream_that_is_known() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "one").await;
    let mut gap = chain.clone().grow(b"two");
    gap.records[0].seq += 1;
    let refused = store.append(vec![gap]).await;
    assert!(matches!(refused, Err(AppendError::Store(_))), "{refused:?}");
    chain.put(&store, "two").await;
}
