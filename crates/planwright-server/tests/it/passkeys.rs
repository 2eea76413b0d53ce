//! Passkeys: made and used in a browser, wanted by the policy, and never a matter of a token.

use crate::service::{Service, Setup, manual_clock};
use crate::sessions::{Browser, sign_in, signed_in, signed_in_with_code};
use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::{echo, effect};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

fn encode(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

/// Asks what a device is to sign, and says what it would.
fn client_data(service: &Service, browser: &Browser, task: &str) -> String {
    let asked = browser
        .request(service, "POST", "/passkeys/challenge")
        .json(&json!({ "for": task }))
        .send()
        .ends(200)
        .json();
    let challenge = asked["challenge"].as_str().unwrap();
    let mut said = BASE64_URL_SAFE_NO_PAD.decode(challenge).unwrap();
    said.extend(format!("http://{}", service.host).as_bytes());
    encode(&said)
}

fn register(service: &Service, browser: &Browser, id: &str) -> HttpReply {
    let said = client_data(service, browser, "registration");
    let body =
        json!({ "label": "My phone", "clientData": said, "attestation": encode(id.as_bytes()) });
    browser
        .request(service, "POST", "/passkeys")
        .json(&body)
        .send()
}

fn confirm(service: &Service, browser: &Browser, id: &str, said: &str) -> HttpReply {
    let body = json!({ "id": encode(id.as_bytes()), "clientData": said, "authenticatorData": "", "signature": "" });
    browser
        .request(service, "POST", "/passkeys/confirm")
        .json(&body)
        .send()
}

/// Checks that a request was refused with this code. Returns the problem.
#[track_caller]
fn refused(reply: HttpReply, status: u16, code: &str) -> Value {
    let problem = reply.ends(status).json();
    assert_eq!(problem["code"], code, "{problem}");
    problem
}

fn assurance(service: &Service, browser: &Browser) -> Value {
    let me = browser.request(service, "GET", "/whoami").send().ends(200);
    me.json()["assurance"].clone()
}

#[test]
fn a_session_is_confirmed_with_a_passkey_for_a_while() {
    let clock = manual_clock();
    let service = Service::start(Setup {
        clock: Arc::new(clock.clone()),
        ..Setup::default()
    });
    let browser = signed_in(&service);
    register(&service, &browser, "one").ends(201);
    assert_eq!(assurance(&service, &browser), "passkey");
    clock.advance(Duration::from_mins(15));
    assert_eq!(assurance(&service, &browser), "token");
    let said = client_data(&service, &browser, "confirmation");
    confirm(&service, &browser, "one", &said).ends(200);
    assert_eq!(assurance(&service, &browser), "passkey");
    // Another session of the same person is not.
    let other = signed_in(&service);
    assert_eq!(assurance(&service, &other), "token");
    let listed = browser.request(&service, "GET", "/passkeys").send();
    let listed = listed.ends(200).json();
    assert_eq!(listed["passkeys"][0]["label"], "My phone");
    assert!(listed["passkeys"][0]["usedAt"].is_string() && listed["confirmedUntil"].is_string());
    browser
        .request(&service, "DELETE", "/session")
        .send()
        .ends(204);
    browser.request(&service, "GET", "/whoami").send().ends(401);
}

#[test]
fn an_answer_counts_once_for_its_question_and_its_passkey() {
    let service = Service::new();
    let browser = signed_in(&service);
    register(&service, &browser, "one").ends(201);
    let said = client_data(&service, &browser, "confirmation");
    refused(
        confirm(&service, &browser, "two", &said),
        404,
        "unknown_passkey",
    );
    // The question is spent by either answer.
    refused(confirm(&service, &browser, "one", &said), 409, "conflict");
    let said = client_data(&service, &browser, "confirmation");
    let other = encode(b"other");
    refused(
        confirm(&service, &browser, "one", &other),
        403,
        "passkey_refused",
    );
    refused(confirm(&service, &browser, "one", &said), 409, "conflict");
    // What was asked for one thing is no answer to another.
    let said = client_data(&service, &browser, "registration");
    refused(confirm(&service, &browser, "one", &said), 409, "conflict");
    // Nor is what another session was asked.
    let other = signed_in(&service);
    let said = client_data(&service, &other, "confirmation");
    refused(confirm(&service, &browser, "one", &said), 409, "conflict");
}

#[test]
fn a_stolen_session_adds_and_removes_no_passkey() {
    let service = Service::new();
    let browser = signed_in(&service);
    register(&service, &browser, "one").ends(201);
    let thief = signed_in(&service);
    refused(register(&service, &thief, "two"), 403, "passkey_needed");
    let path = format!("/passkeys/{}", encode(b"one"));
    let removed = |browser: &Browser| browser.request(&service, "DELETE", &path).send();
    refused(removed(&thief), 403, "passkey_needed");
    register(&service, &browser, "two").ends(201);
    removed(&browser).ends(204);
    refused(removed(&browser), 404, "unknown_passkey");
}

#[test]
fn a_token_has_no_device_in_front_of_it() {
    let service = Service::new();
    for (method, path, body) in [
        (
            "POST",
            "/passkeys/challenge",
            json!({ "for": "registration" }),
        ),
        (
            "POST",
            "/passkeys",
            json!({ "label": "a", "clientData": "", "attestation": "" }),
        ),
        (
            "POST",
            "/passkeys/confirm",
            json!({ "id": "a", "clientData": "", "authenticatorData": "", "signature": "" }),
        ),
    ] {
        let reply = service.request(method, path).json(&body).send();
        refused(reply, 409, "no_session");
    }
    let reply = service.request("DELETE", "/passkeys/YWE").send();
    refused(reply, 409, "no_session");
    // A session that is brought as a token is may have been given to any program.
    let session = sign_in(&service, &json!({ "token": service.admin }))
        .ends(200)
        .json();
    let token = session["token"].as_str().unwrap();
    let asked = service
        .bare("POST", "/passkeys/challenge")
        .header("Authorization", &format!("Bearer {token}"))
        .json(&json!({ "for": "registration" }))
        .send();
    refused(asked, 409, "no_session");
}

#[test]
fn what_the_policy_wants_a_passkey_for_is_not_approved_without() {
    for policy in [
        json!({ "approval": { "passkey": ["append_file"] } }),
        json!({ "rules": [{ "tool": "append_file", "then": "ask", "assurance": "passkey" }] }),
    ] {
        let service = Service::start(Setup {
            policy,
            ..Setup::default()
        });
        let browser = signed_in(&service);
        let plan = json!({ "id": "p", "goal": "g", "steps": [effect("s", &[])] });
        browser
            .request(&service, "POST", "/plan")
            .json(&plan)
            .send()
            .ends(201);
        let standing = || {
            let read = browser.request(&service, "GET", "/plan/p").send();
            read.ends(200).json()["approval"].clone()
        };
        let approve = |browser: &Browser| {
            browser
                .request(&service, "POST", "/plan/p/approve")
                .json(&json!({ "decision": "approve", "version": 1 }))
                .send()
        };
        assert_eq!(standing()["reasonCode"], "passkey_needed");
        let problem = refused(approve(&browser), 403, "passkey_needed");
        assert!(problem["hint"].as_str().unwrap().contains("passkey"));
        // Nor with a token, which is another way in.
        let by_token = service
            .request("POST", "/plan/p/approve")
            .json(&json!({ "decision": "approve", "version": 1 }))
            .send();
        refused(by_token, 403, "passkey_needed");
        register(&service, &browser, "one").ends(201);
        assert_eq!(standing()["mayApprove"], true);
        approve(&browser).ends(200);
        let read = browser.request(&service, "GET", "/plan/p").send();
        let approvals = read.ends(200).json()["approvals"].clone();
        assert_eq!(approvals[0]["assurance"], "passkey");
    }
}

#[test]
fn what_is_taken_back_with_such_a_tool_is_not_approved_without_either() {
    let service = Service::start(Setup {
        policy: json!({ "approval": { "passkey": ["append_file"] } }),
        ..Setup::default()
    });
    let mut step = echo("s", "done", &[]);
    let args = json!({ "path": "taken-back.txt", "content": "x" });
    step["undo"] = json!({ "tool": "append_file", "args": args });
    let plan = json!({ "id": "p", "goal": "g", "steps": [step] });
    service.post("/plan", &plan).ends(201);
    let yes = json!({ "decision": "approve", "version": 1 });
    let browser = signed_in(&service);
    register(&service, &browser, "one").ends(201);
    let approve = browser.request(&service, "POST", "/plan/p/approve");
    approve.json(&yes).send().ends(200);
    service.post("/plan/p/run", &json!({})).ends(202);
    service.wait_for("p", "completed");
    let shown = service.post("/plan/p/undo", &json!({ "dryRun": true }));
    let agreed = json!({ "digest": shown.ends(200).json()["digest"] });
    let by_token = service.request("POST", "/plan/p/undo").json(&agreed).send();
    refused(by_token, 403, "passkey_needed");
    let undo = browser.request(&service, "POST", "/plan/p/undo");
    undo.json(&agreed).send().ends(202);
}

#[test]
fn a_device_is_asked_by_one_service_and_answers_another() {
    let passes = Arc::default();
    let notes = Arc::default();
    let start = || {
        Service::start(Setup {
            passes: Arc::clone(&passes),
            notes: Arc::clone(&notes),
            ..Setup::default()
        })
    };
    let first = start();
    let second = start();
    let browser = signed_in_with_code(&first);
    let at_second = browser.moved_to(&second);
    let asked = browser
        .request(&first, "POST", "/passkeys/challenge")
        .json(&json!({ "for": "registration" }))
        .send()
        .ends(200)
        .json();
    let challenge = asked["challenge"].as_str().unwrap();
    let mut said = BASE64_URL_SAFE_NO_PAD.decode(challenge).unwrap();
    said.extend(format!("http://{}", second.host).as_bytes());
    let body =
        json!({ "label": "My phone", "clientData": encode(&said), "attestation": encode(b"one") });
    at_second
        .request(&second, "POST", "/passkeys")
        .json(&body)
        .send()
        .ends(201);
    for (service, browser) in [(&first, &browser), (&second, &at_second)] {
        assert_eq!(assurance(service, browser), "passkey");
    }
    at_second
        .request(&second, "DELETE", "/session")
        .send()
        .ends(204);
    browser.request(&first, "GET", "/whoami").send().ends(401);
}
