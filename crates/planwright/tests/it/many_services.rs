//! What clients of several services on one store see: one rate, and nothing that only the service knows which they asked
//! before.

use crate::databases::Shared;
use crate::service::Served;
use planwright_testing::http::HttpRequest;
use planwright_testing::postgres::server;
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::{echo, effect, sleep};
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Two services on a store of their own, with an operator's settings.
struct Two {
    shared: Shared,
    first: Served,
    second: Served,
    one: ServiceClient,
    other: ServiceClient,
}

impl Two {
    fn new(database: &str, settings: &str) -> Self {
        let shared = Shared::new(database);
        shared.bench.configure(settings);
        let token = shared.token("ada");
        let (first, one) = shared.serve(&token);
        let (second, other) = shared.serve(&token);
        Self {
            shared,
            first,
            second,
            one,
            other,
        }
    }
}

/// An event as it was received: its id, its name, and what it says.
type Received = (String, String, Value);

/// A client of an event stream.
struct Follower(BufReader<TcpStream>);

impl Follower {
    fn open(client: &ServiceClient, path: &str, last: Option<&str>) -> Self {
        let mut request = client
            .request("GET", path)
            .header("Accept", "text/event-stream");
        if let Some(last) = last {
            request = request.header("Last-Event-ID", last);
        }
        Self::of(&request)
    }

    fn of(request: &HttpRequest) -> Self {
        let stream = request.open();
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        let mut reader = BufReader::new(stream);
        let mut status = String::new();
        reader.read_line(&mut status).unwrap();
        assert!(status.starts_with("HTTP/1.1 200"), "{status}");
        Self(reader)
    }

    /// The next event that has a number; none if the stream has ended, or its service.
    fn next(&mut self) -> Option<Received> {
        let mut id = None;
        let mut name = String::new();
        let mut data = None;
        loop {
            let mut line = String::new();
            if !matches!(self.0.read_line(&mut line), Ok(1..)) || !line.ends_with('\n') {
                return None;
            }
            let line = line.trim_end();
            if let Some(text) = line.strip_prefix("id:") {
                id = Some(text.trim().to_owned());
            } else if let Some(text) = line.strip_prefix("event:") {
                text.trim().clone_into(&mut name);
            } else if let Some(text) = line.strip_prefix("data:") {
                data = serde_json::from_str(text).ok();
            } else if line.is_empty()
                && let (Some(id), Some(data)) = (id.take(), data.take())
            {
                return Some((id, name, data));
            }
        }
    }

    /// Everything up to the end of a run.
    fn until_run_is_over(&mut self) -> Vec<Received> {
        let mut received = Vec::new();
        while let Some(event) = self.next() {
            let is_end = event.1 == "run.completed";
            received.push(event);
            if is_end {
                break;
            }
        }
        received
    }
}

/// Follows a stream at the first service until some events have come, and at the second one from there.
fn follow_across(two: Two, path: &str, before: usize) -> (Vec<Received>, Survivor) {
    let Two {
        shared,
        first,
        second,
        one,
        other,
    } = two;
    let mut follower = Follower::open(&one, path, None);
    one.run("p");
    let mut received = Vec::new();
    while received.len() < before {
        let next = follower.next();
        assert!(next.is_some(), "the stream ended after {received:#?}");
        received.extend(next);
    }
    first.into_running().kill();
    // What was on its way still counts.
    received.extend(std::iter::from_fn(|| follower.next()));
    let last = received.last().unwrap().0.clone();
    let mut follower = Follower::open(&other, path, Some(&last));
    received.extend(follower.until_run_is_over());
    (
        received,
        Survivor {
            _shared: shared,
            _second: second,
            other,
        },
    )
}

/// The service that is left, with its workspace.
struct Survivor {
    _shared: Shared,
    _second: Served,
    other: ServiceClient,
}

/// Calls that may be made again, wherever the service is killed.
fn steps() -> Value {
    json!([
        echo("a", 1, &[]),
        echo("b", 2, &["a"]),
        sleep("wait", 1_500, &["b"]),
        echo("c", 3, &["wait"]),
        echo("d", 4, &["c"]),
    ])
}

#[test]
fn a_stream_that_moves_to_another_service_has_no_gap_and_nothing_twice() {
    for (database, path) in [
        ("stream_of_plan", "/plan/p/events"),
        ("stream_of_all", "/events?after=0"),
    ] {
        let two = Two::new(database, "");
        two.one.plan("p", steps());
        two.one.approve("p");
        let (received, left) = follow_across(two, path, 8);
        // As a client sees it that was never interrupted.
        let whole = Follower::open(&left.other, path, None).until_run_is_over();
        assert!(whole.len() > 15, "{whole:#?}");
        assert_eq!(received, whole, "{path}");
    }
}

#[test]
fn a_ticket_and_a_session_of_one_service_are_good_at_the_other() {
    let two = Two::new("tickets", "");
    two.one.plan("p", json!([effect("a", &[])]));
    let ticket = || {
        let wanted = json!({ "path": "/plan/p/events" });
        let given = two.one.post("/tickets", &wanted).ends(200).json();
        given["ticket"].as_str().unwrap().to_owned()
    };
    let open = |client: &ServiceClient, ticket: &str| {
        let path = format!("/plan/p/events?ticket={ticket}");
        client.bare("GET", &path).send().status
    };
    let given = ticket();
    assert_eq!(open(&two.other, &given), 200);
    assert_eq!(open(&two.one, &given), 401, "it was used");
    assert_eq!(open(&two.one, &ticket()), 200);
    let shown = json!({ "token": two.one.admin });
    let session = two.one.bare("POST", "/sign-in").json(&shown);
    let session = session.send().ends(200).json();
    let session = session["token"].as_str().unwrap();
    let who = |client: &ServiceClient| client.bare("GET", "/whoami").token(session).send().status;
    assert_eq!((who(&two.one), who(&two.other)), (200, 200));
    two.other
        .bare("DELETE", "/session")
        .token(session)
        .send()
        .ends(204);
    assert_eq!((who(&two.one), who(&two.other)), (401, 401));
}

#[test]
fn a_plan_that_one_service_writes_is_followed_and_cancelled_at_the_other() {
    let plan = json!({ "title": "Look", "steps": [{ "id": "s1", "title": "List", "tool": "local.list_dir", "args": { "path": "." } }] });
    let mut replies = 0;
    let provider = Provider::answering(move |_| {
        replies += 1;
        let seconds = if replies == 1 { 1 } else { 10 };
        ScriptedReply::json(plan.clone()).after(Duration::from_secs(seconds))
    });
    let two = Two::new("orders", &provider.config());
    let order = || {
        let ordered = two.one.post("/planning", &json!({ "goal": "look" }));
        let ordered = ordered.ends(202);
        ordered.header("location").unwrap().to_owned()
    };
    let place = order();
    let seen = two.other.get(&place).ends(200).json();
    assert_eq!(seen["status"], "running", "{seen}");
    let followed = two
        .other
        .request("GET", &format!("{place}/events"))
        .header("Accept", "text/event-stream")
        .send()
        .ends(200)
        .text();
    assert!(followed.contains("\"status\":\"done\""), "{followed}");
    assert_eq!(
        two.other.get(&place).ends(200).json(),
        two.one.get(&place).ends(200).json()
    );
    // The second one is cancelled where it was not ordered.
    let place = order();
    two.other.request("DELETE", &place).send().ends(202);
    for client in [&two.one, &two.other] {
        wait_until("the order to be cancelled", || {
            client.get(&place).ends(200).json()["status"] == "cancelled"
        });
    }
    two.other.get("/planning/pln-nosuch").ends(404);
}

/// Asks as fast as it can for a while, and counts what was answered.
fn flood(client: &ServiceClient, token: &str, until: Instant) -> u32 {
    let mut admitted = 0;
    while Instant::now() < until {
        let reply = client.bare("GET", "/whoami").token(token).send();
        match reply.status {
            200 => admitted += 1,
            429 => {}
            status => panic!("{status}"),
        }
    }
    admitted
}

#[test]
fn a_client_of_two_services_has_one_rate() {
    let two = Two::new("rates", "[serve]\nrequests_per_second = 20\nburst = 40\n");
    let sql = |text: &str| server().sql("rates", text);
    wait_until("both services", || {
        sql("SELECT count(*) FROM planwright.services") == "2"
    });
    let newest = sql("SELECT max(seen_at) FROM planwright.services");
    // Then the first one has counted again, and knows of the second.
    wait_until("both to have counted", || {
        sql(&format!(
            "SELECT min(seen_at) > '{newest}' FROM planwright.services"
        )) == "t"
    });
    let eve = two.shared.token("eve");
    let began = Instant::now();
    let until = began + Duration::from_secs(4);
    let admitted = std::thread::scope(|scope| {
        let floods =
            [&two.one, &two.other].map(|client| scope.spawn(|| flood(client, &eve, until)));
        floods
            .map(|flood| flood.join().unwrap())
            .iter()
            .sum::<u32>()
    });
    let seconds = began.elapsed().as_secs_f64();
    let expected = seconds.mul_add(20.0, 40.0);
    let share = f64::from(admitted) / expected;
    assert!(
        (0.7..=1.15).contains(&share),
        "{admitted} in {seconds} s, of {expected}"
    );
    // Who stays far below it is not kept in the store.
    two.one.get("/whoami").ends(200);
    let kept = sql("SELECT count(*) FROM planwright.request_rates");
    assert_eq!(kept, "1", "only the flood was counted");
    drop((two.first, two.second));
}
