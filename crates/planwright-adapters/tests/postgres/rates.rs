//! The rates that services share: one bucket for all, kept without waiting for a disk, and the services that are counted.

use crate::databases::Database;
use planwright_core::digest::Digest;
use planwright_engine::port::{OwnerId, RequestRates as _, WantedRequests};
use std::sync::Arc;

fn wanted(principal: &str, per_second: f64, wanted: u32) -> WantedRequests {
    WantedRequests {
        principal: Digest::of_bytes(principal.as_bytes()),
        per_second,
        capacity: 100,
        wanted,
    }
}

#[tokio::test]
async fn stores_that_take_at_once_share_one_bucket() {
    let database = Database::new();
    let stores: Vec<_> = (0..3).map(|_| Arc::new(database.open())).collect();
    // So slow that nothing comes in meanwhile.
    let takes = (0..30).map(|number| {
        let store = Arc::clone(&stores[number % 3]);
        async move { store.take_requests(wanted("ada", 0.001, 10)).await.unwrap() }
    });
    let taken: Vec<u32> = futures::future::join_all(takes).await;
    assert_eq!(taken.iter().sum::<u32>(), 100, "{taken:?}");
    let other = stores[0].take_requests(wanted("bob", 0.001, 10)).await;
    assert_eq!(other.unwrap(), 10);
}

#[tokio::test]
async fn a_bucket_fills_with_time_and_not_beyond_what_it_holds() {
    let database = Database::new();
    let store = database.open();
    let take = async |per_second, count| {
        let taken = store.take_requests(wanted("ada", per_second, count)).await;
        taken.unwrap()
    };
    assert_eq!(take(10.0, 100).await, 100);
    database.sql("UPDATE planwright.request_rates SET at = at - interval '5 seconds'");
    let taken = take(10.0, 100).await;
    assert!((50..=60).contains(&taken), "{taken}");
    database.sql("UPDATE planwright.request_rates SET at = at - interval '1 hour'");
    assert_eq!(take(10.0, 200).await, 100);
    // A clock that was set back takes nothing away, and gives nothing.
    database.sql("UPDATE planwright.request_rates SET at = at + interval '1 hour'");
    assert_eq!(take(10.0, 10).await, 0);
}

#[tokio::test]
async fn services_are_counted_while_they_say_that_they_are_there() {
    let database = Database::new();
    let store = database.open();
    let (one, two) = (OwnerId("one".to_owned()), OwnerId("two".to_owned()));
    assert_eq!(store.note_service(&one).await.unwrap(), 1);
    assert_eq!(store.note_service(&two).await.unwrap(), 2);
    assert_eq!(store.note_service(&one).await.unwrap(), 2);
    store.remove_service(&two).await.unwrap();
    assert_eq!(store.note_service(&one).await.unwrap(), 1);
    store.note_service(&two).await.unwrap();
    database.sql(
        "UPDATE planwright.services SET seen_at = seen_at - interval '16 seconds' WHERE id = 'two'",
    );
    assert_eq!(store.note_service(&one).await.unwrap(), 1);
}

#[test]
fn nothing_of_it_is_written_to_the_log_of_the_database() {
    let database = Database::new();
    drop(database.open());
    let unlogged = database.sql(
        "SELECT string_agg(relname, ' ' ORDER BY relname) FROM pg_class \
         WHERE relpersistence = 'u' AND relkind = 'r' AND relnamespace = 'planwright'::regnamespace",
    );
    assert_eq!(unlogged, "call_news request_rates service_notes services");
}
