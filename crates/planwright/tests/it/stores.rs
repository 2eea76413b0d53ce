//! `store`: encrypted, backed up, restored, checked; and every other command with an encrypted
//! store.

use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::{Bench, Said};
use serde_json::json;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const PASSPHRASE: &str = "correct horse battery";

fn passphrase_file(bench: &Bench, name: &str, text: &str) -> String {
    let path = bench.write(name, &format!("{text}\n"));
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

/// A workspace with a plan that ran, and files beside the store.
fn ran() -> (Bench, String) {
    let bench = Bench::new();
    let plan = bench.plan(
        "canary-plan",
        json!([
            { "id": "one", "tool": "demo.echo", "args": { "value": "canary value" }, "result": "first" },
            { "id": "two", "tool": "demo.echo", "args": { "value": "${first}" } },
        ]),
    );
    bench.run(&["run", &plan, "--yes"]).ends(0);
    std::fs::remove_file(bench.path("canary-plan.json")).unwrap();
    let file = passphrase_file(&bench, "secret-word", PASSPHRASE);
    (bench, file)
}

fn encrypted() -> (Bench, String) {
    let (bench, file) = ran();
    bench
        .run(&["store", "encrypt", "--yes", "--passphrase-file", &file])
        .ends(0);
    (bench, file)
}

/// Files below a directory that hold a text.
fn holding(directory: &Path, needle: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if String::from_utf8_lossy(&std::fs::read(&path).unwrap()).contains(needle) {
                found.push(path);
            }
        }
    }
    found
}

fn with(bench: &Bench, file: &str, args: &[&str]) -> Said {
    bench.run(&[args, &["--passphrase-file", file]].concat())
}

#[test]
fn an_encrypted_store_works_as_before_and_shows_nothing() {
    let (bench, file) = ran();
    assert!(!holding(&bench.path(".plans"), "canary value").is_empty());
    let said = bench
        .run(&[
            "store",
            "encrypt",
            "--yes",
            "--json",
            "--passphrase-file",
            &file,
        ])
        .ends(0);
    assert_eq!(
        (&said.json()["status"], &said.json()["filesRemoved"]),
        (&json!("encrypted"), &json!(3))
    );
    assert!(
        said.err.contains(".plans/canary-plan/plan.json"),
        "{said:?}"
    );
    assert_eq!(
        holding(&bench.path(".plans"), "canary value"),
        [] as [PathBuf; 0]
    );
    let shown = with(&bench, &file, &["show", "canary-plan", "--json"])
        .ends(0)
        .json();
    assert_eq!(shown["status"], "completed");
    let again = with(&bench, &file, &["run", "canary-plan", "--yes"]).ends(0);
    assert!(again.err.contains("no files are written"), "{again:?}");
    with(&bench, &file, &["verify"]).ends(0);
    let checked = with(&bench, &file, &["store", "check", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&checked["ok"], &checked["encrypted"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        holding(&bench.path(".plans"), "canary value"),
        [] as [PathBuf; 0]
    );
    let exported = with(&bench, &file, &["export", "canary-plan"]).ends(0);
    assert!(exported.out.contains("canary value"));
}

#[test]
fn without_the_passphrase_or_with_a_wrong_one_nothing_is_said_or_changed() {
    let (bench, _) = encrypted();
    let wrong = passphrase_file(&bench, "wrong", "incorrect horse");
    let before = std::fs::read(bench.path(".plans/planwright.db")).unwrap();
    for args in [
        &["list"][..],
        &["show", "canary-plan"],
        &["verify"],
        &["token", "list"],
        &["run", "canary-plan"],
    ] {
        let said = bench.run(args).complains(6, "encrypted");
        assert!(said.err.contains("hint: --passphrase-file"), "{said:?}");
        with(&bench, &wrong, args).complains(6, "the passphrase is wrong");
    }
    std::fs::set_permissions(bench.path("wrong"), std::fs::Permissions::from_mode(0o644)).unwrap();
    with(&bench, &wrong, &["list"]).complains(2, "open to others");
    assert_eq!(
        std::fs::read(bench.path(".plans/planwright.db")).unwrap(),
        before
    );
    let doctor = bench.run(&["doctor"]);
    assert_eq!(doctor.code, 6, "{doctor:?}");
}

#[test]
fn the_passphrase_comes_from_a_descriptor_or_the_configuration() {
    let (bench, file) = encrypted();
    let program = env!("CARGO_BIN_EXE_planwright");
    let mut shell = std::process::Command::new("sh");
    shell
        .arg("-c")
        .arg(format!("{program} list --json --passphrase-fd 7 7<{file}"));
    let output = shell
        .current_dir(bench.root())
        .env_clear()
        .env("HOME", bench.root())
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(
        String::from_utf8(output.stdout)
            .unwrap()
            .contains("canary-plan")
    );
    bench.configure("[store]\npassphrase_file = 'secret-word'\n");
    assert!(bench.run(&["list"]).ends(0).out.contains("canary-plan"));
    // An operator who names a passphrase is not shown a plain store that an attacker put there
    // instead.
    let other = Bench::new();
    passphrase_file(&other, "secret-word", PASSPHRASE);
    let plan = other.plan(
        "p",
        json!([{ "id": "a", "tool": "demo.echo", "args": { "value": 1 } }]),
    );
    other.run(&["import", &plan]).ends(0);
    other.configure("[store]\npassphrase_file = 'secret-word'\n");
    other.run(&["list"]).complains(6, "not encrypted");
    // A new store is made encrypted at once.
    let fresh = Bench::new();
    passphrase_file(&fresh, "secret-word", PASSPHRASE);
    fresh.configure("[store]\npassphrase_file = 'secret-word'\n");
    let plan = fresh.plan(
        "p",
        json!([{ "id": "a", "tool": "demo.echo", "args": { "value": "canary" } }]),
    );
    fresh.run(&["import", &plan]).ends(0);
    assert_eq!(holding(&fresh.path(".plans"), "canary"), [] as [PathBuf; 0]);
}

#[test]
fn a_person_types_the_passphrase_unseen() {
    let (bench, _) = ran();
    let mut terminal = Terminal::start(&bench, &["store", "encrypt"]);
    terminal.wait_for("[y/N]");
    terminal.types("y\n");
    terminal.wait_for("New passphrase:");
    terminal.types("correct hors\u{7f}se battery\r");
    terminal.wait_for("Once more:");
    terminal.types("correct horse battery\r");
    assert_eq!(terminal.ends(), Some(0));
    assert!(!terminal.seen().contains("battery"), "{}", terminal.seen());
    let mut terminal = Terminal::start(&bench, &["list"]);
    terminal.wait_for("Passphrase:");
    terminal.types("correct horse battery\r");
    assert_eq!(terminal.ends(), Some(0));
    let mut terminal = Terminal::start(&bench, &["list"]);
    terminal.wait_for("Passphrase:");
    terminal.types("corr\u{3}");
    assert_eq!(terminal.ends(), Some(130));
}

#[test]
fn a_store_is_decrypted_and_rekeyed() {
    let (bench, file) = encrypted();
    let new = passphrase_file(&bench, "new-word", "another long one");
    with(
        &bench,
        &file,
        &["store", "rekey", "--new-passphrase-file", &new],
    )
    .ends(0);
    with(&bench, &file, &["list"]).complains(6, "wrong");
    with(&bench, &new, &["list"]).ends(0);
    with(
        &bench,
        &new,
        &[
            "store",
            "rekey",
            "--data-key",
            "--new-passphrase-file",
            &file,
        ],
    )
    .ends(0);
    with(&bench, &file, &["store", "check"]).ends(0);
    with(&bench, &file, &["store", "encrypt", "--yes"]).complains(3, "encrypted already");
    with(&bench, &file, &["store", "decrypt"]).complains(3, "there is no terminal to ask at");
    with(&bench, &file, &["store", "decrypt", "--yes"]).ends(0);
    bench.run(&["verify"]).ends(0);
    bench
        .run(&["store", "decrypt", "--yes"])
        .complains(3, "not encrypted");
    Bench::new()
        .run(&["store", "encrypt", "--yes"])
        .complains(2, "there is no store");
    let short = passphrase_file(&bench, "short-word", "short");
    with(&bench, &short, &["store", "encrypt", "--yes"]).complains(2, "too short");
}

#[test]
fn a_backup_made_during_a_run_is_restored_paused_and_whole() {
    let bench = Bench::new();
    let plan = bench.plan(
        "p",
        json!([
            { "id": "first", "tool": "demo.echo", "args": { "value": 1 } },
            { "id": "slow", "tool": "demo.sleep", "args": { "ms": 600_000 }, "dependsOn": ["first"] },
        ]),
    );
    let running = bench.start(&["run", &plan, "--yes"]);
    bench.wait_for("p", "attempt_started", "slow");
    let made = bench
        .run(&["store", "backup", "copy", "--json"])
        .ends(0)
        .json();
    assert!(made["entries"].as_u64().unwrap() > 4, "{made}");
    bench
        .run(&["store", "backup", "copy"])
        .complains(3, "already exists");
    bench
        .run(&["store", "restore", "copy"])
        .complains(3, "already exists");
    bench
        .run(&["store", "restore", "copy", "--replace"])
        .complains(3, "has the store open");
    drop(running);
    std::fs::create_dir(bench.path("elsewhere")).unwrap();
    let restored = bench
        .run(&["store", "restore", "copy", "--into", "elsewhere", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        restored["runsPaused"].as_array().unwrap().len(),
        1,
        "{restored}"
    );
    bench.run(&["--dir", "elsewhere", "verify"]).ends(0);
    bench.run(&["--dir", "elsewhere", "store", "check"]).ends(0);
    let shown = bench
        .run(&["--dir", "elsewhere", "show", "p", "--json"])
        .ends(0)
        .json();
    assert_eq!(shown["status"], "paused", "{shown}");
}

#[test]
fn the_store_may_be_elsewhere() {
    let (bench, file) = ran();
    let moved = bench.path("far/away.db");
    let run = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("PLAN_RUNTIME_STORE_PATH", &moved);
        command.output().unwrap()
    };
    let plan = bench.plan(
        "q",
        json!([{ "id": "a", "tool": "demo.echo", "args": { "value": "canary" } }]),
    );
    for args in [
        &["run", &plan, "--yes"][..],
        &["store", "backup", "copy"],
        &["store", "encrypt", "--yes", "--passphrase-file", &file],
        &["list", "--passphrase-file", &file],
        &["store", "check", "--passphrase-file", &file],
    ] {
        let output = run(args);
        assert!(output.status.success(), "{args:?}: {output:?}");
    }
    assert_eq!(holding(&bench.path("far"), "canary"), [] as [PathBuf; 0]);
    let output = run(&["store", "restore", "copy", "--replace"]);
    assert!(output.status.success(), "{output:?}");
    assert!(run(&["list"]).status.success());
}
