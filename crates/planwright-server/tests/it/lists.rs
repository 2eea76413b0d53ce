//! Lists of a plan that grow with everything that is done to it: no answer holds all of them, and the
//! pages add up to all.

use crate::service::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::effect;
use serde_json::{Value, json};

/// Bytes that no page exceeds by much.
const PAGE_BYTES: usize = (4 << 20) + (64 << 10);

/// Where the next page is.
fn next(answer: &HttpReply) -> Option<String> {
    let link = answer.header("link")?;
    let (address, rest) = link.strip_prefix('<').unwrap().split_once('>').unwrap();
    assert_eq!(rest, "; rel=\"next\"");
    Some(address.to_owned())
}

/// Follows the pages of a list from this one on.
fn pages(service: &Service, first: &str) -> Vec<Vec<Value>> {
    let mut pages = Vec::new();
    let mut path = Some(first.to_owned());
    while let Some(asked) = path {
        let answer = service.get(&asked).ends(200);
        assert!(answer.body.len() < PAGE_BYTES, "{}", answer.body.len());
        path = next(&answer);
        pages.push(answer.json().as_array().unwrap().clone());
        assert!(pages.len() < 1_000, "the pages do not end");
    }
    pages
}

fn named(pages: &[Vec<Value>], field: &str) -> Vec<String> {
    let text = |item: &Value| item[field].to_string().trim_matches('"').to_owned();
    pages.iter().flatten().map(text).collect()
}

#[test]
fn a_page_of_versions_is_not_all_of_them_and_has_no_documents() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    for version in 2..=205 {
        let words = if version < 4 {
            format!("{version}{}", "x".repeat(300_000))
        } else {
            format!("{version}")
        };
        service
            .request("PATCH", "/plan/p")
            .header("If-Match", &format!("\"v{0}-{0}\"", version - 1))
            .body(
                "application/merge-patch+json",
                json!({ "variables": { "notes": words } })
                    .to_string()
                    .as_bytes(),
            )
            .send()
            .ends(200);
    }
    let all: Vec<String> = (1..=205).map(|version| version.to_string()).collect();
    let found = pages(&service, "/plan/p/versions");
    assert_eq!(found[0].len(), 200);
    assert_eq!(named(&found, "version"), all);
    let found = pages(&service, "/plan/p/versions?limit=70");
    let lengths: Vec<usize> = found.iter().map(Vec::len).collect();
    assert_eq!(lengths, [70, 70, 65]);
    assert_eq!(named(&found, "version"), all);
    assert!(found[0].iter().all(|line| line.get("document").is_none()));
}

#[test]
fn a_thread_of_megabytes_goes_on_on_the_next_page() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    let say = |text: &str, reply_to: Option<&str>| {
        let answer = service
            .post(
                "/plan/p/comments",
                &json!({ "text": text, "replyTo": reply_to }),
            )
            .ends(201);
        assert!(answer.body.len() < PAGE_BYTES / 2, "{}", answer.body.len());
        answer.json()["id"].as_str().unwrap().to_owned()
    };
    let mut ids = vec![say("short", None)];
    let first = say("first", None);
    ids.push(first.clone());
    let long = "y".repeat(60_000);
    ids.extend((0..100).map(|_| say(&long, Some(&first))));
    ids.push(say("last", None));
    let found = pages(&service, "/plan/p/comments");
    assert_eq!(found.len(), 2);
    let comments = |found: &[Vec<Value>]| {
        let threads = found.iter().flatten();
        let comments = threads.flat_map(|thread| thread["comments"].as_array().unwrap().clone());
        comments
            .map(|comment| comment["id"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(comments(&found), ids);
    assert_eq!(found[1][0]["id"].as_str(), Some(first.as_str()));
    assert_eq!(found[1][0]["continued"], true);
    assert!(
        found[0]
            .iter()
            .all(|thread| thread.get("continued").is_none())
    );
    assert_eq!(comments(&pages(&service, "/plan/p/comments?limit=1")), ids);
    // A plan has its newest comments, and says how many others there are.
    let answer = service.get("/plan/p").ends(200);
    assert!(
        answer.body.len() < (1 << 20) + (64 << 10),
        "{}",
        answer.body.len()
    );
    let plan = answer.json();
    let shown = comments(&[plan["comments"].as_array().unwrap().clone()]);
    let left_out = plan["leftOut"]["comments"].as_u64().unwrap();
    assert_eq!(shown, ids[usize::try_from(left_out).unwrap()..]);
    assert!(shown.len() > 10, "{}", shown.len());
}

#[test]
fn runs_and_tools_come_in_pages() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    let mut runs = Vec::new();
    for _ in 0..5 {
        service.approve("p");
        runs.push(service.run("p"));
        service.wait_for("p", "completed");
    }
    let found = pages(&service, "/plan/p/runs?limit=2");
    assert_eq!(found.len(), 3);
    assert_eq!(named(&found, "id"), runs);
    assert_eq!(named(&pages(&service, "/plan/p/runs"), "id"), runs);
    let all = named(&pages(&service, "/tools"), "name");
    assert!(all.len() > 2);
    assert_eq!(named(&pages(&service, "/tools?limit=1"), "name"), all);
}

#[test]
fn a_made_up_cursor_or_limit_is_refused() {
    let service = Service::new();
    service.plan("p", json!([effect("a", &[])]));
    for list in [
        "/plan/p/versions",
        "/plan/p/comments",
        "/plan/p/runs",
        "/tools",
    ] {
        for wrong in ["limit=0", "limit=201", "cursor=%C3%A4", "cursor=bm90aGluZw"] {
            service.get(&format!("{list}?{wrong}")).ends(400);
        }
    }
}
