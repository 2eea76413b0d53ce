//! One order over all streams: the same for everybody, without gaps, without changes.

use super::fixture::{Chain, Subject, status};
use crate::port::{Append, FeedOf, MAX_PAGE_BYTES, Placed, Position, is_last_feed_page};
use std::collections::BTreeMap;
use std::sync::Arc;

async fn all(store: &Subject) -> Vec<Placed> {
    store
        .feed(&FeedOf::All, Position(0), usize::MAX)
        .await
        .unwrap()
}

async fn of_plan(store: &Subject, plan: &str) -> Vec<Placed> {
    store
        .feed(
            &FeedOf::Plan(plan.parse().unwrap()),
            Position(0),
            usize::MAX,
        )
        .await
        .unwrap()
}

/// `stream: body` of every record.
fn texts(placed: &[Placed]) -> Vec<String> {
    let text = |placed: &Placed| {
        format!(
            "{}: {}",
            placed.stream,
            String::from_utf8(placed.record.body.clone()).unwrap()
        )
    };
    placed.iter().map(text).collect()
}

fn positions(placed: &[Placed]) -> Vec<u64> {
    placed.iter().map(|placed| placed.position.0).collect()
}

/// Reads everything in pages of `limit`, each from where the last one ended.
async fn paged(store: &Subject, of: &FeedOf, limit: usize) -> Vec<Placed> {
    let mut found = Vec::new();
    let mut after = Position(0);
    loop {
        let page = store.feed(of, after, limit).await.unwrap();
        let Some(last) = page.last() else {
            return found;
        };
        assert!(page.len() <= limit);
        after = last.position;
        found.extend(page);
    }
}

/// Two plans with runs, written in turns.
async fn two_plans(store: &Subject) {
    let mut chains: Vec<_> = [
        ("plan/p", "p"),
        ("plan/q", "q"),
        ("run/p1", "p"),
        ("run/q1", "q"),
        ("run/p2", "p"),
    ]
    .map(|(name, plan)| (Chain::of(name), plan))
    .into();
    for turn in 0..4 {
        for (chain, plan) in &mut chains {
            let bodies = [format!("{turn}a"), format!("{turn}b")];
            let append = chain.grow(&[&bodies[0], &bodies[1]]);
            store
                .append(vec![Append {
                    status: status(plan, "any"),
                    ..append
                }])
                .await
                .unwrap();
        }
    }
}

pub async fn a_new_store_has_an_empty_feed(store: Subject) {
    assert_eq!(all(&store).await, []);
    assert_eq!(of_plan(&store, "p").await, []);
}

pub async fn records_come_in_the_order_of_their_commits(store: Subject) {
    let mut plan = Chain::of("plan/p");
    let mut run = Chain::of("run/r");
    store.append(vec![run.grow(&["one"])]).await.unwrap();
    store.append(vec![plan.grow(&["two"])]).await.unwrap();
    store
        .append(vec![run.grow(&["three", "four"]), plan.grow(&["five"])])
        .await
        .unwrap();
    let found = all(&store).await;
    let expected = [
        "run/r: one",
        "plan/p: two",
        "run/r: three",
        "run/r: four",
        "plan/p: five",
    ];
    assert_eq!(texts(&found), expected);
    assert_eq!(positions(&found), [1, 2, 3, 4, 5]);
}

pub async fn the_order_is_that_of_commits_and_not_of_times(store: Subject) {
    let mut late = Chain::of("run/late");
    let mut early = Chain::of("run/early");
    late.at = planwright_core::time::Timestamp::from_millis(9_000);
    store.append(vec![late.grow(&["one"])]).await.unwrap();
    store.append(vec![early.grow(&["two"])]).await.unwrap();
    assert_eq!(
        texts(&all(&store).await),
        ["run/late: one", "run/early: two"]
    );
}

pub async fn the_records_are_those_of_their_streams(store: Subject) {
    two_plans(&store).await;
    let mut streams = BTreeMap::<_, Vec<_>>::new();
    for Placed { stream, record, .. } in all(&store).await {
        streams.entry(stream).or_default().push(record);
    }
    assert_eq!(streams.len(), 5);
    for (stream, records) in streams {
        assert_eq!(store.read(&stream, 0, usize::MAX).await.unwrap(), records);
    }
}

pub async fn a_plan_has_its_own_records_and_those_of_its_runs(store: Subject) {
    two_plans(&store).await;
    let own = |placed: &Placed| {
        ["plan/p", "run/p1", "run/p2"].contains(&placed.stream.to_string().as_str())
    };
    let expected: Vec<_> = all(&store).await.into_iter().filter(own).collect();
    assert_eq!(expected.len(), 24);
    assert_eq!(of_plan(&store, "p").await, expected);
    assert_eq!(of_plan(&store, "absent").await, []);
}

pub async fn a_feed_is_read_page_by_page(store: Subject) {
    two_plans(&store).await;
    for of in [FeedOf::All, FeedOf::Plan("p".parse().unwrap())] {
        let whole = store.feed(&of, Position(0), usize::MAX).await.unwrap();
        for limit in [1, 2, 3, 7, 100] {
            assert_eq!(
                paged(&store, &of, limit).await,
                whole,
                "{of:?} in pages of {limit}"
            );
        }
    }
}

pub async fn reading_goes_on_after_any_position(store: Subject) {
    two_plans(&store).await;
    for of in [FeedOf::All, FeedOf::Plan("q".parse().unwrap())] {
        let whole = store.feed(&of, Position(0), usize::MAX).await.unwrap();
        for after in 0..=41 {
            let rest: Vec<_> = whole
                .iter()
                .filter(|placed| placed.position.0 > after)
                .cloned()
                .collect();
            assert_eq!(
                store.feed(&of, Position(after), usize::MAX).await.unwrap(),
                rest
            );
        }
        assert_eq!(store.feed(&of, Position(u64::MAX), 5).await.unwrap(), []);
        assert_eq!(store.feed(&of, Position(0), 0).await.unwrap(), []);
    }
}

pub async fn a_refused_append_takes_no_place(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    let stale = Chain::of("plan/p").grow(&["never"]);
    store
        .append(vec![Chain::of("run/r").grow(&["never"]), stale])
        .await
        .unwrap_err();
    store.append(vec![chain.grow(&["two"])]).await.unwrap();
    let found = all(&store).await;
    assert_eq!(texts(&found), ["plan/p: one", "plan/p: two"]);
    assert_eq!(positions(&found), [1, 2]);
}

pub async fn whoever_follows_many_writers_misses_nothing(store: Subject) {
    const WRITERS: usize = 8;
    const APPENDS: usize = 25;
    let writers: Vec<_> = (0..WRITERS)
        .map(|number| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                let mut chain = Chain::of(&format!("run/r{number}"));
                for _ in 0..APPENDS {
                    let append = Append {
                        status: status("p", "any"),
                        ..chain.grow(&["one", "two"])
                    };
                    store.append(vec![append]).await.unwrap();
                }
            })
        })
        .collect();
    let plan = FeedOf::Plan("p".parse().unwrap());
    let mut found = Vec::<Placed>::new();
    let mut found_of_plan = Vec::<Placed>::new();
    while found.len() < WRITERS * APPENDS * 2 || found_of_plan.len() < found.len() {
        let ended = writers.iter().all(tokio::task::JoinHandle::is_finished);
        let before = found.len() + found_of_plan.len();
        let after = found.last().map_or(Position(0), |placed| placed.position);
        found.extend(store.feed(&FeedOf::All, after, 7).await.unwrap());
        let after = found_of_plan
            .last()
            .map_or(Position(0), |placed| placed.position);
        found_of_plan.extend(store.feed(&plan, after, 7).await.unwrap());
        assert!(
            !ended || found.len() + found_of_plan.len() > before,
            "the feed ends too early"
        );
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let expected: Vec<_> = (1..=(WRITERS * APPENDS * 2) as u64).collect();
    assert_eq!(positions(&found), expected);
    assert_eq!(found, all(&store).await);
    assert_eq!(found_of_plan, found);
}

pub async fn pages_of_a_feed_have_a_bounded_size(store: Subject) {
    let mut p = Chain::of("plan/p");
    let mut run = Chain::of("run/a");
    let large = "x".repeat(1 << 20);
    for _ in 0..6 {
        let appends = [&mut p, &mut run].map(|chain| Append {
            status: status("p", "draft"),
            ..chain.grow(&[&large, "small"])
        });
        store.append(appends.into()).await.unwrap();
    }
    for of in [FeedOf::All, FeedOf::Plan("p".parse().unwrap())] {
        let mut positions = Vec::new();
        let mut after = Position(0);
        loop {
            let page = store.feed(&of, after, usize::MAX).await.unwrap();
            let bytes: usize = page.iter().map(|placed| placed.record.body.len()).sum();
            assert!(bytes <= MAX_PAGE_BYTES + large.len(), "{bytes}");
            positions.extend(page.iter().map(|placed| placed.position.0));
            if is_last_feed_page(&page, usize::MAX) {
                break;
            }
            after = page.last().unwrap().position;
        }
        assert_eq!(positions, (1..=24).collect::<Vec<u64>>());
    }
}
