//! One noun per file: each route says what it takes, what it answers and what its caller has to be allowed.

mod health;
mod plans;
mod session;

use super::problem::Problem;
use super::router::Routes;

/// Every route of the service.
pub(super) fn all() -> Routes {
    Routes::default().merge(health::routes()).merge(session::routes()).merge(plans::routes())
}

/// Whatever is not a route.
pub(super) async fn nothing_here() -> Problem {
    Problem::not_found("there is nothing here").hint("GET /openapi.json lists what there is")
}
