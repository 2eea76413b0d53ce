//! The program through PgBouncer in transaction mode.

use planwright_testing::pgbouncer::Bouncer;
use planwright_testing::postgres::server;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, Said, said};
use serde_json::{Value, json};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A workspace whose store is reached through a pooler with few connections.
struct Pooled {
    bench: Bench,
    _bouncer: Bouncer,
    url: String,
}

impl Pooled {
    fn new(database: &str, listen: &str) -> Self {
        server().create_database(database);
        let bouncer = Bouncer::start(server(), 4);
        let bench = Bench::new();
        bench.configure("[dispatch]\ncapabilities = [\"files\"]\n");
        Self {
            bench,
            url: format!("{}?listen={listen}", bouncer.url(database)),
            _bouncer: bouncer,
        }
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command.env("PLANWRIGHT_STORE", &self.url);
        command
    }

    fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Running::of(command)
    }

    fn approve(&self, id: &str, steps: Value) {
        let plan = self.bench.plan(id, steps);
        self.run(&["import", &plan]).ends(0);
        let shown = self.run(&["show", id, "--json"]).ends(0).json();
        let digest = shown["digest"].as_str().unwrap();
        self.run(&["approve", id, "--digest", digest]).ends(0);
    }

    fn has_started(&self, id: &str, step: &str) -> bool {
        let log = self.run(&["log", id, "--json"]).out;
        let entries = log
            .lines()
            .filter_map(|line| serde_json::from_str::<Value>(line).ok());
        entries
            .into_iter()
            .any(|entry| entry["kind"] == "attempt_started" && entry["step"] == step)
    }

    /// A plan is proposed, approved and run, with a step by a worker, and a run that was killed is continued. Returns how long
    /// the worker and the owner took to hear of each other.
    fn check(&self) -> Duration {
        let mut handed = effect("handed", &["own"]);
        handed["capability"] = "files".into();
        self.approve("p", json!([effect("own", &[]), handed]));
        let worker = self.start(&["worker", "--capability", "files"]);
        wait_until("the worker", || {
            let workers = self.run(&["workers", "--json"]).ends(0).json();
            workers["workers"][0]["state"] == "idle"
        });
        let since = Instant::now();
        self.run(&["run", "p"]).ends(0);
        let taken = since.elapsed();
        assert_eq!(self.bench.read("effects.txt"), "own\nhanded\n");
        let nap = sleep("nap", 2_000, &["before"]);
        self.approve(
            "q",
            json!([effect("before", &[]), nap, effect("after", &["nap"])]),
        );
        let running = self.start(&["run", "q"]);
        wait_until("the nap", || self.has_started("q", "nap"));
        running.kill();
        // Where nothing is heard of it, it is known to be gone after its time is over.
        wait_until("the continuation", || self.run(&["resume", "q"]).code == 0);
        assert_eq!(
            self.bench.read("effects.txt"),
            "own\nhanded\nbefore\nafter\n"
        );
        self.run(&["verify"]).ends(0);
        drop(worker);
        taken
    }
}

#[test]
fn the_program_works_through_a_pooler_and_hears_of_news_from_the_server_itself() {
    let listen = format!("127.0.0.1:{}", server().port());
    let taken = Pooled::new("pooled", &listen).check();
    println!("a step by a worker with news: {taken:?}");
    assert!(
        taken < Duration::from_secs(2),
        "{taken:?}: news did not arrive"
    );
}

#[test]
fn the_program_works_through_a_pooler_alone() {
    let taken = Pooled::new("pooled_alone", "off").check();
    println!("a step by a worker without news: {taken:?}");
}
