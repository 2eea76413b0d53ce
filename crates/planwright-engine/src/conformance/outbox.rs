//! The laws of [`Outbox`].

use crate::port::{DeliveryState, Outbox, Position, Settled};
use planwright_core::time::Timestamp;
use std::sync::Arc;

type Subject = Arc<dyn Outbox>;

/// Makes one test of every law.
#[macro_export]
macro_rules! outbox_laws {
    ($make:ident) => {
        $crate::outbox_laws! { @tests $make;
            an_endpoint_that_was_never_seen_has_nothing,
            what_was_found_is_due_in_order,
            a_cursor_that_moved_is_not_moved_again,
            what_was_taken_is_left_alone_for_a_while,
            what_arrived_is_forgotten_and_what_failed_comes_back,
            what_was_given_up_can_be_revived,
            a_disabled_endpoint_says_why_and_has_nothing_due,
            endpoints_do_not_see_each_other,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(
            #[tokio::test]
            async fn $law() {
                let (outbox, _alive) = $make();
                $crate::conformance::outbox::$law(outbox).await;
            }
        )*
    };
}

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

/// An endpoint at position 9 that is to be told of these.
async fn with(outbox: &Subject, found: &[(u64, u32)]) {
    let found = found
        .iter()
        .map(|(position, index)| (Position(*position), *index))
        .collect();
    assert!(
        outbox
            .advance("a", None, Position(9), found, at(100))
            .await
            .unwrap()
    );
}

async fn taken(outbox: &Subject, now: i64) -> Option<(u64, u32)> {
    let taken = outbox.take("a", at(now), at(now + 50)).await.unwrap();
    taken.map(|delivery| (delivery.position.0, delivery.index))
}

pub async fn an_endpoint_that_was_never_seen_has_nothing(outbox: Subject) {
    assert_eq!(outbox.standing("a").await.unwrap(), None);
    assert_eq!(outbox.next_at("a").await.unwrap(), None);
    assert_eq!(taken(&outbox, 1000).await, None);
    assert_eq!(outbox.count("a", DeliveryState::Waiting).await.unwrap(), 0);
    assert_eq!(outbox.revive("a", at(1)).await.unwrap(), 0);
}

pub async fn what_was_found_is_due_in_order(outbox: Subject) {
    with(&outbox, &[(3, 0), (5, 0), (3, 1)]).await;
    assert_eq!(outbox.next_at("a").await.unwrap(), Some(at(100)));
    assert_eq!(taken(&outbox, 99).await, None);
    assert_eq!(taken(&outbox, 100).await, Some((3, 0)));
    assert_eq!(taken(&outbox, 100).await, Some((3, 1)));
    assert_eq!(taken(&outbox, 100).await, Some((5, 0)));
    assert_eq!(taken(&outbox, 100).await, None);
    assert_eq!(outbox.count("a", DeliveryState::Waiting).await.unwrap(), 3);
    assert_eq!(
        outbox
            .list("a", DeliveryState::Waiting, 2)
            .await
            .unwrap()
            .len(),
        2
    );
}

pub async fn a_cursor_that_moved_is_not_moved_again(outbox: Subject) {
    with(&outbox, &[]).await;
    assert_eq!(
        outbox.standing("a").await.unwrap().unwrap().cursor,
        Position(9)
    );
    let found = || vec![(Position(10), 0)];
    assert!(
        !outbox
            .advance("a", None, Position(10), found(), at(1))
            .await
            .unwrap()
    );
    assert!(
        !outbox
            .advance("a", Some(Position(8)), Position(10), found(), at(1))
            .await
            .unwrap()
    );
    assert_eq!(outbox.count("a", DeliveryState::Waiting).await.unwrap(), 0);
    assert!(
        outbox
            .advance("a", Some(Position(9)), Position(10), found(), at(1))
            .await
            .unwrap()
    );
    assert_eq!(outbox.count("a", DeliveryState::Waiting).await.unwrap(), 1);
}

pub async fn what_was_taken_is_left_alone_for_a_while(outbox: Subject) {
    with(&outbox, &[(1, 0)]).await;
    let first = outbox.take("a", at(100), at(150)).await.unwrap().unwrap();
    assert_eq!((first.attempts, first.next_at), (1, at(150)));
    assert_eq!(taken(&outbox, 149).await, None);
    let second = outbox.take("a", at(150), at(200)).await.unwrap().unwrap();
    assert_eq!(second.attempts, 2);
}

pub async fn what_arrived_is_forgotten_and_what_failed_comes_back(outbox: Subject) {
    with(&outbox, &[(1, 0), (2, 0)]).await;
    let first = outbox.take("a", at(100), at(150)).await.unwrap().unwrap();
    outbox
        .settle(
            "a",
            &first,
            Settled::Again {
                at: at(500),
                error: "no".into(),
            },
        )
        .await
        .unwrap();
    let second = outbox.take("a", at(100), at(150)).await.unwrap().unwrap();
    assert_eq!(second.position, Position(2));
    outbox.settle("a", &second, Settled::Done).await.unwrap();
    assert_eq!(outbox.next_at("a").await.unwrap(), Some(at(500)));
    let again = outbox.take("a", at(500), at(550)).await.unwrap().unwrap();
    assert_eq!(
        (again.position, again.attempts, again.last_error.as_deref()),
        (Position(1), 2, Some("no"))
    );
    assert_eq!(outbox.count("a", DeliveryState::Waiting).await.unwrap(), 1);
}

pub async fn what_was_given_up_can_be_revived(outbox: Subject) {
    with(&outbox, &[(1, 0)]).await;
    let first = outbox.take("a", at(100), at(150)).await.unwrap().unwrap();
    outbox
        .settle(
            "a",
            &first,
            Settled::Dead {
                error: "never".into(),
            },
        )
        .await
        .unwrap();
    assert_eq!(taken(&outbox, 10_000).await, None);
    assert_eq!(outbox.next_at("a").await.unwrap(), None);
    let dead = outbox.list("a", DeliveryState::Dead, 10).await.unwrap();
    assert_eq!(dead[0].last_error.as_deref(), Some("never"));
    assert_eq!(outbox.count("a", DeliveryState::Dead).await.unwrap(), 1);
    assert_eq!(outbox.revive("a", at(20_000)).await.unwrap(), 1);
    let again = outbox
        .take("a", at(20_000), at(20_050))
        .await
        .unwrap()
        .unwrap();
    assert_eq!(again.attempts, 1);
}

pub async fn a_disabled_endpoint_says_why_and_has_nothing_due(outbox: Subject) {
    with(&outbox, &[(1, 0)]).await;
    outbox.disable("a", "it is gone").await.unwrap();
    assert_eq!(
        outbox
            .standing("a")
            .await
            .unwrap()
            .unwrap()
            .disabled
            .as_deref(),
        Some("it is gone")
    );
    assert_eq!(
        (
            taken(&outbox, 1000).await,
            outbox.next_at("a").await.unwrap()
        ),
        (None, None)
    );
    assert_eq!(outbox.count("a", DeliveryState::Waiting).await.unwrap(), 1);
    outbox.revive("a", at(1)).await.unwrap();
    assert_eq!(outbox.standing("a").await.unwrap().unwrap().disabled, None);
    assert_eq!(taken(&outbox, 1000).await, Some((1, 0)));
}

pub async fn endpoints_do_not_see_each_other(outbox: Subject) {
    with(&outbox, &[(1, 0)]).await;
    assert!(
        outbox
            .advance("b", None, Position(4), vec![(Position(1), 0)], at(1))
            .await
            .unwrap()
    );
    let other = outbox.take("b", at(1), at(9)).await.unwrap().unwrap();
    outbox.settle("b", &other, Settled::Done).await.unwrap();
    outbox.disable("b", "gone").await.unwrap();
    assert_eq!(taken(&outbox, 100).await, Some((1, 0)));
    assert_eq!(outbox.standing("a").await.unwrap().unwrap().disabled, None);
}
