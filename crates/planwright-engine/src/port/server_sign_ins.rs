//! Signing in to the servers of tools from a browser that is not on this machine.

use super::{BoxFuture, ProviderVisit};
use planwright_core::principal::Principal;
use std::fmt;

/// A server that people can sign in to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInServer {
    /// The operator's name for it.
    pub name: String,
    /// A person has signed in: the one who asks, if each signs in by themselves.
    pub signed_in: bool,
    /// People sign in by themselves, and runs use the sign-in of the person whose name they are in.
    pub is_personal: bool,
}

/// What a browser brings back from the one who signs in for a server.
#[derive(Clone, Copy)]
pub struct ReturnedCode<'a> {
    /// What is exchanged for tokens.
    pub code: &'a str,
    /// Who answered, if that was said.
    pub issuer: Option<&'a str>,
}

/// A code is for no log.
impl fmt::Debug for ReturnedCode<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReturnedCode")
    }
}

/// The reason a sign-in to a server came to nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServerSignInError {
    /// There is no such server, or nothing to sign in to.
    #[error("people cannot sign in to a server `{0}` here")]
    Unknown(String),
    /// The server, or the one who signs in for it, does not answer, or not as one.
    #[error("{0}")]
    Unavailable(String),
    /// It was refused there.
    #[error("{0}")]
    Refused(String),
}

/// Signs people in to servers.
pub trait ServerSignIns: Send + Sync + fmt::Debug {
    /// Lists the servers that people can sign in to, by name, as this person sees them.
    fn servers<'a>(&'a self, person: &'a Principal) -> BoxFuture<'a, Vec<SignInServer>>;

    /// Returns whether people sign in to this server by themselves. `None`: it is not one that people
    /// can sign in to.
    fn is_personal(&self, server: &str) -> Option<bool>;

    /// Returns where the person's browser is sent for this visit.
    fn address<'a>(
        &'a self,
        server: &'a str,
        visit: &'a ProviderVisit,
    ) -> BoxFuture<'a, Result<String, ServerSignInError>>;

    /// Exchanges what the browser of this person brought back for tokens, and keeps them.
    fn finish<'a>(
        &'a self,
        server_and_person: (&'a str, &'a Principal),
        visit: &'a ProviderVisit,
        returned: ReturnedCode<'a>,
    ) -> BoxFuture<'a, Result<(), ServerSignInError>>;

    /// Forgets the tokens: this person's, or those that all share. Returns whether there were any.
    fn sign_out<'a>(
        &'a self,
        server: &'a str,
        person: &'a Principal,
    ) -> BoxFuture<'a, Result<bool, ServerSignInError>>;
}
