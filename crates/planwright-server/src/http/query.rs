//! What stands behind the question mark of an address: what a route does not know is refused, so that no caller
//! believes it was heard.

use super::body::bad_query;
use super::openapi::QueryParameter;
use super::problem::{Problem, ProblemCode};
use super::state::Http;
use axum::extract::{MatchedPath, Query, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::Method;

/// Refuses parameters that the OpenAPI document does not list for the route.
pub(super) async fn refuse_unknown(
    State(http): State<Http>,
    request: Request,
    next: Next,
) -> Response {
    match check(&http, &request) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

fn check(http: &Http, request: &Request) -> Result<(), Problem> {
    let is_asked = request.uri().query().is_some_and(|query| !query.is_empty());
    let path = request.extensions().get::<MatchedPath>();
    let (true, Some(path), Some(document)) = (is_asked, path, http.openapi.get()) else {
        return Ok(());
    };
    let method = if request.method() == Method::HEAD {
        Method::GET
    } else {
        request.method().clone()
    };
    // Identity providers send more back than is read here, and each its own.
    if [super::routes::FROM_PROVIDER, super::routes::FROM_SERVER].contains(&path.as_str()) {
        return Ok(());
    }
    // Pages and the doors for other protocols are not in the document, and read their own.
    let Some(known) = document.queries.get(&(method, path.as_str().to_owned())) else {
        return Ok(());
    };
    let given = Query::<Vec<(String, String)>>::try_from_uri(request.uri())
        .map_err(|error| bad_query(&error))?;
    for (name, value) in given.iter() {
        let Some(parameter) = known.iter().find(|known| known.name == *name) else {
            return Err(unknown(name, known));
        };
        if let Some(most) = parameter.most.filter(|most| value.chars().count() > *most) {
            return Err(Problem::of(
                ProblemCode::BadParameter,
                format!("`{name}` has more than {most} characters"),
            ));
        }
    }
    Ok(())
}

fn unknown(name: &str, known: &[QueryParameter]) -> Problem {
    let name: String = name.chars().take(100).collect();
    let names: Vec<&str> = known.iter().map(|known| known.name.as_str()).collect();
    let hint = if names.is_empty() {
        "the route takes no parameters".to_owned()
    } else {
        format!("there are {}", names.join(", "))
    };
    Problem::of(
        ProblemCode::BadParameter,
        format!("there is no parameter `{name}`"),
    )
    .hint(hint)
}
