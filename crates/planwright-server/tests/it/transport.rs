//! What stands between a client and the routes: other origins, packed answers, answers a client has
//! already, a path of a proxy, and the time before the end.

use crate::service::{Service, Setup};
use planwright_server::http::Settings;
use planwright_testing::http::HttpReply;
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::time::Duration;

fn with(settings: Settings) -> Service {
    Service::start(Setup {
        settings,
        ..Setup::default()
    })
}

const APP: &str = "https://app.example.org";

#[test]
fn pages_of_an_allowed_origin_ask_and_read_and_bring_no_cookie() {
    let service = with(Settings {
        origins: vec![APP.to_owned()],
        ..Settings::default()
    });
    let asked = service
        .bare("OPTIONS", "/plan")
        .header("Origin", APP)
        .header("Access-Control-Request-Method", "POST")
        .header(
            "Access-Control-Request-Headers",
            "authorization,content-type",
        )
        .send()
        .ends(204);
    let allowed = |reply: &HttpReply, name: &str| reply.header(name).unwrap_or_default().to_owned();
    assert_eq!(allowed(&asked, "access-control-allow-origin"), APP);
    assert!(allowed(&asked, "access-control-allow-methods").contains("POST"));
    assert!(allowed(&asked, "access-control-allow-headers").contains("authorization"));
    assert_eq!(asked.header("access-control-allow-credentials"), None);
    let read = service.request("GET", "/plan").header("Origin", APP).send();
    let read = read.ends(200);
    assert_eq!(allowed(&read, "access-control-allow-origin"), APP);
    assert!(allowed(&read, "vary").contains("origin"));
    // Also a refusal can be read.
    let refused = service.bare("GET", "/plan").header("Origin", APP).send();
    assert_eq!(
        (
            refused.status,
            allowed(&refused, "access-control-allow-origin")
        ),
        (401, APP.to_owned())
    );
    // Nothing is allowed that was not named.
    let own = format!("http://{}", service.host);
    let own = service
        .request("GET", "/plan")
        .header("Origin", &own)
        .send();
    assert_eq!(own.ends(200).header("access-control-allow-origin"), None);
    let signed_in = service.bare("POST", "/sign-in");
    let signed_in = signed_in.json(&json!({ "token": service.admin, "cookie": true }));
    let signed_in = signed_in.send().ends(200);
    let cookie = signed_in.header("set-cookie").unwrap();
    service
        .bare("GET", "/plan")
        .header("Cookie", cookie.split(';').next().unwrap())
        .header(
            "Planwright-Proof",
            signed_in.json()["proof"].as_str().unwrap(),
        )
        .header("Origin", APP)
        .send()
        .refuses(403, "own origin");
}

#[test]
fn long_answers_are_packed_for_those_who_take_it_and_streams_are_not() {
    let service = Service::new();
    let ask = |path: &str, encoding: &str| {
        let request = service.request("GET", path);
        request.header("Accept-Encoding", encoding).send().ends(200)
    };
    let plain = ask("/openapi.json", "identity");
    let packed = ask("/openapi.json", "gzip, br");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.len() * 3 < plain.body.len());
    let mut text = String::new();
    let mut reader = flate2::read::GzDecoder::new(packed.body.as_slice());
    std::io::Read::read_to_string(&mut reader, &mut text).unwrap();
    let unpacked: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(unpacked, plain.json());
    assert_eq!(plain.header("content-encoding"), None);
    assert!(plain.header("vary").unwrap().contains("accept-encoding"));
    assert_eq!(ask("/healthz", "gzip").header("content-encoding"), None);
    // A refusal is a document as always.
    let request = service.request("GET", "/plan/nosuch");
    let refused = request.header("Accept-Encoding", "gzip").send();
    refused.refuses(404, "nosuch");
    // A run that is over is a stream that ends.
    service.plan(
        "p",
        json!([{ "id": "a", "tool": "demo.echo", "args": { "value": "x".repeat(4_000) } }]),
    );
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
    let stream = service
        .request("GET", "/plan/p/events")
        .header("Accept", "text/event-stream")
        .header("Accept-Encoding", "gzip")
        .send()
        .ends(200);
    assert_eq!(stream.header("content-encoding"), None);
    assert!(stream.text().contains("event: "));
    // Who came back with everything is told not to come again.
    let last = stream.text();
    let last = last
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .next_back();
    let again = service
        .request("GET", "/plan/p/events")
        .header("Accept", "text/event-stream")
        .header("Last-Event-ID", last.unwrap())
        .send();
    assert_eq!(again.status, 204);
}

#[test]
fn an_answer_that_the_client_has_is_not_sent_again() {
    let service = Service::new();
    service.plan("p", json!([{ "id": "a", "tool": "demo.echo" }]));
    let ask = |tag: &str| {
        let request = service.request("GET", "/plan");
        request.header("If-None-Match", tag).send()
    };
    let first = ask("\"other\"").ends(200);
    let tag = first.header("etag").unwrap().to_owned();
    let same = ask(&tag).ends(304);
    assert!(same.body.is_empty() && same.header("etag") == Some(&tag));
    service.plan("q", json!([{ "id": "a", "tool": "demo.echo" }]));
    let other = ask(&tag).ends(200);
    assert_ne!(other.header("etag"), Some(tag.as_str()));
    // A plan has a tag for those who change it, which says nothing about its runs.
    let plan = service.get("/plan/p").ends(200);
    let tag = plan.header("etag").unwrap().to_owned();
    let request = service.request("GET", "/plan/p");
    request.header("If-None-Match", &tag).send().ends(200);
}

#[test]
fn below_a_path_everything_names_that_path() {
    let service = with(Settings {
        base_path: "/pw".parse().unwrap(),
        ..Settings::default()
    });
    let plan = json!({ "id": "p", "goal": "g", "steps": [{ "id": "s", "tool": "demo.echo" }] });
    let posted = service.post("/pw/plan", &plan).ends(201);
    assert_eq!(posted.header("location"), Some("/pw/plan/p"));
    // A proxy may have taken the path off.
    service.get("/plan/p").ends(200);
    service.get("/pw/plan/p").ends(200);
    service.get("/pwned/plan/p").ends(404);
    for text in ["one", "two"] {
        let comment = json!({ "text": text });
        service.post("/pw/plan/p/comments", &comment).ends(201);
    }
    let page = service.get("/pw/plan/p/comments?limit=1").ends(200);
    assert!(
        page.header("link")
            .unwrap()
            .starts_with("</pw/plan/p/comments?")
    );
    let document = service.get("/pw/openapi.json").ends(200).json();
    assert_eq!(document["servers"], json!([{ "url": "/pw" }]));
    let ticket = service.post("/pw/tickets", &json!({ "path": "/pw/plan/p/events" }));
    let ticket = ticket.ends(200).json()["ticket"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/pw/plan/p/events?limit=1&ticket={ticket}");
    service.bare("GET", &path).send().ends(200);
}

#[test]
fn a_service_that_will_stop_says_so_and_answers_for_a_while() {
    let service = with(Settings {
        drain: Duration::from_secs(600),
        ..Settings::default()
    });
    service.bare("GET", "/readyz").send().ends(200);
    let http = service.http().clone();
    service.spawn(async move { http.stop_after_drain().await });
    wait_until("the service not to be ready", || {
        service.bare("GET", "/readyz").send().status == 503
    });
    let ready = service.bare("GET", "/readyz").send().json();
    assert!(
        ready["reasons"].to_string().contains("shutting down"),
        "{ready}"
    );
    service.get("/plan").ends(200);
    assert!(!service.http().stop.is_cancelled());
}
