//! Many strangers at once, and plans with a long history: the service stays there for those who have a
//! token, and small.

use crate::client::Service;
use planwright_testing::connect::{begin_sign_in, connect_from};
use planwright_testing::steps::{call, effect};
use serde_json::{Value, json};
use std::net::{Ipv4Addr, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// More connections than the service has room for.
const CONNECTIONS: usize = 1_100;
const SIGN_INS: usize = 300;

/// Versions of the large plan, and the bytes of each.
const VERSIONS: usize = 24;
const VERSION_BYTES: usize = 900 << 10;

/// Ten readers together cost less memory than this. With every version in memory for each of them, as it
/// was once, it is more than 300 MiB.
const MOST_GROWTH_KB: u64 = 200 << 10;

/// How long requests take, in order.
fn times_of_requests(service: &Service) -> Vec<Duration> {
    let mut times: Vec<Duration> = (0..100)
        .map(|_| {
            let begun = Instant::now();
            service.get("/plan").ends(200);
            begun.elapsed()
        })
        .collect();
    times.sort_unstable();
    times
}

/// Checks that requests and a decision get through. Returns how long they took.
fn check_served(service: &Service, plan: &str) -> String {
    let times = times_of_requests(service);
    let begun = Instant::now();
    service.approve(plan);
    let decided = begun.elapsed();
    assert!(times[98] < Duration::from_secs(5), "{times:?}");
    assert!(decided < Duration::from_secs(5), "{decided:?}");
    let half = times[50];
    let most = times[98];
    format!("p50 {half:?}, p99 {most:?}, a decision {decided:?}")
}

#[test]
fn silent_connections_and_slow_sign_ins_lock_nobody_out() {
    let service = Service::new();
    for plan in ["one", "many", "slow"] {
        service.plan(plan, json!([effect("a", &[])]));
    }
    let silent = |addresses: usize| -> Vec<TcpStream> {
        (0..CONNECTIONS)
            .map(|number| {
                let last = u8::try_from(2 + number % addresses).unwrap();
                connect_from(&service.host, Ipv4Addr::new(127, 0, 0, last))
            })
            .collect()
    };
    let held = silent(1);
    println!("silent, one address: {}", check_served(&service, "one"));
    drop(held);
    let held = silent(30);
    println!("silent, 30 addresses: {}", check_served(&service, "many"));
    drop(held);
    let held: Vec<TcpStream> = (0..SIGN_INS)
        .map(|_| begin_sign_in(&service.host, Ipv4Addr::LOCALHOST).unwrap())
        .collect();
    println!("slow sign-ins: {}", check_served(&service, "slow"));
    drop(held);
}

/// Kilobytes of memory that the service had at most, and has now.
fn memory(service: &Service) -> (u64, u64) {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.process())).unwrap();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        let number = line.split_whitespace().nth(1).unwrap();
        number.parse().unwrap()
    };
    (line("VmHWM:"), line("VmRSS:"))
}

/// A plan whose arguments fill a version.
fn steps_of_version(version: usize) -> Value {
    let text = format!("{version:06} ").repeat(VERSION_BYTES / 10 / 7);
    (0..10)
        .map(|step| {
            let args = json!({ "value": text });
            call(&format!("s{step}"), "demo.echo", args, &[])
        })
        .collect()
}

#[test]
fn ten_readers_of_a_plan_with_a_long_history_cost_little_memory() {
    let mut service = Service::new();
    service.plan("big", steps_of_version(1));
    let mut etag = String::from("*");
    for version in 2..=VERSIONS {
        if version == 2 {
            let read = service.get("/plan/big").ends(200);
            read.header("etag").unwrap().clone_into(&mut etag);
        }
        let patch = json!({ "steps": steps_of_version(version) }).to_string();
        let patched = service
            .request("PATCH", "/plan/big")
            .header("If-Match", &etag)
            .body("application/merge-patch+json", patch.as_bytes())
            .send()
            .ends(200);
        patched.header("etag").unwrap().clone_into(&mut etag);
    }
    // A new process: nothing is in memory yet.
    assert_eq!(service.stop(), 0);
    service.start();
    service.get("/plan/none").refuses(404, "no plan");
    let (_, before) = memory(&service);
    thread::scope(|scope| {
        for _ in 0..10 {
            scope.spawn(|| {
                let answer = service.get("/plan/big").ends(200);
                assert!(answer.body.len() > VERSION_BYTES / 2);
            });
        }
    });
    let (most, _) = memory(&service);
    println!("{before} KiB before, {most} KiB at most");
    assert!(
        most - before < MOST_GROWTH_KB,
        "{before} KiB before, {most} KiB at most"
    );
    // The earlier versions are still there.
    let versions = service.get("/plan/big/versions").ends(200).json();
    assert_eq!(versions.as_array().unwrap().len(), VERSIONS);
    let diff = service.get("/plan/big/diff?from=1&to=2").ends(200).json();
    assert_eq!(diff["executable"], true);
}
