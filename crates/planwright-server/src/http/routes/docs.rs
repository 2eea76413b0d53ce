//! The documentation page: one file of HTML, one script, one style, all from this binary.

use crate::http::router::Routes;
use axum::response::{Html, IntoResponse as _, Response};
use http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use utoipa_axum::routes;

/// Only what is served here may be loaded or asked.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
     frame-ancestors 'none'; base-uri 'none'; form-action 'none'";

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(docs))
        .routes(routes!(docs_script))
        .routes(routes!(docs_style))
}

/// Shows this document to people.
#[utoipa::path(get, path = "/docs", operation_id = "docs", tag = "service",
    responses((status = 200, description = "A page.", body = String, content_type = "text/html")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn docs() -> Response {
    (
        [(CONTENT_SECURITY_POLICY, POLICY)],
        Html(include_str!("../../../assets/docs.html")),
    )
        .into_response()
}

/// The script of the documentation page.
#[utoipa::path(get, path = "/docs/docs.js", operation_id = "docsScript", tag = "service",
    responses((status = 200, description = "A script.", body = String, content_type = "text/javascript")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn docs_script() -> Response {
    let kind = [(CONTENT_TYPE, "text/javascript; charset=utf-8")];
    (kind, include_str!("../../../assets/docs.js")).into_response()
}

/// The style of the documentation page.
#[utoipa::path(get, path = "/docs/docs.css", operation_id = "docsStyle", tag = "service",
    responses((status = 200, description = "A style.", body = String, content_type = "text/css")),
    extensions(("x-planwright-action" = json!("public"))))]
async fn docs_style() -> Response {
    let kind = [(CONTENT_TYPE, "text/css; charset=utf-8")];
    (kind, include_str!("../../../assets/docs.css")).into_response()
}
