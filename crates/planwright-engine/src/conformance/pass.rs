//! The laws of [`Passes`].

use crate::port::{Pass, PassKind, Passes};
use planwright_core::digest::Digest;
use planwright_core::policy::Role;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use std::slice::from_ref;
use std::sync::Arc;

type Subject = Arc<dyn Passes>;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn pass(kind: PassKind, text: &str) -> Pass {
    Pass {
        kind,
        hash: Digest::of_bytes(text.as_bytes()),
        proof: None,
        token: None,
        principal: Principal::person("Ada Größe"),
        role: Role::Operator,
        assurance: Assurance::WebSignIn,
        created_at: at(1_000),
        expires_at: at(9_000),
    }
}

pub async fn a_pass_is_found_by_kind_and_hash_as_it_was_added(passes: Subject) {
    let session = Pass {
        proof: Some(Digest::of_bytes(b"proof")),
        token: Some(Digest::of_bytes(b"token")),
        assurance: Assurance::Token,
        ..pass(PassKind::Session, "one")
    };
    let invitation = pass(PassKind::Invitation, "two");
    for added in [&session, &invitation] {
        assert!(passes.add(added, 10, at(2_000)).await.unwrap());
        let found = passes.find(added.kind, &added.hash).await.unwrap();
        assert_eq!(found.as_ref(), Some(added));
        assert_eq!(passes.list(added.kind).await.unwrap(), from_ref(added));
    }
    let other = passes.find(PassKind::Invitation, &session.hash).await;
    assert_eq!(other.unwrap(), None);
}

pub async fn a_pass_is_taken_once(passes: Subject) {
    let invitation = pass(PassKind::Invitation, "one");
    passes.add(&invitation, 10, at(2_000)).await.unwrap();
    let wrong = passes.take(PassKind::Session, &invitation.hash).await;
    assert_eq!(wrong.unwrap(), None);
    let taken = passes.take(PassKind::Invitation, &invitation.hash).await;
    assert_eq!(taken.unwrap(), Some(invitation.clone()));
    let again = passes.take(PassKind::Invitation, &invitation.hash).await;
    assert_eq!(again.unwrap(), None);
}

pub async fn a_session_can_last_longer(passes: Subject) {
    let session = pass(PassKind::Session, "one");
    let invitation = pass(PassKind::Invitation, "two");
    passes.add(&session, 10, at(2_000)).await.unwrap();
    passes.add(&invitation, 10, at(2_000)).await.unwrap();
    assert!(passes.extend(&session.hash, at(20_000)).await.unwrap());
    assert!(!passes.extend(&invitation.hash, at(20_000)).await.unwrap());
    let found = passes.find(PassKind::Session, &session.hash).await.unwrap();
    assert_eq!(
        found,
        Some(Pass {
            expires_at: at(20_000),
            ..session
        })
    );
}

pub async fn expired_passes_make_room_and_others_do_not(passes: Subject) {
    let old = pass(PassKind::Session, "old");
    assert!(passes.add(&old, 1, at(2_000)).await.unwrap());
    let new = Pass {
        expires_at: at(90_000),
        ..pass(PassKind::Session, "new")
    };
    assert!(!passes.add(&new, 1, at(8_999)).await.unwrap());
    let other = pass(PassKind::Invitation, "other");
    assert!(passes.add(&other, 1, at(8_999)).await.unwrap());
    assert!(passes.add(&new, 1, at(9_000)).await.unwrap());
    assert_eq!(
        passes.list(PassKind::Session).await.unwrap(),
        from_ref(&new)
    );
    assert!(passes.add(&new, 10, at(9_000)).await.is_err(), "twice");
}

/// Makes one test of every law about passes, as [`store_laws!`](crate::store_laws) does for stores.
#[macro_export]
macro_rules! pass_laws {
    ($make:ident) => {
        $crate::pass_laws! { @tests $make;
            a_pass_is_found_by_kind_and_hash_as_it_was_added,
            a_pass_is_taken_once,
            a_session_can_last_longer,
            expired_passes_make_room_and_others_do_not,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $law() {
            let (passes, _keep) = $make();
            $crate::conformance::pass::$law(passes).await;
        })*
    };
}
