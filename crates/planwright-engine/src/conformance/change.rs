//! A task that waits for a change wakes up.

use super::fixture::{Chain, LONG, Subject, owner};
use crate::port::{Append, LeaseRule};
use std::time::Duration;
use tokio::sync::watch;

/// A bound for a broken store, not a pause: a sound one answers at once.
async fn wakes(changes: &mut watch::Receiver<u64>) {
    let woken = tokio::time::timeout(Duration::from_secs(10), changes.changed()).await;
    woken
        .expect("no waiter was woken")
        .expect("the store is alive");
}

pub async fn an_append_is_noticed(store: Subject) {
    let mut chain = Chain::of("run/r");
    let mut changes = store.changes();
    let mut others = store.changes();
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    wakes(&mut changes).await;
    wakes(&mut others).await;
}

pub async fn a_message_is_noticed(store: Subject) {
    let mut changes = store.changes();
    store
        .send(Chain::of("run/r").run(), b"pause".to_vec())
        .await
        .unwrap();
    wakes(&mut changes).await;
}

pub async fn an_answer_is_noticed(store: Subject) {
    let chain = Chain::of("run/r");
    let message = store.send(chain.run(), b"pause".to_vec()).await.unwrap();
    let mut changes = store.changes();
    let append = Append {
        answers: vec![(message, Ok(()))],
        ..chain.nothing()
    };
    store.append(vec![append]).await.unwrap();
    wakes(&mut changes).await;
}

pub async fn a_takeover_is_noticed(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.open(&store, "a", LONG).await;
    chain
        .put(&store, "done", LeaseRule::Release { epoch: 1 })
        .await;
    let mut changes = store.changes();
    store.acquire(chain.run(), &owner("b"), LONG).await.unwrap();
    wakes(&mut changes).await;
}

pub async fn what_is_written_about_a_plan_is_counted_when_it_is_acknowledged(store: Subject) {
    let mut chain = Chain::of("plan/p");
    for text in ["one", "two"] {
        let before = store.plan_changes();
        store.append(vec![chain.grow(&[text])]).await.unwrap();
        let after = store.plan_changes();
        assert!(before.is_none() || after.is_none() || before != after);
    }
}
