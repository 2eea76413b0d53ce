//! The full screen, in a terminal that was written elsewhere.

use planwright_testing::steps::{echo, effect};
use planwright_testing::tmux::Tmux;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::json;

const SMALL: (u16, u16) = (80, 24);
const LARGE: (u16, u16) = (200, 50);

fn bench() -> Bench {
    let bench = Bench::new();
    let plan = bench.document(json!({
        "id": "tidy", "title": "Tidy the notes",
        "steps": [echo("look", 1, &[]), effect("write", &["look"])],
    }));
    bench.run(&["import", &plan]).ends(0);
    bench
}

fn effects(bench: &Bench) -> usize {
    let made = std::fs::read_to_string(bench.path("effects.txt"));
    made.unwrap_or_default().lines().count()
}

/// Leaves. While the run is still being let go of, the program asks first; the next key closes the
/// question, and the one after it leaves.
fn quit(screen: &Tmux) {
    wait_until("the program to end", || {
        let ended = screen.has_ended();
        if !ended {
            screen.press(&["C-c"]);
        }
        ended
    });
}

#[test]
fn a_plan_is_reviewed_approved_and_run_on_the_full_screen() {
    for size in [SMALL, LARGE] {
        let bench = bench();
        let screen = Tmux::start(&bench.command(&["tui"]), size);
        let inbox = screen.wait_for("Approve  Tidy the notes");
        assert!(inbox.contains("1 Inbox 1"), "{inbox}");
        screen.press(&["Enter"]);
        let review = screen.wait_for("Changes something:");
        assert!(
            review.contains("sha256:") || review.contains("more lines"),
            "{review}"
        );
        // All of it has to be on the screen first.
        for _ in 0..20 {
            if screen.screen().contains("all of it was on the screen") {
                break;
            }
            screen.press(&["Space"]);
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        screen.wait_for("all of it was on the screen");
        assert_eq!(effects(&bench), 0);
        screen.types("y");
        screen.wait_for("approved: r runs it");
        screen.types("r");
        let run = screen.wait_for("2 of 2 steps");
        assert!(run.contains("completed"), "{run}");
        assert_eq!(effects(&bench), 1);
        screen.types("l");
        screen.wait_for("run.completed");
        quit(&screen);
    }
}

#[test]
fn a_no_with_a_reason_sends_the_plan_back() {
    let bench = bench();
    let screen = Tmux::start(&bench.command(&["tui"]), SMALL);
    screen.wait_for("Approve  Tidy the notes");
    screen.press(&["Enter"]);
    screen.wait_for("Changes something:");
    screen.types("n");
    screen.wait_for("No, because:");
    screen.types("the path is wrong");
    screen.press(&["Enter"]);
    screen.wait_for("Nothing waits for you.");
    let plan = bench.run(&["show", "tidy", "--json"]).ends(0).json();
    assert_eq!(plan["status"], "rejected");
    let page = std::fs::read_to_string(bench.path(".plans/tidy/plan.md")).unwrap();
    assert!(page.contains("the path is wrong"), "{page}");
    assert_eq!(effects(&bench), 0);
}

#[test]
fn a_coding_agent_at_the_full_screen_decides_nothing() {
    let bench = bench();
    let mut command = bench.command(&["tui"]);
    command.env("CLAUDECODE", "1");
    let screen = Tmux::start(&command, SMALL);
    screen.wait_for("Tidy the notes");
    screen.press(&["Enter"]);
    screen.wait_for("Changes something:");
    screen.types("y");
    screen.wait_for("only a person decides");
    let plan = bench.run(&["show", "tidy", "--json"]).ends(0).json();
    assert_eq!(plan["status"], "proposed");
}

#[test]
fn a_gated_call_is_decided_while_its_run_goes_on() {
    let bench = Bench::new();
    let mut write = effect("write", &[]);
    write["approvalRequired"] = json!(true);
    let plan = bench.plan("gated", json!([write]));
    bench.run(&["run", &plan, "--yes", "--json"]).ends(4);
    let screen = Tmux::start(&bench.command(&["tui"]), SMALL);
    screen.wait_for("a call to agree to");
    screen.press(&["Enter"]);
    screen.wait_for("all of it was on the screen");
    screen.types("y");
    screen.wait_for("approved");
    screen.press(&["2"]);
    screen.wait_for("gated");
    screen.types("r");
    screen.wait_for("of 1 steps");
    screen.types("r");
    screen.wait_for("1 of 1 steps");
    assert_eq!(effects(&bench), 1);
}

#[test]
fn a_narrower_screen_shows_the_same_and_help_lists_the_keys() {
    let bench = bench();
    let screen = Tmux::start(&bench.command(&["tui"]), LARGE);
    screen.wait_for("Approve  Tidy the notes");
    screen.press(&["Enter"]);
    screen.wait_for("Changes something:");
    screen.resize(SMALL);
    screen.wait_for("Changes something:");
    screen.types("?");
    screen.wait_for("Any key closes this.");
    screen.press(&["Escape"]);
    screen.press(&["Escape"]);
    screen.wait_for("Approve  Tidy the notes");
}

#[test]
fn without_a_terminal_it_says_what_to_use_instead() {
    let bench = Bench::new();
    let said = bench.run(&["tui"]).ends(2);
    assert!(said.err.contains("planwright status"), "{said:#?}");
}
