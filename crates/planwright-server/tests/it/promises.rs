//! What programs of others build on: codes instead of sentences, no parameter that is not heard, limits that hold,
//! and tags that change only with what they are about.

use crate::service::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::{echo, effect};
use serde_json::{Value, json};

#[track_caller]
fn code(answer: &HttpReply) -> String {
    let problem = answer.json();
    let code = problem["code"].as_str().unwrap().to_owned();
    let kind = format!("urn:planwright:problem:{code}");
    assert_eq!(problem["type"].as_str(), Some(kind.as_str()), "{problem}");
    code
}

#[test]
fn refusals_with_the_same_status_have_codes_of_their_own() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    let post = |path: &str| service.post(path, &json!({})).ends(409);
    assert_eq!(code(&post("/plan/p/run")), "not_approved");
    assert_eq!(code(&post("/plan/p/pause")), "no_run");
    assert_eq!(code(&post("/plan/p/propose")), "not_a_draft");
    assert_eq!(code(&post("/plan/p/archive")), "plan_not_over");
    assert_eq!(code(&post("/plan/p/revoke-approval")), "nothing_to_revoke");
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
    assert_eq!(code(&post("/plan/p/resume")), "run_ended");
    assert_eq!(code(&service.get("/plan/nosuch").ends(404)), "unknown_plan");
    assert_eq!(code(&service.get("/nothing").ends(404)), "not_found");
    let stranger = service.bare("GET", "/plan").send().ends(401);
    assert_eq!(code(&stranger), "unauthorized");
}

#[test]
fn every_code_that_is_answered_is_in_the_document() {
    let service = Service::new();
    let document = service.bare("GET", "/openapi.json").send().ends(200).json();
    let codes = document["components"]["schemas"]["ProblemCode"]["enum"].clone();
    let codes = codes.as_array().unwrap();
    for path in ["/plan/nosuch", "/nothing", "/plan?limit=0", "/plan/a%20b"] {
        let code = json!(code(&service.get(path)));
        assert!(codes.contains(&code), "{code}");
    }
}

#[test]
fn a_parameter_that_a_route_does_not_know_is_refused_on_every_route() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    let document = service.bare("GET", "/openapi.json").send().ends(200).json();
    for (path, item) in document["paths"].as_object().unwrap() {
        // Those who sign people in send back what they like.
        if path.ends_with("/callback") {
            continue;
        }
        let named = |segment: &str| match segment {
            "{id}" => "p".to_owned(),
            "{version}" => "1".to_owned(),
            segment if segment.starts_with('{') => "x1".to_owned(),
            segment => segment.to_owned(),
        };
        let address = path.split('/').map(named).collect::<Vec<_>>().join("/");
        for method in item.as_object().unwrap().keys() {
            let method = method.to_uppercase();
            let request = service.request(&method, &format!("{address}?nosuch=1"));
            let answer = request.json(&json!({})).send().ends(400);
            assert_eq!(code(&answer), "bad_parameter", "{method} {path}");
        }
    }
    service
        .get("/plan/p?version=1")
        .refuses(400, "there is no parameter `version`");
}

#[test]
fn a_status_that_no_plan_can_have_is_refused_with_those_there_are() {
    let service = Service::new();
    let answer = service.get("/plan?status=bogus").refuses(400, "`bogus`");
    let hint = answer.json()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("proposed, approved, rejected"), "{hint}");
    service.get("/plan?status=proposed").ends(200);
}

fn inbox(service: &Service, limit: usize) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut cursor = String::new();
    loop {
        let page = service
            .get(&format!("/approvals?limit={limit}{cursor}"))
            .ends(200)
            .json();
        pages.push(page["items"].as_array().unwrap().clone());
        assert!(pages.len() < 100, "the pages do not end");
        match page["nextCursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return pages,
        }
    }
}

#[test]
fn the_inbox_keeps_to_its_limit_within_a_plan_too() {
    let service = Service::new();
    let gate = |number: u32| {
        let mut step = echo(&format!("g{number}"), 1, &[]);
        step["approvalRequired"] = json!(true);
        step
    };
    service.plan("gates", json!((0..7).map(gate).collect::<Vec<_>>()));
    service.approve("gates");
    service.run("gates");
    service.wait_for("gates", "waiting");
    service.plan("other", json!([echo("a", 1, &[])]));
    let all = inbox(&service, 200).concat();
    assert_eq!(all.len(), 8);
    for limit in [1, 3, 7] {
        let pages = inbox(&service, limit);
        assert!(pages.iter().all(|page| page.len() <= limit), "{limit}");
        assert_eq!(pages.concat(), all, "{limit}");
    }
    // What was decided between two pages hides nothing else.
    let page = service.get("/approvals?limit=3").ends(200).json();
    let seen = page["items"][2]["step"].as_str().unwrap().to_owned();
    service
        .post(
            &format!("/plan/gates/steps/{seen}/approve"),
            &json!({ "decision": "approve", "version": 1 }),
        )
        .ends(200);
    let cursor = page["nextCursor"].as_str().unwrap();
    let rest = service
        .get(&format!("/approvals?cursor={cursor}"))
        .ends(200)
        .json();
    let rest: Vec<&str> = rest["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|item| item["step"].as_str())
        .collect();
    let unseen = all[3..].iter().filter_map(|item| item["step"].as_str());
    for step in unseen {
        assert!(rest.contains(&step), "{step} is missing: {rest:?}");
    }
}

#[test]
fn a_comment_does_not_keep_an_editor_from_saving_and_a_decision_does() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    let tag = || service.get("/plan/p").header("etag").unwrap().to_owned();
    let edit = |tag: &str, title: &str| {
        let body = json!({ "edits": [{ "op": "set", "path": "title", "value": title }], "reason": "a better one" });
        let request = service.request("PATCH", "/plan/p");
        request.header("If-Match", tag).json(&body).send()
    };
    let read = tag();
    let said = service.post("/plan/p/comments", &json!({ "text": "Why?" }));
    let comment = said.ends(201).json()["id"].as_str().unwrap().to_owned();
    let resolve = format!("/plan/p/comments/{comment}/resolve");
    service.post(&resolve, &json!({})).ends(200);
    assert_eq!(tag(), read);
    edit(&read, "Two").ends(200);
    let versions = service.get("/plan/p/versions").ends(200).json();
    assert_eq!(versions[1]["reason"], "a better one");
    let read = tag();
    let approval = json!({ "decision": "approve", "version": 2 });
    service.post("/plan/p/approve", &approval).ends(200);
    let answer = edit(&read, "Three").ends(412);
    assert_eq!(code(&answer), "state_changed");
    let answer = service
        .request("PATCH", "/plan/p?reason=because")
        .header("If-Match", &tag())
        .body("application/merge-patch+json", br#"{"title": "Four"}"#)
        .send()
        .ends(200);
    assert_eq!(answer.json()["version"], 3);
    let versions = service.get("/plan/p/versions").ends(200).json();
    assert_eq!(versions[2]["reason"], "because");
}

#[test]
fn a_plan_without_a_title_is_known_by_its_goal_and_whole_seconds_stay_whole() {
    let service = Service::new();
    let mut step = echo("a", 1, &[]);
    step["timeoutSeconds"] = json!(300);
    let plan = json!({ "id": "p", "goal": "Ship it\nand tell everyone", "steps": [step] });
    let created = service.post("/plan", &plan).ends(201);
    let listed = service.get("/plan").ends(200).json();
    assert_eq!(listed["items"][0]["title"], "Ship it");
    let waiting = service.get("/approvals").ends(200);
    assert_eq!(waiting.json()["items"][0]["title"], "Ship it");
    let shown = service.get("/plan/p").ends(200);
    let briefing = service.get("/plan/p/briefing").ends(200);
    for answer in [created, waiting, shown, briefing] {
        let text = answer.text();
        assert!(
            text.contains(r#""timeoutSeconds":300,"#) || text.contains(r#""timeoutSeconds":300}"#),
            "{text}"
        );
    }
}
