//! Which names the service answers to, and which pages may talk to it.
//!
//! A page on any web site can make a browser send requests to `localhost`, and a name under its
//! control can point there. Both are refused here, before anything else looks at the request.

use crate::http::problem::{Problem, ProblemCode};
use crate::http::settings::Settings;
use crate::http::state::Http;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use http::header::{HOST, ORIGIN};
use http::{HeaderMap, HeaderValue, Uri};
use std::net::SocketAddr;
use std::str::FromStr;

/// Longer addresses than this are a mistake or an attack.
const MAX_URI: usize = 8 << 10;

/// A host, with a port if only that one is meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedHost {
    /// Lower case; an IPv6 address in brackets.
    name: String,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no host: expected a name or address, with a port if only one is meant")]
pub struct ParseHostError(String);

impl FromStr for AllowedHost {
    type Err = ParseHostError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wrong = || ParseHostError(text.to_owned());
        let (name, port) = split_port(text).ok_or_else(wrong)?;
        let good = |letter: char| letter.is_ascii_alphanumeric() || "-.:[]_".contains(letter);
        if name.is_empty() || name.len() > 253 || !name.chars().all(good) {
            return Err(wrong());
        }
        Ok(Self {
            name: name.to_ascii_lowercase(),
            port,
        })
    }
}

impl AllowedHost {
    /// The names under which a service that listens there is found on its own machine.
    pub fn of_address(address: SocketAddr) -> Vec<Self> {
        let port = Some(address.port());
        let mut names: Vec<String> = vec![
            "localhost".to_owned(),
            "127.0.0.1".to_owned(),
            "[::1]".to_owned(),
        ];
        let own = match address.ip() {
            std::net::IpAddr::V4(ip) => ip.to_string(),
            std::net::IpAddr::V6(ip) => format!("[{ip}]"),
        };
        if !address.ip().is_unspecified() && !names.contains(&own) {
            names.push(own);
        }
        names.into_iter().map(|name| Self { name, port }).collect()
    }

    fn is(&self, name: &str, port: u16) -> bool {
        self.name.eq_ignore_ascii_case(name) && self.port.is_none_or(|allowed| allowed == port)
    }
}

/// `name`, `name:port`, `[v6]` or `[v6]:port`.
fn split_port(text: &str) -> Option<(&str, Option<u16>)> {
    let (name, rest) = match text.find(']') {
        Some(end) if text.starts_with('[') => text.split_at(end + 1),
        Some(_) => return None,
        None => text.find(':').map_or((text, ""), |at| text.split_at(at)),
    };
    match rest.strip_prefix(':') {
        None if rest.is_empty() => Some((name, None)),
        None => None,
        Some(port) => Some((
            name,
            Some(port.parse().ok().filter(|_| !port.starts_with('+'))?),
        )),
    }
}

/// The name in an authority, without its port.
pub(super) fn name_of(authority: &str) -> Option<&str> {
    split_port(authority).map(|(name, _)| name)
}

/// The port that an authority means.
pub(super) fn port_of(settings: &Settings, authority: &str) -> Option<u16> {
    let default = if settings.https { 443 } else { 80 };
    split_port(authority).map(|(_, port)| port.unwrap_or(default))
}

/// Returns whether the service answers to this name.
fn allows_host(settings: &Settings, authority: &str) -> bool {
    let default = if settings.https { 443 } else { 80 };
    let Some((name, port)) = split_port(authority) else {
        return false;
    };
    settings
        .hosts
        .iter()
        .any(|host| host.is(name, port.unwrap_or(default)))
}

/// Returns whether pages of this origin may talk to the service.
fn allows_origin(settings: &Settings, origin: &str) -> bool {
    is_named_origin(settings, origin) || is_own_origin(settings, origin)
}

fn is_named_origin(settings: &Settings, origin: &str) -> bool {
    let mut named = settings.origins.iter();
    named.any(|allowed| allowed.eq_ignore_ascii_case(origin))
}

/// Returns whether the operator named this origin.
pub(crate) fn is_allowed_origin(settings: &Settings, origin: &HeaderValue) -> bool {
    origin
        .to_str()
        .is_ok_and(|origin| is_named_origin(settings, origin))
}

/// Returns whether an origin is the service's own, under any of its names.
pub(super) fn is_own_origin(settings: &Settings, origin: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let default = match scheme {
        "http" if !settings.https => 80,
        "https" => 443,
        _ => return false,
    };
    let Some((name, port)) = split_port(authority) else {
        return false;
    };
    settings
        .hosts
        .iter()
        .any(|host| host.is(name, port.unwrap_or(default)))
}

/// The one host a request names: it may not name none, or two.
pub(super) fn host_of<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> Option<&'a str> {
    let mut named = headers.get_all(HOST).iter();
    let header = match (named.next(), named.next()) {
        (Some(one), None) => Some(one.to_str().ok()?),
        (None, _) => None,
        (Some(_), Some(_)) => return None,
    };
    match (header, uri.authority().map(http::uri::Authority::as_str)) {
        (Some(header), Some(authority)) if header.eq_ignore_ascii_case(authority) => Some(header),
        (Some(_), Some(_)) | (None, None) => None,
        (Some(one), None) | (None, Some(one)) => Some(one),
    }
}

fn check(settings: &Settings, uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    if uri.path().len() + uri.query().map_or(0, str::len) > MAX_URI {
        let words = format!("the address has more than {MAX_URI} characters");
        return Err(Problem::of(ProblemCode::AddressTooLong, words));
    }
    let host = host_of(uri, headers);
    if !host.is_some_and(|host| allows_host(settings, host)) {
        return Err(Problem::of(
            ProblemCode::HostRefused,
            "the service does not answer to the host that the request names",
        )
        .hint("start it with --allow-host NAME, if that is its name"));
    }
    let foreign = || {
        Problem::of(
            ProblemCode::OriginRefused,
            "pages of another origin may not use this service",
        )
        .hint("start it with --allow-origin ORIGIN, if they are yours")
    };
    for origin in headers.get_all(ORIGIN) {
        if !origin
            .to_str()
            .is_ok_and(|origin| allows_origin(settings, origin))
        {
            return Err(foreign());
        }
    }
    // Browsers say so even where they send no origin.
    let cross = headers
        .get("sec-fetch-site")
        .is_some_and(|site| site == "cross-site");
    if cross && !headers.contains_key(ORIGIN) && !opens_page(uri, headers) {
        Err(foreign())
    } else {
        Ok(())
    }
}

/// Returns whether a person follows a link of another site, such as an invitation in their mail, to the
/// page. It is public, holds no data and is shown in no frame.
fn opens_page(uri: &Uri, headers: &HeaderMap) -> bool {
    let says = |name: &str, word: &str| headers.get(name).is_some_and(|value| value == word);
    let path = uri.path();
    let page = path == "/" || path == "/ui" || path.starts_with("/ui/");
    // The way back from the identity provider is a link as well.
    let page = page || path == "/sign-in/oidc/callback" || is_from_server(path);
    page && says("sec-fetch-mode", "navigate") && says("sec-fetch-dest", "document")
}

/// Returns whether this is the way back from signing in to a server of tools.
fn is_from_server(path: &str) -> bool {
    let name = path.strip_prefix("/servers/");
    let name = name.and_then(|rest| rest.strip_suffix("/sign-in/callback"));
    name.is_some_and(|name| !name.contains('/'))
}

/// Refuses foreign hosts and origins, on every route and method.
pub(crate) async fn check_host(State(http): State<Http>, request: Request, next: Next) -> Response {
    match check(&http.settings, request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(problem) => problem.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> Settings {
        let mut hosts = AllowedHost::of_address("127.0.0.1:7526".parse().unwrap());
        hosts.push("plans.example.org".parse().unwrap());
        Settings {
            hosts,
            origins: vec!["https://app.example.org".to_owned()],
            ..Settings::default()
        }
    }

    #[test]
    fn it_answers_to_its_own_names_and_to_no_others() {
        let settings = settings();
        for good in [
            "localhost:7526",
            "LOCALHOST:7526",
            "127.0.0.1:7526",
            "[::1]:7526",
            "plans.example.org",
            "plans.example.org:8443",
        ] {
            assert!(allows_host(&settings, good), "{good}");
        }
        for bad in [
            "",
            "localhost",
            "localhost:80",
            "localhost:7526.",
            "evil.example",
            "evil.example:7526",
            "127.0.0.1.evil.example:7526",
            "localhost:+7526",
            "localhost:7526:7526",
            "user@localhost:7526",
            "[::1",
            "::1",
            "2130706433:7526",
        ] {
            assert!(!allows_host(&settings, bad), "{bad}");
        }
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
        let settings = settings();
        for good in [
            "http://localhost:7526",
            "http://127.0.0.1:7526",
            "https://app.example.org",
        ] {
            assert!(allows_origin(&settings, good), "{good}");
        }
        for bad in [
            "null",
            "",
            "http://evil.example",
            "http://localhost:3000",
            "file://",
            "https://app.example.org.evil",
        ] {
            assert!(!allows_origin(&settings, bad), "{bad}");
        }
    }

    #[test]
    fn a_link_of_another_site_opens_the_page_and_nothing_else() {
        let settings = settings();
        let opens = |path: &str, dest: &'static str, mode: &'static str| {
            let mut headers = HeaderMap::new();
            for (name, value) in [
                ("host", "127.0.0.1:7526"),
                ("sec-fetch-site", "cross-site"),
                ("sec-fetch-dest", dest),
                ("sec-fetch-mode", mode),
            ] {
                headers.insert(name, HeaderValue::from_static(value));
            }
            check(&settings, &path.parse().unwrap(), &headers).is_ok()
        };
        assert!(opens("/", "document", "navigate") && opens("/ui/plans/a", "document", "navigate"));
        assert!(!opens("/plan", "document", "navigate"));
        assert!(!opens("/", "iframe", "navigate") && !opens("/", "empty", "no-cors"));
    }

    #[test]
    fn a_request_names_one_host() {
        let headers = |hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            for host in hosts {
                headers.append(HOST, http::HeaderValue::from_static(host));
            }
            headers
        };
        let plain: Uri = "/plan".parse().unwrap();
        let absolute: Uri = "http://localhost:7526/plan".parse().unwrap();
        assert_eq!(host_of(&plain, &headers(&["a"])), Some("a"));
        assert_eq!(host_of(&plain, &headers(&[])), None);
        assert_eq!(host_of(&plain, &headers(&["a", "a"])), None);
        assert_eq!(host_of(&absolute, &headers(&["evil"])), None);
        assert_eq!(host_of(&absolute, &headers(&[])), Some("localhost:7526"));
    }
}
