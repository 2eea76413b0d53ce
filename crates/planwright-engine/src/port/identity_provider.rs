//! Another service that knows who people are.

use super::BoxFuture;
use serde_json::{Map, Value};
use std::fmt;

/// A person's way to the provider and back. What it holds is secret until they are back.
#[derive(Clone)]
pub struct ProviderVisit {
    /// Where the person's browser comes back to.
    pub redirect: String,
    /// What has to come back with them.
    pub state: String,
    /// What the provider has to repeat in what it says about them.
    pub nonce: String,
    /// What proves that the one who asked is the one who comes back.
    pub verifier: String,
}

/// Nothing of it is for a log.
impl fmt::Debug for ProviderVisit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ProviderVisit")
    }
}

/// The reason a provider recognised no person.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The provider does not answer, or not as one.
    #[error("the identity provider does not answer: {0}")]
    Unavailable(String),
    /// The provider refused, or what it said does not hold.
    #[error("the identity provider did not recognise the person: {0}")]
    Refused(String),
}

/// Recognises people.
pub trait IdentityProvider: Send + Sync + fmt::Debug {
    /// Returns where the person's browser is sent for this visit.
    fn address<'a>(
        &'a self,
        visit: &'a ProviderVisit,
    ) -> BoxFuture<'a, Result<String, IdentityError>>;

    /// Asks what the provider knows about the person who came back with this code. What it says is
    /// checked: it is for us, for this visit, of now, and signed.
    fn finish<'a>(
        &'a self,
        visit: &'a ProviderVisit,
        code: &'a str,
    ) -> BoxFuture<'a, Result<Map<String, Value>, IdentityError>>;
}
