//! The cookie of a session, and what has to come with it.
//!
//! A browser sends a cookie with every request to the same host, whichever page or port made it. So a
//! cookie alone opens nothing: a proof has to come with it, which only a page of the service's own origin
//! can read and send.

use super::hosts::{host_of, is_own_origin, name_of, port_of};
use crate::http::problem::{Problem, ProblemCode};
use crate::http::settings::Settings;
use axum::extract::Request;
use http::header::{COOKIE, HeaderName, HeaderValue, ORIGIN};
use http::{HeaderMap, Method, Uri};
use std::time::Duration;
use zeroize::Zeroizing;

/// Where a page puts the proof of its session.
pub(crate) const PROOF: HeaderName = HeaderName::from_static("planwright-proof");

/// Where it puts the proof of a stream: `EventSource` sends no headers of its own.
pub(super) const PROOF_PARAMETER: &str = "proof=";

/// A session as a browser shows it.
pub(super) struct CookieSession {
    pub(super) text: Zeroizing<String>,
    pub(super) proof: Zeroizing<String>,
}

/// What a cookie is for.
#[derive(Debug, Clone, Copy)]
enum Purpose {
    Session,
    /// A visit to the identity provider.
    Visit,
}

/// The name of a cookie. Cookies are shared by all ports of a host, so it names the port: two services
/// on one machine do not sign each other's people out.
fn cookie_name(
    settings: &Settings,
    (uri, headers): (&Uri, &HeaderMap),
    purpose: Purpose,
) -> Option<String> {
    let port = port_of(settings, host_of(uri, headers)?)?;
    let prefix = if settings.encrypted { "__Host-" } else { "" };
    Some(match purpose {
        Purpose::Session => format!("{prefix}planwright-{port}"),
        Purpose::Visit => format!("{prefix}planwright-visit-{port}"),
    })
}

/// The origin of the service's pages as the browser knows it, and the name of its host without a port.
pub(crate) fn own_origin(
    settings: &Settings,
    (uri, headers): (&Uri, &HeaderMap),
) -> Option<(String, String)> {
    let scheme = if settings.encrypted { "https" } else { "http" };
    let host = host_of(uri, headers)?;
    let name = name_of(host)?.to_ascii_lowercase();
    Some((format!("{scheme}://{}", host.to_ascii_lowercase()), name))
}

/// The address under which the browser knows the service, as its request says.
pub(crate) fn own_url(settings: &Settings, (uri, headers): (&Uri, &HeaderMap)) -> Option<String> {
    let scheme = if settings.encrypted { "https" } else { "http" };
    let host = host_of(uri, headers)?;
    Some(format!("{scheme}://{host}{}", settings.base_path))
}

/// The header that lets a browser be recognised when it comes back from the identity provider: a link of
/// another site, so it is sent with one.
pub(crate) fn set_visit(
    settings: &Settings,
    place: (&Uri, &HeaderMap),
    text: &str,
    life: Duration,
) -> Option<HeaderValue> {
    set(settings, (place, Purpose::Visit), text, life)
}

/// The text that a browser was given for its visit.
pub(crate) fn visit_of(
    settings: &Settings,
    place: (&Uri, &HeaderMap),
) -> Option<Zeroizing<String>> {
    text_of(settings, place, Purpose::Visit)
}

/// The header that gives a browser its session for some time; for no time, takes it away.
pub(crate) fn keep_cookie(
    settings: &Settings,
    place: (&Uri, &HeaderMap),
    text: &str,
    life: Duration,
) -> Option<HeaderValue> {
    set(settings, (place, Purpose::Session), text, life)
}

fn set(
    settings: &Settings,
    (place, purpose): ((&Uri, &HeaderMap), Purpose),
    text: &str,
    life: Duration,
) -> Option<HeaderValue> {
    let name = cookie_name(settings, place, purpose)?;
    let site = match purpose {
        Purpose::Session => "Strict",
        Purpose::Visit => "Lax",
    };
    let secure = if settings.encrypted { "; Secure" } else { "" };
    let seconds = life.as_secs();
    let cookie =
        format!("{name}={text}; Path=/; Max-Age={seconds}; HttpOnly; SameSite={site}{secure}");
    HeaderValue::from_str(&cookie).ok()
}

/// The text of the session's cookie, if the request brings exactly one.
pub(crate) fn cookie_text(
    settings: &Settings,
    place: (&Uri, &HeaderMap),
) -> Option<Zeroizing<String>> {
    text_of(settings, place, Purpose::Session)
}

fn text_of(
    settings: &Settings,
    place: (&Uri, &HeaderMap),
    purpose: Purpose,
) -> Option<Zeroizing<String>> {
    let name = cookie_name(settings, place, purpose)?;
    let mut found = place
        .1
        .get_all(COOKIE)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(';'))
        .filter_map(|pair| pair.trim().split_once('='))
        .filter(|(known, _)| *known == name)
        .map(|(_, text)| text);
    // Another port may have set a second one of the same name: which is ours cannot be told.
    match (found.next(), found.next()) {
        (Some(text), None) if !text.is_empty() => Some(Zeroizing::new(text.to_owned())),
        _ => None,
    }
}

/// Reads the session of a browser; `None` if the request brings no cookie.
pub(super) fn cookie_session(
    settings: &Settings,
    request: &Request,
) -> Result<Option<CookieSession>, Problem> {
    let Some(text) = cookie_text(settings, (request.uri(), request.headers())) else {
        return Ok(None);
    };
    check_same_origin(settings, request)?;
    let proof = proof_of(request).ok_or_else(|| {
        super::layer::unauthorized("the cookie of a session is good only with its proof")
    })?;
    Ok(Some(CookieSession {
        text,
        proof: Zeroizing::new(proof.to_owned()),
    }))
}

fn proof_of(request: &Request) -> Option<&str> {
    let header = request.headers().get(PROOF);
    match header {
        Some(header) => header.to_str().ok(),
        None => super::layer::stream_parameter(request, PROOF_PARAMETER),
    }
}

/// Refuses a cookie that came with a request of any page but the service's own.
fn check_same_origin(settings: &Settings, request: &Request) -> Result<(), Problem> {
    let headers = request.headers();
    let foreign = || {
        Problem::of(
            ProblemCode::OriginRefused,
            "a session can be used by pages of the service's own origin only",
        )
    };
    let site = headers.get("sec-fetch-site");
    if site.is_some_and(|site| site != "same-origin") {
        return Err(foreign());
    }
    let origin = headers.get(ORIGIN);
    let own = |origin: &HeaderValue| {
        origin
            .to_str()
            .is_ok_and(|origin| is_own_origin(settings, origin))
    };
    if origin.is_some_and(|origin| !own(origin)) {
        return Err(foreign());
    }
    let reads = [Method::GET, Method::HEAD].contains(request.method());
    if !reads && site.is_none() && origin.is_none() {
        return Err(foreign());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::auth::AllowedHost;
    use axum::body::Body;

    fn settings(encrypted: bool) -> Settings {
        Settings {
            hosts: AllowedHost::of_address("127.0.0.1:7526".parse().unwrap()),
            origins: vec!["https://app.example.org".to_owned()],
            encrypted,
            ..Settings::default()
        }
    }

    fn request(method: &str, uri: &str, headers: &[(&str, &str)]) -> Request {
        let mut request = http::Request::builder().method(method).uri(uri);
        for (name, value) in [("host", "127.0.0.1:7526")].iter().chain(headers) {
            request = request.header(*name, *value);
        }
        request.body(Body::empty()).unwrap()
    }

    #[test]
    fn no_script_reads_the_cookie_and_no_other_site_sends_it() {
        let request = request("POST", "/sign-in", &[]);
        let kept = |encrypted| {
            let life = Duration::from_secs(60);
            let place = (request.uri(), request.headers());
            let cookie = keep_cookie(&settings(encrypted), place, "pws_x", life).unwrap();
            cookie.to_str().unwrap().to_owned()
        };
        assert_eq!(
            kept(false),
            "planwright-7526=pws_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict"
        );
        assert_eq!(
            kept(true),
            "__Host-planwright-7526=pws_x; Path=/; Max-Age=60; HttpOnly; SameSite=Strict; Secure"
        );
    }

    #[test]
    fn a_cookie_is_taken_from_own_pages_and_with_a_proof_only() {
        let settings = settings(false);
        let cookie = ("cookie", "a=b; planwright-7526=pws_x");
        let proof = ("planwright-proof", "pwp_y");
        let own = ("origin", "http://127.0.0.1:7526");
        let same = ("sec-fetch-site", "same-origin");
        let read = |method: &str, uri: &str, headers: &[(&str, &str)]| {
            cookie_session(&settings, &request(method, uri, headers))
                .map(|session| session.map(|session| session.proof.to_string()))
                .map_err(|problem| problem.status)
        };
        let good = Ok(Some("pwp_y".to_owned()));
        assert_eq!(read("GET", "/plan", &[cookie, proof]), good);
        assert_eq!(read("POST", "/plan", &[cookie, proof, own]), good);
        assert_eq!(read("DELETE", "/plan", &[cookie, proof, same]), good);
        assert_eq!(read("GET", "/events?proof=pwp_y", &[cookie]), good);
        assert_eq!(read("GET", "/plan", &[proof]), Ok(None));
        let other_port = ("cookie", "planwright-7527=pws_x");
        assert_eq!(read("GET", "/plan", &[other_port, proof]), Ok(None));
        let twice = ("cookie", "planwright-7526=a; planwright-7526=b");
        assert_eq!(read("GET", "/plan", &[twice, proof]), Ok(None));
        assert_eq!(read("GET", "/plan", &[cookie]), Err(401));
        assert_eq!(read("GET", "/plan?proof=pwp_y", &[cookie]), Err(401));
        assert_eq!(
            read("POST", "/events?proof=pwp_y", &[cookie, own]),
            Err(401)
        );
        for foreign in [
            ("origin", "https://app.example.org"),
            ("origin", "http://127.0.0.1:9000"),
            ("origin", "null"),
            ("sec-fetch-site", "same-site"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "none"),
        ] {
            for method in ["GET", "POST"] {
                assert_eq!(read(method, "/plan", &[cookie, proof, foreign]), Err(403));
            }
        }
        assert_eq!(read("POST", "/plan", &[cookie, proof]), Err(403));
    }
}
