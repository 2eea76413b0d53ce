//! Claims and answers of workers: each is one statement and one commit, also where the connection breaks in it.

use crate::alone::MARKS;
use crate::chains::{CANARIES, Chain, offer};
use crate::databases::Database;
use crate::faults::through;
use planwright_adapters::postgres::PostgresStore;
use planwright_core::digest::Digest;
use planwright_engine::port::{
    Append, ClaimedOffer, Journal as _, LeaseRule, OfferChange, OfferClaim, OfferState,
    Offers as _, OwnerId, WantedOffers,
};
use planwright_testing::postgres::server;
use planwright_testing::proxy::{CommitCut, Proxy};
use std::time::Duration;

async fn make_offers(store: &PostgresStore, steps: &[String]) -> Chain {
    let mut run = Chain::of("run/r");
    run.open(store, "opened").await;
    let made = steps.iter().map(|step| offer(run.run(), step));
    let made: Vec<_> = made
        .map(|offer| OfferChange::Make(Box::new(offer)))
        .collect();
    let append = Append {
        lease: LeaseRule::Held { epoch: 1 },
        offers: made,
        ..run.grow("started")
    };
    store.append(vec![append]).await.unwrap();
    run
}

async fn claim(store: &PostgresStore) -> Option<ClaimedOffer> {
    claim_with(store, "billing").await
}

async fn claim_with(store: &PostgresStore, capability: &str) -> Option<ClaimedOffer> {
    let wanted = WantedOffers {
        worker: OwnerId("worker".to_owned()),
        capabilities: vec![capability.to_owned()],
        definitions: vec![Digest::of_bytes(CANARIES[18].as_bytes())],
        only: None,
        ttl: Duration::from_secs(60),
    };
    store.claim_offer(wanted).await.unwrap()
}

/// Has the connection prepare both statements, with a claim that is of no use and one that finds nothing.
async fn use_often(store: &PostgresStore, over: &OfferClaim) {
    for _ in 0..6 {
        assert_eq!(claim_with(store, "mail").await, None);
        let late = store.answer_offer(over, b"late".to_vec());
        late.await.unwrap_err();
    }
}

/// Sent by their texts, and prepared.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_is_made_once_though_the_connection_breaks() {
    const TURNS: usize = 8;
    let database = Database::new();
    let steps: Vec<String> = (0..TURNS).map(|turn| format!("s{turn}")).collect();
    let run = make_offers(&database.open(), &steps).await;
    let over = OfferClaim {
        key: offer(run.run(), "none").key,
        worker: OwnerId("worker".to_owned()),
        number: 1,
    };
    let proxy = Proxy::start(server().port());
    let store = through(&proxy, &database);
    let cuts = [CommitCut::After, CommitCut::Before];
    for (turn, step) in steps.iter().enumerate() {
        let is_prepared = turn >= TURNS / 2;
        if is_prepared {
            use_often(&store, &over).await;
        }
        proxy.cut_next_commit(cuts[turn % 2]);
        let claimed = claim(&store).await.unwrap();
        assert_eq!(claimed.offer, offer(run.run(), step));
        assert_eq!(proxy.cuts(), 2 * turn + 1, "the claim was not cut");
        if is_prepared {
            use_often(&store, &over).await;
        }
        proxy.cut_next_commit(cuts[turn % 2]);
        let answered = store.answer_offer(&claimed.claim, step.clone().into_bytes());
        answered.await.unwrap();
        assert_eq!(proxy.cuts(), 2 * turn + 2, "the answer was not cut");
    }
    assert_eq!(claim(&store).await, None);
    let found = store.offers(run.run()).await.unwrap();
    for (step, (_, state)) in steps.iter().zip(found) {
        assert_eq!(state, OfferState::Answered(step.clone().into_bytes()));
    }
}

#[tokio::test]
async fn a_worker_that_finds_nothing_commits_nothing() {
    let database = Database::new();
    let store = database.open();
    let run = make_offers(&store, &["a".to_owned()]).await;
    let marks = || database.sql(MARKS).parse::<u32>().unwrap();
    let before = marks();
    let claimed = claim(&store).await.unwrap();
    assert_eq!(marks(), before + 1, "the claim");
    for _ in 0..10 {
        assert_eq!(claim(&store).await, None);
    }
    assert_eq!(marks(), before + 1);
    store
        .answer_offer(&claimed.claim, b"x".to_vec())
        .await
        .unwrap();
    let late = store.answer_offer(&claimed.claim, b"y".to_vec());
    late.await.unwrap_err();
    assert_eq!(marks(), before + 2, "the answer");
    let found = store.offers(run.run()).await.unwrap();
    assert_eq!(found[0].1, OfferState::Answered(b"x".to_vec()));
}
