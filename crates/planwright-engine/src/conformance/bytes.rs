//! The store never looks inside: every byte comes back.

use super::fixture::{Chain, Subject};
use crate::port::{Append, LeaseRule, MAX_PAGE_BYTES, is_last_page};
use planwright_core::journal::Record;
use planwright_core::time::Timestamp;

async fn comes_back(store: &Subject, record: Record, chain: &Chain) {
    let append = Append {
        records: vec![record.clone()],
        ..chain.nothing()
    };
    store.append(vec![append]).await.unwrap();
    let found = store.read(&chain.stream, chain.head.seq, 1).await.unwrap();
    assert!(found == [record], "the record came back changed");
}

pub async fn nul_and_invalid_utf8_are_kept(store: Subject) {
    let mut chain = Chain::of("run/r");
    for body in [
        b"a\0b".as_slice(),
        b"\0",
        b"\xff\xfe\0\x80",
        b"\xed\xa0\x80",
    ] {
        let record = chain.record(None, body);
        comes_back(&store, record.clone(), &chain).await;
        chain.head = record.head();
    }
}

pub async fn a_mebibyte_is_kept(store: Subject) {
    let mut chain = Chain::of("run/r");
    let body: Vec<u8> = (0..1024 * 1024_u32)
        .map(|number| number.to_le_bytes()[1] ^ number.to_le_bytes()[0])
        .collect();
    let record = chain.record(Some("large"), &body);
    comes_back(&store, record.clone(), &chain).await;
    chain.head = record.head();
    comes_back(&store, chain.record(None, b"small"), &chain).await;
}

pub async fn large_records_come_in_pages_of_a_bounded_size(store: Subject) {
    const RECORDS: u64 = 12;
    let mut chain = Chain::of("run/r");
    let large = "x".repeat(MAX_PAGE_BYTES / 5);
    for _ in 0..RECORDS {
        chain.put(&store, &large, LeaseRule::None).await;
    }
    let mut after = 0;
    loop {
        let page = store.read(&chain.stream, after, 100).await.unwrap();
        let bytes: usize = page.iter().map(|record| record.body.len()).sum();
        assert!(
            bytes < MAX_PAGE_BYTES + large.len(),
            "{bytes} bytes at once"
        );
        after += page.len() as u64;
        // A page that its size ended can be the last one: the next is empty.
        let last = page.last().map_or(after, |record| record.seq);
        assert_eq!(last, after);
        if is_last_page(&page, 100) {
            break;
        }
    }
    assert_eq!(after, RECORDS);
    let exactly = store.read(&chain.stream, RECORDS - 2, 2).await.unwrap();
    assert!(exactly.len() == 2 && !is_last_page(&exactly, 2));
}

pub async fn an_empty_body_is_kept(store: Subject) {
    let chain = Chain::of("run/r");
    comes_back(&store, chain.record(None, b""), &chain).await;
}

pub async fn every_byte_value_is_kept(store: Subject) {
    let chain = Chain::of("run/r");
    let body: Vec<u8> = (0..=255).chain((0..=255).rev()).collect();
    comes_back(&store, chain.record(None, &body), &chain).await;
}

pub async fn odd_keys_are_kept(store: Subject) {
    let mut chain = Chain::of("run/r");
    for key in [
        "a'b", "\"", "%_", "ключ", "k ", "K", "k", "1", "01", "a/b?c#d", "-- x", "e\u{301}",
        "\u{e9}",
    ] {
        let record = chain.record(Some(key), b"body");
        comes_back(&store, record.clone(), &chain).await;
        chain.head = record.head();
    }
}

pub async fn extreme_times_and_epochs_are_kept(store: Subject) {
    let mut chain = Chain::of("run/r");
    for (at, epoch) in [
        (0, 0),
        (-1, 1),
        (i64::MIN, 2),
        (i64::MAX, i64::MAX.unsigned_abs()),
    ] {
        let at = Timestamp::from_millis(at);
        let record = Record::after(chain.head, &chain.stream, at, epoch, None, b"body".to_vec());
        comes_back(&store, record.clone(), &chain).await;
        chain.head = record.head();
    }
}
