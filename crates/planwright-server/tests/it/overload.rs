//! Too much at once: most are told to come again, people who decide are let in.

use crate::service::{Service, Setup};
use planwright_server::http::Settings;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A service with other limits than usual.
fn limited(change: impl FnOnce(&mut Settings)) -> Service {
    let mut setup = Setup::default();
    change(&mut setup.settings);
    Service::start(setup)
}

#[test]
fn decisions_are_admitted_while_others_are_told_to_come_again() {
    let service = limited(|settings| settings.max_in_flight = 2);
    service.plan("p", json!([effect("a", &[])]));
    service.plan("q", json!([sleep("a", 60_000, &[])]));
    service.run("q");
    let mut held: Vec<TcpStream> = Vec::new();
    // Those that came when there was no room are answered; the others are waited for.
    wait_until("the service to be full", || {
        let request = service
            .request("POST", "/plan")
            .header("Content-Type", "application/json");
        held.push(request.hang(100));
        service.get("/plan").status == 503
    });
    let refused = service.get("/plan").refuses(503, "too much");
    assert!(refused.header("retry-after").is_some());
    service.approve("p");
    service.request("POST", "/plan/q/cancel").send().ends(202);
    service.plan_is_refused();
    drop(held);
    wait_until("room", || service.get("/plan").status == 200);
    service.wait_for("q", "cancelled");
    assert_eq!(service.status("p"), "approved");
}

#[test]
fn one_principal_does_not_take_the_service_for_themselves() {
    let service = limited(|settings| {
        settings.requests_per_second = 1;
        settings.burst = 5;
    });
    service.plan("p", json!([effect("a", &[])]));
    let eager = service.token("viewer", "agent", "eager");
    let statuses: Vec<u16> = (0..40)
        .map(|_| service.bare("GET", "/tools").token(&eager).send().status)
        .collect();
    assert!(
        statuses.contains(&429) && statuses[..5] == [200; 5],
        "{statuses:?}"
    );
    let refused = service.bare("GET", "/tools").token(&eager).send();
    assert!(refused.status == 200 || refused.header("retry-after").is_some());
    for _ in 0..20 {
        let yes = json!({ "decision": "approve", "version": 9 });
        service.post("/plan/p/approve", &yes).refuses(409, "shown");
    }
    service.approve("p");
}

#[test]
fn one_principal_does_not_hold_every_place_with_slow_requests() {
    let service = limited(|settings| {
        settings.max_in_flight = 16;
        settings.max_in_flight_per_principal = 3;
    });
    let eager = service.token("viewer", "agent", "eager");
    let slow = || {
        service
            .bare("POST", "/tickets")
            .token(&eager)
            .header("Content-Type", "application/json")
            .hang(100)
    };
    let mut held: Vec<TcpStream> = Vec::new();
    let asks = || service.bare("GET", "/tools").token(&eager).send();
    // A question may itself hold the place that a slow request came for, so there are always more.
    wait_until("their places to be taken", || {
        held.push(slow());
        asks().status == 429
    });
    held.extend((0..20).map(|_| slow()));
    asks().refuses(429, "under way");
    service.get("/tools").ends(200);
    drop(held);
    wait_until("their places to be free", || asks().status == 200);
}

#[test]
fn connections_beyond_the_limit_are_closed_and_others_go_on() {
    let service = limited(|settings| settings.max_connections = 3);
    let mut idle: Vec<TcpStream> = (0..2)
        .map(|_| TcpStream::connect(&service.host).unwrap())
        .collect();
    for stream in &mut idle {
        stream.write_all(b"GET /healthz HTTP/1.1\r\n").unwrap();
    }
    service.get("/plan").ends(200);
    let more: Vec<TcpStream> = (0..5)
        .map(|_| TcpStream::connect(&service.host).unwrap())
        .collect();
    drop(more);
    drop(idle);
    wait_until("room", || {
        TcpStream::connect(&service.host).is_ok_and(|stream| answers(&service, stream))
    });
}

/// A connection with a request that goes on.
fn busy(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(&service.host).unwrap();
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        service.host, service.admin
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut read = [0; 512];
    let begun = stream.read(&mut read).unwrap();
    assert!(String::from_utf8_lossy(&read[..begun]).contains("200 OK"));
    stream
}

#[test]
fn people_decide_when_every_connection_is_taken() {
    let service = limited(|settings| settings.max_connections = 4);
    service.plan("p", json!([effect("a", &[])]));
    service.plan("q", json!([sleep("a", 60_000, &[])]));
    service.run("q");
    let version = service.get("/plan/p").json()["version"].clone();
    // What came before is closed once it is idle; these are not.
    let streams: Vec<TcpStream> = (0..4).map(|_| busy(&service)).collect();
    let refused = service.get("/plan").refuses(503, "too many connections");
    assert_eq!(refused.header("connection"), Some("close"));
    let yes = json!({ "decision": "approve", "version": version });
    service.post("/plan/p/approve", &yes).ends(200);
    service.request("POST", "/plan/q/pause").send().ends(202);
    service.request("POST", "/plan/q/cancel").send().ends(202);
    drop(streams);
    wait_until("room", || service.get("/plan").status == 200);
    service.wait_for("q", "cancelled");
    assert_eq!(service.status("p"), "approved");
}

#[test]
fn no_decision_of_a_person_counts_against_their_rate() {
    let service = limited(|settings| {
        settings.requests_per_second = 1;
        settings.burst = 20;
    });
    let asks = json!({ "id": "ask", "title": "Ask", "input": { "message": "which?", "schema":
        { "type": "object", "properties": { "answer": { "type": "string" } } } } });
    service.plan("p", json!([asks]));
    service.plan("q", json!([sleep("a", 60_000, &[])]));
    service.run("p");
    service.run("q");
    service.wait_for("p", "waiting");
    let inbox = service.get("/approvals").json();
    let digest = inbox["items"][0]["digest"].clone();
    wait_until("the rate to be used up", || {
        service.get("/tools").status == 429
    });
    let reply = json!({ "question": digest, "values": { "answer": "this" } });
    for _ in 0..30 {
        service
            .post("/plan/q/pause", &json!({ "run": "none" }))
            .refuses(404, "no run");
        service
            .post(
                "/plan/p/steps/ask/resolve",
                &json!({ "outcome": "happened" }),
            )
            .refuses(409, "");
    }
    service.post("/plan/p/steps/ask/input", &reply).ends(200);
    service.post("/plan/q/pause", &json!({})).ends(202);
    service.post("/plan/q/cancel", &json!({})).ends(202);
}

/// A connection that asked once, and stays.
fn kept(service: &Service) -> TcpStream {
    let mut stream = TcpStream::connect(&service.host).unwrap();
    let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\n\r\n", service.host);
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"{\"alive\":true}") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).unwrap(), 1);
        answer.push(byte[0]);
    }
    stream
}

/// Returns whether the service closes this connection within this time.
fn is_closed(stream: &TcpStream, within: Duration) -> bool {
    stream.set_read_timeout(Some(within)).unwrap();
    let mut stream = stream;
    matches!(stream.read(&mut [0]), Ok(0))
}

#[test]
fn connections_that_only_sit_there_make_room_for_others() {
    let service = limited(|settings| {
        settings.max_connections = 4;
        settings.idle_timeout = Duration::from_secs(60);
    });
    let idle: Vec<TcpStream> = (0..4).map(|_| kept(&service)).collect();
    for _ in 0..10 {
        service.get("/plan").ends(200);
    }
    assert!(is_closed(&idle[0], Duration::from_secs(5)));
}

#[test]
fn idle_connections_of_one_address_are_few() {
    let service = limited(|settings| {
        // This machine may have four times as many.
        settings.max_idle_per_address = 1;
        settings.idle_timeout = Duration::from_secs(60);
    });
    let idle: Vec<TcpStream> = (0..6).map(|_| kept(&service)).collect();
    for stream in &idle[..2] {
        assert!(is_closed(stream, Duration::from_secs(5)));
    }
    for stream in &idle[2..] {
        assert!(!is_closed(stream, Duration::from_millis(50)));
    }
}

#[test]
fn idle_connections_are_closed_after_a_while_and_those_with_a_request_are_not() {
    let service = limited(|settings| settings.idle_timeout = Duration::from_millis(200));
    let silent = TcpStream::connect(&service.host).unwrap();
    let idle = kept(&service);
    let mut stream = TcpStream::connect(&service.host).unwrap();
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        service.host, service.admin
    );
    stream.write_all(request.as_bytes()).unwrap();
    assert!(is_closed(&idle, Duration::from_secs(5)));
    assert!(is_closed(&silent, Duration::from_secs(5)));
    // Several times as long as an idle connection has, the stream is still there.
    std::thread::sleep(Duration::from_millis(800));
    stream
        .set_read_timeout(Some(Duration::from_secs(5)))
        .unwrap();
    let mut read = vec![0; 64 << 10];
    let begun = stream.read(&mut read).unwrap();
    assert!(String::from_utf8_lossy(&read[..begun]).contains("200 OK"));
    service.plan("p", json!([effect("a", &[])]));
    wait_until("the event", || {
        let more = stream.read(&mut read).unwrap();
        assert!(more > 0, "the stream was closed");
        String::from_utf8_lossy(&read[..more]).contains("plan")
    });
}

fn answers(service: &Service, mut stream: TcpStream) -> bool {
    let request = format!(
        "GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n",
        service.host
    );
    let mut text = String::new();
    stream.write_all(request.as_bytes()).is_ok()
        && stream.read_to_string(&mut text).is_ok()
        && text.contains("200 OK")
}

#[test]
fn headers_that_never_end_are_not_waited_for() {
    let service = Service::new();
    let mut stream = TcpStream::connect(&service.host).unwrap();
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\n")
        .unwrap();
    let mut rest = Vec::new();
    // Ends when the service closes the connection; the test would hang if it never did.
    drop(stream.read_to_end(&mut rest));
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK"));
    service.get("/plan").ends(200);
}

impl Service {
    #[track_caller]
    fn plan_is_refused(&self) {
        self.post("/plan", &json!({ "goal": "one more" }))
            .refuses(503, "too much");
    }
}
