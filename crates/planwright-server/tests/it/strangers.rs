//! Clients without a token: many of them, silent or slow, take nothing from those who have one.

use crate::service::{Service, Setup};
use planwright_server::http::Settings;
use planwright_testing::connect::{begin_sign_in, connect_from};
use planwright_testing::steps::effect;
use planwright_testing::wait::wait_until;
use serde_json::json;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::time::{Duration, Instant};

fn limited(change: impl FnOnce(&mut Settings)) -> Service {
    let mut setup = Setup::default();
    change(&mut setup.settings);
    Service::start(setup)
}

/// A sign-in whose body does not come.
fn slow_sign_in(service: &Service) -> TcpStream {
    begin_sign_in(&service.host, Ipv4Addr::LOCALHOST).unwrap()
}

/// Approves a plan, and says how long that took.
fn time_of_decision(service: &Service, plan: &str) -> Duration {
    let begun = Instant::now();
    service.approve(plan);
    begun.elapsed()
}

#[test]
fn slow_sign_ins_keep_no_place_that_others_need() {
    let service = limited(|settings| settings.max_in_flight = 8);
    service.plan("p", json!([effect("a", &[])]));
    let held: Vec<TcpStream> = (0..300).map(|_| slow_sign_in(&service)).collect();
    for _ in 0..50 {
        service.get("/plan").ends(200);
        service.bare("GET", "/healthz").send().ends(200);
    }
    assert!(time_of_decision(&service, "p") < Duration::from_secs(5));
    // Who sends the code at once is heard.
    let wrong = service
        .bare("POST", "/sign-in")
        .json(&json!({ "code": "x" }));
    assert_eq!(wrong.send().status, 401);
    drop(held);
}

#[test]
fn requests_of_strangers_do_not_take_every_connection() {
    let service = limited(|settings| settings.max_connections = 16);
    service.plan("p", json!([effect("a", &[])]));
    let held: Vec<TcpStream> = (0..80)
        .map(|_| {
            service.get("/plan").ends(200);
            slow_sign_in(&service)
        })
        .collect();
    service.approve("p");
    drop(held);
}

/// How many of these the service has closed.
fn count_closed(connections: &[TcpStream]) -> usize {
    let is_closed = |mut stream: &TcpStream| {
        stream.set_nonblocking(true).unwrap();
        match stream.read(&mut [0; 4096]) {
            Ok(bytes) => bytes == 0,
            Err(error) => error.kind() != ErrorKind::WouldBlock,
        }
    };
    connections
        .iter()
        .filter(|stream| is_closed(stream))
        .count()
}

#[test]
fn silent_connections_of_one_address_or_many_leave_room() {
    const MOST: usize = 64;
    for addresses in [1_u8, 20] {
        let service = limited(|settings| settings.max_connections = MOST);
        service.plan("p", json!([effect("a", &[])]));
        let source = |number: usize| {
            let last = u8::try_from(number % usize::from(addresses)).unwrap() + 2;
            Ipv4Addr::new(127, 0, 0, last)
        };
        let held: Vec<TcpStream> = (0..200)
            .map(|number| connect_from(&service.host, source(number)))
            .collect();
        // All of them have been looked at: one that comes later would push out those before it.
        wait_until("the service to close most of them", || {
            count_closed(&held) >= held.len() - MOST
        });
        for _ in 0..20 {
            service.get("/plan").ends(200);
        }
        assert!(time_of_decision(&service, "p") < Duration::from_secs(5));
        drop(held);
    }
}

#[test]
fn who_showed_a_token_is_not_cut_off_for_strangers() {
    let service = limited(|settings| settings.max_connections = 8);
    let mut stream = TcpStream::connect(&service.host).unwrap();
    let request = format!(
        "GET /events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        service.host, service.admin
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(60)))
        .unwrap();
    let mut read = vec![0; 64 << 10];
    let begun = stream.read(&mut read).unwrap();
    assert!(String::from_utf8_lossy(&read[..begun]).contains("200 OK"));
    let held: Vec<TcpStream> = (0..50).map(|_| slow_sign_in(&service)).collect();
    // The next request comes after them, and is not one of those that they push out.
    wait_until("the service to close most of them", || {
        count_closed(&held) >= held.len() - 8
    });
    service.plan("p", json!([effect("a", &[])]));
    wait_until("the event", || {
        let more = stream.read(&mut read).unwrap();
        assert!(more > 0, "the stream was closed");
        String::from_utf8_lossy(&read[..more]).contains("plan")
    });
    drop(held);
}

#[test]
fn the_body_of_a_stranger_is_short_and_comes_soon() {
    let service = Service::new();
    let long = json!({ "code": "x".repeat(5_000) });
    let sent = service.bare("POST", "/sign-in").json(&long).send();
    sent.refuses(413, "larger than the 4096 bytes");
    let mut slow = slow_sign_in(&service);
    let begun = Instant::now();
    let mut answer = String::new();
    slow.set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    // The end of the connection may come with the answer or as an error after it.
    drop(slow.read_to_string(&mut answer));
    assert!(begun.elapsed() < Duration::from_secs(15), "{answer}");
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[test]
fn unknown_tokens_are_refused_and_known_ones_pass_by() {
    let service = Service::new();
    let viewer = service.token("viewer", "agent", "watcher");
    let host = service.host.clone();
    let unknown = format!("pwt_{}", "x".repeat(43));
    let flood: Vec<_> = (0..8)
        .map(|_| {
            let host = host.clone();
            let unknown = unknown.clone();
            std::thread::spawn(move || {
                let asks = || {
                    planwright_testing::http::HttpRequest::new(&host, "GET", "/plan")
                        .token(&unknown)
                        .send()
                        .status
                };
                (0..50).map(|_| asks()).collect::<Vec<u16>>()
            })
        })
        .collect();
    for _ in 0..30 {
        service.bare("GET", "/plan").token(&viewer).send().ends(200);
    }
    for statuses in flood {
        let statuses = statuses.join().unwrap();
        assert!(statuses.iter().all(|status| [401, 503].contains(status)));
    }
}
