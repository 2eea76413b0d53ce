//! The laws of [`RetentionStore`]: where a journal is changes nothing
//! for those who read it.

use super::fixture::Chain;
use crate::port::{
    Append, AppendError, Brought, FeedOf, Placed, Position, RetainError, RetentionStore, Store,
    StoreError, StreamStatus,
};
use planwright_core::journal::StreamName;
use planwright_core::principal::Principal;
use planwright_core::status::{CachedStatus, RunStatus};
use planwright_core::time::Timestamp;
use std::sync::Arc;

/// A store that bounds what it keeps.
pub trait BoundedStore: Store + RetentionStore {}

impl<T: Store + RetentionStore> BoundedStore for T {}

type Subject = Arc<dyn BoundedStore>;

/// Makes one test of every law.
#[macro_export]
macro_rules! retention_laws {
    ($make:ident) => {
        $crate::retention_laws! { @tests $make;
            a_sealed_journal_is_read_as_before,
            the_feed_is_the_same_when_journals_are_sealed,
            nothing_is_added_to_a_sealed_journal,
            a_restored_journal_grows_again,
            a_key_stays_taken_in_a_restored_journal,
            a_journal_that_has_grown_is_not_sealed,
            a_run_with_a_command_that_waits_is_not_sealed,
            positions_are_never_given_again,
            candidates_are_those_that_nothing_happened_to_for_longest,
            what_was_removed_is_forgotten,
            only_sealed_journals_are_removed,
            one_has_the_turn_at_a_time,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $law() {
                let (store, _alive) = $make();
                $crate::conformance::retention::$law(store).await;
            }
        )*
    };
}

const NOW: Timestamp = Timestamp::from_millis(9_000);

fn ended() -> CachedStatus {
    CachedStatus::Run(RunStatus::Completed)
}

fn status(status: CachedStatus) -> Option<StreamStatus> {
    Some(StreamStatus {
        plan: "p".parse().unwrap(),
        status,
        label: "a plan".to_owned(),
    })
}

async fn put(store: &Subject, append: Append) {
    store.append(vec![append]).await.unwrap();
}

/// A plan and two runs that take turns at being written.
async fn three(store: &Subject) -> [Chain; 3] {
    let mut chains = ["plan/p", "run/a", "run/b"].map(Chain::of);
    for round in 0..4 {
        for chain in &mut chains {
            let body = format!("{} {round}", chain.stream);
            let key = format!("key {round}");
            let append = Append {
                status: status(ended()),
                ..chain.grow_keyed(&[(Some(&key), &body), (None, "more")])
            };
            put(store, append).await;
        }
    }
    chains
}

async fn feed(store: &Subject, of: &FeedOf, page: usize) -> Vec<Placed> {
    let mut all: Vec<Placed> = Vec::new();
    loop {
        let after = all.last().map_or(Position(0), |last| last.position);
        let found = store.feed(of, after, page).await.unwrap();
        let is_last = found.len() < page;
        all.extend(found);
        if is_last {
            return all;
        }
    }
}

async fn seal(store: &Subject, chain: &Chain) {
    let sealed = store.seal(&chain.stream, chain.head, NOW).await.unwrap();
    assert_eq!(
        (sealed.stream, sealed.head),
        (chain.stream.clone(), chain.head)
    );
}

pub async fn a_sealed_journal_is_read_as_before(store: Subject) {
    let [_, a, b] = three(&store).await;
    let before = store.read(&a.stream, 0, 100).await.unwrap();
    assert_eq!(store.sealed(&a.stream).await.unwrap(), None);
    seal(&store, &a).await;
    assert_eq!(store.read(&a.stream, 0, 100).await.unwrap(), before);
    assert_eq!(store.read(&a.stream, 3, 2).await.unwrap(), before[3..5]);
    assert_eq!(store.read(&a.stream, 5, 2).await.unwrap(), before[5..7]);
    assert_eq!(store.read(&a.stream, 1, 2).await.unwrap(), before[1..3]);
    assert!(store.read(&a.stream, 8, 2).await.unwrap().is_empty());
    assert_eq!(store.head(&a.stream).await.unwrap(), a.head);
    let info = store.info(&a.stream).await.unwrap().unwrap();
    assert_eq!(info.status.status, ended());
    assert_eq!(store.runs(&"p".parse().unwrap()).await.unwrap().len(), 2);
    assert_eq!(store.head(&b.stream).await.unwrap(), b.head);
    let sealed = store.sealed(&a.stream).await.unwrap().unwrap();
    assert_eq!((sealed.head, sealed.sealed_at), (a.head, NOW));
}

pub async fn the_feed_is_the_same_when_journals_are_sealed(store: Subject) {
    let chains = three(&store).await;
    let plan = FeedOf::Plan("p".parse().unwrap());
    let before = (
        feed(&store, &FeedOf::All, 100).await,
        feed(&store, &plan, 100).await,
    );
    for chain in [&chains[1], &chains[0], &chains[2]] {
        let last = before
            .0
            .iter()
            .rfind(|placed| placed.stream == chain.stream);
        let last = last.map(|placed| placed.position);
        assert_eq!(store.last_position(&chain.stream).await.unwrap(), last);
        seal(&store, chain).await;
        assert_eq!(store.last_position(&chain.stream).await.unwrap(), last);
        for page in [1, 2, 3, 5, 100] {
            assert_eq!(
                feed(&store, &FeedOf::All, page).await,
                before.0,
                "page {page}"
            );
            assert_eq!(feed(&store, &plan, page).await, before.1, "page {page}");
        }
    }
    // A reader that has followed goes on where it was.
    let after = before.0[10].position;
    let rest = store.feed(&FeedOf::All, after, 100).await.unwrap();
    assert_eq!(rest, before.0[11..]);
    let mut late = Chain::of("run/late");
    put(&store, late.grow(&["one more"])).await;
    let end = before.0.last().unwrap().position;
    let rest = store.feed(&FeedOf::All, end, 100).await.unwrap();
    assert_eq!(rest.len(), 1);
    assert_eq!(rest[0].stream, late.stream);
}

pub async fn nothing_is_added_to_a_sealed_journal(store: Subject) {
    let [_, mut a, _] = three(&store).await;
    seal(&store, &a).await;
    let refused = store.append(vec![a.clone().grow(&["late"])]).await;
    assert!(
        matches!(&refused, Err(AppendError::Store(StoreError::Sealed { stream, .. })) if *stream == a.stream),
        "{refused:?}"
    );
    let again = store.seal(&a.stream, a.head, NOW).await;
    assert!(again.is_err(), "it is sealed already");
    assert_eq!(store.head(&a.stream).await.unwrap(), a.head);
    store.restore(&a.stream).await.unwrap();
    put(&store, a.grow(&["late"])).await;
}

pub async fn a_restored_journal_grows_again(store: Subject) {
    let [_, mut a, _] = three(&store).await;
    let before = feed(&store, &FeedOf::All, 100).await;
    seal(&store, &a).await;
    store.restore(&a.stream).await.unwrap();
    assert_eq!(store.sealed(&a.stream).await.unwrap(), None);
    assert_eq!(feed(&store, &FeedOf::All, 100).await, before);
    put(&store, a.grow(&["late"])).await;
    assert_eq!(store.head(&a.stream).await.unwrap(), a.head);
    assert_eq!(
        feed(&store, &FeedOf::All, 100).await.len(),
        before.len() + 1
    );
    let again = store.restore(&a.stream).await;
    assert!(matches!(again, Err(RetainError::NotSealed(_))), "{again:?}");
    seal(&store, &a).await;
    assert_eq!(store.read(&a.stream, 8, 9).await.unwrap().len(), 1);
}

pub async fn a_key_stays_taken_in_a_restored_journal(store: Subject) {
    let [_, mut a, _] = three(&store).await;
    seal(&store, &a).await;
    store.restore(&a.stream).await.unwrap();
    let twice = store
        .append(vec![a.grow_keyed(&[(Some("key 2"), "again")])])
        .await;
    assert!(
        matches!(twice, Err(AppendError::Duplicate { .. })),
        "{twice:?}"
    );
}

pub async fn a_journal_that_has_grown_is_not_sealed(store: Subject) {
    let [_, mut a, _] = three(&store).await;
    let known = a.head;
    put(&store, a.grow(&["late"])).await;
    let refused = store.seal(&a.stream, known, NOW).await;
    assert!(
        matches!(refused, Err(RetainError::Changed(_))),
        "{refused:?}"
    );
    assert_eq!(store.sealed(&a.stream).await.unwrap(), None);
    put(&store, a.grow(&["later"])).await;
}

pub async fn a_run_with_a_command_that_waits_is_not_sealed(store: Subject) {
    let [_, a, _] = three(&store).await;
    let message = store.send(a.run(), b"pause".to_vec()).await.unwrap();
    let refused = store.seal(&a.stream, a.head, NOW).await;
    assert!(
        matches!(refused, Err(RetainError::Changed(_))),
        "{refused:?}"
    );
    let answered = Append {
        answers: vec![(message, Ok(()))],
        ..a.nothing()
    };
    put(&store, answered).await;
    seal(&store, &a).await;
}

pub async fn positions_are_never_given_again(store: Subject) {
    let chains = three(&store).await;
    for chain in &chains {
        seal(&store, chain).await;
    }
    let last = feed(&store, &FeedOf::All, 100)
        .await
        .last()
        .unwrap()
        .position;
    let streams: Vec<StreamName> = chains.iter().map(|chain| chain.stream.clone()).collect();
    store.remove(&streams, NOW).await.unwrap();
    let mut next = Chain::of("run/next");
    put(&store, next.grow(&["one"])).await;
    let found = feed(&store, &FeedOf::All, 100).await;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].position, Position(last.0 + 1));
}

pub async fn candidates_are_those_that_nothing_happened_to_for_longest(store: Subject) {
    for (name, at, word) in [
        ("run/late", 30, ended()),
        ("run/early", 10, ended()),
        ("run/live", 5, CachedStatus::Run(RunStatus::Paused)),
        ("run/middle", 20, CachedStatus::Run(RunStatus::Failed)),
        ("plan/p", 1, CachedStatus::Archived),
    ] {
        let mut chain = Chain::of(name);
        chain.at = Timestamp::from_millis(at);
        put(
            &store,
            Append {
                status: status(word),
                ..chain.grow(&["one"])
            },
        )
        .await;
        if name == "run/early" {
            seal(&store, &chain).await;
            store.restore(&chain.stream).await.unwrap();
        }
    }
    let words = [ended(), CachedStatus::Run(RunStatus::Failed)];
    let until = Timestamp::from_millis(20);
    let names = |found: Vec<crate::port::StreamInfo>| -> Vec<String> {
        found.iter().map(|info| info.stream.to_string()).collect()
    };
    let found = store.unsealed(&words, until, None, 9).await.unwrap();
    let cursor = (found[0].updated_at, found[0].stream.clone());
    assert_eq!(names(found), ["run/early", "run/middle"]);
    let found = store.unsealed(&words, until, None, 1).await.unwrap();
    assert_eq!(names(found), ["run/early"]);
    let found = store
        .unsealed(&words, until, Some(cursor), 9)
        .await
        .unwrap();
    assert_eq!(names(found), ["run/middle"]);
    let early: StreamName = "run/early".parse().unwrap();
    let head = store.head(&early).await.unwrap();
    store.seal(&early, head, NOW).await.unwrap();
    let found = store.unsealed(&words, until, None, 9).await.unwrap();
    assert_eq!(names(found), ["run/middle"]);
    let away = [CachedStatus::Archived];
    let found = store.unsealed(&away, until, None, 9).await.unwrap();
    assert_eq!(names(found), ["plan/p"]);
}

pub async fn what_was_removed_is_forgotten(store: Subject) {
    let [mut plan, a, b] = three(&store).await;
    let ada = Principal::person("ada");
    let brings = |bytes| {
        let by = ada.clone();
        vec![Brought { by, bytes }]
    };
    let append = Append {
        status: status(ended()),
        brought: brings(10),
        ..plan.grow(&["brought"])
    };
    put(&store, append).await;
    let append = Append {
        brought: brings(7),
        ..Chain::of("plan/kept").grow(&["brought"])
    };
    put(&store, append).await;
    for chain in [&plan, &a] {
        seal(&store, chain).await;
    }
    let early = Timestamp::from_millis(8_999);
    assert!(store.sealed_plans(early, None, 9).await.unwrap().is_empty());
    let found = store.sealed_plans(NOW, None, 9).await.unwrap();
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].stream, plan.stream);
    let cursor = Some((found[0].sealed_at, found[0].stream.clone()));
    assert!(store.sealed_plans(NOW, cursor, 9).await.unwrap().is_empty());
    let removed = [plan.stream.clone(), a.stream.clone()];
    let removed = store.remove(&removed, NOW).await.unwrap();
    assert_eq!(removed.files, 2);
    for stream in [&plan.stream, &a.stream] {
        assert!(store.read(stream, 0, 9).await.unwrap().is_empty());
        assert_eq!(store.info(stream).await.unwrap(), None);
        assert_eq!(store.sealed(stream).await.unwrap(), None);
    }
    // What is no longer there does not count for the principal who brought it.
    assert_eq!(store.brought_bytes(&ada).await.unwrap(), 7);
    assert_eq!(store.head(&b.stream).await.unwrap(), b.head);
    let left = feed(&store, &FeedOf::Plan("p".parse().unwrap()), 3).await;
    assert!(left.iter().all(|placed| placed.stream == b.stream));
    assert_eq!(left.len(), 8);
}

pub async fn only_sealed_journals_are_removed(store: Subject) {
    let [plan, a, _] = three(&store).await;
    seal(&store, &plan).await;
    let refused = store
        .remove(&[plan.stream.clone(), a.stream.clone()], NOW)
        .await;
    assert!(
        matches!(refused, Err(RetainError::NotSealed(_))),
        "{refused:?}"
    );
    assert_eq!(store.head(&plan.stream).await.unwrap(), plan.head);
    assert_eq!(store.head(&a.stream).await.unwrap(), a.head);
}

pub async fn one_has_the_turn_at_a_time(store: Subject) {
    let turn = store.take_turn().unwrap();
    assert!(turn.is_some());
    assert!(store.take_turn().unwrap().is_none());
    drop(turn);
    assert!(store.take_turn().unwrap().is_some());
}
