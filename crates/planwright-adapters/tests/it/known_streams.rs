//! The writer remembers the streams that it wrote last, and nobody can tell.

use crate::scene::{Chain, LONG, Scene, owner};
use planwright_adapters::sqlite::SqliteStore;
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

/// How a lease is given back.
#[derive(Debug, Clone, Copy)]
enum Release {
    WithEntry,
    WithoutEntry,
    ByItself,
}

async fn give_back(store: &SqliteStore, chain: &mut Chain, how: Release) {
    let release = LeaseRule::Release { epoch: 1 };
    match how {
        Release::WithEntry => chain.try_put(store, release).await.unwrap(),
        Release::WithoutEntry => {
            let append = Append {
                lease: release,
                records: Vec::new(),
                ..chain.clone().grow(b"not written")
            };
            store.append(vec![append]).await.unwrap();
        }
        Release::ByItself => {
            let lease = store.lease(chain.run()).await.unwrap().unwrap();
            store.release(&lease).await.unwrap();
        }
    }
}

#[tokio::test]
async fn a_lease_that_was_given_back_holds_nothing() {
    let scene = Scene::new();
    let store = scene.open();
    for how in [Release::WithEntry, Release::WithoutEntry, Release::ByItself] {
        let mut chain = Chain::of(&format!("run/{how:?}").to_lowercase());
        chain.open(&store, "owner", LONG).await;
        chain.try_put(&store, HELD).await.unwrap();
        give_back(&store, &mut chain, how).await;
        let refused = chain.try_put(&store, HELD).await;
        assert!(
            matches!(refused, Err(AppendError::Fenced { .. })),
            "{how:?}: {refused:?}"
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
    let mut ahead = chain.clone();
    let both = vec![ahead.grow(b"two"), stale];
    let refused = store.append(both).await;
    assert!(
        matches!(refused, Err(AppendError::Conflict { .. })),
        "{refused:?}"
    );
    // What was taken back is not there to be followed.
    let refused = store.append(vec![ahead.grow(b"three")]).await;
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
