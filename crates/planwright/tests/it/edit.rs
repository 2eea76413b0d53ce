//! Versions of plans: edited, compared, restored, and agreed to again.

use planwright_testing::steps::{echo, effect};
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};

fn imported(bench: &Bench) {
    let plan = bench.plan(
        "p",
        json!([effect("a", &[]), effect("b", &["a"]), effect("c", &["b"])]),
    );
    bench.run(&["import", &plan]).ends(0);
}

fn edit(bench: &Bench, args: &[&str]) -> Said {
    let mut all = vec!["edit", "p"];
    all.extend(args);
    bench.run(&all)
}

fn order(bench: &Bench) -> String {
    let plan = bench.run(&["show", "p", "--json"]).ends(0).json();
    plan["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["id"].as_str().unwrap())
        .collect()
}

/// An editor that replaces the text it is given by what `sed` makes of it.
fn editor(bench: &Bench, script: &str) -> String {
    let path = bench.write("editor.sh", &format!("#!/bin/sh\n{script}\n"));
    format!("/bin/sh {}", path.display())
}

fn edit_in(bench: &Bench, script: &str, args: &[&str]) -> Said {
    let mut all = vec!["edit", "p"];
    all.extend(args);
    let editor = editor(bench, script);
    said(bench.command(&all).env("EDITOR", editor).output().unwrap())
}

#[test]
fn every_change_is_a_version_with_its_author_and_reason() {
    let bench = Bench::new();
    imported(&bench);
    let edited = edit(
        &bench,
        &[
            "--set",
            "steps.a.args.path=other.txt",
            "--reason",
            "it was wrong",
            "--json",
        ],
    );
    let edited = edited.ends(0).json();
    assert_eq!(
        (&edited["version"], &edited["changed"]),
        (&json!(2), &json!(true))
    );
    let change = &edited["diff"]["steps"][0];
    assert_eq!(change["id"], "a");
    assert_eq!(change["fields"][0]["path"], "args.path");
    assert_eq!(change["fields"][0]["before"], "effects.txt");
    assert_eq!(change["fields"][0]["after"], "other.txt");
    let same = edit(&bench, &["--set", "steps.a.args.path=other.txt", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&same["version"], &same["changed"]),
        (&json!(2), &json!(false))
    );
    let versions = bench.run(&["versions", "p", "--json"]).ends(0).json();
    assert_eq!(versions[1]["reason"], "it was wrong");
    assert_eq!(versions[1]["by"]["kind"], "person");
    assert_eq!(
        (&versions[0]["current"], &versions[1]["current"]),
        (&json!(false), &json!(true))
    );
    assert!(
        bench
            .run(&["versions", "p"])
            .ends(0)
            .out
            .contains("it was wrong")
    );
    assert!(
        bench.read(".plans/p/plan.json").contains("other.txt"),
        "the files follow"
    );
    bench.run(&["verify"]).ends(0);
}

#[test]
fn a_value_is_json_where_it_fits_and_text_where_only_text_does() {
    let bench = Bench::new();
    imported(&bench);
    edit(
        &bench,
        &[
            "--set",
            "steps.1.timeoutSeconds=30",
            "--set",
            "title=30",
            "--set",
            "variables.n=30",
        ],
    )
    .ends(0);
    let plan = bench.run(&["show", "p", "--json"]).json();
    assert_eq!(plan["steps"][0]["timeoutSeconds"].as_f64(), Some(30.0));
    assert_eq!(
        (&plan["title"], &plan["variables"]["n"]),
        (&json!("30"), &json!(30))
    );
    edit(&bench, &["--unset", "variables.n"]).ends(0);
    assert_eq!(
        bench.run(&["show", "p", "--json"]).json()["variables"],
        Value::Null
    );
    let wrong =
        edit(&bench, &["--set", "steps.a.timeout=3"]).complains(2, "the key `timeout` is unknown");
    assert!(
        wrong.err.contains("hint: did you mean `timeoutSeconds`?"),
        "{wrong:#?}"
    );
    edit(&bench, &["--set", "novalue"]).complains(2, "is not PATH=VALUE");
    edit(&bench, &["--unset", "goal"]).complains(2, "there is nothing at `goal`");
    assert_eq!(
        bench
            .run(&["versions", "p", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        3
    );
}

#[test]
fn steps_are_added_moved_and_removed_where_the_others_allow() {
    let bench = Bench::new();
    imported(&bench);
    edit(
        &bench,
        &["--add", &echo("x", 1, &[]).to_string(), "--before", "b"],
    )
    .ends(0);
    assert_eq!(order(&bench), "axbc");
    edit(&bench, &["--move", "x", "--to", "4"]).ends(0);
    assert_eq!(order(&bench), "abcx");
    edit(&bench, &["--move", "c", "--before", "a"])
        .complains(2, "it needs step `b`, which would come after it");
    edit(&bench, &["--move", "c"]).complains(2, "--move needs a place");
    edit(&bench, &["--to", "1"]).complains(2, "where --move or --add puts a step");
    edit(&bench, &["--remove", "a"]).complains(2, "step `b` needs it");
    edit(&bench, &["--remove", "x"]).ends(0);
    assert_eq!(order(&bench), "abc");
    bench.write("step.json", &echo("y", "${c}", &[]).to_string());
    edit(&bench, &["--add", "step.json"]).ends(0);
    assert_eq!(order(&bench), "abcy");
    edit(&bench, &["--add", "{\"tool\": 1}"]).complains(2, "--add is not a step");
    edit(&bench, &["--add", "nowhere.json"]).complains(2, "cannot read nowhere.json");
    let invalid =
        edit(&bench, &["--set", "steps.c.dependsOn=[\"y\"]"]).complains(2, "the plan is not valid");
    assert!(invalid.err.contains("wait for each other"), "{invalid:#?}");
    assert_eq!(order(&bench), "abcy");
}

#[test]
fn a_skipped_step_stays_in_the_plan_and_does_not_run() {
    let bench = Bench::new();
    imported(&bench);
    edit(&bench, &["--skip", "b"]).ends(0);
    let result = bench.run(&["run", "p", "--yes", "--json"]).ends(0).json();
    assert_eq!(result["status"], "completed");
    let skipped = planwright_testing::steps::step(&result, "b");
    assert_eq!(skipped["status"], "skipped");
    assert_eq!(
        bench.read("effects.txt"),
        "a\nc\n",
        "what depends on it goes on"
    );
    let entry = bench
        .log("p")
        .into_iter()
        .find(|entry| entry["kind"] == "step_skipped")
        .unwrap();
    assert_eq!(entry["reason"], "left out by an edit");
    assert!(bench.run(&["show", "p"]).out.contains("b. Step b"));
    edit(&bench, &["--unskip", "b"]).ends(0);
    bench.run(&["run", "p", "--yes"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\nc\na\nb\nc\n");
}

#[test]
fn a_step_without_its_tool_can_be_left_out() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([echo("a", 1, &[]), { "id": "b", "tool": "nowhere.to_be_found" }]),
    );
    bench.run(&["import", &plan]).ends(0);
    bench.run(&["run", "p", "--yes"]).ends(2);
    edit(&bench, &["--skip", "b"]).ends(0);
    let result = bench.run(&["run", "p", "--json"]).ends(0).json();
    assert_eq!(result["status"], "completed");
}

#[test]
fn an_edit_of_another_version_than_the_current_one_is_refused_and_names_both() {
    let bench = Bench::new();
    imported(&bench);
    edit(&bench, &["--set", "title=two"]).ends(0);
    let late = edit(&bench, &["--base", "1", "--set", "title=three"]);
    let late = late.complains(
        3,
        "the plan is at version 2, the edit was made to version 1",
    );
    assert!(late.err.contains("planwright diff"), "{late:#?}");
    edit(&bench, &["--base", "2", "--set", "title=three"]).ends(0);
    bench
        .run(&["restore", "p", "1", "--base", "2"])
        .complains(3, "the plan is at version 3");
}

#[test]
fn a_dry_run_of_an_edit_stores_nothing() {
    let bench = Bench::new();
    imported(&bench);
    let diff = edit(&bench, &["--skip", "a", "--dry-run", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&diff["executable"], &diff["steps"][0]["fields"][0]["path"]),
        (&json!(true), &json!("skip"))
    );
    assert_eq!(
        bench
            .run(&["versions", "p", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn an_editor_changes_the_plan_and_what_it_writes_is_checked() {
    let bench = Bench::new();
    imported(&bench);
    let edited = edit_in(
        &bench,
        "sed -i s/effects.txt/other.txt/ \"$1\"",
        &["--json", "--as", "json"],
    );
    assert_eq!(edited.ends(0).json()["version"], 2);
    let unchanged = edit_in(&bench, "true", &[]).ends(0);
    assert!(unchanged.err.contains("nothing changed"), "{unchanged:#?}");
    let failed = edit_in(&bench, "exit 3", &[]).complains(3, "failed (exit status");
    assert!(failed.err.contains("your text is in"), "{failed:#?}");
    let without = bench.run(&["edit", "p"]).complains(2, "no editor is set");
    assert!(without.err.contains("--set PATH=VALUE"), "{without:#?}");
    assert_eq!(
        bench
            .run(&["versions", "p", "--json"])
            .json()
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

#[test]
fn a_text_that_is_no_plan_is_kept_and_gone_on_with() {
    let bench = Bench::new();
    imported(&bench);
    let broken = edit_in(
        &bench,
        "sed -i 's/\"dependsOn\": \\[/&\"nobody\",/' \"$1\"",
        &["--as", "json"],
    );
    let broken = broken.complains(2, "the plan is not valid");
    let hint = broken
        .err
        .lines()
        .find(|line| line.starts_with("hint: "))
        .unwrap();
    let path = hint
        .split_whitespace()
        .skip_while(|word| *word != "--file")
        .nth(1)
        .unwrap()
        .to_owned();
    assert!(path.contains("/.plans/.edits/p-v1"), "{hint}");
    let text = std::fs::read_to_string(&path).unwrap();
    bench.write(
        "mended.json",
        &text.replace("\"nobody\",", "").replace("effects", "mended"),
    );
    std::fs::copy(bench.path("mended.json"), &path).unwrap();
    let went_on = bench
        .run(&["edit", "p", "--base", "1", "--file", &path, "--json"])
        .ends(0)
        .json();
    assert_eq!(went_on["version"], 2);
    let garbage =
        edit_in(&bench, "echo '{\"steps\": [' > \"$1\"", &["--as", "json"]).complains(2, "line 2");
    assert!(garbage.err.contains("--file"), "{garbage:#?}");
    let other = edit_in(
        &bench,
        "sed -i 's/\"id\": \"p\"/\"id\": \"q\"/' \"$1\"",
        &["--as", "json"],
    );
    other.complains(2, "the edited plan has the id `q`");
}

#[test]
fn at_a_terminal_an_edited_text_is_stored_only_after_a_yes() {
    for (answer, version) in [("n\r", 1), ("y\r", 2)] {
        let bench = Bench::new();
        imported(&bench);
        let mut command = bench.command(&["edit", "p", "--as", "json"]);
        command.env(
            "VISUAL",
            editor(&bench, "sed -i s/effects.txt/other.txt/ \"$1\""),
        );
        let mut terminal = Terminal::of(command);
        terminal.wait_for("Store this as version 2?");
        assert!(
            terminal.seen().contains("\"effects.txt\" → \"other.txt\""),
            "{}",
            terminal.seen()
        );
        terminal.types(answer);
        assert_eq!(terminal.ends(), Some(if version == 1 { 3 } else { 0 }));
        assert_eq!(
            bench.run(&["show", "p", "--json"]).json()["version"],
            version
        );
    }
}

#[test]
fn versions_are_compared_and_restored() {
    let bench = Bench::new();
    imported(&bench);
    edit(&bench, &["--set", "title=Other words"]).ends(0);
    let words = bench.run(&["diff", "p", "--json"]).ends(0).json();
    assert_eq!(
        (&words["from"], &words["to"], &words["executable"]),
        (&json!(1), &json!(2), &json!(false))
    );
    edit(
        &bench,
        &["--remove", "c", "--set", "steps.b.title=a\u{202e}b"],
    )
    .ends(0);
    let shown = bench.run(&["diff", "p", "1", "3"]).ends(0);
    for words in [
        "~ title: \"Plan p\" → \"Other words\"  (only words)",
        "- step c",
        "\\u{202e}",
    ] {
        assert!(shown.out.contains(words), "{words:?} is not in {shown:#?}");
    }
    bench
        .run(&["diff", "p", "1", "9"])
        .complains(2, "the plan has no version 9");
    let file = bench
        .run(&["diff", "p", "1", "--file", "p.json", "--json"])
        .ends(0)
        .json();
    assert_eq!((&file["fields"], &file["steps"]), (&json!([]), &json!([])));
    let restored = bench
        .run(&["restore", "p", "1", "--reason", "as it was", "--json"])
        .ends(0)
        .json();
    assert_eq!(restored["version"], 4);
    assert_eq!(order(&bench), "abc");
    let versions = bench.run(&["versions", "p", "--json"]).json();
    assert_eq!(
        (&versions[3]["restoredFrom"], &versions[3]["reason"]),
        (&json!(1), &json!("as it was"))
    );
    bench
        .run(&["restore", "p", "7"])
        .complains(2, "the plan has no version 7");
    let again = bench.run(&["restore", "p", "4"]).ends(0);
    assert!(again.err.contains("nothing changed"), "{again:#?}");
}

#[test]
fn other_words_keep_an_approval_and_another_deed_voids_it() {
    let bench = Bench::new();
    imported(&bench);
    let digest = bench.digest("p");
    bench.run(&["approve", "p", "--digest", &digest]).ends(0);
    let words = edit(&bench, &["--set", "title=Other words"]).ends(0);
    assert!(
        words.err.contains("the approval is still valid"),
        "{words:#?}"
    );
    assert_eq!(
        (bench.status("p"), bench.digest("p")),
        ("approved".to_owned(), digest)
    );
    let deed = edit(&bench, &["--set", "steps.c.args.path=other.txt"]).ends(0);
    assert!(deed.err.contains("approve the change"), "{deed:#?}");
    assert_eq!(bench.status("p"), "proposed");
    bench.run(&["run", "p"]).complains(3, "not approved");
    assert_eq!(bench.read("effects.txt"), "");
}

#[test]
fn only_the_change_is_asked_again() {
    let bench = Bench::new();
    imported(&bench);
    bench.run(&["approve", "p", "--version", "1"]).ends(0);
    edit(&bench, &["--set", "steps.c.args.path=other.txt"]).ends(0);
    let shown = bench.run(&["show", "p"]).ends(0).out;
    assert!(
        shown.contains("changed since version 1, which was approved:"),
        "{shown}"
    );
    assert!(
        shown.contains("~ args.path: \"effects.txt\" → \"other.txt\""),
        "{shown}"
    );
    assert!(
        shown.contains("already approved and unchanged: a, b\n"),
        "{shown}"
    );
    let details = bench.run(&["show", "p", "--json"]).json();
    assert_eq!(details["changes"]["agreed"], json!(["a", "b"]));
    assert_eq!(details["approvals"][0]["state"], "superseded");
    let mut terminal = Terminal::start(&bench, &["run", "p"]);
    terminal.wait_for("Approve and run?");
    let seen = terminal.seen();
    assert!(
        seen.contains("already approved") && seen.contains("appends to other.txt"),
        "{seen}"
    );
    assert!(
        seen.contains("“Step a”  (approved before)"),
        "what was agreed to is not asked again: {seen}"
    );
    terminal.types("n\r");
    assert_eq!(terminal.ends(), Some(3));
    let approved = bench.run(&["approve", "p", "--version", "2"]).ends(0);
    assert!(
        approved.err.contains("changed since version 1"),
        "{approved:#?}"
    );
    bench.run(&["run", "p"]).ends(0);
    assert_eq!(
        (bench.read("effects.txt"), bench.read("other.txt")),
        ("a\nb\n".into(), "c\n".into())
    );
}

#[test]
fn a_draft_waits_until_it_is_proposed() {
    let bench = Bench::new();
    bench.document(json!({ "id": "p", "goal": "something useful" }));
    let draft = bench
        .run(&["import", "p.json", "--draft", "--json"])
        .ends(0)
        .json();
    assert_eq!(draft["status"], "draft");
    bench
        .run(&["propose", "p"])
        .complains(3, "the draft has no steps yet");
    edit(&bench, &["--add", &effect("a", &[]).to_string()]).ends(0);
    assert_eq!(bench.status("p"), "draft");
    bench
        .run(&["approve", "p", "--version", "2"])
        .complains(3, "the plan is a draft: propose it first");
    bench
        .run(&["run", "p", "--yes"])
        .complains(3, "the plan is a draft: propose it first");
    assert_eq!(bench.run(&["list", "--json"]).json()[0]["status"], "draft");
    let proposed = bench.run(&["propose", "p", "--json"]).ends(0).json();
    assert_eq!(
        (&proposed["status"], &proposed["version"]),
        (&json!("proposed"), &json!(2))
    );
    bench.run(&["propose", "p"]).complains(3, "not a draft");
    bench.run(&["run", "p", "--yes"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn of_edits_made_at_the_same_moment_one_wins_and_the_others_hear_of_it() {
    let bench = Bench::new();
    imported(&bench);
    let titles = ["one", "two", "three", "four"].map(|title| format!("title={title}"));
    let running: Vec<_> = titles
        .iter()
        .map(|title| bench.start(&["edit", "p", "--base", "1", "--set", title]))
        .collect();
    let ends: Vec<Said> = running
        .into_iter()
        .map(planwright_testing::workbench::Running::wait)
        .collect();
    assert_eq!(
        ends.iter().filter(|said| said.code == 0).count(),
        1,
        "{ends:#?}"
    );
    for lost in ends.iter().filter(|said| said.code != 0) {
        assert_eq!(lost.code, 3, "{lost:#?}");
        assert!(
            lost.err
                .contains("the plan is at version 2, the edit was made to version 1"),
            "{lost:#?}"
        );
    }
    bench.run(&["verify"]).ends(0);
}
