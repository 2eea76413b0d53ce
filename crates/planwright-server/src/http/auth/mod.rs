//! Who may use the service: hosts and origins, tokens, sessions and tickets, and the actions that each
//! route requires.

mod caller;
mod confirmations;
mod cookie;
mod hosts;
mod layer;
mod sign_in;
mod stream_expiry;
mod tickets;
mod visits;

pub use caller::Caller;
pub(crate) use caller::{ToldTrace, Trace, authorize};
pub(crate) use confirmations::{Confirmations, PasskeyPurpose};
pub(crate) use cookie::{cookie_text, keep_cookie, own_origin, own_url, set_visit, visit_of};
pub use hosts::{AllowedHost, ParseHostError};
pub(crate) use hosts::{check_host, is_allowed_origin};
pub use layer::RouteAccess;
pub(crate) use layer::{authenticate_request, is_always_admitted};
pub use sign_in::{SignIn, secret};
pub(crate) use stream_expiry::close_expired_streams;
pub(crate) use tickets::give_ticket;
pub use visits::SingleSignOn;
pub(crate) use visits::{VISIT_KEY, VISIT_LIFE, Visits};
