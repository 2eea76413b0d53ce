//! People who are recognised by a provider of OpenID Connect: authorization code with PKCE, state and
//! nonce. The signature, issuer, audience, times and nonce of what it says are checked.

mod identity_token;
mod provider;

pub use provider::{OidcOptions, OidcOptionsError, OidcProvider};
