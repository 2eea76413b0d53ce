//! Workers: steps that other processes carry out, with real ones on a real server. What happened is counted outside of the
//! program, in the files that tools write.

use crate::service::Served;
use planwright_testing::brokers::{BrokerKind, BrokerServer};
use planwright_testing::postgres::server;
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::{call, echo, effect};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, Said, said};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

pub(crate) const TOKEN: &str = "t0ken-0f-the-bank";

/// The place where plans run: it has the capabilities that workers carry out, and no server.
pub(crate) struct Team {
    pub(crate) owner: Bench,
    pub(crate) database: String,
    url: String,
    /// The broker that tells workers where to look, if there is one.
    broker: Option<String>,
}

/// A worker in a workspace of its own.
pub(crate) struct Hand {
    pub(crate) bench: Bench,
    running: Option<Running>,
}

pub(crate) fn with_capability(mut step: Value, capability: &str) -> Value {
    step["capability"] = capability.into();
    step
}

/// A call that is made once, takes this long, and is counted when it begins.
fn charge(id: &str, seconds: f64) -> Value {
    let args = json!({ "account": id, "token": "Bearer ${secret.BANK_TOKEN}", "seconds": seconds });
    with_capability(call(id, "bank.charge", args, &[]), "billing")
}

impl Team {
    pub(crate) fn new(database: &str) -> Self {
        server().create_database(database);
        let owner = Bench::new();
        owner.configure("[dispatch]\ncapabilities = [\"billing\", \"mail\"]\n");
        let team = Self {
            owner,
            database: database.to_owned(),
            url: server().url(database),
            broker: None,
        };
        // The first command that writes makes the tables.
        let plan = team.owner.plan("first", json!([echo("a", 1, &[])]));
        team.run(&["import", &plan]).ends(0);
        team
    }

    pub(crate) fn command(&self, bench: &Bench, args: &[&str]) -> Command {
        let mut command = bench.command(args);
        command.env("PLANWRIGHT_STORE", &self.url);
        if let Some(broker) = &self.broker {
            command.env("PLANWRIGHT_DISPATCH", broker);
        }
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(self.command(&self.owner, args).output().unwrap())
    }

    fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(&self.owner, args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::of(command)
    }

    /// Starts a worker, and waits until it takes steps.
    pub(crate) fn hire(&self, bench: Bench, capability: &str, more: &[&str]) -> Hand {
        let mut hand = Hand {
            bench,
            running: None,
        };
        self.rehire(&mut hand, capability, more);
        hand
    }

    fn rehire(&self, hand: &mut Hand, capability: &str, more: &[&str]) {
        let args = [&["worker", "--capability", capability], more].concat();
        let mut command = self.command(&hand.bench, &args);
        let log = std::fs::File::create(hand.bench.path("worker.log")).unwrap();
        command.stdout(Stdio::null()).stderr(log);
        let running = Running::of(command);
        let pid = running.id();
        hand.running = Some(running);
        wait_until("the worker", || {
            let workers = self.workers();
            let mut listed = workers["workers"].as_array().unwrap().iter();
            listed.any(|worker| worker["pid"] == pid && worker["state"] == "idle")
        });
    }

    /// A worker with a bank of its own, and the secret for it.
    fn hire_bank(&self) -> Hand {
        let bench = Bench::new();
        bench.write("bank.py", include_str!("bank_server.py"));
        let token = bench.write("token", TOKEN);
        std::fs::set_permissions(token, std::fs::Permissions::from_mode(0o600)).unwrap();
        bench.configure(
            "[dispatch]\nclaim = \"3s\"\n[secrets]\nBANK_TOKEN = { file = \"token\", tools = [\"bank.*\"] }\n",
        );
        let servers =
            json!({ "mcpServers": { "bank": { "command": "python3", "args": ["bank.py"] } } });
        bench.write("bank.json", &servers.to_string());
        self.hire(bench, "billing", &["--servers", "bank.json"])
    }

    fn workers(&self) -> Value {
        self.run(&["workers", "--json"]).ends(0).json()
    }

    /// Stores a plan and approves it.
    fn approve(&self, id: &str, steps: Value) {
        let plan = self.owner.plan(id, steps);
        self.run(&["import", &plan]).ends(0);
        let shown = self.run(&["show", id, "--json"]).ends(0).json();
        let digest = shown["digest"].as_str().unwrap();
        self.run(&["approve", id, "--digest", digest]).ends(0);
    }

    /// The kinds of the entries of a plan's run; none before there is one.
    pub(crate) fn kinds(&self, id: &str) -> Vec<String> {
        let log = self.run(&["log", id, "--json"]).out;
        let entries = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let kinds = entries.map(|entry| entry["kind"].as_str().unwrap_or_default().to_owned());
        kinds.collect()
    }

    fn status(&self, id: &str) -> Value {
        self.run(&["show", id, "--json"]).ends(0).json()["status"].clone()
    }
}

impl Hand {
    fn charges(&self) -> String {
        self.bench.read("charges.txt")
    }

    fn signal(&self, signal: Signal) {
        self.running.as_ref().unwrap().signal(signal);
    }

    pub(crate) fn kill(&mut self) {
        self.running.take().unwrap().kill();
    }

    fn wait_for_charge(&self, id: &str) {
        wait_until("the call", || self.charges().contains(id));
    }
}

#[test]
fn two_workers_carry_out_the_steps_of_their_capabilities_with_their_own_servers_and_secrets() {
    let team = Team::new("two_workers");
    let bank = team.hire_bank();
    let post = team.hire(Bench::new(), "mail", &[]);
    let mut letter = effect("letter", &["charge"]);
    letter["args"]["content"] = "${charge}\n".into();
    team.approve(
        "p",
        json!([
            charge("charge", 0.0),
            with_capability(letter, "mail"),
            // A capability that is not listed is a word for people: the owner makes the call.
            with_capability(effect("here", &["letter"]), "books"),
        ]),
    );
    team.run(&["run", "p"]).ends(0);
    assert_eq!(bank.charges(), format!("charge Bearer {TOKEN}\n"));
    assert_eq!(
        post.bench.read("effects.txt"),
        "charged with Bearer [secret BANK_TOKEN]\n"
    );
    assert_eq!(team.owner.read("effects.txt"), "here\n");
    // The secret has not left the worker.
    let sql = "SELECT string_agg(encode(body, 'escape'), ' ') FROM planwright.entries";
    let dump = server().sql(&team.database, sql);
    assert!(
        dump.contains("secret.BANK_TOKEN") && !dump.contains(TOKEN),
        "{dump}"
    );
    let left = server().sql(&team.database, "SELECT count(*) FROM planwright.offers");
    assert_eq!(left, "0", "an offer outlived its attempt");
    team.run(&["verify"]).ends(0);
}

/// The store decides, and the broker only tells: what it forgets is carried out all the same, and once.
fn check_lost_broker(kind: BrokerKind, database: &str) {
    let broker = BrokerServer::start(kind);
    let mut team = Team::new(database);
    team.broker = Some(broker.url());
    let bank = team.hire_bank();
    let charge_in_turn = |id: &str| {
        let mut second = charge(&format!("{id}-second"), 0.0);
        second["dependsOn"] = json!([format!("{id}-first")]);
        team.approve(id, json!([charge(&format!("{id}-first"), 0.0), second]));
        team.run(&["run", id]).ends(0);
    };
    charge_in_turn("told");
    if kind == BrokerKind::Redis {
        let told = broker.ask_redis("XINFO STREAM planwright:steps:{billing}");
        assert!(told.contains("entries-added\r\n:2\r\n"), "{told}");
    }
    let queues = team
        .run(&["queue", "list", "billing", "--json"])
        .ends(0)
        .json();
    assert_eq!(queues["queues"][0]["waiting"], 0, "{queues}");
    assert_eq!(queues["queues"][0]["dead"], 0, "{queues}");
    broker.kill();
    charge_in_turn("away");
    broker.empty();
    broker.resume();
    charge_in_turn("emptied");
    let charges = bank.charges();
    let accounts: Vec<&str> = charges
        .lines()
        .filter_map(|line| line.split(' ').next())
        .collect();
    assert_eq!(
        accounts,
        [
            "told-first",
            "told-second",
            "away-first",
            "away-second",
            "emptied-first",
            "emptied-second"
        ]
    );
}

#[test]
fn losing_redis_and_all_its_data_loses_and_doubles_nothing() {
    check_lost_broker(BrokerKind::Redis, "lost_redis");
}

#[test]
fn losing_rabbitmq_and_all_its_data_loses_and_doubles_nothing() {
    check_lost_broker(BrokerKind::RabbitMq, "lost_rabbitmq");
}

#[test]
fn a_worker_that_is_killed_in_a_call_that_is_made_once_leaves_its_outcome_unknown() {
    let team = Team::new("killed_worker");
    let mut bank = team.hire_bank();
    team.approve(
        "p",
        json!([charge("pay", 30.0), echo("after", 1, &["pay"])]),
    );
    let running = team.start(&["run", "p"]);
    bank.wait_for_charge("pay");
    bank.kill();
    assert_eq!(running.wait().code, 4);
    assert_eq!(bank.charges().lines().count(), 1);
    assert_eq!(team.kinds("p").last().unwrap(), "outcome_lost");
    // Another worker does not make the call again; a person decides.
    team.rehire(&mut bank, "billing", &["--servers", "bank.json"]);
    team.run(&["resume", "p"]).ends(4);
    assert_eq!(bank.charges().lines().count(), 1);
    team.run(&["resolve", "p", "pay", "--happened"]).ends(0);
    team.run(&["resume", "p"]).ends(0);
    assert_eq!(bank.charges().lines().count(), 1);
}

#[test]
fn a_step_that_can_be_repeated_goes_to_another_worker_when_the_first_is_killed() {
    let team = Team::new("repeated");
    let mut first = team.hire(Bench::new(), "billing", &[]);
    let sleep = json!({ "ms": 3_000, "value": "slept" });
    team.approve(
        "p",
        json!([with_capability(
            call("nap", "demo.sleep", sleep, &[]),
            "billing"
        )]),
    );
    let running = team.start(&["run", "p", "--json"]);
    wait_until("the claim", || {
        team.workers()["workers"][0]["steps"][0]["step"] == "nap"
    });
    first.kill();
    let second = team.hire(Bench::new(), "billing", &[]);
    assert_eq!(running.wait().code, 0);
    let kinds = team.kinds("p");
    assert!(
        kinds.iter().any(|kind| kind == "attempt_interrupted"),
        "{kinds:?}"
    );
    drop(second);
}

#[test]
fn the_answer_of_a_worker_is_used_when_the_owner_was_killed_meanwhile() {
    let team = Team::new("killed_owner");
    let bank = team.hire_bank();
    team.approve("p", json!([charge("pay", 1.5), effect("after", &["pay"])]));
    let running = team.start(&["run", "p"]);
    bank.wait_for_charge("pay");
    running.kill();
    // Taken over while the worker is in the call, and once more after it has answered.
    let again = team.start(&["resume", "p"]);
    wait_until("the takeover", || {
        let workers = team.workers();
        workers["workers"][0]["steps"][0]["step"] == "pay"
    });
    again.kill();
    wait_until("the answer", || {
        let workers = team.workers();
        workers["workers"][0]["state"] == "idle"
    });
    team.run(&["resume", "p"]).ends(0);
    assert_eq!(bank.charges().lines().count(), 1);
    assert_eq!(team.owner.read("effects.txt"), "after\n");
    let kinds = team.kinds("p");
    let started = kinds
        .iter()
        .filter(|kind| *kind == "attempt_started")
        .count();
    assert_eq!(started, 2, "{kinds:?}");
    assert!(
        !kinds.iter().any(|kind| kind == "outcome_lost"),
        "{kinds:?}"
    );
    team.run(&["verify"]).ends(0);
}

#[test]
fn a_worker_that_was_stopped_for_longer_than_its_claim_writes_nothing_when_it_comes_back() {
    let team = Team::new("stopped");
    let bank = team.hire_bank();
    team.approve("p", json!([charge("pay", 1.0)]));
    let running = team.start(&["run", "p"]);
    bank.wait_for_charge("pay");
    bank.signal(Signal::STOP);
    // Its server goes on and answers; its claim runs out.
    assert_eq!(running.wait().code, 4);
    let before = team.kinds("p");
    assert_eq!(before.last().unwrap(), "outcome_lost");
    // What is offered next is not taken by what the worker believed before it was stopped.
    team.run(&["resolve", "p", "pay", "--run-again"]).ends(0);
    let again = team.start(&["resume", "p"]);
    wait_until("the second offer", || {
        team.workers()["waiting"][0]["capability"] == "billing"
    });
    bank.signal(Signal::CONT);
    assert_eq!(again.wait().code, 0);
    wait_until("its word", || {
        bank.bench.read("worker.log").contains("the claim is over")
    });
    // One call for each attempt that a person agreed to.
    assert_eq!(bank.charges().lines().count(), 2);
    team.run(&["verify"]).ends(0);
}

#[test]
fn a_worker_that_is_told_to_stop_finishes_its_step_and_takes_no_other() {
    let team = Team::new("drained");
    let mut bank = team.hire_bank();
    team.approve("p", json!([charge("one", 1.5), { "id": "two", "title": "Two", "tool": "bank.charge",
        "args": { "account": "two", "token": "x" }, "capability": "billing", "dependsOn": ["one"] }]));
    let running = team.start(&["run", "p"]);
    bank.wait_for_charge("one");
    bank.signal(Signal::TERM);
    assert_eq!(bank.running.take().unwrap().wait().code, 0);
    assert_eq!(bank.charges().lines().count(), 1);
    wait_until("the second step", || {
        team.workers()["waiting"][0]["steps"] == 1
    });
    let doctor = team.run(&["doctor", "--json"]).json();
    assert!(
        doctor
            .to_string()
            .contains("no worker has the capability `billing`: 1 step waiting"),
        "{doctor:#}"
    );
    team.rehire(&mut bank, "billing", &["--servers", "bank.json"]);
    assert_eq!(running.wait().code, 0);
    assert_eq!(bank.charges().lines().count(), 2);
    assert_eq!(team.status("p"), "completed");
}

#[test]
fn a_cancelled_run_takes_back_what_no_worker_has_taken() {
    let team = Team::new("cancelled");
    team.approve("p", json!([with_capability(effect("a", &[]), "mail")]));
    let running = team.start(&["run", "p"]);
    wait_until("the offer", || team.workers()["waiting"][0]["steps"] == 1);
    team.run(&["cancel", "p"]).ends(0);
    running.wait();
    assert_eq!(team.status("p"), "cancelled");
    assert_eq!(team.workers()["waiting"], json!([]));
    let post = team.hire(Bench::new(), "mail", &[]);
    assert_eq!(post.bench.read("effects.txt"), "");
}

#[test]
fn a_step_that_no_worker_took_in_its_time_was_not_called() {
    let team = Team::new("untaken");
    let mut step = with_capability(effect("a", &[]), "mail");
    step["timeoutSeconds"] = 2.into();
    team.approve("p", json!([step]));
    let said = team.run(&["run", "p"]).ends(1);
    assert!(said.out.contains("no worker took the step"), "{said:#?}");
    // Its call is made once, and its outcome is known all the same.
    assert_eq!(
        team.kinds("p")
            .iter()
            .filter(|kind| *kind == "outcome_lost")
            .count(),
        0
    );
}

#[test]
fn a_worker_without_capabilities_executes_runs() {
    let team = Team::new("runs");
    let steps = json!([
        effect("a", &[]),
        call("wait", "demo.sleep", json!({ "ms": 2_000 }), &["a"]),
        effect("z", &["wait"])
    ]);
    team.approve("p", steps);
    let running = team.start(&["run", "p"]);
    wait_until("the call to wait", || {
        let started = team.kinds("p");
        started
            .iter()
            .filter(|kind| *kind == "attempt_started")
            .count()
            == 2
    });
    running.kill();
    let mut command = team.command(&team.owner, &["worker"]);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let worker = Running::of(command);
    wait_until("the end", || team.status("p") == "completed");
    assert_eq!(team.owner.read("effects.txt"), "a\nz\n");
    worker.signal(Signal::TERM);
    assert_eq!(worker.wait().code, 0);
}

#[test]
fn a_store_in_a_file_has_no_workers() {
    let bench = Bench::new();
    bench
        .run(&["worker", "--capability", "billing"])
        .complains(3, "--store postgres://");
    bench.run(&["workers"]).complains(3, "--store postgres://");
    // A listed capability is never carried out by the owner itself.
    bench.configure("[dispatch]\ncapabilities = [\"billing\"]\n");
    let plan = bench.plan("p", json!([with_capability(effect("a", &[]), "billing")]));
    let said = bench.run(&["run", &plan, "--yes"]);
    assert_ne!(said.code, 0, "{said:#?}");
    assert!(
        said.out.contains("carried out by workers") || said.err.contains("carried out by workers"),
        "{said:#?}"
    );
    assert_eq!(bench.read("effects.txt"), "");
}

#[test]
fn a_file_of_the_workspace_sends_no_steps_to_workers_that_the_user_does_not_trust() {
    let bench = Bench::new();
    bench.write(
        "planwright.toml",
        "[dispatch]\ncapabilities = [\"billing\"]\n",
    );
    let plan = bench.plan("p", json!([with_capability(effect("a", &[]), "billing")]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn a_service_shows_the_workers_and_the_steps_that_wait_for_one() {
    let team = Team::new("shown_workers");
    let _post = team.hire(Bench::new(), "mail", &[]);
    team.approve(
        "p",
        json!([with_capability(effect("charge", &[]), "billing")]),
    );
    let token = [
        "token", "create", "--role", "admin", "--kind", "person", "--name", "ada", "--json",
    ];
    let token = team.run(&token).ends(0).json();
    let serve = ["serve", "--listen", "127.0.0.1:0", "--json"];
    let served = Served::start(team.command(&team.owner, &serve));
    let client = ServiceClient {
        host: served.address().to_owned(),
        admin: token["token"].as_str().unwrap().to_owned(),
    };
    client.run("p");
    wait_until("the step to wait for a worker", || {
        let shown = client.get("/workers").ends(200).json();
        shown["waiting"][0]["capability"] == "billing"
    });
    let mut shown = client.get("/workers").ends(200).json();
    let mut listed = team.workers();
    for document in [&mut shown, &mut listed] {
        document["waiting"][0]["oldestSeconds"] = Value::Null;
    }
    assert_eq!(shown, listed, "one shape for both faces");
    assert_eq!(shown["workers"][0]["state"], "idle", "{shown}");
    let figures = client.get("/metrics").ends(200).text();
    for line in [
        "planwright_workers{state=\"idle\"} 1",
        "planwright_workers{state=\"working\"} 0",
        "planwright_offers_waiting{capability=\"billing\"} 1",
        "planwright_offers_waiting{capability=\"mail\"} 0",
    ] {
        assert!(figures.contains(line), "{line}\n{figures}");
    }
    assert!(!figures.contains("planwright_broker_up"), "{figures}");
    let stats = team.run(&["stats", "--json"]).ends(0).json();
    assert_eq!(stats["dispatch"]["workers"]["idle"], 1, "{stats}");
    assert_eq!(stats["dispatch"]["waiting"][0]["steps"], 1, "{stats}");
    let told = team.run(&["stats"]).ends(0).out;
    assert!(told.contains("1 step waiting"), "{told}");
    client.post("/plan/p/cancel", &json!({})).ends(202);
}
