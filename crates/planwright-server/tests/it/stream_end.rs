//! The end of an event stream, for clients that come back by themselves.

use crate::service::Service;
use planwright_testing::http::HttpReply;
use planwright_testing::steps::echo;
use serde_json::json;

fn listen(service: &Service, path: &str, after: Option<&str>) -> HttpReply {
    let request = service.request("GET", path);
    let request = request.header("Accept", "text/event-stream");
    match after {
        Some(after) => request.header("Last-Event-ID", after).send(),
        None => request.send(),
    }
}

#[test]
fn who_has_everything_of_a_run_that_is_over_is_told_not_to_come_back() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    service.approve("p");
    service.run("p");
    service.wait_for("p", "completed");
    let told = listen(&service, "/plan/p/events", None).ends(200).text();
    let ids: Vec<&str> = told
        .lines()
        .filter_map(|line| line.strip_prefix("id: "))
        .collect();
    let last = *ids.last().unwrap();
    let again = |path: &str, after: &str| listen(&service, path, Some(after)).status;
    assert_eq!(again("/plan/p/events", last), 204);
    // Also if what it missed is nothing that it asked for.
    assert_eq!(again("/plan/p/events?types=none.such", ids[0]), 204);
    assert_eq!(again("/plan/p/events", ids[0]), 200);
    assert_eq!(listen(&service, "/plan/p/events", None).status, 200);
}

#[test]
fn a_place_beyond_every_number_has_no_events() {
    let service = Service::new();
    service.plan("p", json!([echo("a", 1, &[])]));
    for after in [u64::MAX, u64::MAX - 1, 1 << 53] {
        let answer = service.get(&format!("/plan/p/events?after={after}"));
        assert_eq!(answer.ends(200).json()["events"], json!([]), "{after}");
    }
}
