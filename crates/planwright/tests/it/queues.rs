//! `planwright queue` with a real Redis. What holds for every broker is tested where brokers are.

use planwright_testing::brokers::{REDIS_PASSWORD, redis};
use planwright_testing::workbench::{Bench, Said, said};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

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
    assert!(text.contains("redis://127.0.0.1"), "{text}");
    assert!(!text.contains(REDIS_PASSWORD), "{text}");
}
