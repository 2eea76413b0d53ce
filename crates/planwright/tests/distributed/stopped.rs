//! A worker that stands still between its claim and its call.

use planwright_testing::postgres::server;
use planwright_testing::steps::effect;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, said};
use rustix::process::Signal;
use serde_json::json;
use std::fs::File;
use std::process::{Command, Stdio};

const DATABASE: &str = "stopped_before_its_call";

fn command(bench: &Bench, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    command.env("PLANWRIGHT_STORE", server().url(DATABASE));
    command
}

fn is_stopped(process: &Running) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.id())).unwrap();
    stat.rsplit_once(") ")
        .is_some_and(|(_, fields)| fields.starts_with('T'))
}

#[test]
fn a_worker_that_stood_still_between_its_claim_and_its_call_for_longer_than_the_claim_makes_no_call()
 {
    server().create_database(DATABASE);
    let owner = Bench::new();
    owner.configure("[dispatch]\ncapabilities = [\"mail\"]\n");
    let run = |args: &[&str]| said(command(&owner, args).output().unwrap());
    let mut letter = effect("letter", &[]);
    letter["capability"] = "mail".into();
    let plan = owner.plan("p", json!([letter]));
    run(&["import", &plan]).ends(0);
    let digest = run(&["show", "p", "--json"]).ends(0).json()["digest"].clone();
    run(&["approve", "p", "--digest", digest.as_str().unwrap()]).ends(0);

    let bench = Bench::new();
    bench.configure("[dispatch]\nclaim = \"2s\"\n");
    let mut starting = command(&bench, &["worker", "--capability", "mail"]);
    starting
        .env("PLANWRIGHT_STOP_AT", "worker: claimed")
        .stdout(Stdio::null())
        .stderr(File::create(bench.path("worker.log")).unwrap());
    let worker = Running::of(starting);
    // Nothing is heard from it, so that its claim ends; what it did is not guessed.
    run(&["run", "p"]).ends(4);
    assert!(is_stopped(&worker), "it did not claim");
    worker.signal(Signal::CONT);
    wait_until("its word", || {
        bench.read("worker.log").contains("the claim is over")
    });
    assert_eq!(bench.read("effects.txt"), "");
    // It carries out what is offered next.
    run(&["resolve", "p", "letter", "--run-again"]).ends(0);
    run(&["resume", "p"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "letter\n");
    run(&["verify"]).ends(0);
}
