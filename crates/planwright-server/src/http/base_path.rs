//! The path under which a proxy shows the service, `/planwright` for example.
//!
//! The operator says what it is: a header that names it could come from any client. The proxy may take it
//! off the requests or leave it on.

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use http::header::{HeaderName, LINK, LOCATION};
use http::{HeaderMap, HeaderValue, Uri};
use std::fmt;
use std::str::FromStr;

/// Longer paths are a mistake.
const MAX_CHARS: usize = 200;

/// Empty, or a path that begins with a slash and does not end with one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BasePath(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no base path: it begins with a slash, and has letters, digits, `-`, `.`, `_` and `~` between slashes"
)]
pub struct ParseBasePathError(String);

impl FromStr for BasePath {
    type Err = ParseBasePathError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let path = text.strip_suffix('/').unwrap_or(text);
        let good = |letter: char| letter.is_ascii_alphanumeric() || "-._~".contains(letter);
        let named =
            |part: &str| !part.is_empty() && part != "." && part != ".." && part.chars().all(good);
        let fits = match path.strip_prefix('/') {
            Some(rest) => rest.split('/').all(named) && path.len() <= MAX_CHARS,
            None => text == "/",
        };
        fits.then(|| Self(path.to_owned()))
            .ok_or_else(|| ParseBasePathError(text.to_owned()))
    }
}

impl fmt::Display for BasePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BasePath {
    /// Returns whether the service is shown at the root of its host.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path of the service that an address below the base means; others stay.
    pub(super) fn strip<'a>(&self, path: &'a str) -> &'a str {
        match path.strip_prefix(&self.0) {
            Some("") => "/",
            Some(rest) if rest.starts_with('/') => rest,
            Some(_) | None => path,
        }
    }
}

/// Puts a service below its base.
pub(super) fn below(base: &BasePath, service: Router) -> Router {
    if base.is_root() {
        return service;
    }
    // The path has to be right before the routes are looked at.
    Router::new()
        .fallback_service(service)
        .layer(from_fn_with_state(base.clone(), rewrite))
}

async fn rewrite(State(base): State<BasePath>, mut request: Request, next: Next) -> Response {
    if let Some(uri) = stripped(&base, request.uri()) {
        *request.uri_mut() = uri;
    }
    let mut response = next.run(request).await;
    prefix(response.headers_mut(), &LOCATION, |path| {
        format!("{base}{path}")
    });
    prefix(response.headers_mut(), &LINK, |link| {
        link.replace("</", &format!("<{base}/"))
    });
    response
}

fn stripped(base: &BasePath, uri: &Uri) -> Option<Uri> {
    let path = base.strip(uri.path());
    if path == uri.path() {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    let query = uri.query().map(|query| format!("?{query}"));
    let whole = format!("{path}{}", query.unwrap_or_default());
    parts.path_and_query = Some(whole.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Changes a header that holds paths of the service.
fn prefix(headers: &mut HeaderMap, name: &HeaderName, change: impl Fn(&str) -> String) {
    let Some(value) = headers.get(name).and_then(|value| value.to_str().ok()) else {
        return;
    };
    if !value.starts_with('/') && !value.starts_with("</") {
        return;
    }
    if let Ok(changed) = HeaderValue::from_str(&change(value)) {
        headers.insert(name.clone(), changed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_path_is_a_plain_path() {
        let read = |text: &str| text.parse().map(|base: BasePath| base.0);
        assert_eq!(read("/pw").unwrap(), "/pw");
        assert_eq!(read("/a/b.c/").unwrap(), "/a/b.c");
        assert_eq!(read("/").unwrap(), "");
        for wrong in [
            "", "pw", "//", "/a//b", "/../a", "/a?b", "/a b", "/\"", "http://x",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_whole_parts_are_taken_off() {
        let base: BasePath = "/pw".parse().unwrap();
        for (path, left) in [
            ("/pw/plan", "/plan"),
            ("/pw", "/"),
            ("/pw/", "/"),
            ("/pwned", "/pwned"),
            ("/plan", "/plan"),
        ] {
            assert_eq!(base.strip(path), left);
        }
        let uri: Uri = "/pw/plan?limit=1".parse().unwrap();
        assert_eq!(stripped(&base, &uri).unwrap(), "/plan?limit=1");
    }
}
