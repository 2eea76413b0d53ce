//! Who is let in: hosts, origins, tokens and roles, on every route of the OpenAPI document.

use crate::service::{Service, Setup};
use planwright_testing::http::HttpRequest;
use serde_json::json;
use std::collections::BTreeMap;

/// What each route is for, written down a second time and on purpose not read from the document.
const ROUTES: &[(&str, &str)] = &[
    ("GET /approvals", "read"),
    ("GET /approvals/count", "read"),
    ("POST /approvals/decide", "approve"),
    ("GET /approvals/events", "read"),
    ("POST /chat", "propose"),
    ("GET /docs", "public"),
    ("GET /docs/docs.css", "public"),
    ("GET /docs/docs.js", "public"),
    ("GET /events", "read"),
    ("POST /expressions/check", "read"),
    ("GET /healthz", "public"),
    ("POST /invitations", "administer"),
    ("GET /metrics", "read"),
    ("GET /openapi.json", "public"),
    ("GET /passkeys", "read"),
    ("POST /passkeys", "read"),
    ("POST /passkeys/challenge", "read"),
    ("POST /passkeys/confirm", "read"),
    ("DELETE /passkeys/{passkey}", "read"),
    ("GET /plan", "read"),
    ("POST /plan", "propose"),
    ("GET /plan/{id}", "read"),
    ("GET /plan/{id}/briefing", "read"),
    ("PATCH /plan/{id}", "propose"),
    ("DELETE /plan/{id}", "delete"),
    ("POST /plan/{id}/approve", "approve"),
    ("POST /plan/{id}/archive", "delete"),
    ("POST /plan/{id}/cancel", "cancel"),
    ("POST /plan/{id}/check", "run"),
    ("GET /plan/{id}/comments", "read"),
    ("POST /plan/{id}/comments", "comment"),
    ("POST /plan/{id}/comments/{comment}/reopen", "comment"),
    ("POST /plan/{id}/comments/{comment}/resolve", "comment"),
    ("GET /plan/{id}/diff", "read"),
    ("POST /plan/{id}/dry-run", "read"),
    ("POST /plan/{id}/edits/preview", "read"),
    ("GET /plan/{id}/events", "read"),
    ("GET /plan/{id}/export", "read"),
    ("POST /plan/{id}/fail", "cancel"),
    ("POST /plan/{id}/fork", "run"),
    ("GET /plan/{id}/journal", "read"),
    ("POST /plan/{id}/pause", "run"),
    ("POST /plan/{id}/propose", "propose"),
    ("POST /plan/{id}/regenerate", "propose"),
    ("POST /plan/{id}/reject", "approve"),
    ("POST /plan/{id}/request-changes", "approve"),
    ("POST /plan/{id}/restore", "propose"),
    ("POST /plan/{id}/resume", "run"),
    ("POST /plan/{id}/revoke-approval", "approve"),
    ("POST /plan/{id}/run", "run"),
    ("GET /plan/{id}/runs", "read"),
    ("GET /plan/{id}/runs/{run}", "read"),
    ("GET /plan/{id}/runs/{run}/artifacts/{digest}", "read"),
    ("GET /plan/{id}/runs/{run}/journal", "read"),
    ("GET /plan/{id}/runs/{run}/steps/{step}", "read"),
    ("GET /plan/{id}/runs/{run}/steps/{step}/arguments", "read"),
    ("GET /plan/{id}/runs/{run}/steps/{step}/briefing", "read"),
    ("GET /plan/{id}/runs/{run}/steps/{step}/value", "read"),
    ("POST /plan/{id}/steps/{step}/approve", "approve"),
    ("POST /plan/{id}/steps/{step}/input", "resolve"),
    ("POST /plan/{id}/steps/{step}/reject", "approve"),
    ("POST /plan/{id}/steps/{step}/resolve", "resolve"),
    ("POST /plan/{id}/steps/{step}/retry", "run"),
    ("POST /plan/{id}/steps/{step}/skip", "resolve"),
    ("POST /plan/{id}/undo", "run approve"),
    ("GET /plan/{id}/verify", "read"),
    ("GET /plan/{id}/versions", "read"),
    ("GET /plan/{id}/versions/{version}", "read"),
    ("POST /planning", "propose"),
    ("GET /planning/{order}", "read"),
    ("DELETE /planning/{order}", "propose"),
    ("GET /planning/{order}/events", "read"),
    ("POST /policy/check", "read"),
    ("POST /policy/explain", "read"),
    ("GET /queues", "read"),
    ("DELETE /queues/{capability}/dead", "administer"),
    ("GET /queues/{capability}/dead", "read"),
    ("POST /queues/{capability}/dead/{id}/requeue", "administer"),
    ("GET /readyz", "public"),
    ("GET /servers/sign-ins", "read"),
    ("DELETE /servers/{name}/sign-in", "run"),
    ("POST /servers/{name}/sign-in", "run"),
    ("GET /servers/{name}/sign-in/callback", "public"),
    ("DELETE /session", "read"),
    ("POST /session/renew", "read"),
    ("GET /settings", "read"),
    ("GET /settings/operator", "administer"),
    ("GET /sign-in", "public"),
    ("POST /sign-in", "public"),
    ("GET /sign-in/oidc", "public"),
    ("GET /sign-in/oidc/callback", "public"),
    ("GET /stats", "read"),
    ("GET /templates", "read"),
    ("GET /templates/{id}", "read"),
    ("POST /templates/{id}/use", "propose"),
    ("POST /tickets", "read"),
    ("GET /tools", "read"),
    ("POST /validate", "read"),
    ("GET /whoami", "read"),
    ("GET /workers", "read"),
];

/// What each role is trusted with.
const ROLES: &[(&str, &[&str])] = &[
    ("viewer", &["read"]),
    (
        "author",
        &["read", "propose", "delete", "cancel", "comment"],
    ),
    ("operator", &["read", "run", "cancel", "resolve", "comment"]),
    ("approver", &["read", "approve", "cancel", "comment"]),
    (
        "admin",
        &[
            "read",
            "propose",
            "delete",
            "run",
            "cancel",
            "resolve",
            "approve",
            "comment",
            "administer",
        ],
    ),
];

/// Method, path template and declared action of every operation in the document.
fn operations(service: &Service) -> Vec<(String, String, String)> {
    let document = service.bare("GET", "/openapi.json").send().ends(200).json();
    let mut operations = Vec::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let action = operation["x-planwright-action"]
                .as_str()
                .unwrap_or("nobody")
                .to_owned();
            operations.push((method.to_uppercase(), path.clone(), action));
        }
    }
    assert!(operations.len() >= ROUTES.len(), "{operations:?}");
    operations
}

/// A request to an operation, about things that do not exist.
fn request(service: &Service, method: &str, path: &str) -> HttpRequest {
    let path = path
        .replace("{id}", "nosuch")
        .replace("{step}", "s")
        .replace("{run}", "run_x")
        .replace("{version}", "1")
        .replace("{order}", "pln-x")
        .replace("{capability}", "nosuch")
        .replace("{digest}", "sha256:0")
        .replace("{comment}", "c-x");
    let request = service.bare(method, &path);
    if method == "GET" {
        request
    } else {
        request.json(&json!({}))
    }
}

#[test]
fn every_route_declares_what_it_is_for_as_the_table_says() {
    let service = Service::new();
    let declared: BTreeMap<String, String> = operations(&service)
        .into_iter()
        .map(|(method, path, action)| (format!("{method} {path}"), action))
        .collect();
    let wanted: BTreeMap<String, String> = ROUTES
        .iter()
        .map(|(route, action)| ((*route).to_owned(), (*action).to_owned()))
        .collect();
    assert_eq!(declared, wanted);
}

#[test]
fn a_foreign_host_is_refused_on_every_route() {
    let service = Service::new();
    for (method, path, _) in operations(&service) {
        for host in ["evil.example", "localhost", "127.0.0.1:1", ""] {
            let answer = request(&service, &method, &path)
                .token(&service.admin)
                .header("Host", host)
                .send();
            assert_eq!(
                answer.status,
                403,
                "{method} {path} {host}: {}",
                answer.text()
            );
        }
    }
    let answer = service
        .request("GET", "/nothing/here")
        .header("Host", "evil.example")
        .send();
    answer.refuses(403, "host");
}

#[test]
fn a_foreign_origin_is_refused_on_every_route() {
    let service = Service::new();
    for (method, path, _) in operations(&service) {
        for origin in ["https://evil.example", "null", "http://localhost:1"] {
            let answer = request(&service, &method, &path)
                .token(&service.admin)
                .header("Origin", origin)
                .send();
            assert_eq!(
                answer.status,
                403,
                "{method} {path} {origin}: {}",
                answer.text()
            );
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
    }
    let own = format!("http://{}", service.host);
    service
        .request("GET", "/plan")
        .header("Origin", &own)
        .send()
        .ends(200);
    service
        .request("GET", "/plan")
        .header("Sec-Fetch-Site", "cross-site")
        .send()
        .refuses(403, "origin");
    let preflight = service
        .bare("OPTIONS", "/plan")
        .header("Origin", "https://evil.example")
        .send();
    assert_eq!(preflight.status, 403);
}

#[test]
fn without_a_good_token_nothing_but_the_public_routes_answers() {
    let service = Service::new();
    let (id, revoked) = service.token_with_id("admin", "person", "eve");
    service.revoke_token(&id);
    let wrong = [
        None,
        Some("Bearer".to_owned()),
        Some("Bearer ".to_owned()),
        Some("Bearer pwt_wrong".to_owned()),
        Some(format!("Basic {}", service.admin)),
        Some(service.admin.clone()),
        Some(format!("Bearer {revoked}")),
        Some(format!("Bearer {}x", service.admin)),
    ];
    for (method, path, action) in operations(&service) {
        for header in &wrong {
            let mut request = request(&service, &method, &path);
            if let Some(header) = header {
                request = request.header("Authorization", header);
            }
            let answer = request.send();
            if action == "public" {
                assert!(
                    answer.status < 500 && answer.status != 403,
                    "{method} {path}: {}",
                    answer.text()
                );
                continue;
            }
            assert_eq!(
                answer.status,
                401,
                "{method} {path} {header:?}: {}",
                answer.text()
            );
            assert!(
                answer
                    .header("www-authenticate")
                    .unwrap()
                    .starts_with("Bearer")
            );
        }
    }
}

#[test]
fn each_role_may_do_what_it_is_there_for_and_nothing_else() {
    let service = Service::new();
    for (role, may) in ROLES {
        let token = service.token(role, "person", &format!("a {role}"));
        for (route, action) in ROUTES.iter().filter(|(_, action)| *action != "public") {
            let (method, path) = route.split_once(' ').unwrap();
            let path = if path.ends_with("events") {
                format!("{path}?limit=1")
            } else {
                path.to_owned()
            };
            let allowed = action.split(' ').all(|action| may.contains(&action));
            let request = request(&service, method, &path)
                .token(&token)
                .header("Accept", "application/json");
            let answer = request.send();
            let let_in = answer.status != 401 && answer.status != 403;
            assert_eq!(let_in, allowed, "{role} {route}: {}", answer.text());
            if !allowed {
                answer.refuses(403, "may not");
            }
        }
    }
}

#[test]
fn agents_and_services_never_decide_whatever_their_role() {
    let service = Service::new();
    for (kind, role) in [
        ("agent", "operator"),
        ("service", "operator"),
        ("service", "admin"),
    ] {
        let token = service.token(role, kind, "machine");
        for (route, action) in ROUTES {
            if !action
                .split(' ')
                .any(|action| matches!(action, "approve" | "resolve"))
            {
                continue;
            }
            let (method, path) = route.split_once(' ').unwrap();
            request(&service, method, path)
                .token(&token)
                .send()
                .refuses(403, "may not");
        }
    }
}

#[test]
fn the_operators_policy_counts_beside_the_role_of_the_token() {
    let service = Service::start(Setup {
        roles: json!({ "approver": ["person:somebody else"], "admin": ["person:root"] }),
        ..Setup::default()
    });
    let answer = service.post("/plan", &json!({ "id": "p", "goal": "g", "steps": [] }));
    assert_eq!(answer.status, 201, "{}", answer.text());
    let yes = json!({ "decision": "approve", "version": 1 });
    service
        .post("/plan/p/approve", &yes)
        .refuses(403, "person ada may not");
}

#[test]
fn a_ticket_opens_one_stream_once() {
    let service = Service::new();
    service.plan("p", json!([]));
    let ask = |path: &str| service.post("/tickets", &json!({ "path": path }));
    ask("/plan").refuses(400, "event stream");
    ask("/plan/p/events?x").refuses(400, "event stream");
    let ticket = ask("/plan/p/events").ends(200).json()["ticket"]
        .as_str()
        .unwrap()
        .to_owned();
    let get = |path: &str| {
        service
            .bare("GET", path)
            .header("Accept", "application/json")
            .send()
    };
    get("/plan/p/events").ends(401);
    get(&format!("/plan/p/events?ticket={ticket}")).ends(200);
    get(&format!("/plan/p/events?ticket={ticket}")).refuses(401, "ticket");
    let other = ask("/events").ends(200).json()["ticket"]
        .as_str()
        .unwrap()
        .to_owned();
    get(&format!("/plan/p/events?ticket={other}")).refuses(401, "ticket");
    get(&format!("/plan?ticket={other}")).ends(401);
}
