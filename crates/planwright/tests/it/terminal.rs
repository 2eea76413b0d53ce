//! What a person at a terminal is shown and asked.

use planwright_testing::steps::effect;
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::Bench;
use serde_json::json;

fn gated(bench: &Bench) -> String {
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    bench.plan("p", json!([gate]))
}

fn assurance(bench: &Bench) -> String {
    bench.run(&["log", "p", "--plan", "--json"]).out
}

#[test]
fn a_person_is_shown_the_plan_with_its_risks_and_asked() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let mut terminal = Terminal::start(&bench, &["run", &plan]);
    terminal.wait_for("Approve and run?");
    for words in [
        "Plan p",
        "“Step a”",
        "local.append_file",
        "appends to effects.txt; this plan has no way to undo it",
        "content",
        "[y] approve",
        "digest sha256:",
    ] {
        assert!(
            terminal.seen().contains(words),
            "{words:?} is not in {}",
            terminal.seen()
        );
    }
    assert!(!bench.path("effects.txt").exists());
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(bench.read("effects.txt"), "a\n");
    assert!(assurance(&bench).contains("\"assurance\":\"terminal\""));
}

#[test]
fn anything_but_yes_is_a_refusal() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    for answer in ["n\n", "\n", "yep\n"] {
        let mut terminal = Terminal::start(&bench, &["run", &plan]);
        terminal.wait_for("Approve and run?");
        terminal.types(answer);
        assert_eq!(terminal.ends(), Some(3), "{answer:?}");
    }
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_gate_is_asked_about_when_the_run_gets_there() {
    let bench = Bench::new();
    let plan = gated(&bench);
    let mut terminal = Terminal::start(&bench, &["run", &plan, "--yes"]);
    terminal.wait_for("Approve step gate? [y/N]");
    assert!(!bench.path("effects.txt").exists());
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(bench.read("effects.txt"), "gate\n");
}

#[test]
fn a_gate_can_be_left_open_denied_or_interrupted() {
    let bench = Bench::new();
    let plan = gated(&bench);
    let mut terminal = Terminal::start(&bench, &["run", &plan, "--yes"]);
    terminal.wait_for("Approve step gate? [y/N]");
    terminal.types("\n");
    assert_eq!(terminal.ends(), Some(4));
    let mut terminal = Terminal::start(&bench, &["resume", "p"]);
    terminal.wait_for("Approve step gate? [y/N]");
    terminal.interrupt();
    assert_eq!(terminal.ends(), Some(130));
    let mut terminal = Terminal::start(&bench, &["resume", "p"]);
    terminal.wait_for("Approve step gate? [y/N]");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(1));
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn deleting_is_asked_about() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    for (answer, code) in [("n\n", 3), ("y\n", 0)] {
        let mut terminal = Terminal::start(&bench, &["delete", "p"]);
        terminal.wait_for("Delete p (Plan p)? [y/N]");
        terminal.types(answer);
        assert_eq!(terminal.ends(), Some(code));
    }
}

#[test]
fn colours_are_for_terminals_and_can_be_switched_off() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let shown = |args: &[&str]| {
        let mut terminal = Terminal::start(&bench, args);
        terminal.wait_for("Approve and run?");
        terminal.types("n\n");
        terminal.ends();
        terminal.seen()
    };
    assert!(shown(&["run", &plan]).contains('\u{1b}'));
    assert!(!shown(&["run", &plan, "--no-color"]).contains('\u{1b}'));
}
