//! Appending and reading back.

use super::fixture::{Chain, Subject, bodies};
use planwright_core::journal::{Head, check_chain};

pub async fn a_stream_that_was_never_written_is_empty(store: Subject) {
    let chain = Chain::of("run/r");
    assert_eq!(store.head(&chain.stream).await.unwrap(), Head::EMPTY);
    assert!(store.read(&chain.stream, 0, 10).await.unwrap().is_empty());
    assert!(store.info(&chain.stream).await.unwrap().is_none());
}

pub async fn what_was_appended_is_read_back(store: Subject) {
    let mut chain = Chain::of("run/r");
    let append = chain.grow_keyed(&[(Some("k"), "one")]);
    store.append(vec![append.clone()]).await.unwrap();
    assert_eq!(
        store.read(&chain.stream, 0, 10).await.unwrap(),
        append.records
    );
}

pub async fn the_head_is_the_last_record(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store
        .append(vec![chain.grow(&["one", "two"])])
        .await
        .unwrap();
    assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
    assert_eq!(chain.head.seq, 2);
}

pub async fn several_records_keep_their_order(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store
        .append(vec![chain.grow(&["c", "a", "b"])])
        .await
        .unwrap();
    assert_eq!(bodies(&store, &chain.stream).await, ["c", "a", "b"]);
}

pub async fn an_append_continues_where_the_last_one_ended(store: Subject) {
    let mut chain = Chain::of("plan/p");
    for body in ["one", "two", "three"] {
        store.append(vec![chain.grow(&[body])]).await.unwrap();
    }
    let records = store.read(&chain.stream, 0, 10).await.unwrap();
    assert_eq!(
        records.iter().map(|record| record.seq).collect::<Vec<_>>(),
        [1, 2, 3]
    );
}

pub async fn the_chain_of_what_is_read_checks(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store
        .append(vec![chain.grow(&["one", "two"])])
        .await
        .unwrap();
    store
        .append(vec![chain.grow_keyed(&[(Some("k"), "three")])])
        .await
        .unwrap();
    let records = store.read(&chain.stream, 0, 10).await.unwrap();
    assert_eq!(
        check_chain(Head::EMPTY, &chain.stream, &records),
        Ok(chain.head)
    );
}

pub async fn an_append_without_records_moves_no_head(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    store.append(vec![chain.nothing()]).await.unwrap();
    assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
}

pub async fn an_append_without_anything_creates_no_stream(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.nothing()]).await.unwrap();
    assert!(store.plans().await.unwrap().is_empty());
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
}

pub async fn an_empty_list_of_appends_is_accepted(store: Subject) {
    store.append(Vec::new()).await.unwrap();
}

pub async fn a_plan_and_a_run_of_the_same_id_are_two_streams(store: Subject) {
    let mut plan = Chain::of("plan/x");
    let mut run = Chain::of("run/x");
    store
        .append(vec![plan.grow(&["of the plan"])])
        .await
        .unwrap();
    store
        .append(vec![run.grow(&["of the run", "again"])])
        .await
        .unwrap();
    assert_eq!(bodies(&store, &plan.stream).await, ["of the plan"]);
    assert_eq!(bodies(&store, &run.stream).await, ["of the run", "again"]);
}

pub async fn a_stream_is_read_page_by_page(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let mut others = [Chain::of("plan/a"), Chain::of("plan/z")];
    for number in 0..25 {
        store
            .append(vec![chain.grow(&[&number.to_string()])])
            .await
            .unwrap();
        for other in &mut others {
            store.append(vec![other.grow(&["noise"])]).await.unwrap();
        }
    }
    let mut read = Vec::new();
    loop {
        let page = store
            .read(&chain.stream, read.len() as u64, 10)
            .await
            .unwrap();
        assert!(page.len() <= 10);
        if page.is_empty() {
            break;
        }
        read.extend(page);
    }
    assert_eq!(read.len(), 25);
    assert_eq!(
        check_chain(Head::EMPTY, &chain.stream, &read),
        Ok(chain.head)
    );
}

pub async fn reading_past_the_end_or_nothing_is_empty(store: Subject) {
    let mut chain = Chain::of("plan/p");
    store.append(vec![chain.grow(&["one"])]).await.unwrap();
    for after in [1, 2, u64::from(u32::MAX), u64::MAX] {
        assert!(
            store
                .read(&chain.stream, after, 10)
                .await
                .unwrap()
                .is_empty(),
            "after {after}"
        );
    }
    assert!(store.read(&chain.stream, 0, 0).await.unwrap().is_empty());
}

pub async fn two_appends_to_one_stream_follow_each_other(store: Subject) {
    let mut chain = Chain::of("plan/p");
    let appends = vec![chain.grow(&["one"]), chain.grow(&["two"])];
    store.append(appends).await.unwrap();
    assert_eq!(bodies(&store, &chain.stream).await, ["one", "two"]);
}
