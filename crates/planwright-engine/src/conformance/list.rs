//! What lists show: a cached status per stream, in a stable order.

use super::fixture::{Chain, Subject, status};
use crate::port::{Append, Brought, StreamCounts, StreamInfo};
use planwright_core::principal::Principal;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;

async fn begin(store: &Subject, name: &str, plan: &str, at: i64) -> Chain {
    let mut chain = Chain::of(name);
    chain.at = Timestamp::from_millis(at);
    let append = Append {
        status: status(plan, "draft"),
        ..chain.grow(&["begun"])
    };
    store.append(vec![append]).await.unwrap();
    chain
}

fn statuses(words: &[&str]) -> Vec<CachedStatus> {
    words.iter().map(|&word| word.into()).collect()
}

async fn change(store: &Subject, chain: &mut Chain, plan: &str, word: &str, at: i64) {
    chain.at = Timestamp::from_millis(at);
    let append = Append {
        status: status(plan, word),
        ..chain.grow(&["changed"])
    };
    store.append(vec![append]).await.unwrap();
}

fn names(infos: &[StreamInfo]) -> Vec<String> {
    infos.iter().map(|info| info.stream.to_string()).collect()
}

pub async fn a_stream_without_status_is_not_listed(store: Subject) {
    let mut plan = Chain::of("plan/p");
    let mut run = Chain::of("run/r");
    store
        .append(vec![plan.grow(&["one"]), run.grow(&["one"])])
        .await
        .unwrap();
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
    assert_eq!(
        store
            .info(&chain.stream)
            .await
            .unwrap()
            .unwrap()
            .status
            .status,
        CachedStatus::Approved
    );
    assert_eq!(store.plans().await.unwrap().len(), 1);
}

pub async fn the_status_stays_when_none_is_given(store: Subject) {
    let mut chain = begin(&store, "plan/p", "p", 5_000).await;
    chain.at = Timestamp::from_millis(9_000);
    store.append(vec![chain.grow(&["two"])]).await.unwrap();
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    assert_eq!(info.status.status.as_str(), "draft");
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
    assert_eq!(
        names(&store.plans().await.unwrap()),
        ["plan/c", "plan/b", "plan/a"]
    );
    change(&store, &mut first, "a", "approved", 4_000).await;
    assert_eq!(
        names(&store.plans().await.unwrap()),
        ["plan/a", "plan/c", "plan/b"]
    );
}

pub async fn plans_of_one_instant_come_latest_first(store: Subject) {
    for id in ["m", "z", "a"] {
        begin(&store, &format!("plan/{id}"), id, 1_000).await;
    }
    assert_eq!(
        names(&store.plans().await.unwrap()),
        ["plan/a", "plan/z", "plan/m"]
    );
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
    assert_eq!(
        names(&store.runs(&"p".parse().unwrap()).await.unwrap()),
        ["run/r1"]
    );
    assert!(
        store
            .runs(&"absent".parse().unwrap())
            .await
            .unwrap()
            .is_empty()
    );
}

pub async fn a_status_without_records_is_kept(store: Subject) {
    let chain = Chain::of("plan/p");
    store
        .append(vec![Append {
            status: status("p", "imported"),
            ..chain.nothing()
        }])
        .await
        .unwrap();
    assert_eq!(
        store
            .info(&chain.stream)
            .await
            .unwrap()
            .unwrap()
            .status
            .status,
        CachedStatus::from("imported")
    );
}

pub async fn a_word_alone_changes_no_time(store: Subject) {
    let chain = begin(&store, "plan/p", "p", 5_000).await;
    store
        .append(vec![Append {
            status: status("p", "opened"),
            ..chain.nothing()
        }])
        .await
        .unwrap();
    let info = store.info(&chain.stream).await.unwrap().unwrap();
    assert_eq!(info.status.status.as_str(), "opened");
    assert_eq!(info.updated_at, Timestamp::from_millis(5_000));
}

pub async fn plans_are_found_by_where_they_stand(store: Subject) {
    for (id, word, at) in [
        ("a", "proposed", 2_000),
        ("b", "archived", 3_000),
        ("e", "proposed", 1_000),
        ("c", "approved", 4_000),
    ] {
        let mut chain = begin(&store, &format!("plan/{id}"), id, 1_000).await;
        change(&store, &mut chain, id, word, at).await;
    }
    begin(&store, "plan/d", "d", 1_000).await;
    begin(&store, "run/r", "a", 1_000).await;
    let found =
        async |words: &[&str]| names(&store.plans_in(&statuses(words), None).await.unwrap());
    assert_eq!(found(&["proposed"]).await, ["plan/a", "plan/e"]);
    assert_eq!(
        found(&["proposed", "approved"]).await,
        ["plan/c", "plan/a", "plan/e"],
        "most recently updated first"
    );
    assert_eq!(found(&["draft"]).await, ["plan/d"], "and no run");
    assert!(found(&["deleted"]).await.is_empty());
    assert!(found(&[]).await.is_empty());
    let all = store
        .plans_in(
            &statuses(&["draft", "approved", "archived", "proposed"]),
            None,
        )
        .await
        .unwrap();
    assert_eq!(all, store.plans().await.unwrap());
    let begun = async |word| names(&store.plans_with_runs(word).await.unwrap());
    assert_eq!(begun(CachedStatus::Proposed).await, ["plan/a"]);
    assert!(begun(CachedStatus::Approved).await.is_empty());
}

pub async fn plans_are_found_by_how_long_nothing_happened(store: Subject) {
    for (id, at) in [("a", 1_000), ("b", 2_000), ("c", 3_000)] {
        begin(&store, &format!("plan/{id}"), id, at).await;
    }
    let found = async |until: i64| {
        names(
            &store
                .plans_in(&statuses(&["draft"]), Some(Timestamp::from_millis(until)))
                .await
                .unwrap(),
        )
    };
    assert!(found(999).await.is_empty());
    assert_eq!(found(2_000).await, ["plan/b", "plan/a"]);
    assert_eq!(found(i64::MAX).await, ["plan/c", "plan/b", "plan/a"]);
}

pub async fn runs_of_all_plans_are_found_by_where_they_stand(store: Subject) {
    let mut first = begin(&store, "run/m", "p", 1_000).await;
    begin(&store, "run/z", "q", 1_000).await;
    begin(&store, "run/a", "p", 2_000).await;
    begin(&store, "plan/p", "p", 1_000).await;
    let found = async |words: &[&str]| names(&store.runs_in(&statuses(words)).await.unwrap());
    assert_eq!(
        found(&["draft"]).await,
        ["run/m", "run/z", "run/a"],
        "oldest first, and no plan"
    );
    change(&store, &mut first, "p", "completed", 9_000).await;
    assert_eq!(found(&["draft"]).await, ["run/z", "run/a"]);
    assert_eq!(
        found(&["completed", "draft"]).await,
        ["run/m", "run/z", "run/a"]
    );
    assert!(found(&["waiting"]).await.is_empty());
    assert!(found(&[]).await.is_empty());
    let of_plan = store
        .runs_in(&statuses(&["draft"]))
        .await
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(of_plan.status.plan.as_str(), "p");
}

pub async fn streams_are_counted_by_where_they_stand(store: Subject) {
    assert_eq!(store.counts().await.unwrap(), StreamCounts::default());
    begin(&store, "plan/a", "a", 1_000).await;
    let mut second = begin(&store, "plan/b", "b", 1_000).await;
    begin(&store, "plan/c", "c", 1_000).await;
    begin(&store, "run/r", "a", 1_000).await;
    store
        .append(vec![Chain::of("run/nameless").grow(&["one"])])
        .await
        .unwrap();
    change(&store, &mut second, "b", "approved", 2_000).await;
    let counts = store.counts().await.unwrap();
    let listed = |words: &std::collections::BTreeMap<CachedStatus, u64>| {
        words
            .iter()
            .map(|(word, count)| format!("{word} {count}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(listed(&counts.plans), ["draft 2", "approved 1"]);
    assert_eq!(listed(&counts.runs), ["draft 1"]);
}

pub async fn plans_are_paged_by_age(store: Subject) {
    for (id, at) in [
        ("m", 2_000),
        ("z", 1_000),
        ("a", 2_000),
        ("k", 3_000),
        ("b", 2_000),
    ] {
        begin(&store, &format!("plan/{id}"), id, at).await;
    }
    begin(&store, "run/r", "a", 9_000).await;
    let mut old = Chain::of("plan/nameless");
    store.append(vec![old.grow(&["one"])]).await.unwrap();
    let all = ["plan/k", "plan/a", "plan/b", "plan/m", "plan/z"];
    assert_eq!(names(&store.plans_by_age(None, 100).await.unwrap()), all);
    assert!(store.plans_by_age(None, 0).await.unwrap().is_empty());
    let mut seen = Vec::new();
    let mut last = None::<StreamInfo>;
    loop {
        let after = last
            .as_ref()
            .map(|info| (info.created_at, &info.status.plan));
        let page = store.plans_by_age(after, 2).await.unwrap();
        seen.extend(names(&page));
        // A change moves nothing: the order is that of their beginnings.
        let mut first = Chain::of("plan/m");
        first.head = store.head(&first.stream).await.unwrap();
        change(
            &store,
            &mut first,
            "m",
            &format!("after {}", seen.len()),
            9_000,
        )
        .await;
        last = page.last().cloned();
        if page.len() < 2 {
            break;
        }
    }
    assert_eq!(seen, all);
}

pub async fn what_principals_brought_is_summed(store: Subject) {
    let ada = Principal::person("ada");
    let agent = Principal::agent("ada");
    let brings = |by: &Principal, bytes| Brought {
        by: by.clone(),
        bytes,
    };
    let mut p = Chain::of("plan/p");
    let mut q = Chain::of("plan/q");
    let first = Append {
        brought: vec![brings(&ada, 10), brings(&agent, 3)],
        ..p.grow(&["one"])
    };
    let second = Append {
        brought: vec![brings(&ada, 200)],
        ..q.grow(&["one"])
    };
    store.append(vec![first, second]).await.unwrap();
    let third = Append {
        brought: vec![brings(&ada, 4_000)],
        ..p.grow(&["two"])
    };
    store.append(vec![third]).await.unwrap();
    // What is refused is counted for no principal.
    let refused = Append {
        brought: vec![brings(&ada, 50_000)],
        ..Chain::of("plan/p").grow(&["one"])
    };
    store.append(vec![refused]).await.unwrap_err();
    assert_eq!(store.brought_bytes(&ada).await.unwrap(), 4_210);
    assert_eq!(store.brought_bytes(&agent).await.unwrap(), 3);
    let stranger = Principal::person("stranger");
    assert_eq!(store.brought_bytes(&stranger).await.unwrap(), 0);
}
