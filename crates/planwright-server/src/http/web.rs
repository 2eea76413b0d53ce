//! The page for people: `/`, and everything below `/ui`.
//!
//! Its files are part of the program, as far as they were there when it was built. They are public
//! and hold nothing of a workspace: what the page shows it asks the routes for, with the token of the
//! person in front of it. The document of the API does not describe them.

use super::auth::RouteAccess;
use super::base_path::BasePath;
use super::problem::{HttpResult, Problem};
use super::state::Http;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse as _, Response};
use axum::routing::get;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};

/// A file of the page: its path below `/ui`, and what is in it.
type PageFile = (&'static str, &'static [u8]);

const FILES: &[PageFile] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

const INDEX: &str = "index.html";
const ROUTES: [&str; 4] = ["/", "/ui", "/ui/", "/ui/{*path}"];

/// Only what is served here may be loaded or asked, and no text can become a script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
     connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

/// What `/` says in a program without the page.
const NOT_BUILT: &str = "<!doctype html>
<html lang=\"en\"><meta charset=\"utf-8\"><title>Planwright</title>
<h1>Planwright runs, and its page was not built</h1>
<p>Build it, which needs Node 20.19 or newer, and then the program again:</p>
<pre>npm --prefix web ci &amp;&amp; npm --prefix web run build
cargo build --release</pre>
<p>The service works without it: <a href=\"docs\">its API</a>, and the command line.</p>
</html>
";

/// Returns whether the page is part of this program.
pub fn page_is_built() -> bool {
    !FILES.is_empty()
}

pub(super) fn router() -> Router<Http> {
    Router::new()
        .route("/", get(answer_index))
        .route("/ui", get(answer_index))
        .route("/ui/", get(answer_index))
        .route("/ui/{*path}", get(answer_file))
}

/// Everybody may load the page.
pub(super) fn access() -> impl Iterator<Item = ((Method, String), RouteAccess)> {
    ROUTES
        .into_iter()
        .map(|path| ((Method::GET, path.to_owned()), RouteAccess::Public))
}

async fn answer_index(State(http): State<Http>, headers: HeaderMap) -> HttpResult<Response> {
    find_answer(FILES, (&http.settings.base_path, INDEX), &headers)
}

async fn answer_file(
    State(http): State<Http>,
    Path(path): Path<String>,
    headers: HeaderMap,
) -> HttpResult<Response> {
    find_answer(FILES, (&http.settings.base_path, &path), &headers)
}

/// Finds what a path below `/ui` is answered with: a file, or the page, which reads the path itself.
fn find_answer(
    files: &[PageFile],
    (base, path): (&BasePath, &str),
    headers: &HeaderMap,
) -> HttpResult<Response> {
    let find = |name: &str| files.iter().find(|(known, _)| *known == name);
    let is_asset = path.starts_with("assets/");
    let Some((name, bytes)) = find(path).or_else(|| find(INDEX).filter(|_| !is_asset)) else {
        if is_asset {
            return Err(Problem::not_found("the page has no such file")
                .hint("reload the page: it may be of another version"));
        }
        let policy = [(CONTENT_SECURITY_POLICY, POLICY)];
        return Ok((policy, Html(NOT_BUILT)).into_response());
    };
    let below = (*name == INDEX && !base.is_root()).then(|| page_below(base, bytes));
    let packed = find(&format!("{name}.gz")).filter(|_| takes_gzip(headers) && below.is_none());
    let mut response = match below {
        Some(page) => page.into_response(),
        None => packed.map_or(*bytes, |(_, packed)| packed).into_response(),
    };
    let mut set = |header: HeaderName, value: &'static str| {
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(header, value);
    };
    set(CONTENT_TYPE, content_type(name));
    set(CONTENT_SECURITY_POLICY, POLICY);
    set(VARY, "accept-encoding");
    // The name of an asset has the digest of what is in it.
    let caching = if is_asset {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    set(CACHE_CONTROL, caching);
    if packed.is_some() {
        set(CONTENT_ENCODING, "gzip");
    }
    Ok(response)
}

/// The page with the addresses of its files below a base. Its scripts find out by their own address.
fn page_below(base: &BasePath, page: &[u8]) -> String {
    String::from_utf8_lossy(page).replace("\"/ui/", &format!("\"{base}/ui/"))
}

/// Returns whether a client takes gzip. One that weighs encodings gets the plain file, which is
/// always right.
pub(super) fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get(ACCEPT_ENCODING);
    accepted
        .and_then(|accepted| accepted.to_str().ok())
        .is_some_and(|accepted| accepted.split(',').any(|one| one.trim() == "gzip"))
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, extension)| extension) {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("md") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUILT: &[PageFile] = &[
        ("assets/index-abc.js", b"plain"),
        ("assets/index-abc.js.gz", b"packed"),
        ("favicon.svg", b"<svg/>"),
        ("index.html", b"<!doctype html>"),
    ];

    fn header(response: &Response, name: HeaderName) -> Option<&str> {
        response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap())
    }

    #[test]
    fn files_are_kept_for_good_and_the_page_is_asked_for_again() {
        let answer =
            |path| find_answer(BUILT, (&BasePath::default(), path), &HeaderMap::new()).unwrap();
        let script = answer("assets/index-abc.js");
        assert_eq!(
            header(&script, CACHE_CONTROL),
            Some("public, max-age=31536000, immutable")
        );
        assert_eq!(
            header(&script, CONTENT_TYPE),
            Some("text/javascript; charset=utf-8")
        );
        for path in ["index.html", "plans", "plans/a/runs/run_b", "favicon.svg"] {
            let page = answer(path);
            assert_eq!(header(&page, CACHE_CONTROL), Some("no-cache"), "{path}");
            assert_eq!(
                header(&page, CONTENT_SECURITY_POLICY),
                Some(POLICY),
                "{path}"
            );
        }
    }

    #[test]
    fn packed_files_go_to_those_who_take_them() {
        let mut headers = HeaderMap::new();
        let encoding = |headers: &HeaderMap, path| {
            let answer = find_answer(BUILT, (&BasePath::default(), path), headers).unwrap();
            header(&answer, CONTENT_ENCODING).map(str::to_owned)
        };
        assert_eq!(encoding(&headers, "assets/index-abc.js"), None);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip"));
        assert_eq!(
            encoding(&headers, "assets/index-abc.js"),
            Some("gzip".to_owned())
        );
        assert_eq!(encoding(&headers, "favicon.svg"), None);
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip;q=0"));
        assert_eq!(encoding(&headers, "assets/index-abc.js"), None);
    }

    #[test]
    fn the_page_below_a_base_asks_for_its_files_there() {
        let page = br#"<script src="/ui/assets/index-abc.js"></script>"#;
        let base = "/pw".parse().unwrap();
        assert_eq!(
            page_below(&base, page),
            r#"<script src="/pw/ui/assets/index-abc.js"></script>"#
        );
    }

    #[test]
    fn a_file_of_another_version_is_not_the_page() {
        assert!(
            find_answer(
                BUILT,
                (&BasePath::default(), "assets/index-old.js"),
                &HeaderMap::new()
            )
            .is_err()
        );
        assert!(
            find_answer(
                &[],
                (&BasePath::default(), "assets/index-old.js"),
                &HeaderMap::new()
            )
            .is_err()
        );
    }

    #[test]
    fn a_program_without_the_page_says_how_to_build_it() {
        let answer = find_answer(&[], (&BasePath::default(), INDEX), &HeaderMap::new()).unwrap();
        assert_eq!(header(&answer, CONTENT_SECURITY_POLICY), Some(POLICY));
        assert!(NOT_BUILT.contains("npm --prefix web ci"));
    }
}
