//! All routes and the layers in front of them.

use super::openapi::Document;
use super::state::Http;
use super::{
    auth, base_path, cors, gzip, headers, idempotency, limits, problem, query, routes, same_answer,
    web,
};
use crate::observe;
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use utoipa_axum::router::OpenApiRouter;

/// Several groups of routes as one.
pub(crate) type Routes = OpenApiRouter<Http>;

/// Every route, without what stands in front of it, and the document that describes them.
pub(super) fn routes() -> (Router<Http>, Document) {
    let (router, openapi) = routes::all().split_for_parts();
    let mut document = Document::new(&openapi);
    document.access.extend(routes::mcp::access());
    document.access.extend(web::access());
    let router = router.merge(routes::mcp::router()).merge(web::router());
    (router, document)
}

/// The whole service as one thing that answers requests.
pub fn app(http: &Http) -> Router {
    let (router, document) = routes();
    // The first router decides; a second one of the same service has the same routes.
    let _: &Document = http.openapi.get_or_init(|| document);
    let router = router
        .route_layer(from_fn_with_state(http.clone(), query::refuse_unknown))
        .route_layer(from_fn(same_answer::layer))
        .route_layer(from_fn_with_state(http.clone(), idempotency::layer))
        .route_layer(from_fn_with_state(http.clone(), limits::limit_rate))
        .route_layer(from_fn_with_state(http.clone(), limits::limit_in_flight))
        // What is held in memory was counted before it is packed.
        .route_layer(from_fn(gzip::layer))
        .route_layer(from_fn_with_state(http.clone(), limits::refuse_on_reserve))
        .route_layer(from_fn_with_state(http.clone(), auth::authenticate_request))
        .fallback(routes::nothing_here)
        .layer(from_fn_with_state(http.clone(), cors::layer))
        .layer(from_fn_with_state(http.clone(), auth::check_host))
        .layer(from_fn(problem::layer));
    let scheme = if http.settings.encrypted {
        "https"
    } else {
        "http"
    };
    let router = observe::layer(router, &http.service.engine, scheme)
        .layer(from_fn(headers::layer))
        .with_state(http.clone());
    base_path::below(&http.settings.base_path, router)
}
