//! Every question that a person is asked, and every report that a person reads, as terminals of 80
//! and of 200 columns show them.
//!
//! Written anew with INSTA_UPDATE=always, and then read by a person.

use crate::screens::mask;
use planwright_testing::steps::{call, echo, effect};
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};

const WIDTHS: [u16; 2] = [80, 200];

/// What is waited for, and what is typed then.
type Keys<'a> = &'a [(&'a str, &'a str)];

/// Compares what both terminals show with what they showed before.
fn shows(name: &str, prepare: fn() -> Bench, args: &[&str], keys: Keys<'_>) {
    for columns in WIDTHS {
        let bench = prepare();
        let seen = see(&bench, args, keys, columns);
        insta::assert_snapshot!(format!("{name}_{columns}"), seen);
    }
}

fn see(bench: &Bench, args: &[&str], keys: Keys<'_>, columns: u16) -> String {
    let mut command = bench.command(args);
    // Colours and moving lines are no part of what is said.
    command.env("NO_COLOR", "1").env("TERM", "dumb");
    let mut terminal = Terminal::wide(command, columns);
    let mut typed = 0;
    for (words, text) in keys {
        planwright_testing::wait::wait_until(words, || terminal.seen()[typed..].contains(words));
        typed = terminal.seen().len();
        terminal.types(text);
    }
    let code = terminal.ends();
    let seen = terminal.seen().replace('\r', "");
    let folder = bench.path("");
    let folder = folder.to_str().unwrap().trim_end_matches('/');
    let home = bench.home().to_str().unwrap();
    let seen = seen.replace(folder, "<folder>").replace(home, "<home>");
    format!(
        "$ planwright {}\n{}\n--- exit {}",
        args.join(" "),
        mask(&seen),
        code.map_or_else(|| "by a signal".to_owned(), |code| code.to_string())
    )
}

/// A plan that overwrites a file, runs a command, and sends on what it read.
fn careful() -> Bench {
    let bench = Bench::new();
    bench.configure("[local]\nrun_command = true\n");
    bench.write("notes.txt", "milk\nbread\n");
    bench.write("report.txt", "old\nkept\n");
    bench.document(json!({
        "id": "report",
        "title": "Write a report",
        "goal": "Put the notes into a report.",
        "risks": ["the report is overwritten"],
        "steps": [
            { "id": "read", "title": "Read the notes", "tool": "local.read_file",
              "args": { "path": "notes.txt" } },
            { "id": "write", "title": "Write the report", "tool": "local.write_file",
              "args": { "path": "report.txt", "content": "new\nkept\n" } },
            { "id": "copy", "tool": "local.write_file",
              "args": { "path": "copy.txt", "content": "${read}" },
              "retry": { "max": 2 }, "timeoutSeconds": 30,
              "undo": { "tool": "local.write_file", "args": { "path": "copy.txt", "content": "" } } },
            { "id": "tell", "title": "Say so", "tool": "local.run_command",
              "args": { "command": "echo", "args": ["all done", "at last"] },
              "dependsOn": ["write", "copy"] },
        ],
    }));
    bench
}

fn imported() -> Bench {
    let bench = careful();
    bench.run(&["import", "report.json"]).ends(0);
    bench
}

fn gated() -> Bench {
    let bench = Bench::new();
    let mut gate = effect("gate", &[]);
    gate["approvalRequired"] = json!(true);
    bench.plan("p", json!([gate]));
    bench
}

fn asking() -> Bench {
    let bench = Bench::new();
    bench.plan(
        "p",
        json!([{ "id": "who", "input": { "message": "Who is it for?", "schema": {
            "type": "object", "required": ["name"], "properties": { "name": { "type": "string" } } } } }]),
    );
    bench
}

fn untrusted() -> Bench {
    let bench = Bench::new();
    bench.write(
        "planwright.toml",
        "[local]\nrun_command = true\n[[policy.rules]]\ntool = \"run_command\"\nthen = \"allow\"\n",
    );
    bench.plan("p", json!([echo("a", 1, &[])]));
    bench
}

fn waiting() -> Bench {
    let bench = gated();
    bench.run(&["run", "p.json", "--yes"]).ends(4);
    bench
}

fn ended() -> Bench {
    let bench = Bench::new();
    let failing = call("bad", "demo.fail", json!({ "retryable": false }), &[]);
    let document = |id: &str, limits: Value, steps: Value| json!({ "id": id, "title": format!("Plan {id}"), "limits": limits, "steps": steps });
    for (id, limits, steps, code) in [
        ("good", json!({}), json!([echo("a", 1, &[])]), 0),
        (
            "bad",
            json!({}),
            json!([failing, echo("b", 2, &["bad"])]),
            1,
        ),
        (
            "partly",
            json!({ "onFailure": "continue" }),
            json!([failing, echo("b", 2, &[])]),
            1,
        ),
    ] {
        let file = bench.document(document(id, limits, steps));
        // One after the other, so that every journal has the same order.
        bench
            .run(&["run", &file, "--max-concurrency", "1"])
            .ends(code);
    }
    bench
}

const NO: (&str, &str) = ("Approve and run?", "n\n");

#[test]
fn the_question_before_a_run() {
    shows("run_asks", careful, &["run", "report.json"], &[NO]);
}

#[test]
fn the_question_with_everything_shown() {
    let keys = [("Approve and run?", "d\n"), NO];
    shows("run_details", careful, &["run", "report.json"], &keys);
}

#[test]
fn the_offer_to_always_allow() {
    let keys = [
        ("Approve and run?", "a\n"),
        ("Approve, and add these lines to", "n\n"),
        NO,
    ];
    for columns in WIDTHS {
        let bench = careful();
        let seen = see(&bench, &["run", "report.json"], &keys, columns);
        // The place of the user's own file is another one on every machine.
        let offer = seen.split("Approve, and add").next().unwrap();
        insta::assert_snapshot!(format!("run_always_{columns}"), offer);
    }
}

#[test]
fn a_no_with_its_reason() {
    let keys = [("Approve and run?", "n because the report is mine\n")];
    shows("run_refused", careful, &["run", "report.json"], &keys);
}

#[test]
fn the_question_of_approve() {
    let keys = [("Approve?", "n\n")];
    shows("approve_asks", imported, &["approve", "report"], &keys);
}

#[test]
fn the_question_at_a_gate() {
    let keys = [("Approve step gate? [y/N]", "n\n")];
    shows("gate_asks", gated, &["run", "p.json", "--yes"], &keys);
}

#[test]
fn the_question_of_a_step() {
    let keys = [("name", "Ada\n")];
    shows("input_asks", asking, &["run", "p.json"], &keys);
}

#[test]
fn the_question_of_a_folder() {
    let keys = [("Trust", "n\n")];
    shows("trust_asks", untrusted, &["trust"], &keys);
}

#[test]
fn the_question_before_a_plan_is_deleted() {
    let keys = [("[y/N]", "n\n")];
    shows("delete_asks", imported, &["delete", "report"], &keys);
}

#[test]
fn reports_about_a_plan() {
    shows(
        "dry_run",
        careful,
        &["run", "report.json", "--dry-run"],
        &[],
    );
    shows("show", imported, &["show", "report"], &[]);
    shows("validate", careful, &["validate", "report.json"], &[]);
    shows("explain", imported, &["policy", "explain", "report"], &[]);
}

#[test]
fn reports_about_runs() {
    shows("list", ended, &["list"], &[]);
    shows("show_failed", ended, &["show", "bad"], &[]);
    shows("show_partly", ended, &["show", "partly"], &[]);
    shows("log", ended, &["log", "partly"], &[]);
    shows("verify", ended, &["verify"], &[]);
    shows("show_waiting", waiting, &["show", "p"], &[]);
    shows("approvals", waiting, &["list"], &[]);
}

/// A command as it is typed and everything it shows, in a folder with a plain name.
fn transcript(bench: &Bench, args: &[&str], keys: Keys<'_>) -> String {
    let seen = see(bench, args, keys, 80);
    seen.replace("<home>", "/home/ada")
        .replace("<folder>", "/home/ada/notes")
        .replace("<user>", "ada")
}

#[test]
fn what_one_developer_is_asked() {
    let bench = Bench::new();
    bench.write("notes.txt", "milk\nbread\n");
    let plan = bench.document(json!({
        "id": "copy",
        "title": "Keep a copy of the notes",
        "steps": [
            { "id": "read", "tool": "local.read_file", "args": { "path": "notes.txt" } },
            { "id": "write", "tool": "local.write_file",
              "args": { "path": "notes/copy.txt", "content": "${read}" } },
        ],
    }));
    let keys = [
        ("Approve and run?", "a\n"),
        ("Approve, and add these lines to", "y\n"),
    ];
    let first = transcript(&bench, &["run", &plan], &keys);
    let second = transcript(&bench, &["run", &plan], &[]);

    let clone = Bench::new();
    let servers: serde_json::Map<String, Value> = ["calendar", "git", "mail", "search", "tickets"]
        .into_iter()
        .map(|name| {
            let launch =
                json!({ "command": "npx", "args": ["-y", format!("@example/{name}-server")] });
            (name.to_owned(), launch)
        })
        .collect();
    clone.write(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    clone.write("notes.txt", "milk\nbread\n");
    let hello = clone.document(json!({
        "id": "look",
        "title": "Look at the notes",
        "steps": [{ "id": "read", "tool": "local.read_file", "args": { "path": "notes.txt" } }],
    }));
    let trust = transcript(&clone, &["run", &hello], &[("Trust them?", "y\n")]);
    let trusted = transcript(&clone, &["run", &hello], &[]);
    for unasked in [&second, &trusted] {
        assert!(!unasked.contains('?'), "{unasked}");
    }
    compare_with_docs("docs/one-developer.md", &[first, second, trust, trusted]);
}

/// Compares the transcripts of a page, one after the other, with what was seen; writes them with
/// UPDATE_DOCS=1.
fn compare_with_docs(page: &str, seen: &[String]) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(page);
    let text = std::fs::read_to_string(&path).unwrap();
    let mut parts = text.split("```console\n");
    let mut page = parts.next().unwrap().to_owned();
    let mut seen = seen.iter();
    for part in parts {
        let (_, rest) = part.split_once("```\n").unwrap();
        let shown = seen
            .next()
            .expect("the page has more transcripts than were seen");
        let shown = shown.replace("--- exit 0", "");
        page.push_str("```console\n");
        page.push_str(shown.trim_end());
        page.push_str("\n```\n");
        page.push_str(rest);
    }
    assert!(seen.next().is_none(), "the page lacks a transcript");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    assert_eq!(
        text, page,
        "run again with UPDATE_DOCS=1 if the change is meant"
    );
}
