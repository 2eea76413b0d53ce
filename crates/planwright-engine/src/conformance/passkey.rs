//! The laws of [`Passkeys`].

use crate::port::{Passkey, Passkeys};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use std::slice::from_ref;
use std::sync::Arc;

type Subject = Arc<dyn Passkeys>;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn ada() -> Principal {
    Principal::person("Ada Größe")
}

fn passkey(id: &[u8], owner: Principal) -> Passkey {
    Passkey {
        id: id.to_vec(),
        owner,
        label: "my key".to_owned(),
        key: vec![1, 2, 3],
        counter: 7,
        created_at: at(1_000),
        used_at: None,
    }
}

pub async fn passkeys_are_listed_by_their_owner_as_they_were_added(passkeys: Subject) {
    let first = passkey(b"one", ada());
    let second = passkey(b"two", ada());
    let other = passkey(b"three", Principal::person("bob"));
    for added in [&first, &other, &second] {
        assert!(passkeys.add(added, 10).await.unwrap());
    }
    assert_eq!(
        passkeys.list(&ada()).await.unwrap(),
        [first.clone(), second]
    );
    assert_eq!(passkeys.list(&other.owner).await.unwrap(), from_ref(&other));
    let agent = Principal::agent("bob");
    assert_eq!(passkeys.list(&agent).await.unwrap(), []);
    let stolen = passkey(b"one", other.owner.clone());
    assert!(passkeys.add(&stolen, 10).await.is_err(), "its id is taken");
    assert_eq!(passkeys.list(&other.owner).await.unwrap(), from_ref(&other));
}

pub async fn each_person_has_only_so_many_passkeys(passkeys: Subject) {
    assert!(passkeys.add(&passkey(b"one", ada()), 1).await.unwrap());
    assert!(!passkeys.add(&passkey(b"two", ada()), 1).await.unwrap());
    let other = passkey(b"three", Principal::person("bob"));
    assert!(passkeys.add(&other, 1).await.unwrap());
}

pub async fn of_two_uses_at_once_one_counts(passkeys: Subject) {
    let first = passkey(b"one", ada());
    passkeys.add(&first, 10).await.unwrap();
    assert!(passkeys.note_use(b"one", (7, 9), at(2_000)).await.unwrap());
    assert!(!passkeys.note_use(b"one", (7, 9), at(2_000)).await.unwrap());
    assert!(!passkeys.note_use(b"two", (7, 9), at(2_000)).await.unwrap());
    let used = Passkey {
        counter: 9,
        used_at: Some(at(2_000)),
        ..first
    };
    assert_eq!(passkeys.list(&ada()).await.unwrap(), [used]);
}

pub async fn a_passkey_is_removed_by_its_owner(passkeys: Subject) {
    passkeys.add(&passkey(b"one", ada()), 10).await.unwrap();
    let bob = Principal::person("bob");
    assert!(!passkeys.remove(&bob, b"one").await.unwrap());
    assert!(!passkeys.remove(&ada(), b"two").await.unwrap());
    assert!(passkeys.remove(&ada(), b"one").await.unwrap());
    assert!(!passkeys.remove(&ada(), b"one").await.unwrap());
    assert_eq!(passkeys.list(&ada()).await.unwrap(), []);
}

/// Makes one test of every law about passkeys, as [`store_laws!`](crate::store_laws) does for stores.
#[macro_export]
macro_rules! passkey_laws {
    ($make:ident) => {
        $crate::passkey_laws! { @tests $make;
            passkeys_are_listed_by_their_owner_as_they_were_added,
            each_person_has_only_so_many_passkeys,
            of_two_uses_at_once_one_counts,
            a_passkey_is_removed_by_its_owner,
        }
    };
    (@tests $make:ident; $($law:ident),* $(,)?) => {
        $(#[tokio::test]
        async fn $law() {
            let (passkeys, _keep) = $make();
            $crate::conformance::passkey::$law(passkeys).await;
        })*
    };
}
