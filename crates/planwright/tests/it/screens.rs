//! Screens of the program in a shell without a terminal, as inline snapshots.
//!
//! Digests, run ids, times, durations and the name of the user differ from run to run and are
//! masked; everything else is exactly as it is printed. The environment is the bench's own.

use planwright_testing::steps::effect;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

/// Runs a command and formats it as a person sees it: the command, stdout, stderr and the exit code.
fn screen(bench: &Bench, args: &[&str]) -> String {
    let said = bench.run(args);
    let stderr = if said.err.is_empty() {
        String::new()
    } else {
        format!("--- stderr\n{}", said.err)
    };
    mask(&format!(
        "$ planwright {}\n{}{stderr}--- exit {}",
        args.join(" "),
        said.out,
        said.code
    ))
}

/// Replaces what differs from run to run, word by word.
pub(crate) fn mask(text: &str) -> String {
    let mut masked = String::new();
    let mut word = String::new();
    let mut before = String::new();
    for letter in text.chars() {
        if letter.is_whitespace() || "(),;`".contains(letter) {
            masked.push_str(&mask_word(&before, &word));
            masked.push(letter);
            if !word.is_empty() {
                before = std::mem::take(&mut word);
            }
        } else {
            word.push(letter);
        }
    }
    masked.push_str(&mask_word(&before, &word));
    mask_durations(&masked)
}

fn mask_word(before: &str, word: &str) -> String {
    let is_time = word.len() >= 20 && word.contains('T') && word.ends_with('Z');
    let colon = if word.ends_with(':') { ":" } else { "" };
    match word {
        _ if word.starts_with("sha256:") => {
            format!("sha256:<digest>{}", &word[word.len().min(71)..])
        }
        _ if is_run_id(word.trim_end_matches(':')) => format!("run_<id>{colon}"),
        _ if word.starts_with("consent=") => "consent=<consent>".to_owned(),
        _ if is_short_digest(word) => {
            format!("{}=<digest>", word.split('=').next().unwrap_or_default())
        }
        _ if is_time => "<time>".to_owned(),
        _ if before.ends_with("person") => format!("<user>{colon}"),
        _ => word.to_owned(),
    }
}

fn is_run_id(word: &str) -> bool {
    word.strip_prefix("run_").is_some_and(|id| {
        id.len() == 12
            && id
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
    })
}

/// `call=0b4c54f88624`.
fn is_short_digest(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(_, value)| value.len() == 12 && value.chars().all(|c| c.is_ascii_hexdigit()))
}

/// `12 ms` becomes `<n> ms`.
fn mask_durations(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            let is_number = words[at - 1].chars().all(|c| c.is_ascii_digit());
            if words[at] == "ms" && is_number {
                words[at - 1] = "<n>".to_owned();
            }
        }
        words.join(" ")
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// A plan with a step that reads and a step that writes.
fn report(bench: &Bench) -> String {
    bench.write("notes.txt", "a note");
    bench.document(json!({
        "id": "report",
        "title": "Write a report",
        "goal": "Put the notes into a report.",
        "steps": [
            { "id": "read", "title": "Read the notes", "tool": "local.read_file",
              "args": { "path": "notes.txt" } },
            { "id": "write", "title": "Write the report", "tool": "local.write_file",
              "args": { "path": "report.txt", "content": "${read}" } },
        ],
    }))
}

fn imported() -> Bench {
    let bench = Bench::new();
    let file = report(&bench);
    bench.run(&["import", &file]).ends(0);
    bench
}

fn approved() -> Bench {
    let bench = imported();
    let digest = bench.digest("report");
    bench
        .run(&["approve", "report", "--digest", &digest])
        .ends(0);
    bench
}

fn gated(bench: &Bench) -> String {
    let mut gate: Value = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    bench.plan("release", json!([gate]))
}

#[test]
fn an_empty_workspace_says_how_to_begin() {
    insta::assert_snapshot!(screen(&Bench::new(), &["list"]), @r#"
    $ planwright list
    --- stderr
    no plans yet
    hint: To write a first plan: planwright new -o plan.json. To see a whole run: planwright demo
    --- exit 0
    "#);
}

#[test]
fn an_import_prints_one_line() {
    let bench = Bench::new();
    let file = report(&bench);
    insta::assert_snapshot!(screen(&bench, &["import", &file]), @r#"
    $ planwright import report.json
    report  version 1  proposed  sha256:<digest>
    --- exit 0
    "#);
}

#[test]
fn a_valid_plan_shows_its_levels() {
    let bench = Bench::new();
    let file = report(&bench);
    insta::assert_snapshot!(screen(&bench, &["validate", &file]), @r#"
    $ planwright validate report.json
    valid: read  →  write
    critical path: read → write
    digest: sha256:<digest>
    --- exit 0
    "#);
}

#[test]
fn an_invalid_plan_shows_every_finding() {
    let bench = Bench::new();
    let file = bench.plan(
        "bad",
        json!([{ "id": "a", "tool": "local.read_fil", "dependsOn": ["b"] }]),
    );
    insta::assert_snapshot!(screen(&bench, &["validate", &file]), @r#"
    $ planwright validate bad.json
    --- stderr
    error: the plan is not valid
      error E0104 step a: there is no step `b` to depend on at /steps/0/dependsOn/0 (did you mean `a`?)
      error E0120 step a: no server has a tool `local.read_fil` at /steps/0/tool (did you mean `local.read_file`?)
    --- exit 2
    "#);
}

#[test]
fn a_proposed_plan_shows_its_steps_and_risks() {
    insta::assert_snapshot!(screen(&imported(), &["show", "report"]), @r#"
    $ planwright show report
    Write a report
    report  version 1  proposed
    Put the notes into a report.

    ○ read. Read the notes                   [local.read_file]

    ○ write. Write the report                [local.write_file]  ← after: read

    2 steps, 1 changes something and has no undo
    a call may take 600 s, unless its step says otherwise

    Changes something:
      write  local.write_file  “Write the report”
        creates report.txt; this plan has no way to undo it
        path: report.txt
        content: ‹result of step read›
        after read

    Changes nothing:
      read  local.read_file  “Read the notes”
        path: notes.txt

    digest sha256:<digest>
    --- exit 0
    "#);
}

#[test]
fn an_unapproved_plan_does_not_run() {
    insta::assert_snapshot!(screen(&imported(), &["run", "report"]), @r#"
    $ planwright run report
    --- stderr
    error: the plan is not approved, and some of its steps need an approval
    hint: planwright approve report --digest sha256:<digest>
    --- exit 3
    "#);
}

#[test]
fn a_dry_run_shows_every_call() {
    insta::assert_snapshot!(screen(&imported(), &["run", "report", "--dry-run"]), @r#"
    $ planwright run report --dry-run
    “Write a report”
    report, version 1
    goal: Put the notes into a report.

    2 steps, 1 changes something and has no undo
    a call may take 600 s, unless its step says otherwise

    Changes something:
      write  local.write_file  “Write the report”
        creates report.txt; this plan has no way to undo it
        path: report.txt
        content: ‹result of step read›
        after read

    Changes nothing:
      read  local.read_file  “Read the notes”
        path: notes.txt

    step write: ask (the tool is not read-only)
    critical path: read → write
    digest: sha256:<digest>
    --- stderr
    dry run: nothing was called
    --- exit 0
    "#);
}

#[test]
fn an_approval_has_to_name_what_was_reviewed() {
    insta::assert_snapshot!(screen(&imported(), &["approve", "report"]), @r#"
    $ planwright approve report
    --- stderr
    error: name what you reviewed: --version N or --digest DIGEST
    hint: planwright approve report --digest sha256:<digest> (the current version is 1: review it first)
    --- exit 2
    "#);
}

#[test]
fn an_approval_is_followed_by_the_next_command() {
    insta::assert_snapshot!(screen(&imported(), &["approve", "report", "--version", "1"]), @r#"
    $ planwright approve report --version 1
    report  version 1  approved  sha256:<digest>
    --- stderr
    hint: planwright run report
    --- exit 0
    "#);
}

#[test]
fn an_approval_of_another_version_is_refused() {
    insta::assert_snapshot!(screen(&imported(), &["approve", "report", "--version", "7"]), @r#"
    $ planwright approve report --version 7
    --- stderr
    error: the plan changed since it was shown: shown version 7, now version 1
    hint: To review the plan as it is now: planwright show report; to approve it: planwright approve report --digest DIGEST
    --- exit 3
    "#);
}

#[test]
fn a_run_without_a_terminal_prints_lines() {
    insta::assert_snapshot!(screen(&approved(), &["run", "report"]), @r#"
    $ planwright run report
    ● read. Read the notes [local.read_file]  completed  <n> ms
    ● write. Write the report [local.write_file]  completed  <n> ms
    report completed: 2 of 2 steps in <n> ms (run_<id>)
    write: {"path":"report.txt","bytes":6}
    --- stderr
    ▸ read Read the notes [local.read_file]
    ● read Read the notes  <n> ms
    ▸ write Write the report [local.write_file]
    ● write Write the report  <n> ms
    --- exit 0
    "#);
}

#[test]
fn a_completed_run_is_listed() {
    let bench = approved();
    bench.run(&["run", "report"]).ends(0);
    insta::assert_snapshot!(screen(&bench, &["list"]), @r#"
    $ planwright list
    report                    completed     v1       2 steps  Write a report
    --- exit 0
    "#);
}

#[test]
fn a_gate_ends_the_command_with_the_commands_that_go_on() {
    let bench = Bench::new();
    let plan = gated(&bench);
    insta::assert_snapshot!(screen(&bench, &["run", &plan, "--yes"]), @r#"
    $ planwright run release.json --yes
    ◇ gate. Step gate [append_file]  awaiting_approval
    release waiting: 0 of 1 steps in <n> ms (run_<id>)
    --- stderr
    ◇ gate Step gate  waiting for approval
    hint: planwright approve release --step gate --digest sha256:<digest>
    hint: To continue it: planwright resume release
    --- exit 4
    "#);
}

#[test]
fn an_edit_voids_the_approval_and_says_so() {
    let bench = approved();
    insta::assert_snapshot!(
        screen(&bench, &["edit", "report", "--set", "steps.write.args.path=other.txt"]),
        @r#"
        $ planwright edit report --set steps.write.args.path=other.txt
        report  version 2  proposed  sha256:<digest>
        --- stderr
        ~ step write  Write the report  [local.write_file]
            ~ args.path: "report.txt" → "other.txt"
        the approved content changed: approve the change
        hint: planwright approve report --digest sha256:<digest>
        --- exit 0
        "#
    );
}

#[test]
fn a_diff_shows_what_changed_since_the_approval() {
    let bench = approved();
    bench
        .run(&["edit", "report", "--set", "steps.write.args.path=other.txt"])
        .ends(0);
    insta::assert_snapshot!(screen(&bench, &["diff", "report"]), @r#"
    $ planwright diff report
    ~ step write  Write the report  [local.write_file]
        ~ args.path: "report.txt" → "other.txt"
    --- stderr
    report: version 1 → version 2
    --- exit 0
    "#);
}

#[test]
fn a_rejection_asks_for_an_edit() {
    insta::assert_snapshot!(
        screen(&imported(), &["reject", "report", "--version", "1", "--reason", "too broad"]),
        @r#"
        $ planwright reject report --version 1 --reason too broad
        report  version 1  rejected
        --- stderr
        hint: edit the plan (planwright edit report) or import a new version
        --- exit 0
        "#
    );
}

#[test]
fn a_rejected_plan_does_not_run() {
    let bench = imported();
    bench
        .run(&[
            "reject",
            "report",
            "--version",
            "1",
            "--reason",
            "too broad",
        ])
        .ends(0);
    insta::assert_snapshot!(screen(&bench, &["run", "report"]), @r#"
    $ planwright run report
    --- stderr
    error: the plan was rejected: too broad
    hint: To make the next version, which can be approved: planwright edit report
    --- exit 3
    "#);
}

#[test]
fn a_misspelt_id_is_answered_with_the_nearest_one() {
    insta::assert_snapshot!(screen(&imported(), &["show", "repport"]), @r#"
    $ planwright show repport
    --- stderr
    error: there is no plan `repport`
    hint: did you mean report?
    --- exit 2
    "#);
}

#[test]
fn a_plan_without_a_run_cannot_be_resumed() {
    insta::assert_snapshot!(screen(&approved(), &["resume", "report"]), @r#"
    $ planwright resume report
    --- stderr
    error: plan `report` has no run that could be resumed
    hint: To start one: planwright run report
    --- exit 2
    "#);
}

#[test]
fn an_undo_needs_a_confirmation() {
    let bench = Bench::new();
    let mut step = effect("a", &[]);
    step["undo"] =
        json!({ "tool": "local.write_file", "args": { "path": "effects.txt", "content": "" } });
    let plan = bench.plan("p", json!([step]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    insta::assert_snapshot!(screen(&bench, &["undo", "p"]), @r#"
    $ planwright undo p
    --- stderr
    error: the undo is not approved
    hint: To see the calls: planwright undo p --dry-run. To make them, pass --yes
    --- exit 3
    "#);
}

#[test]
fn a_deletion_needs_a_confirmation() {
    insta::assert_snapshot!(screen(&imported(), &["delete", "report"]), @r#"
    $ planwright delete report
    --- stderr
    error: there is no terminal to ask at
    hint: repeat the command with --yes
    --- exit 3
    "#);
}
