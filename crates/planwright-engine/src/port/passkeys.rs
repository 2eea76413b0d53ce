//! Passkeys: keys that people have in their devices, and what those say when they are asked.

use super::{BoxFuture, StoreError};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use std::fmt;

/// The record of a passkey. Its secret half never leaves the device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Passkey {
    /// The id by which the device knows it.
    pub id: Vec<u8>,
    /// The person whose it is.
    pub owner: Principal,
    /// The name that its owner gave it.
    pub label: String,
    /// Its public half, as the device told it.
    pub key: Vec<u8>,
    /// The number of times the device says it was used; 0 if it does not count.
    pub counter: u32,
    /// Time at which it was registered.
    pub created_at: Timestamp,
    /// Time at which it was used last.
    pub used_at: Option<Timestamp>,
}

/// Keeps passkeys. What another process changes is seen at once.
pub trait Passkeys: Send + Sync + fmt::Debug {
    /// Keeps a passkey. Returns `false` if its owner has `most` already. Refused if another one has its id.
    fn add<'a>(
        &'a self,
        passkey: &'a Passkey,
        most: usize,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// All of a person, oldest first.
    fn list<'a>(&'a self, owner: &'a Principal) -> BoxFuture<'a, Result<Vec<Passkey>, StoreError>>;

    /// Notes that one was used: its counter before, and now. Returns `false` if there is none with this id, or its
    /// counter is another one by then: of two uses at once, one counts.
    fn note_use<'a>(
        &'a self,
        id: &'a [u8],
        counters: (u32, u32),
        at: Timestamp,
    ) -> BoxFuture<'a, Result<bool, StoreError>>;

    /// Removes one of a person. Returns whether there was one.
    fn remove<'a>(
        &'a self,
        owner: &'a Principal,
        id: &'a [u8],
    ) -> BoxFuture<'a, Result<bool, StoreError>>;
}

/// The conditions that the answer of a device has to meet.
#[derive(Debug, Clone, Copy)]
pub struct Ceremony<'a> {
    /// The challenge that it was asked to sign, once.
    pub challenge: &'a [u8],
    /// The pages that asked, such as `https://plans.example.org`.
    pub origin: &'a str,
    /// The host that the passkey is for.
    pub host: &'a str,
}

/// The answer of a device that makes a passkey.
#[derive(Debug, Clone)]
pub struct Registration {
    /// The client data, in the words of the browser.
    pub client_data: Vec<u8>,
    /// The attestation that the device made.
    pub attestation: Vec<u8>,
}

/// A passkey that a device made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MadePasskey {
    /// The id by which the device knows it.
    pub id: Vec<u8>,
    /// Its public half.
    pub key: Vec<u8>,
    /// The number of times the device says it was used.
    pub counter: u32,
}

/// The answer of a device whose passkey is used.
#[derive(Debug, Clone)]
pub struct Assertion {
    /// The client data, in the words of the browser.
    pub client_data: Vec<u8>,
    /// The statements of the device about itself and the person.
    pub authenticator_data: Vec<u8>,
    /// The signature over both.
    pub signature: Vec<u8>,
}

/// The reason what a device said does not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PasskeyFault {
    /// It cannot be read.
    #[error("what the device said cannot be read")]
    Unreadable,
    /// It is about something else: the other ceremony, another challenge, or another page.
    #[error("the device answered another question")]
    OtherQuestion,
    /// It is for another host.
    #[error("the passkey is for another host")]
    OtherHost,
    /// The device did not see the person, or did not check who they are.
    #[error("the device did not check who is in front of it")]
    Unverified,
    /// The key is of a kind that is not taken.
    #[error("the device signs in a way that is not taken")]
    Algorithm,
    /// The key did not sign it.
    #[error("the signature is not of this passkey")]
    Signature,
    /// The device counts from before: there may be a copy of it.
    #[error("the passkey was used elsewhere since: there may be a copy of it")]
    Counter,
}

/// Checks what devices say.
pub trait PasskeyVerifier: Send + Sync + fmt::Debug {
    /// Checks what a device said when it made a passkey.
    fn check_registration(
        &self,
        ceremony: Ceremony<'_>,
        said: &Registration,
    ) -> Result<MadePasskey, PasskeyFault>;

    /// Checks what a device said when a passkey was used. Returns its new counter.
    fn check_assertion(
        &self,
        ceremony: Ceremony<'_>,
        passkey: &Passkey,
        said: &Assertion,
    ) -> Result<u32, PasskeyFault>;
}
