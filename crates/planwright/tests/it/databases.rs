//! The program on a store in Postgres, with a real server.

use crate::service::Served;
use planwright_testing::postgres::server;
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::{echo, effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, Said};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

/// A workspace whose store is a database.
pub(crate) struct Shared {
    pub(crate) bench: Bench,
    pub(crate) url: String,
}

impl Shared {
    pub(crate) fn new(database: &str) -> Self {
        server().create_database(database);
        Self {
            bench: Bench::new(),
            url: server().url(database),
        }
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        let mut command = self.bench.command(args);
        command.env("PLANWRIGHT_STORE", &self.url);
        planwright_testing::workbench::said(command.output().unwrap())
    }

    fn run_with(&self, passphrase: &str, args: &[&str]) -> Said {
        self.run(&[args, &["--passphrase-file", passphrase]].concat())
    }

    fn approve(&self, id: &str) {
        let shown = self.run(&["show", id, "--json"]).ends(0).json();
        let digest = shown["digest"].as_str().unwrap();
        self.run(&["approve", id, "--digest", digest]).ends(0);
    }

    fn start(&self, args: &[&str]) -> Running {
        let mut command = self.bench.command(args);
        command
            .env("PLANWRIGHT_STORE", &self.url)
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        Running::of(command)
    }

    /// Makes a token of a person who may do everything.
    pub(crate) fn token(&self, name: &str) -> String {
        let token = [
            "token", "create", "--role", "admin", "--kind", "person", "--name", name, "--json",
        ];
        let made = self.run(&token).ends(0).json();
        made["token"].as_str().unwrap().to_owned()
    }

    /// Starts a service of this workspace, and a client of it.
    pub(crate) fn serve(&self, admin: &str) -> (Served, ServiceClient) {
        let mut command = self
            .bench
            .command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        command.env("PLANWRIGHT_STORE", &self.url);
        let served = Served::start(command);
        let client = ServiceClient {
            host: served.address().to_owned(),
            admin: admin.to_owned(),
        };
        (served, client)
    }

    fn has_started(&self, step: &str) -> bool {
        let log = self.run(&["log", "p", "--json"]).out;
        let entries = log
            .lines()
            .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        entries
            .into_iter()
            .any(|entry| entry["kind"] == "attempt_started" && entry["step"] == step)
    }
}

#[test]
fn a_run_that_was_killed_continues_and_repeats_nothing() {
    let shared = Shared::new("killed");
    let steps = json!([
        effect("a", &[]),
        effect("b", &["a"]),
        sleep("wait", 3_000, &["b"]),
        effect("c", &["wait"]),
    ]);
    let plan = shared.bench.plan("p", steps);
    shared.run(&["import", &plan]).ends(0);
    shared.approve("p");
    assert!(!shared.bench.path(".plans/planwright.db").exists());
    let running = shared.start(&["run", "p"]);
    wait_until("the call to wait", || shared.has_started("wait"));
    running.kill();
    let resumed = shared.run(&["resume", "p"]).ends(0);
    assert_eq!(
        shared.bench.read("effects.txt"),
        "a\nb\nc\n",
        "{resumed:#?}"
    );
    let shown = shared.run(&["show", "p", "--json"]).ends(0).json();
    assert_eq!(shown["status"], "completed");
    shared.run(&["verify"]).ends(0);
    // The workspace itself has no store: without the address there is no plan.
    assert_eq!(shared.bench.run(&["list", "--json"]).json(), json!([]));
    let found = shared.run(&["doctor", "--json"]).ends(0).json();
    let facts = &found["store"];
    assert_eq!(facts["kind"], "postgres", "{facts}");
    assert!(facts["lag"].is_u64(), "{facts}");
    assert!(facts["latencyMs"].as_f64().unwrap() > 0.0, "{facts}");
    assert!(facts["schema"].as_u64().unwrap() > 0, "{facts}");
    let version = facts["version"].as_str().unwrap();
    assert!(
        version.starts_with(|digit: char| digit.is_ascii_digit()),
        "{facts}"
    );
    assert!(!facts.to_string().contains("hunter2"), "{facts}");
    let checks = found["checks"].as_array().unwrap();
    let store = checks
        .iter()
        .find(|check| check["name"] == "store")
        .unwrap();
    let message = store["message"].as_str().unwrap();
    assert!(
        message.contains("Postgres") && message.contains("ms away"),
        "{message}"
    );
    assert!(!message.contains("hunter2"), "{message}");
}

#[test]
fn two_services_share_a_database_and_one_takes_over_what_the_other_left() {
    let shared = Shared::new("services");
    let token = shared.token("ada");
    let (first, one) = shared.serve(&token);
    let (second, other) = shared.serve(&token);
    for number in 0..4 {
        let id = format!("p{number}");
        one.plan(&id, json!([effect(&id, &[])]));
        // What one of them was told is known to the other.
        other.approve(&id);
        let run = format!("/plan/{id}/run");
        one.post(&run, &json!({})).ends(202);
        other.post(&run, &json!({})).ends(409);
        other.wait_for(&id, "completed");
    }
    let steps = json!([
        effect("a", &[]),
        sleep("wait", 1_500, &["a"]),
        effect("z", &["wait"])
    ]);
    one.plan("p", steps);
    one.approve("p");
    one.run("p");
    wait_until("the call to wait", || shared.has_started("wait"));
    first.into_running().kill();
    other.wait_for("p", "completed");
    assert_eq!(shared.bench.read("effects.txt"), "p0\np1\np2\np3\na\nz\n");
    let running = second.into_running();
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait().code, 0);
}

#[test]
fn the_demo_can_be_shown_on_a_database() {
    let shared = Shared::new("demo");
    shared.bench.run(&["demo", "--store", &shared.url]).ends(0);
    let plans = shared.run(&["list", "--json"]).ends(0).json();
    assert_eq!(plans[0]["status"], "completed", "{plans:#}");
    // A variable does not lead it there a second time: its plan would be in the way.
    shared.run(&["demo"]).ends(0);
}

#[test]
fn a_store_is_copied_into_a_database_and_back() {
    let shared = Shared::new("copied");
    let bench = &shared.bench;
    let large = "x".repeat(300_000);
    let done = bench.plan("done", json!([echo("large", large, &[])]));
    let waiting = bench.plan("waiting", json!([effect("a", &[])]));
    for (id, file) in [("done", &done), ("waiting", &waiting)] {
        bench.run(&["import", file]).ends(0);
        let digest = bench.digest(id);
        bench.run(&["approve", id, "--digest", &digest]).ends(0);
    }
    bench.run(&["run", "done"]).ends(0);
    let before = bench.run(&["log", "done", "--json"]).ends(0).out;
    let there = [
        "store",
        "copy",
        "--from",
        "sqlite",
        "--to",
        &shared.url,
        "--json",
    ];
    let copied = bench.run(&there).ends(0).json();
    assert_eq!(copied["streams"], 3, "{copied:#}");
    assert!(copied["values"].as_u64() >= Some(1), "{copied:#}");
    assert!(!copied.to_string().contains("hunter2"), "{copied:#}");
    // What is there already is compared and not copied again.
    assert_eq!(
        bench.run(&there).ends(0).json()["entries"],
        copied["entries"]
    );
    shared.run(&["verify"]).ends(0);
    assert_eq!(shared.run(&["log", "done", "--json"]).ends(0).out, before);
    // What was approved can be run there.
    shared.run(&["run", "waiting"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
    let back = [
        "store",
        "copy",
        "--from",
        &shared.url,
        "--to",
        "sqlite:back.db",
    ];
    bench.run(&back).ends(0);
    let at_back = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("PLAN_RUNTIME_STORE_PATH", "back.db");
        planwright_testing::workbench::said(command.output().unwrap()).ends(0)
    };
    at_back(&["verify"]);
    assert_eq!(at_back(&["log", "done", "--json"]).out, before);
    assert_eq!(
        at_back(&["show", "waiting", "--json"]).json()["status"],
        "completed"
    );
    // Another store is not mixed into it.
    let other = Shared::new("other");
    let plan = other.bench.plan("p", json!([effect("a", &[])]));
    other.run(&["import", &plan]).ends(0);
    let mixed = ["store", "copy", "--from", &shared.url, "--to", &other.url];
    bench.run(&mixed).complains(3, "not from this one");
}

fn passphrase_file(bench: &Bench, name: &str, text: &str) -> String {
    let path = bench.write(name, &format!("{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// Whether a text is anywhere in a database, in the clear.
fn is_in_dump(database: &str, text: &str) -> bool {
    let hex: String = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    let dump = server().dump(database);
    dump.contains(text) || dump.contains(&hex)
}

#[test]
fn a_store_in_a_database_is_encrypted_rekeyed_and_decrypted() {
    let shared = Shared::new("sealed");
    let bench = &shared.bench;
    let word = passphrase_file(bench, "word", "correct horse battery");
    let other = passphrase_file(bench, "other", "battery staple horse");
    let steps = json!([echo("one", "canary-value", &[]), effect("a", &["one"])]);
    let plan = bench.plan("p", steps);
    shared.run(&["import", &plan]).ends(0);
    shared.approve("p");
    assert!(bench.path(".plans/p").exists() && is_in_dump("sealed", "canary-value"));
    let encrypt = ["store", "encrypt", "--yes"];
    let (served, _) = shared.serve("none");
    shared
        .run_with(&word, &encrypt)
        .complains(3, "another process has the store open");
    let running = served.into_running();
    running.signal(rustix::process::Signal::TERM);
    assert_eq!(running.wait().code, 0);
    shared.run_with(&word, &encrypt).ends(0);
    assert!(!bench.path(".plans/p").exists() && !is_in_dump("sealed", "canary-value"));
    shared
        .run_with(&word, &encrypt)
        .complains(3, "encrypted already");
    // It opens with its passphrase and with nothing else.
    shared.run(&["list"]).complains(6, "encrypted");
    shared
        .run_with(&other, &["list"])
        .complains(6, "passphrase");
    // What was approved is run.
    shared.run_with(&word, &["run", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
    shared.run_with(&word, &["verify"]).ends(0);
    let log = shared.run_with(&word, &["log", "p", "--json"]).ends(0).out;
    assert!(log.contains("canary-value") && !is_in_dump("sealed", "canary-value"));
    let mut command = bench.command(&["list", "--passphrase-file", &word]);
    command
        .env("PLANWRIGHT_STORE", &shared.url)
        .env(
            "PLANWRIGHT_OBJECTS",
            "s3://values?endpoint=http://127.0.0.1:1",
        )
        .env("AWS_ACCESS_KEY_ID", "id")
        .env("AWS_SECRET_ACCESS_KEY", "key");
    let said = planwright_testing::workbench::said(command.output().unwrap());
    said.complains(3, "in the clear");
    // Another passphrase, then another key.
    let rekey = ["store", "rekey", "--new-passphrase-file", &other];
    shared.run_with(&word, &rekey).ends(0);
    shared.run_with(&word, &["list"]).complains(6, "passphrase");
    let rekey = [
        "store",
        "rekey",
        "--data-key",
        "--new-passphrase-file",
        &word,
    ];
    shared.run_with(&other, &rekey).ends(0);
    let again = shared.run_with(&word, &["log", "p", "--json"]).ends(0).out;
    assert_eq!(again, log);
    shared
        .run_with(&word, &["store", "decrypt", "--yes"])
        .ends(0);
    shared
        .run_with(&word, &["list"])
        .complains(6, "not encrypted");
    assert_eq!(shared.run(&["log", "p", "--json"]).ends(0).out, log);
    shared.run(&["verify"]).ends(0);
}

#[test]
fn a_worker_shares_the_key_of_an_encrypted_database() {
    let shared = Shared::new("sealed_workers");
    let bench = &shared.bench;
    let word = passphrase_file(bench, "word", "correct horse battery");
    // An empty database can be encrypted before anything is in it.
    shared
        .run_with(&word, &["store", "encrypt", "--yes"])
        .ends(0);
    bench.write(
        "planwright.toml",
        "[dispatch]\ncapabilities = [\"billing\"]\n",
    );
    bench.trust();
    let step = json!({
        "id": "canary_step", "tool": "demo.echo", "args": { "value": "canary-value" },
        "capability": "billing",
    });
    let plan = bench.plan("p", json!([step]));
    shared.run_with(&word, &["import", &plan]).ends(0);
    let shown = shared
        .run_with(&word, &["show", "p", "--json"])
        .ends(0)
        .json();
    let digest = shown["digest"].as_str().unwrap();
    shared
        .run_with(&word, &["approve", "p", "--digest", digest])
        .ends(0);
    let worker = shared.start(&[
        "worker",
        "--capability",
        "billing",
        "--passphrase-file",
        &word,
    ]);
    shared.run_with(&word, &["run", "p"]).ends(0);
    let workers = shared.run_with(&word, &["workers", "--json"]).ends(0).out;
    assert!(workers.contains("billing"), "{workers}");
    let log = shared.run_with(&word, &["log", "p", "--json"]).ends(0).out;
    assert!(log.contains("canary-value"));
    for canary in ["canary-value", "canary_step"] {
        assert!(!is_in_dump("sealed_workers", canary), "{canary}");
    }
    worker.kill();
}

#[test]
fn a_copy_of_an_encrypted_store_is_encrypted() {
    let shared = Shared::new("sealed_copy");
    let bench = &shared.bench;
    let word = passphrase_file(bench, "word", "correct horse battery");
    let other = passphrase_file(bench, "other", "battery staple horse");
    let plan = bench.plan("p", json!([echo("one", "canary-value", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let before = bench.run(&["log", "p", "--json"]).ends(0).out;
    // From a plain file into an encrypted database.
    let there = ["store", "copy", "--from", "sqlite", "--to", &shared.url];
    let sealed = [&there[..], &["--to-passphrase-file", &word]].concat();
    bench.run(&sealed).ends(0);
    assert_eq!(
        shared.run_with(&word, &["log", "p", "--json"]).ends(0).out,
        before
    );
    assert!(!is_in_dump("sealed_copy", "canary-value"));
    bench.run(&there).complains(6, "encrypted");
    // Back into a new file, which gets the same passphrase, or another one.
    let back = |file: &str, more: &[&str]| {
        let to = format!("sqlite:{file}");
        let copy = ["store", "copy", "--from", &shared.url, "--to", &to];
        bench.run(&[&copy[..], &["--passphrase-file", &word], more].concat())
    };
    back("same.db", &[]).ends(0);
    back("other.db", &["--to-passphrase-file", &other]).ends(0);
    for (file, passphrase) in [("same.db", &word), ("other.db", &other)] {
        let mut command = bench.command(&["log", "p", "--json", "--passphrase-file", passphrase]);
        command.env("PLAN_RUNTIME_STORE_PATH", file);
        let said = planwright_testing::workbench::said(command.output().unwrap());
        assert_eq!(said.ends(0).out, before);
    }
    // Not into what is plain: the same journals in the clear.
    let refused = back(".plans/planwright.db", &[]).complains(3, "in the clear");
    assert!(refused.err.contains("store encrypt"), "{refused:#?}");
    // Between databases, with two passphrases.
    let second = Shared::new("sealed_copy_2");
    let across = ["store", "copy", "--from", &shared.url, "--to", &second.url];
    let across = [&across[..], &["--passphrase-file", &word]].concat();
    let across = [&across[..], &["--to-passphrase-file", &other]].concat();
    bench.run(&across).ends(0);
    second.run_with(&other, &["verify"]).ends(0);
    assert!(!is_in_dump("sealed_copy_2", "canary-value"));
}

#[test]
fn an_agent_does_not_choose_the_store() {
    let shared = Shared::new("chosen");
    let mut command = shared
        .bench
        .command(&["list", "--json", "--store", &shared.url]);
    command.env("PLANWRIGHT_AGENT", "robot");
    let said = planwright_testing::workbench::said(command.output().unwrap());
    said.complains(3, "an agent cannot choose the store");
    // One that a person named is used.
    let config = format!("[store]\nurl = {:?}\n", shared.url);
    shared.bench.write("planwright.toml", &config);
    shared.bench.trust();
    let mut command = shared.bench.command(&["list", "--json"]);
    command.env("PLANWRIGHT_AGENT", "robot");
    let said = planwright_testing::workbench::said(command.output().unwrap()).ends(0);
    assert_eq!(said.json(), json!([]));
}

#[test]
fn a_server_that_does_not_answer_ends_with_5_and_without_the_password() {
    let bench = Bench::new();
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    drop(free);
    let url = format!("postgres://ada:hunter2@127.0.0.1:{port}/plans");
    let said = bench.run(&["list", "--store", &url]);
    let said = said.complains(5, &format!("127.0.0.1:{port}"));
    assert!(!said.err.contains("hunter2"), "{said:#?}");
}

#[test]
fn a_file_of_the_workspace_chooses_no_store_that_the_user_does_not_trust() {
    let bench = Bench::new();
    bench.write(
        "planwright.toml",
        "[store]\nurl = \"postgres://ada:hunter2@127.0.0.1:1/plans\"\n",
    );
    let said = bench.run(&["list", "--json"]).ends(0);
    assert_eq!(said.json(), json!([]));
    bench.trust();
    let said = bench.run(&["list"]).complains(5, "127.0.0.1:1");
    assert!(!said.err.contains("hunter2"), "{said:#?}");
}

#[test]
fn commands_for_files_say_what_does_it_for_a_database() {
    let bench = Bench::new();
    let url = "postgres://ada@127.0.0.1:1/plans";
    for (command, instead) in [
        (&["backup", "copy"][..], "pg_dump"),
        (&["restore", "copy"], "pg_restore"),
        (&["compact"], "autovacuum"),
        (&["check"], "planwright verify"),
    ] {
        let args = [&["store"], command, &["--store", url]].concat();
        let said = bench
            .run(&args)
            .complains(3, "works on the files of a store");
        assert!(said.err.contains(instead), "{said:#?}");
    }
}
