//! Passkeys of people: made, used and removed here.
//!
//! A passkey adds to a session that it is the person's own device in front of which they sit right now. The first one of a
//! person is believed because their session is; every further one, and the removal of any, has to be confirmed with one that
//! is there: a stolen session adds none of its own.

use super::passes::SignInError;
use crate::port::{
    Assertion, Ceremony, Passkey, PasskeyFault, PasskeyVerifier, Passkeys, Registration, StoreError,
};
use planwright_core::error::{ClassifiedError, ErrorClass, ErrorKind, Hint};
use planwright_core::policy::Roles;
use planwright_core::principal::Principal;
use planwright_core::text::sanitize_line;
use planwright_core::time::Timestamp;
use std::time::Duration;

/// The time a confirmation counts.
pub const CONFIRMED_FOR: Duration = Duration::from_mins(15);
/// More devices than a person has.
pub const MAX_PASSKEYS: usize = 20;
/// The most characters of what a person calls a passkey.
pub const MAX_LABEL: usize = 60;

/// The reason a passkey was not made, used or removed.
#[derive(Debug, thiserror::Error)]
pub enum PasskeyError {
    /// What the device said does not hold.
    #[error("the passkey is refused: {0}")]
    Refused(#[from] PasskeyFault),
    /// The person has one, and has not shown it.
    #[error("this has to be confirmed with a passkey that you have already")]
    NotConfirmed,
    /// The person has none with this id.
    #[error("you have no such passkey")]
    Unknown,
    /// The person has as many as are stored.
    #[error("you have {0} passkeys already")]
    TooMany(usize),
    /// What they call it cannot be shown.
    #[error("a passkey is called something with 1 to {MAX_LABEL} visible characters")]
    Label,
    /// The store could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ClassifiedError for PasskeyError {
    fn class(&self) -> ErrorClass {
        match self {
            Self::Refused(_) => ErrorKind::Forbidden.with_code("passkey_refused"),
            Self::NotConfirmed => ErrorKind::Forbidden.with_code("passkey_needed"),
            Self::Unknown => ErrorKind::NotFound.with_code("unknown_passkey"),
            Self::TooMany(_) => ErrorKind::Conflict.with_code("too_many_passkeys"),
            Self::Label => ErrorKind::Invalid.with_code("bad_passkey_label"),
            Self::Store(error) => error.class(),
        }
    }

    fn hint(&self) -> Option<Hint> {
        match self {
            Self::Store(error) => error.hint(),
            Self::Refused(_)
            | Self::NotConfirmed
            | Self::Unknown
            | Self::TooMany(_)
            | Self::Label => None,
        }
    }
}

/// A person who has signed in.
#[derive(Debug, Clone, Copy)]
pub struct Holder<'a> {
    /// Who it is.
    pub principal: &'a Principal,
    /// They have just used a passkey.
    pub confirmed: bool,
}

/// Keeps a passkey that the device of a person has made.
pub async fn register_passkey(
    (passkeys, verifier): (&dyn Passkeys, &dyn PasskeyVerifier),
    holder: Holder<'_>,
    (ceremony, said): (Ceremony<'_>, &Registration),
    label: &str,
    now: Timestamp,
) -> Result<Passkey, PasskeyError> {
    let length = label.chars().count();
    if !(1..=MAX_LABEL).contains(&length) || sanitize_line(label) != label || label.trim() != label
    {
        return Err(PasskeyError::Label);
    }
    check_confirmed(passkeys, holder).await?;
    let made = verifier.check_registration(ceremony, said)?;
    let passkey = Passkey {
        id: made.id,
        owner: holder.principal.clone(),
        label: label.to_owned(),
        key: made.key,
        counter: made.counter,
        created_at: now,
        used_at: None,
    };
    if passkeys.add(&passkey, MAX_PASSKEYS).await? {
        Ok(passkey)
    } else {
        Err(PasskeyError::TooMany(MAX_PASSKEYS))
    }
}

/// Checks that a person who has a passkey has shown it.
async fn check_confirmed(passkeys: &dyn Passkeys, holder: Holder<'_>) -> Result<(), PasskeyError> {
    if holder.confirmed || passkeys.list(holder.principal).await?.is_empty() {
        Ok(())
    } else {
        Err(PasskeyError::NotConfirmed)
    }
}

/// Checks that a person has used one of their passkeys right now.
pub async fn confirm_with_passkey(
    (passkeys, verifier): (&dyn Passkeys, &dyn PasskeyVerifier),
    owner: &Principal,
    (ceremony, said): (Ceremony<'_>, &Assertion),
    id: &[u8],
    now: Timestamp,
) -> Result<(), PasskeyError> {
    let own = passkeys.list(owner).await?;
    let passkey = own.iter().find(|passkey| passkey.id == id);
    let passkey = passkey.ok_or(PasskeyError::Unknown)?;
    let counter = verifier.check_assertion(ceremony, passkey, said)?;
    let counters = (passkey.counter, counter);
    if passkeys.note_use(id, counters, now).await? {
        Ok(())
    } else {
        // Another use was faster, with the same count.
        Err(PasskeyFault::Counter.into())
    }
}

/// Removes all passkeys of a person who lost their device, if `by` may take access away. Returns how many there were.
pub async fn forget_passkeys(
    passkeys: &dyn Passkeys,
    (roles, by): (&Roles, &Principal),
    of: &Principal,
) -> Result<usize, SignInError> {
    // Their own ones too: what is gone no longer says that it was them.
    roles.check_revoke(by)?;
    let mut forgotten = 0;
    for passkey in passkeys.list(of).await? {
        if passkeys.remove(of, &passkey.id).await? {
            forgotten += 1;
        }
    }
    Ok(forgotten)
}

/// Removes a passkey of a person.
pub async fn remove_passkey(
    passkeys: &dyn Passkeys,
    holder: Holder<'_>,
    id: &[u8],
) -> Result<(), PasskeyError> {
    check_confirmed(passkeys, holder).await?;
    if passkeys.remove(holder.principal, id).await? {
        Ok(())
    } else {
        Err(PasskeyError::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::MemoryPasskeys;
    use crate::port::MadePasskey;

    /// Believes devices that repeat the challenge.
    #[derive(Debug)]
    struct Gullible;

    impl PasskeyVerifier for Gullible {
        fn check_registration(
            &self,
            ceremony: Ceremony<'_>,
            said: &Registration,
        ) -> Result<MadePasskey, PasskeyFault> {
            if said.client_data != ceremony.challenge {
                return Err(PasskeyFault::OtherQuestion);
            }
            Ok(MadePasskey {
                id: said.attestation.clone(),
                key: Vec::new(),
                counter: 0,
            })
        }

        fn check_assertion(
            &self,
            ceremony: Ceremony<'_>,
            passkey: &Passkey,
            said: &Assertion,
        ) -> Result<u32, PasskeyFault> {
            if said.client_data != ceremony.challenge {
                return Err(PasskeyFault::OtherQuestion);
            }
            Ok(passkey.counter + 1)
        }
    }

    const CEREMONY: Ceremony<'static> = Ceremony {
        challenge: b"once",
        origin: "https://example.org",
        host: "example.org",
    };

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    async fn register(
        passkeys: &MemoryPasskeys,
        (name, confirmed): (&str, bool),
        id: &str,
    ) -> Result<Passkey, PasskeyError> {
        let principal = Principal::person(name);
        let holder = Holder {
            principal: &principal,
            confirmed,
        };
        let said = Registration {
            client_data: b"once".to_vec(),
            attestation: id.as_bytes().to_vec(),
        };
        register_passkey(
            (passkeys, &Gullible),
            holder,
            (CEREMONY, &said),
            "key",
            at(1),
        )
        .await
    }

    #[tokio::test]
    async fn only_the_first_passkey_is_made_without_another() {
        let passkeys = MemoryPasskeys::new();
        register(&passkeys, ("ada", false), "one").await.unwrap();
        let refused = register(&passkeys, ("ada", false), "two").await;
        assert!(matches!(refused, Err(PasskeyError::NotConfirmed)));
        register(&passkeys, ("bob", false), "three").await.unwrap();
        register(&passkeys, ("ada", true), "two").await.unwrap();
        let ada = Principal::person("ada");
        let stolen = Holder {
            principal: &ada,
            confirmed: false,
        };
        let refused = remove_passkey(&passkeys, stolen, b"one").await;
        assert!(matches!(refused, Err(PasskeyError::NotConfirmed)));
        let own = Holder {
            confirmed: true,
            ..stolen
        };
        let of_another = remove_passkey(&passkeys, own, b"three").await;
        assert!(matches!(of_another, Err(PasskeyError::Unknown)));
        remove_passkey(&passkeys, own, b"one").await.unwrap();
    }

    #[tokio::test]
    async fn a_passkey_confirms_its_owner_only() {
        let passkeys = MemoryPasskeys::new();
        register(&passkeys, ("ada", false), "one").await.unwrap();
        let confirm = async |name: &str, id: &str, client_data: &str| {
            let said = Assertion {
                client_data: client_data.as_bytes().to_vec(),
                authenticator_data: Vec::new(),
                signature: Vec::new(),
            };
            let ports: (&dyn Passkeys, &dyn PasskeyVerifier) = (&passkeys, &Gullible);
            let owner = Principal::person(name);
            confirm_with_passkey(ports, &owner, (CEREMONY, &said), id.as_bytes(), at(5)).await
        };
        confirm("ada", "one", "once").await.unwrap();
        assert!(matches!(
            confirm("bob", "one", "once").await,
            Err(PasskeyError::Unknown)
        ));
        assert!(matches!(
            confirm("ada", "two", "once").await,
            Err(PasskeyError::Unknown)
        ));
        assert!(matches!(
            confirm("ada", "one", "twice").await,
            Err(PasskeyError::Refused(_))
        ));
        let ada = passkeys.list(&Principal::person("ada")).await.unwrap();
        assert_eq!((ada[0].counter, ada[0].used_at), (1, Some(at(5))));
    }

    #[tokio::test]
    async fn those_who_may_take_access_away_forget_the_passkeys_of_a_person() {
        let passkeys = MemoryPasskeys::new();
        register(&passkeys, ("ada", false), "one").await.unwrap();
        register(&passkeys, ("bob", false), "two").await.unwrap();
        let roles = Roles::default();
        let ada = Principal::person("ada");
        let agent = Principal::agent("bot");
        let refused = forget_passkeys(&passkeys, (&roles, &agent), &ada).await;
        assert!(matches!(refused, Err(SignInError::Refused(_))));
        let bob = Principal::person("bob");
        let forgotten = forget_passkeys(&passkeys, (&roles, &bob), &ada).await;
        assert_eq!(forgotten.unwrap(), 1);
        assert_eq!(passkeys.list(&bob).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn labels_are_shown_as_they_are() {
        let passkeys = MemoryPasskeys::new();
        let principal = Principal::person("ada");
        let holder = Holder {
            principal: &principal,
            confirmed: false,
        };
        let said = Registration {
            client_data: b"once".to_vec(),
            attestation: b"one".to_vec(),
        };
        for label in ["", " key", "a\u{202e}b", &"x".repeat(61)] {
            let ports: (&dyn Passkeys, &dyn PasskeyVerifier) = (&passkeys, &Gullible);
            let made = register_passkey(ports, holder, (CEREMONY, &said), label, at(1)).await;
            assert!(matches!(made, Err(PasskeyError::Label)), "{label}");
        }
    }
}
