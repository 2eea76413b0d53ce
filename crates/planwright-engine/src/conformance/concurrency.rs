//! Many at once: races have one winner, and bystanders are not hurt.

use super::fixture::{Chain, LONG, Subject, bodies, owner};
use crate::port::{AcquireError, AppendError, LeaseRule};
use futures::future::join_all;
use planwright_core::journal::{Head, check_chain};
use std::collections::BTreeSet;
use std::sync::Arc;

const MANY: usize = 32;

/// Runs `MANY` tasks made by `task` at the same time.
async fn all<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    task: impl Fn(usize) -> F,
) -> Vec<T> {
    let tasks: Vec<_> = (0..MANY).map(|number| tokio::spawn(task(number))).collect();
    join_all(tasks)
        .await
        .into_iter()
        .map(|done| done.unwrap())
        .collect()
}

pub async fn one_of_many_appenders_wins(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    let results = all(|number| {
        let store = Arc::clone(&store);
        let mut chain = chain.clone();
        async move {
            store
                .append(vec![chain.grow(&[&format!("two by {number}")])])
                .await
        }
    });
    let results = results.await;
    assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 1);
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    assert!(
        refused
            .into_iter()
            .all(|error| matches!(error, AppendError::Conflict { .. }))
    );
    assert_eq!(bodies(&store, &chain.stream).await.len(), 2);
}

pub async fn many_streams_grow_at_once(store: Subject) {
    let chains = all(|number| {
        let store = Arc::clone(&store);
        async move {
            let mut chain = Chain::of(&format!("run/r{number}"));
            chain.open(&store, &format!("owner-{number}"), LONG).await;
            for step in 0..20 {
                chain
                    .put(
                        &store,
                        &format!("step {step} of {number}"),
                        LeaseRule::Held { epoch: 1 },
                    )
                    .await;
            }
            chain
        }
    });
    for chain in chains.await {
        let records = store.read(&chain.stream, 0, 100).await.unwrap();
        assert_eq!(records.len(), 21);
        assert_eq!(
            check_chain(Head::EMPTY, &chain.stream, &records),
            Ok(chain.head)
        );
    }
}

pub async fn one_of_many_acquirers_wins(store: Subject) {
    let mut chain = Chain::of("run/r");
    chain.put(&store, "imported", LeaseRule::None).await;
    let results = all(|number| {
        let store = Arc::clone(&store);
        let run = chain.run().clone();
        async move {
            store
                .acquire(&run, &owner(&format!("owner-{number}")), LONG)
                .await
        }
    });
    let results = results.await;
    let won: Vec<_> = results
        .iter()
        .filter_map(|result| result.as_ref().ok())
        .collect();
    assert_eq!(won.len(), 1);
    assert_eq!(
        store.lease(chain.run()).await.unwrap().as_ref(),
        Some(won[0])
    );
    let refused = results.iter().filter_map(|result| result.as_ref().err());
    assert!(
        refused
            .into_iter()
            .all(|error| matches!(error, AcquireError::Held { .. }))
    );
}

pub async fn messages_sent_at_once_are_all_kept(store: Subject) {
    let chain = Chain::of("run/r");
    let ids = all(|number| {
        let store = Arc::clone(&store);
        let run = chain.run().clone();
        async move {
            store
                .send(&run, number.to_string().into_bytes())
                .await
                .unwrap()
        }
    });
    let ids: BTreeSet<_> = ids.await.into_iter().collect();
    assert_eq!(ids.len(), MANY);
    let found = store.messages(chain.run()).await.unwrap();
    assert_eq!(
        found.iter().map(|message| message.id).collect::<Vec<_>>(),
        ids.into_iter().collect::<Vec<_>>()
    );
}

pub async fn a_refused_append_does_not_spoil_the_others(store: Subject) {
    let results = all(|number| {
        let store = Arc::clone(&store);
        async move {
            let mut chain = Chain::of(&format!("plan/p{number}"));
            if number % 3 == 0 {
                let _never_sent = chain.grow(&["never"]);
            }
            let twice = number % 3 == 1;
            let keys = [
                (Some("k"), "one"),
                (if twice { Some("k") } else { None }, "two"),
            ];
            let result = store.append(vec![chain.grow_keyed(&keys)]).await;
            (number, chain, result)
        }
    });
    for (number, chain, result) in results.await {
        assert_eq!(result.is_ok(), number % 3 == 2, "{number}: {result:?}");
        let expected = if number % 3 == 2 {
            chain.head
        } else {
            Head::EMPTY
        };
        assert_eq!(store.head(&chain.stream).await.unwrap(), expected);
    }
}

pub async fn readers_see_only_whole_appends(store: Subject) {
    let chain = Chain::of("plan/p");
    let writer = {
        let store = Arc::clone(&store);
        let mut chain = chain.clone();
        tokio::spawn(async move {
            for _ in 0..50 {
                store
                    .append(vec![chain.grow(&["one", "two", "three"])])
                    .await
                    .unwrap();
            }
        })
    };
    while !writer.is_finished() {
        let records = store.read(&chain.stream, 0, 1_000).await.unwrap();
        assert_eq!(records.len() % 3, 0, "an append was seen in part");
        check_chain(Head::EMPTY, &chain.stream, &records).unwrap();
        tokio::task::yield_now().await;
    }
    writer.await.unwrap();
}
