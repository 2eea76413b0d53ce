//! Sessions of browsers: a cookie, its proof, renewal, the end, and what a restart leaves.

use crate::service::{Service, Setup, manual_clock};
use planwright_core::policy::Role;
use planwright_core::principal::Principal;
use planwright_engine::memory::MemoryPasses;
use planwright_testing::http::{HttpReply, HttpRequest};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// A browser that is signed in.
pub(crate) struct Browser {
    cookie: String,
    proof: String,
}

impl Browser {
    fn of(reply: &HttpReply) -> Self {
        let set = reply.header("set-cookie").unwrap();
        let cookie = set.split(';').next().unwrap().to_owned();
        let proof = reply.json()["proof"].as_str().unwrap().to_owned();
        Self { cookie, proof }
    }

    /// The same session where another service is asked. A cookie is named after the port.
    pub(crate) fn moved_to(&self, service: &Service) -> Self {
        let port = service.host.rsplit_once(':').unwrap().1;
        let (_, text) = self.cookie.split_once('=').unwrap();
        Self {
            cookie: format!("planwright-{port}={text}"),
            proof: self.proof.clone(),
        }
    }

    /// A request as a script of the service's own page makes it.
    pub(crate) fn request(&self, service: &Service, method: &str, path: &str) -> HttpRequest {
        service
            .bare(method, path)
            .header("Cookie", &self.cookie)
            .header("Planwright-Proof", &self.proof)
            .header("Sec-Fetch-Site", "same-origin")
    }
}

pub(crate) fn sign_in(service: &Service, body: &Value) -> HttpReply {
    service.bare("POST", "/sign-in").json(body).send()
}

pub(crate) fn signed_in(service: &Service) -> Browser {
    let token = &service.admin;
    let reply = sign_in(service, &json!({ "token": token, "cookie": true }));
    Browser::of(&reply.ends(200))
}

/// A session that no token was shown for.
pub(crate) fn signed_in_with_code(service: &Service) -> Browser {
    let now = service.engine().now();
    let ada = Principal::person("ada");
    service.http().sign_in.offer("code", ada, Role::Admin, now);
    let reply = sign_in(service, &json!({ "code": "code", "cookie": true }));
    Browser::of(&reply.ends(200))
}

#[test]
fn a_session_in_a_cookie_does_what_its_owner_may() {
    let service = Service::new();
    let reply = sign_in(&service, &json!({ "token": service.admin, "cookie": true })).ends(200);
    assert_eq!(reply.json()["token"], Value::Null, "no script has it");
    let set = reply.header("set-cookie").unwrap().to_owned();
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age=43200"] {
        assert!(set.contains(word), "{set}");
    }
    let browser = Browser::of(&reply);
    let me = browser
        .request(&service, "GET", "/whoami")
        .send()
        .ends(200)
        .json();
    assert_eq!(
        (&me["name"], &me["assurance"]),
        (&json!("ada"), &json!("token"))
    );
    assert!(me["session"]["expiresAt"].is_string());
    let plan = json!({ "id": "p", "goal": "g", "steps": [{ "id": "s", "tool": "demo.echo" }] });
    let posted = browser.request(&service, "POST", "/plan").json(&plan);
    posted.send().ends(201);
}

#[test]
fn a_cookie_without_its_proof_or_from_another_page_opens_nothing() {
    let service = Service::new();
    let browser = signed_in(&service);
    let other = signed_in(&service);
    let bare = |method: &str| {
        service
            .bare(method, "/plan")
            .header("Cookie", &browser.cookie)
    };
    bare("GET").send().refuses(401, "proof");
    let wrong = bare("GET").header("Planwright-Proof", &other.proof);
    wrong.send().refuses(401, "over");
    // Stolen by what listens on another port: it is no token either.
    let (_, text) = browser.cookie.split_once('=').unwrap();
    let stolen = service.bare("GET", "/plan").token(text);
    stolen.send().refuses(401, "over");
    let proven = |method: &str| bare(method).header("Planwright-Proof", &browser.proof);
    proven("GET").send().ends(200);
    proven("POST")
        .json(&json!({}))
        .send()
        .refuses(403, "own origin");
    for site in ["same-site", "none"] {
        let request = proven("GET").header("Sec-Fetch-Site", site);
        request.send().refuses(403, "own origin");
    }
    // A stream takes the proof in its address, and only a stream does.
    let streams = |path: &str| {
        let path = format!("{path}?limit=1&proof={}", browser.proof);
        let request = service.bare("GET", &path);
        request.header("Cookie", &browser.cookie).send().status
    };
    assert_eq!((streams("/events"), streams("/plan")), (200, 401));
}

#[test]
fn a_session_is_renewed_and_signed_out_of() {
    let clock = manual_clock();
    let service = Service::start(Setup {
        clock: Arc::new(clock.clone()),
        ..Setup::default()
    });
    let browser = signed_in(&service);
    clock.advance(Duration::from_hours(11));
    let renewed = browser.request(&service, "POST", "/session/renew").send();
    assert!(
        renewed
            .ends(200)
            .header("set-cookie")
            .unwrap()
            .contains("Max-Age=43200"),
    );
    clock.advance(Duration::from_hours(11));
    let look = || browser.request(&service, "GET", "/whoami").send();
    look().ends(200);
    let out = browser
        .request(&service, "DELETE", "/session")
        .send()
        .ends(204);
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    look().refuses(401, "over");
    let second = signed_in(&service);
    clock.advance(Duration::from_hours(12));
    let late = second.request(&service, "GET", "/whoami").send();
    late.refuses(401, "over");
    service
        .request("DELETE", "/session")
        .send()
        .refuses(409, "no session");
}

#[test]
fn a_session_survives_a_restart_and_ends_with_its_token() {
    let passes = Arc::new(MemoryPasses::new());
    let start = || {
        Service::start(Setup {
            passes: Arc::clone(&passes),
            ..Setup::default()
        })
    };
    let first = start();
    let browser = signed_in_with_code(&first);
    drop(first);
    let second = start();
    let moved = browser.moved_to(&second);
    let me = moved
        .request(&second, "GET", "/whoami")
        .send()
        .ends(200)
        .json();
    assert_eq!(me["assurance"], "web_sign_in");

    let (id, token) = second.token_with_id("viewer", "person", "bob");
    let reply = sign_in(&second, &json!({ "token": token, "cookie": true }));
    let bob = Browser::of(&reply.ends(200));
    bob.request(&second, "GET", "/plan").send().ends(200);
    second.revoke_token(&id);
    bob.request(&second, "GET", "/plan")
        .send()
        .refuses(401, "over");
}

#[test]
fn who_signs_in_shows_one_thing_that_is_good() {
    let service = Service::new();
    sign_in(&service, &json!({})).refuses(400, "one of the two");
    let both = json!({ "code": "a", "token": "b" });
    sign_in(&service, &both).refuses(400, "one of the two");
    sign_in(&service, &json!({ "token": "pwt_wrong" })).refuses(401, "unknown");
}

#[test]
fn an_admin_invites_a_person_who_signs_in_once() {
    let service = Service::new();
    let bob = json!({ "name": "Bob", "role": "approver", "expiresInHours": 2 });
    let viewer = service.token("viewer", "person", "eve");
    let refused = service.bare("POST", "/invitations").token(&viewer);
    refused.json(&bob).send().refuses(403, "may not");
    let root = json!({ "name": "Bob", "role": "root" });
    service.post("/invitations", &root).refuses(400, "role");
    let invited = service.post("/invitations", &bob).ends(201).json();
    let shown = json!({ "code": invited["code"], "cookie": true });
    let browser = Browser::of(&sign_in(&service, &shown).ends(200));
    let me = browser.request(&service, "GET", "/whoami").send().json();
    assert_eq!(
        (&me["kind"], &me["name"], &me["role"], &me["assurance"]),
        (
            &json!("person"),
            &json!("Bob"),
            &json!("approver"),
            &json!("web_sign_in")
        )
    );
    sign_in(&service, &shown).refuses(401, "was used");
}
