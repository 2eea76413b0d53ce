//! Sign-ins to the servers of tools, which all processes of a store share.

use crate::databases::Database;
use planwright_engine::port::SignInStore as _;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);

#[tokio::test]
async fn what_one_process_keeps_every_other_finds_until_it_is_forgotten() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    assert_eq!(one.load_sign_in("a").await.unwrap(), None);
    one.save_sign_in("a", b"first").await.unwrap();
    one.save_sign_in("a", b"second").await.unwrap();
    assert_eq!(
        other.load_sign_in("a").await.unwrap(),
        Some(b"second".to_vec())
    );
    assert_eq!(other.load_sign_in("b").await.unwrap(), None);
    assert!(other.forget_sign_in("a").await.unwrap());
    assert!(!one.forget_sign_in("a").await.unwrap());
    assert_eq!(one.load_sign_in("a").await.unwrap(), None);
}

#[tokio::test]
async fn one_process_at_a_time_renews_and_one_that_is_late_changes_nothing() {
    let database = Database::new();
    let (one, other) = (database.open(), database.open());
    // A server without a sign-in is not renewed.
    assert!(!one.take_renewal("a", "one", LONG).await.unwrap());
    one.save_sign_in("a", b"old").await.unwrap();
    let turns = (0..8).map(|number| {
        let store = if number % 2 == 0 { &one } else { &other };
        async move {
            store
                .take_renewal("a", &format!("{number}"), LONG)
                .await
                .unwrap()
        }
    });
    let taken = futures::future::join_all(turns).await;
    let has_turn: Vec<usize> = (0..8).filter(|number| taken[*number]).collect();
    assert_eq!(has_turn.len(), 1, "{taken:?}");
    let holder = has_turn[0].to_string();
    other
        .end_renewal("a", "nobody", Some(b"forged"))
        .await
        .unwrap();
    one.end_renewal("a", &holder, Some(b"new")).await.unwrap();
    assert_eq!(
        other.load_sign_in("a").await.unwrap(),
        Some(b"new".to_vec())
    );
    // A turn ends by itself, and then belongs to the next.
    assert!(one.take_renewal("a", "slow", Duration::ZERO).await.unwrap());
    assert!(other.take_renewal("a", "next", LONG).await.unwrap());
    one.end_renewal("a", "slow", Some(b"late")).await.unwrap();
    other.end_renewal("a", "next", None).await.unwrap();
    assert_eq!(one.load_sign_in("a").await.unwrap(), Some(b"new".to_vec()));
    // A person who signs in again ends it, too.
    assert!(one.take_renewal("a", "slow", LONG).await.unwrap());
    other.save_sign_in("a", b"again").await.unwrap();
    one.end_renewal("a", "slow", Some(b"late")).await.unwrap();
    assert_eq!(
        one.load_sign_in("a").await.unwrap(),
        Some(b"again".to_vec())
    );
}
