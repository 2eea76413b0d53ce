//! Questions, progress and Ctrl-C of the command line, in a terminal that was written elsewhere, as
//! narrow and as wide as people have them.

use planwright_testing::steps::{call, effect};
use planwright_testing::tmux::Tmux;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

const SIZES: [(u16, u16); 2] = [(80, 24), (200, 50)];
/// More text than a line of either terminal takes.
const LONG_TITLE: &str = "Look at everything that came in since yesterday, at what was said about it, at \
    what was promised to whom, and at what of it is still open, before anything is written anywhere";

/// A call that takes as long as the test wants: until a file is there, but no longer than its limit.
fn wait_for_file(id: &str, title: &str) -> Value {
    let wait = "for i in $(seq 600); do [ -e go ] && exit 0; sleep 0.1; done";
    let mut step = call(
        id,
        "local.run_command",
        json!({ "command": "sh", "args": ["-c", wait] }),
        &[],
    );
    step["title"] = json!(title);
    step
}

fn bench(steps: Value) -> (Bench, String) {
    let bench = Bench::new();
    bench.configure("[local]\nrun_command = true\n");
    let plan = bench.document(json!({ "id": "tidy", "title": "Tidy the notes", "steps": steps }));
    (bench, plan)
}

fn effects(bench: &Bench) -> usize {
    let made = std::fs::read_to_string(bench.path("effects.txt"));
    made.unwrap_or_default().lines().count()
}

#[track_caller]
fn wait_for_end(screen: &Tmux) -> String {
    wait_until("the program to end", || screen.has_ended());
    screen.screen()
}

fn count(screen: &str, words: &str) -> usize {
    screen.matches(words).count()
}

#[test]
fn a_question_is_whole_at_every_width_and_its_answer_counts() {
    for size in SIZES {
        let (bench, plan) = bench(json!([effect("write", &[])]));
        let screen = Tmux::start(&bench.command(&["run", &plan]), size);
        let question = screen.wait_for("Approve and run?");
        for words in [
            "local.append_file",
            "effects.txt",
            "[y] approve",
            "because…",
        ] {
            assert!(question.contains(words), "{words} at {size:?}:\n{question}");
        }
        assert_eq!(count(&question, "Approve and run?"), 1, "{question}");
        screen.types("n because the path is wrong");
        screen.press(&["Enter"]);
        wait_for_end(&screen);
        assert_eq!(effects(&bench), 0);
        let plan = bench.run(&["show", "tidy", "--json"]).ends(0).json();
        assert_eq!(plan["status"], "rejected");
    }
}

#[test]
fn a_run_is_watched_and_nothing_of_it_is_on_the_screen_twice() {
    for size in SIZES {
        let (bench, plan) = bench(json!([
            wait_for_file("look", LONG_TITLE),
            effect("write", &["look"])
        ]));
        let screen = Tmux::start(&bench.command(&["run", &plan]), size);
        screen.wait_for("Approve and run?");
        screen.types("y");
        screen.press(&["Enter"]);
        screen.wait_for("0/2 steps");
        screen.wait_for("look Look at everything");
        // What moves is painted in its place, also where its line is longer than the terminal.
        std::thread::sleep(std::time::Duration::from_secs(1));
        let later = screen.screen();
        assert_eq!(count(&later, "0/2 steps"), 1, "{size:?}:\n{later}");
        bench.write("go", "");
        let ended = wait_for_end(&screen);
        assert!(
            ended.contains("tidy completed: 2 of 2 steps"),
            "{size:?}:\n{ended}"
        );
        assert_eq!(count(&ended, "● write"), 1, "{size:?}:\n{ended}");
        assert_eq!(count(&ended, "/2 steps"), 0, "{size:?}:\n{ended}");
        assert_eq!(effects(&bench), 1);
    }
}

#[test]
fn ctrl_c_says_what_it_does_and_what_a_second_one_does() {
    for size in SIZES {
        let (bench, plan) = bench(json!([
            wait_for_file("look", "Look"),
            effect("write", &["look"])
        ]));
        let start = || {
            let screen = Tmux::start(&bench.command(&["run", &plan]), size);
            screen.wait_for("Approve and run?");
            screen.types("y");
            screen.press(&["Enter"]);
            screen.wait_for("0/2 steps");
            screen.press(&["C-c"]);
            screen.wait_for("pausing: running calls finish; press Ctrl-C again to cancel");
            screen
        };
        // Once: what runs ends, nothing else starts, and the way on is named.
        let screen = start();
        bench.write("go", "");
        let paused = wait_for_end(&screen);
        assert!(paused.contains("planwright resume tidy"), "{paused}");
        assert_eq!(effects(&bench), 0);
        bench.run(&["resume", "tidy"]).ends(0);
        assert_eq!(effects(&bench), 1);
        // Twice: what runs is stopped.
        std::fs::remove_file(bench.path("go")).unwrap();
        let screen = start();
        screen.press(&["C-c"]);
        let cancelled = wait_for_end(&screen);
        assert!(cancelled.contains("tidy cancelled"), "{cancelled}");
        assert_eq!(effects(&bench), 1);
    }
}
