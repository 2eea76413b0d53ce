//! Stores that came from elsewhere: read, adopted, and never obeyed.

use planwright_testing::steps::{effect, sleep};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, Said, said};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A folder that was copied, and the home of the person who uses the copy.
struct Clone {
    folder: TempDir,
    home: PathBuf,
}

impl Clone {
    /// What `cp -a` makes of a workspace.
    fn of(bench: &Bench, home: &Path) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copied = Command::new("cp")
            .arg("-a")
            .arg(format!("{}/.", bench.root().display()))
            .arg(folder.path())
            .status()
            .unwrap();
        assert!(copied.success());
        Self {
            folder,
            home: home.to_owned(),
        }
    }

    fn command(&self, bench: &Bench, args: &[&str]) -> Command {
        let mut command = bench.command(args);
        command
            .current_dir(self.folder.path())
            .env("HOME", &self.home);
        command
    }

    fn run(&self, bench: &Bench, args: &[&str]) -> Said {
        said(self.command(bench, args).output().unwrap())
    }

    fn effects(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("effects.txt")).unwrap_or_default()
    }
}

/// A workspace with a run that was killed in its first step, and a plan that was approved.
fn workspace() -> Bench {
    let bench = Bench::new();
    let killed = bench.plan(
        "killed",
        json!([sleep("wait", 60_000, &[]), effect("late", &["wait"])]),
    );
    let running = bench.start(&["run", &killed, "--yes"]);
    bench.wait_for("killed", "attempt_started", "wait");
    running.kill();
    let plan = bench.plan("agreed", json!([effect("early", &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench.run(&["approve", "agreed", "--version", "1"]).ends(0);
    bench.plan("another", json!([effect("mine", &[])]));
    bench
}

#[test]
fn a_copied_store_does_nothing_but_say_why() {
    let bench = workspace();
    let stranger = tempfile::tempdir().unwrap();
    let copies = [
        (
            Clone::of(&bench, bench.home()),
            "it is a copy of a store of yours",
        ),
        (
            Clone::of(&bench, stranger.path()),
            "made by another user or on another machine",
        ),
    ];
    for (copy, why) in copies {
        for args in [
            &["run", "agreed"][..],
            &["run", "another.json", "--yes"],
            &["resume", "killed"],
            &["serve", "--listen", "127.0.0.1:0"],
            &["approve", "agreed", "--version", "1"],
            &["approve", "agreed", "--revoke"],
            &["import", "another.json"],
            &["cancel", "killed"],
            &["edit", "agreed", "--set", "title=mine"],
            &["delete", "agreed", "--yes"],
            &[
                "token", "create", "--name", "me", "--kind", "person", "--role", "admin",
            ],
            &["store", "compact"],
        ] {
            let said = copy.run(&bench, args).complains(3, why);
            assert!(
                said.err.contains("planwright store adopt"),
                "{args:?}: {said:#?}"
            );
        }
        for args in [
            &["list"][..],
            &["show", "agreed"],
            &["log", "killed"],
            &["verify"],
        ] {
            let said = copy.run(&bench, args).ends(0);
            assert!(said.err.contains(why), "{args:?}: {said:#?}");
        }
        assert_eq!(copy.effects(), "");
    }
    // Where it was made, all of it goes on.
    bench.run(&["run", "agreed"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "early\n");
}

#[test]
fn a_folder_that_was_moved_is_the_same_folder() {
    let bench = workspace();
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = Clone {
        folder: elsewhere,
        home: bench.home().to_owned(),
    };
    for name in [".plans", "another.json"] {
        std::fs::rename(bench.path(name), moved.folder.path().join(name)).unwrap();
    }
    moved.run(&bench, &["run", "agreed"]).ends(0);
    assert_eq!(moved.effects(), "early\n");
}

#[test]
fn only_a_person_adopts_and_is_shown_what_becomes_void() {
    let bench = workspace();
    let copy = Clone::of(&bench, bench.home());
    let agent = copy
        .command(&bench, &["store", "adopt", "--yes"])
        .env("PLANWRIGHT_AGENT", "bot")
        .output()
        .unwrap();
    said(agent).complains(3, "an agent cannot adopt a store");
    let asked = copy
        .run(&bench, &["store", "adopt"])
        .complains(3, "needs a confirmation");
    for words in ["plan agreed: void: approved by", "killed: held: executing"] {
        assert!(asked.err.contains(words), "{words}: {asked:#?}");
    }
    let mut terminal = Terminal::of(copy.command(&bench, &["store", "adopt"]));
    terminal.wait_for("Adopt this store?");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(3));
    copy.run(&bench, &["run", "agreed"])
        .complains(3, "it is a copy");
    let mut terminal = Terminal::of(copy.command(&bench, &["store", "adopt"]));
    terminal.wait_for("Adopt this store?");
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    let again = copy
        .run(&bench, &["store", "adopt", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&again["adopted"], &again["yours"]),
        (&json!(false), &json!(true))
    );
    // The first one is as it was.
    bench.run(&["run", "agreed"]).ends(0);
}

#[test]
fn after_adoption_old_approvals_and_runs_do_nothing_by_themselves() {
    let bench = workspace();
    let stranger = tempfile::tempdir().unwrap();
    let copy = Clone::of(&bench, stranger.path());
    let adopted = copy
        .run(&bench, &["store", "adopt", "--yes", "--json"])
        .ends(0)
        .json();
    assert_eq!(adopted["approvalsRevoked"], json!(["agreed"]));
    let run = adopted["runsHeld"][0]["runId"].as_str().unwrap().to_owned();
    copy.run(&bench, &["run", "agreed"])
        .complains(3, "was revoked by policy adoption");
    // A service does not go on with what came along.
    let mut serve = copy.command(&bench, &["serve", "--listen", "127.0.0.1:0"]);
    let heard = copy.folder.path().join("serve.txt");
    serve
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(&heard).unwrap());
    let serving = Running::of(serve);
    wait_until("the service", || {
        std::fs::read_to_string(&heard)
            .unwrap()
            .contains("http://127.0.0.1")
    });
    copy.run(&bench, &["run", "another.json", "--yes"]).ends(0);
    let shown = copy
        .run(&bench, &["show", "killed", "--json"])
        .ends(0)
        .json();
    assert_eq!(shown["status"], "paused");
    serving.kill();
    // It goes on for no one, also not for the person who adopted it. What is left is asked about.
    let agent = copy
        .command(&bench, &["resume", &run])
        .env("PLANWRIGHT_AGENT", "bot")
        .output()
        .unwrap();
    said(agent).complains(3, "its approval was given elsewhere");
    copy.run(&bench, &["resume", &run])
        .complains(3, "its approval was given elsewhere");
    copy.run(&bench, &["cancel", &run]).ends(0);
    copy.run(&bench, &["resume", "killed"])
        .complains(3, "not approved");
    assert_eq!(copy.effects(), "mine\n");
    copy.run(&bench, &["approve", "agreed", "--version", "1"])
        .ends(0);
    copy.run(&bench, &["run", "agreed"]).ends(0);
    assert_eq!(copy.effects(), "mine\nearly\n");
    copy.run(&bench, &["verify"]).ends(0);
}

#[test]
fn an_adoption_killed_anywhere_can_be_repeated_and_never_lets_the_old_word_count() {
    let bench = workspace();
    let stranger = tempfile::tempdir().unwrap();
    let adopt = ["store", "adopt", "--yes", "--json"];
    let mut killed = 0;
    for point in 1..100 {
        let copy = Clone::of(&bench, stranger.path());
        let mut command = copy.command(&bench, &adopt);
        command.env("PLANWRIGHT_CRASH_AT", point.to_string());
        let ended = said(command.output().unwrap());
        let refused = copy.run(&bench, &["run", "agreed"]);
        assert_eq!(refused.code, 3, "killed at {point}: {refused:#?}");
        if ended.code == 0 {
            break;
        }
        killed += 1;
        copy.run(&bench, &adopt).ends(0);
        copy.run(&bench, &["run", "agreed"])
            .complains(3, "was revoked by policy adoption");
        let shown = copy.run(&bench, &["show", "killed", "--json"]).ends(0);
        assert_eq!(shown.json()["status"], "paused", "killed at {point}");
        copy.run(&bench, &["verify"]).ends(0);
        assert_eq!(copy.effects(), "");
    }
    assert!(killed >= 2, "it was killed {killed} times");
}

/// Writes another word into the journals and takes all hashes anew, as one who has the files can.
const REWRITE: &str = r#"
import hashlib, sqlite3, sys
path, old, new = sys.argv[1], sys.argv[2].encode(), sys.argv[3].encode()
db = sqlite3.connect(path)
db.execute("DROP TRIGGER IF EXISTS entries_are_never_changed")
changed = 0
for stream, name in db.execute("SELECT id, name FROM streams").fetchall():
    before = bytes(32)
    rows = db.execute("SELECT position, at, epoch, key, body FROM entries"
                      " WHERE position >> 32 = ? ORDER BY position", (stream,)).fetchall()
    for position, at, epoch, key, body in rows:
        changed += body.count(old)
        body = body.replace(old, new)
        digest = hashlib.sha256()
        number = lambda value: value.to_bytes(8, "little", signed=True)
        for part in [before, name.encode(), number(position & 0xffffffff), number(at),
                     number(epoch), (key or "").encode(), body]:
            digest.update(number(len(part)) + part)
        before = digest.digest()
        db.execute("UPDATE entries SET body = ?, hash = ? WHERE position = ?", (body, before, position))
db.commit()
db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
open(path + "-heads", "w").close()
print(changed)
"#;

fn rewrite(bench: &Bench, old: &str, new: &str) -> usize {
    let written = Command::new("python3")
        .args(["-c", REWRITE])
        .arg(bench.path(".plans/planwright.db"))
        .args([old, new])
        .output()
        .expect("python3 is needed");
    assert!(written.status.success(), "{written:?}");
    String::from_utf8(written.stdout)
        .unwrap()
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_rewritten_row_with_hashes_taken_anew_is_noticed() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let untouched = bench.plan("untouched", json!([effect("b", &[])]));
    bench.run(&["run", &untouched, "--yes"]).ends(0);
    // The exported session would show it too.
    std::fs::remove_dir_all(bench.path(".plans/p")).unwrap();
    assert_eq!(rewrite(&bench, "no such words", "other words"), 0);
    bench.run(&["verify"]).ends(0);
    assert!(rewrite(&bench, "Plan p", "Plan q") > 0);
    let said = bench.run(&["verify"]).ends(5);
    assert!(said.out.contains("plan/p: "), "{said:#?}");
    assert!(
        said.out
            .contains("was not written with the key of this store"),
        "{said:#?}"
    );
    assert!(!said.out.contains("plan/untouched"), "{said:#?}");
    // Nothing is done on the strength of it, and the other plan goes on.
    bench.run(&["run", "p", "--yes"]).ends(5);
    bench.run(&["run", "untouched", "--yes"]).ends(0);
}

#[test]
fn a_store_that_was_rolled_back_does_not_fit_exported_heads() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    let names = ["", "-wal", "-heads"].map(|suffix| format!(".plans/planwright.db{suffix}"));
    let before = names
        .clone()
        .map(|name| std::fs::read(bench.path(&name)).unwrap());
    bench.run(&["run", "p", "--yes"]).ends(0);
    let safe = tempfile::tempdir().unwrap();
    let heads = safe.path().join("heads").display().to_string();
    let said = bench
        .run(&["verify", "--export-heads", &heads, "--json"])
        .ends(0)
        .json();
    assert_eq!(said["exportedHeads"], 3);
    bench.run(&["verify", "--against", &heads]).ends(0);
    // What comes later fits too.
    bench.run(&["run", "p", "--yes"]).ends(0);
    bench.run(&["verify", "--against", &heads]).ends(0);
    for (name, bytes) in names.iter().zip(before) {
        std::fs::write(bench.path(name), bytes).unwrap();
    }
    drop(std::fs::remove_file(bench.path(".plans/planwright.db-shm")));
    drop(std::fs::remove_dir_all(bench.path(".plans/p")));
    // All files put back together are whole by themselves.
    bench.run(&["verify"]).ends(0);
    let said = bench.run(&["verify", "--against", &heads]).ends(5);
    assert!(said.out.contains("was rolled back"), "{said:#?}");
    // A file that another key signed, or that was changed, proves nothing.
    let stranger = tempfile::tempdir().unwrap();
    let other = Clone::of(&Bench::new(), stranger.path());
    let key = {
        other
            .run(
                &bench,
                &["import", &bench.path("p.json").display().to_string()],
            )
            .ends(0);
        let text = std::fs::read_to_string(stranger.path().join(".config/planwright/store.key"));
        let key: serde_json::Value = serde_json::from_str(&text.unwrap()).unwrap();
        key["public"].as_str().unwrap().to_owned()
    };
    bench
        .run(&["verify", "--against", &heads, "--key", &key])
        .complains(5, "and not with");
    let mut text = std::fs::read_to_string(&heads).unwrap();
    text = text.replacen("\"payload\":\"ey", "\"payload\":\"fy", 1);
    std::fs::write(&heads, text).unwrap();
    bench
        .run(&["verify", "--against", &heads])
        .complains(5, "was changed");
}

#[test]
fn no_file_of_a_workspace_names_the_key() {
    let bench = Bench::new();
    bench.write("planwright.toml", "[store]\nkey_file = 'evil.key'\n");
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench
        .run(&["import", &plan])
        .complains(2, "`key_file` is unknown");
    std::fs::remove_file(bench.path("planwright.toml")).unwrap();
    let inside = bench.path("evil.key");
    let named = bench
        .command(&["import", &plan])
        .env("PLANWRIGHT_STORE_KEY_FILE", &inside)
        .output();
    said(named.unwrap()).complains(3, "lies in the workspace");
    assert!(!inside.exists());
}

#[test]
fn a_key_that_is_shared_makes_stores_shared() {
    let bench = Bench::new();
    let shared = tempfile::tempdir().unwrap();
    let key = shared.path().join("keys/team.key");
    bench.write_own("planwright.toml", &format!("[store]\nkey_file = {key:?}\n"));
    let plan = bench.plan("p", json!([effect("a", &[])]));
    bench.run(&["import", &plan]).ends(0);
    bench.run(&["approve", "p", "--version", "1"]).ends(0);
    assert!(key.exists() && !bench.home().join(".config/planwright/store.key").exists());
    let colleague = tempfile::tempdir().unwrap();
    let run = |variable: Option<&Path>, agent: bool| {
        let mut command = bench.command(&["run", "p"]);
        command.env("HOME", colleague.path());
        command.envs(variable.map(|path| ("PLANWRIGHT_STORE_KEY_FILE", path)));
        command.envs(agent.then_some(("PLANWRIGHT_AGENT", "bot")));
        said(command.output().unwrap())
    };
    run(None, false).complains(3, "made by another user");
    // Who chooses the key chooses whose approvals count: an agent does not.
    run(Some(&key), true).complains(3, "made by another user");
    run(Some(&key), false).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\n");
}

#[test]
fn commands_that_begin_together_make_one_key() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[])]));
    let plan = bench.path(&plan).display().to_string();
    let folders: Vec<TempDir> = (0..6).map(|_| tempfile::tempdir().unwrap()).collect();
    let started: Vec<_> = folders
        .iter()
        .map(|folder| {
            let mut command = bench.command(&["import", &plan]);
            command
                .current_dir(folder.path())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            command.spawn().unwrap()
        })
        .collect();
    for mut child in started {
        assert!(child.wait().unwrap().success());
    }
    for folder in &folders {
        let mut command = bench.command(&["run", "p", "--yes"]);
        said(command.current_dir(folder.path()).output().unwrap()).ends(0);
    }
}

#[test]
fn a_backup_is_the_users_where_they_restore_it_and_a_strangers_is_not() {
    let bench = workspace();
    let backup = bench.path("backup").display().to_string();
    bench.run(&["store", "backup", &backup]).ends(0);
    let own = tempfile::tempdir().unwrap();
    let into = own.path().display().to_string();
    bench
        .run(&["store", "restore", &backup, "--into", &into])
        .ends(0);
    let mut list = bench.command(&["run", "agreed"]);
    said(list.current_dir(own.path()).output().unwrap()).ends(0);
    // That of a stranger can be read.
    let stranger = tempfile::tempdir().unwrap();
    let theirs = tempfile::tempdir().unwrap();
    let into = theirs.path().display().to_string();
    let mut restore = bench.command(&["store", "restore", &backup, "--into", &into]);
    let restored = said(restore.env("HOME", stranger.path()).output().unwrap()).ends(0);
    assert!(restored.err.contains("can only be read"), "{restored:#?}");
    let mut run = bench.command(&["run", "agreed"]);
    run.current_dir(theirs.path()).env("HOME", stranger.path());
    said(run.output().unwrap()).complains(3, "made by another user");
}
