//! Who may use the service: hosts and origins, tokens, sessions and tickets, and the actions that each
//! route requires.

mod caller;
mod hosts;
mod layer;
mod sign_in;
mod stream_expiry;
mod tickets;

pub use caller::Caller;
pub(crate) use caller::{Trace, authorize};
pub(crate) use hosts::check_host;
pub use hosts::{AllowedHost, ParseHostError};
pub use layer::RouteAccess;
pub(crate) use layer::{authenticate_request, is_always_admitted};
pub use sign_in::{SignIn, secret};
pub(crate) use stream_expiry::close_expired_streams;
pub use tickets::Tickets;
