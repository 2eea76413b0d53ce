//! What lists show: a cached status per stream, in a stable order.

use super::fixture::{Chain, Subject, status};
use crate::port::{Append, StreamInfo};
use planwright_core::time::Timestamp;

async fn begin(store: &Subject, name: &str, plan: &str, at: i64) -> Chain {
    let mut chain = Chain::of(name);
    chain.at = Timestamp::from_millis(at);
    let append = Append { status: status(plan, "draft"), ..chain.grow(&["begun"]) };
    store.append(vec![append]).await.unwrap();
    chain
}

async fn change(store: &Subject, chain: &mut Chain, plan: &str, word: &str, at: i64) {
    chain.at = Timestamp::from_millis(at);
    let append = Append { status: status(plan, word), ..chain.grow(&["changed"]) };
    store.append(vec![append]).await.unwrap();
}

fn names(infos: &[StreamInfo]) -> Vec<String> {
    infos.iter().map(|info| info.stream.to_string()).collect()
}

pub async fn a_stream_without_status_is_not_listed(store: Subject) {
    let (mut plan, mut run) = (Chain::of("plan/p"), Chain::of("run/r"));
    store.append(vec![plan.grow(&["one"]), run.grow(&["one"])]).await.unwrap();
    assert!(store.info(&plan.stream).await.unwrap().is_none());
    assert!(store.plans().await.unwrap().is_empty());
    change(&store, &mut plan, "p", "draft", 2_000).await;
    assert_eq!(store.plans().await.unwrap().len(), 1);
}

pub async fn the_status_is_shown(store: Subject) {
    let chain = begin(&store, "run/r", "p", 5_000).await;
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    assert_eq!(info.stream, chain.stream);
    assert_eq!(Some(info.status), status("p", "draft"));
}

pub async fn the_status_is_replaced(store: Subject) {
    let mut chain = begin(&store, "plan/p", "p", 5_000).await;
    change(&store, &mut chain, "p", "approved", 6_000).await;
    assert_eq!(store.info(&chain.stream).await.unwrap().unwrap().status.status, "approved");
    assert_eq!(store.plans().await.unwrap().len(), 1);
}

pub async fn the_status_stays_when_none_is_given(store: Subject) {
    let mut chain = begin(&store, "plan/p", "p", 5_000).await;
    chain.at = Timestamp::from_millis(9_000);
    store.append(vec![chain.grow(&["two"])]).await.unwrap();
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    assert_eq!(info.status.status, "draft");
    assert_eq!(info.updated_at, Timestamp::from_millis(5_000));
}

pub async fn times_come_from_the_journal(store: Subject) {
    let mut chain = begin(&store, "plan/p", "p", 5_000).await;
    change(&store, &mut chain, "p", "approved", 6_000).await;
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    let millis = (info.created_at.as_millis(), info.updated_at.as_millis());
    assert_eq!(millis, (5_000, 6_000));
}

pub async fn the_same_status_again_is_no_update(store: Subject) {
    let mut chain = begin(&store, "plan/p", "p", 5_000).await;
    change(&store, &mut chain, "p", "draft", 6_000).await;
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    assert_eq!(info.updated_at, Timestamp::from_millis(5_000));
}

pub async fn plans_come_most_recently_updated_first(store: Subject) {
    let mut first = begin(&store, "plan/a", "a", 1_000).await;
    begin(&store, "plan/b", "b", 2_000).await;
    begin(&store, "plan/c", "c", 3_000).await;
    begin(&store, "run/r", "a", 9_000).await;
    assert_eq!(names(&store.plans().await.unwrap()), ["plan/c", "plan/b", "plan/a"]);
    change(&store, &mut first, "a", "approved", 4_000).await;
    assert_eq!(names(&store.plans().await.unwrap()), ["plan/a", "plan/c", "plan/b"]);
}

pub async fn plans_of_one_instant_come_latest_first(store: Subject) {
    for id in ["m", "z", "a"] {
        begin(&store, &format!("plan/{id}"), id, 1_000).await;
    }
    assert_eq!(names(&store.plans().await.unwrap()), ["plan/a", "plan/z", "plan/m"]);
}

pub async fn runs_come_oldest_first(store: Subject) {
    let mut first = begin(&store, "run/m", "p", 1_000).await;
    begin(&store, "run/z", "p", 1_000).await;
    begin(&store, "run/a", "p", 2_000).await;
    change(&store, &mut first, "p", "completed", 9_000).await;
    let runs = store.runs(&"p".parse().unwrap()).await.unwrap();
    assert_eq!(names(&runs), ["run/m", "run/z", "run/a"]);
}

pub async fn runs_belong_to_their_plan(store: Subject) {
    begin(&store, "plan/p", "p", 1_000).await;
    begin(&store, "run/r1", "p", 1_000).await;
    begin(&store, "run/r2", "other", 1_000).await;
    assert_eq!(names(&store.runs(&"p".parse().unwrap()).await.unwrap()), ["run/r1"]);
    assert!(store.runs(&"absent".parse().unwrap()).await.unwrap().is_empty());
}

pub async fn a_status_without_records_is_kept(store: Subject) {
    let chain = Chain::of("plan/p");
    store.append(vec![Append { status: status("p", "imported"), ..chain.nothing() }]).await.unwrap();
    assert_eq!(store.info(&chain.stream).await.unwrap().unwrap().status.status, "imported");
}
