//! The laws of [`ServiceNotes`].

use crate::port::{NoteKind, ServiceNote, ServiceNotes};
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::sync::Arc;

type Subject = Arc<dyn ServiceNotes>;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn note(kind: NoteKind, key: &str, value: &str) -> ServiceNote {
    ServiceNote {
        kind,
        key: Digest::of_bytes(key.as_bytes()),
        value: value.as_bytes().to_vec(),
        expires_at: at(9_000),
    }
}

pub async fn a_note_is_found_until_it_expires_and_under_its_kind_only(notes: Subject) {
    let ticket = note(NoteKind::Ticket, "a", "one");
    assert!(notes.put_note(&ticket, 10, at(1_000)).await.unwrap());
    let find = |kind, now| notes.find_note(kind, &ticket.key, at(now));
    let found = find(NoteKind::Ticket, 8_999).await.unwrap();
    assert_eq!(found, Some(b"one".to_vec()));
    assert_eq!(find(NoteKind::Challenge, 2_000).await.unwrap(), None);
    assert_eq!(find(NoteKind::Ticket, 9_000).await.unwrap(), None);
    let late = notes.take_note(NoteKind::Ticket, &ticket.key, at(9_000));
    assert_eq!(late.await.unwrap(), None);
}

pub async fn a_note_is_taken_once(notes: Subject) {
    let ticket = note(NoteKind::Ticket, "a", "one");
    notes.put_note(&ticket, 10, at(1_000)).await.unwrap();
    let take = || notes.take_note(NoteKind::Ticket, &ticket.key, at(2_000));
    let both = futures::future::join(take(), take()).await;
    let both = [both.0.unwrap(), both.1.unwrap()];
    assert_eq!(both.iter().flatten().count(), 1, "{both:?}");
    assert_eq!(take().await.unwrap(), None);
}

pub async fn a_later_note_replaces_an_earlier_one(notes: Subject) {
    for value in ["one", "two"] {
        let kept = notes
            .put_note(&note(NoteKind::PlanningJob, "a", value), 1, at(1_000))
            .await;
        assert!(kept.unwrap(), "{value}");
    }
    let key = Digest::of_bytes(b"a");
    let found = notes.find_note(NoteKind::PlanningJob, &key, at(2_000));
    assert_eq!(found.await.unwrap(), Some(b"two".to_vec()));
}

pub async fn there_are_no_more_notes_of_a_kind_than_are_wanted(notes: Subject) {
    for (key, kept) in [("a", true), ("b", true), ("c", false)] {
        let ticket = note(NoteKind::Ticket, key, "x");
        let put = notes.put_note(&ticket, 2, at(1_000)).await;
        assert_eq!(put.unwrap(), kept, "{key}");
    }
    let challenge = note(NoteKind::Challenge, "c", "x");
    assert!(notes.put_note(&challenge, 2, at(1_000)).await.unwrap());
    // Those that expired leave room.
    let late = ServiceNote {
        expires_at: at(20_000),
        ..note(NoteKind::Ticket, "c", "x")
    };
    assert!(notes.put_note(&late, 2, at(9_000)).await.unwrap());
}

pub async fn a_shared_key_stays_the_same_and_differs_by_name(notes: Subject) {
    let (one, two) =
        futures::future::join(notes.shared_key("visits"), notes.shared_key("visits")).await;
    let one = one.unwrap();
    assert_eq!(one, two.unwrap());
    assert!(one.len() >= 64);
    assert_ne!(one, notes.shared_key("others").await.unwrap());
}

/// Makes one test of every law about notes, as [`store_laws!`](crate::store_laws) does for stores.
#[macro_export]
macro_rules! note_laws {
    ($make:ident) => {
        $crate::note_laws! { @tests $make;
            a_note_is_found_until_it_expires_and_under_its_kind_only,
            a_note_is_taken_once,
            a_later_note_replaces_an_earlier_one,
            there_are_no_more_notes_of_a_kind_than_are_wanted,
            a_shared_key_stays_the_same_and_differs_by_name,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $law() {
            let (notes, _keep) = $make();
            $crate::conformance::note::$law(notes).await;
        })*
    };
}
