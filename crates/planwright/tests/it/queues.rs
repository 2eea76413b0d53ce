//! `planwright queue` with a real Redis. What holds for every broker is tested where brokers are.

use crate::service::Served;
use planwright_testing::brokers::{REDIS_PASSWORD, redis};
use planwright_testing::service::ServiceClient;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Gives a notice up, as a worker does after too many deliveries.
fn give_up(capability: &str, attempt: u32) {
    let notice = format!(
        r#"{{"v":1,"capability":"{capability}","run":"run_1","step":"train","attempt":{attempt},"key":"k"}}"#
    );
    add_dead(capability, &notice);
}

fn add_dead(capability: &str, notice: &str) {
    let key = format!("planwright:dead:{{{capability}}}");
    let mut stream = TcpStream::connect(("127.0.0.1", redis().port())).unwrap();
    for command in [
        &["AUTH", REDIS_PASSWORD][..],
        &["XADD", &key, "*", "notice", notice, "deliveries", "20"],
    ] {
        write!(stream, "*{}\r\n", command.len()).unwrap();
        for part in command {
            write!(stream, "${}\r\n{part}\r\n", part.len()).unwrap();
        }
        let mut answer = [0; 64];
        let read = stream.read(&mut answer).unwrap();
        assert!(!answer[..read].starts_with(b"-"), "{command:?}");
    }
}

fn run(bench: &Bench, args: &[&str]) -> Said {
    let mut command = bench.command(args);
    let url = format!("redis://127.0.0.1:{}", redis().port());
    command
        .env("PLANWRIGHT_DISPATCH", url)
        .env("PLANWRIGHT_DISPATCH_PASSWORD", REDIS_PASSWORD);
    said(command.output().unwrap())
}

#[test]
fn notices_that_were_given_up_are_listed_sent_again_and_forgotten() {
    let bench = Bench::new();
    for attempt in 1..4 {
        give_up("gpu", attempt);
    }
    add_dead("gpu", "hunter2");
    let queues = run(&bench, &["queue", "list", "gpu", "--json"])
        .ends(0)
        .json();
    assert_eq!(queues["queues"][0]["dead"], 4, "{queues}");
    assert_eq!(queues["queues"][0]["waiting"], 0, "{queues}");
    let shown = run(&bench, &["queue", "show", "gpu", "--json"])
        .ends(0)
        .json();
    assert_eq!(shown["dead"][0]["run"], "run_1", "{shown}");
    assert_eq!(shown["dead"][2]["attempt"], 3, "{shown}");
    assert!(shown["dead"][3].get("run").is_none(), "{shown}");
    let text = run(&bench, &["queue", "show", "gpu"]).ends(0).out;
    assert!(
        text.contains("train attempt 2") && text.contains("20 deliveries"),
        "{text}"
    );
    assert!(!text.contains("hunter2"), "{text}");

    let id = shown["dead"][1]["id"].as_str().unwrap();
    let sent = run(&bench, &["queue", "requeue", "gpu", id, "--json"]).ends(0);
    assert_eq!(sent.json()["requeued"], 1);
    let unknown = run(&bench, &["queue", "requeue", "gpu", id]).ends(2).err;
    assert!(unknown.contains("planwright queue show gpu"), "{unknown}");
    let all = run(&bench, &["queue", "requeue", "gpu", "--all", "--json"]).ends(0);
    assert_eq!(all.json()["requeued"], 2);
    let purged = run(&bench, &["queue", "purge", "gpu", "--json"]).ends(0);
    assert_eq!(purged.json()["purged"], 1);
    let list = run(&bench, &["queue", "list", "gpu"]).ends(0).out;
    assert!(
        list.contains("3 waiting") && list.contains("0 given up"),
        "{list}"
    );
}

#[test]
fn a_broker_is_named_by_a_person_and_its_password_is_never_shown() {
    let bench = Bench::new();
    let none = bench.run(&["queue", "list", "gpu"]).ends(2).err;
    assert!(none.contains("[dispatch] url"), "{none}");
    let wrong = bench.run(&["queue", "list", "gpu", "--dispatch", "http://u:hunter2@h"]);
    let wrong = wrong.ends(2).err;
    assert!(
        wrong.contains("amqp://") && !wrong.contains("hunter2"),
        "{wrong}"
    );
    let away = "amqp://u:hunter2@127.0.0.1:1";
    let away = bench.run(&["queue", "list", "gpu", "--dispatch", away]);
    let away = away.ends(5).err;
    assert!(
        away.contains("127.0.0.1:1") && !away.contains("hunter2"),
        "{away}"
    );
    // The folder's file is asked about first, and an agent chooses no other.
    bench.write(
        "planwright.toml",
        "[dispatch]\nurl = \"redis://127.0.0.1:1\"\n",
    );
    let untrusted = bench.run(&["queue", "list", "gpu"]).ends(2).err;
    assert!(untrusted.contains("[dispatch] url"), "{untrusted}");
    let mut agent = bench.command(&["queue", "list", "gpu", "--dispatch", "redis://127.0.0.1:1"]);
    let agent = said(agent.env("PLANWRIGHT_AGENT", "it").output().unwrap());
    agent.ends(3);
}

#[test]
fn doctor_names_the_broker() {
    let bench = Bench::new();
    let found = run(&bench, &["doctor", "--json"]).json();
    let text = found.to_string();
    let broker = &found["broker"];
    let address = broker["address"].as_str().unwrap();
    assert!(address.starts_with("redis://127.0.0.1"), "{broker}");
    assert!(broker["latencyMs"].as_f64().unwrap() > 0.0, "{broker}");
    assert!(!text.contains(REDIS_PASSWORD), "{text}");
}

#[test]
fn doctor_says_what_a_broker_that_is_away_means() {
    let bench = Bench::new();
    let mut doctor = bench.command(&["doctor", "--json"]);
    let doctor = doctor.env("PLANWRIGHT_DISPATCH", "redis://127.0.0.1:1");
    let found = said(doctor.output().unwrap()).ends(5).json();
    assert!(found["broker"].is_null(), "{found}");
    let checks = found["checks"].as_array().unwrap();
    let broker = checks.iter().find(|check| check["name"] == "broker");
    let hint = broker.unwrap()["hint"].as_str().unwrap();
    assert!(hint.contains("in the store meanwhile"), "{hint}");
}

/// Starts a service with this broker, whose steps with the capability `mri` are for workers, and a client of it.
fn serve(bench: &Bench, broker: &str) -> (Served, ServiceClient) {
    bench.configure("[dispatch]\ncapabilities = [\"mri\"]\n");
    let token = [
        "token", "create", "--role", "admin", "--kind", "person", "--name", "ada", "--json",
    ];
    let admin = bench.run(&token).ends(0).json()["token"]
        .as_str()
        .unwrap()
        .to_owned();
    let mut command = bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    if !broker.is_empty() {
        command
            .env("PLANWRIGHT_DISPATCH", broker)
            .env("PLANWRIGHT_DISPATCH_PASSWORD", REDIS_PASSWORD);
    }
    let served = Served::start(command);
    let host = served.address().to_owned();
    (served, ServiceClient { host, admin })
}

/// The value of a line of the figures.
fn figure(client: &ServiceClient, name: &str) -> Option<String> {
    let text = client.get("/metrics").ends(200).text();
    let mut lines = text.lines();
    lines.find_map(|line| Some(line.strip_prefix(name)?.trim().to_owned()))
}

#[test]
fn a_service_shows_its_queues_and_an_admin_sends_notices_again_or_forgets_them() {
    let bench = Bench::new();
    for attempt in 1..4 {
        give_up("mri", attempt);
    }
    let (_served, client) = serve(&bench, &format!("redis://127.0.0.1:{}", redis().port()));
    let queues = client.get("/queues").ends(200).json();
    assert_eq!(queues["queues"][0]["capability"], "mri", "{queues}");
    assert_eq!(queues["queues"][0]["dead"], 3, "{queues}");
    // The same document as on the command line.
    let listed = run(&bench, &["queue", "list", "--json"]).ends(0).json();
    assert_eq!(queues, listed);
    let dead = client.get("/queues/mri/dead?limit=2").ends(200).json();
    assert_eq!(dead["dead"].as_array().unwrap().len(), 2, "{dead}");
    assert_eq!(dead["dead"][0]["run"], "run_1", "{dead}");
    let id = dead["dead"][0]["id"].as_str().unwrap();
    let again = format!("/queues/mri/dead/{id}/requeue");
    let sent = client.post(&again, &json!({})).ends(200).json();
    assert_eq!(sent["requeued"], 1);
    let unknown = client.post(&again, &json!({})).ends(404).json();
    assert_eq!(unknown["code"], "unknown_notice", "{unknown}");
    let other = client.get("/queues/others/dead").ends(404).json();
    assert_eq!(other["code"], "unknown_capability", "{other}");
    let figures = client.get("/metrics").ends(200).text();
    for line in [
        "planwright_broker_up 1",
        "planwright_queue_waiting{capability=\"mri\"} 1",
        "planwright_queue_dead{capability=\"mri\"} 2",
        "planwright_queue_held{capability=\"mri\"} 0",
        "planwright_queue_redelivered_total{capability=\"mri\"} 0",
    ] {
        assert!(figures.contains(line), "{line}\n{figures}");
    }
    let stats = client.get("/stats").ends(200).json();
    assert_eq!(stats["dispatch"]["queues"][0]["dead"], 2, "{stats}");
    let purged = client
        .request("DELETE", "/queues/mri/dead")
        .send()
        .ends(200);
    assert_eq!(purged.json()["purged"], 2);
    // The store of this one is a file.
    let workers = client.get("/workers").ends(409).json();
    assert_eq!(workers["code"], "no_workers", "{workers}");
}

#[test]
fn a_broker_that_is_away_costs_a_scrape_little_and_is_named_without_its_password() {
    let bench = Bench::new();
    // It accepts connections and says nothing: the worst that can happen to a scrape.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap().to_string();
    let (served, client) = serve(&bench, &format!("redis://u:hunter2@{place}"));
    let asked = Instant::now();
    assert_eq!(figure(&client, "planwright_broker_up").unwrap(), "0");
    let took = asked.elapsed();
    assert!(took < Duration::from_secs(4), "{took:?}");
    // The next one does not ask again.
    let asked = Instant::now();
    let dead = figure(&client, "planwright_queue_dead{capability=\"mri\"}");
    assert_eq!(dead.unwrap(), "NaN");
    assert!(
        asked.elapsed() < Duration::from_millis(900),
        "{:?}",
        asked.elapsed()
    );
    drop(silent);
    let away = client.get("/queues").ends(503).json();
    assert_eq!(away["code"], "broker_unreachable", "{away}");
    let text = away.to_string();
    assert!(text.contains(&place) && !text.contains("hunter2"), "{text}");
    let stats = client.get("/stats").ends(200).json();
    let problem = stats["dispatch"]["problem"].as_str().unwrap();
    assert!(!problem.contains("hunter2"), "{problem}");
    drop(served);
    let without = Bench::new();
    let (_served, client) = serve(&without, "");
    let none = client.get("/queues").ends(409).json();
    assert_eq!(none["code"], "no_broker", "{none}");
    assert!(
        none["hint"].as_str().unwrap().contains("[dispatch] url"),
        "{none}"
    );
}
