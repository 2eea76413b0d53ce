//! Damage is told, by every command that meets it, and not lost by copying.

use planwright_testing::steps::{call, echo, effect};
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::process::Command;

/// One frame of SQLite's log: its header and a page.
const FRAME: u64 = 24 + 4096;
/// What stands before the frames.
const HEAD: usize = 32;

/// A workspace in which a call was made, and then the journal lost its last entries.
fn with_lost_tail() -> Bench {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([effect("a", &[]), effect("b", &["a"])]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(bench.read("effects.txt"), "a\nb\n");
    // The tail of the run, and not its beginning.
    let log = log_length(&bench);
    cut(&bench, log - 4 * FRAME);
    bench
}

/// The length of the log without what an earlier one, which is over, left behind it.
fn log_length(bench: &Bench) -> u64 {
    let log = std::fs::read(bench.path(".plans/planwright.db-wal")).unwrap();
    let (head, frames) = log.split_at(HEAD);
    let valid = frames
        .chunks(usize::try_from(FRAME).unwrap())
        .take_while(|frame| frame[8..16] == head[16..24]);
    HEAD as u64 + valid.count() as u64 * FRAME
}

/// Cuts SQLite's log, as a crash of the machine may.
fn cut(bench: &Bench, length: u64) {
    let log = bench.path(".plans/planwright.db-wal");
    let file = std::fs::OpenOptions::new().write(true).open(log).unwrap();
    file.set_len(length).unwrap();
}

/// What `verify` finds in journals. What it finds in exported files stays with those files.
fn findings(verify: &mut Command) -> Vec<Value> {
    let said = planwright_testing::workbench::said(verify.output().unwrap());
    let found = said.ends(5).json()["findings"].clone();
    let of_streams = |finding: &&Value| {
        let place = finding["place"].as_str().unwrap();
        place.starts_with("run/") || place.starts_with("plan/")
    };
    found
        .as_array()
        .unwrap()
        .iter()
        .filter(of_streams)
        .cloned()
        .collect()
}

fn elsewhere(bench: &Bench, args: &[&str]) -> Command {
    let mut command = bench.command(args);
    command.current_dir(bench.path("elsewhere"));
    command
}

#[test]
fn a_backup_of_a_damaged_store_is_refused_and_does_not_forget_the_loss() {
    let bench = with_lost_tail();
    let before = findings(&mut bench.command(&["verify", "--json"]));
    assert!(!before.is_empty());
    let refused = bench.run(&["store", "backup", "copy"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("run/"), "{refused:#?}");
    assert!(refused.err.contains("--with-damage"), "{refused:#?}");
    assert!(!bench.path("copy").exists());

    let made = bench.run(&["store", "backup", "copy", "--with-damage", "--json"]);
    let damage = made.ends(0).json()["damage"].clone();
    assert!(damage.to_string().contains("run/"), "{damage}");
    std::fs::create_dir(bench.path("elsewhere")).unwrap();
    let restored = bench.run(&["store", "restore", "copy", "--into", "elsewhere"]);
    assert!(restored.err.contains("damaged: run/"), "{restored:#?}");
    let after = findings(&mut elsewhere(&bench, &["verify", "--json"]));
    assert_eq!(before, after);
    // The call that is not recorded any more is not made again.
    let resumed = elsewhere(&bench, &["resume", "p"]).output().unwrap();
    assert_eq!(resumed.status.code(), Some(5), "{resumed:?}");
    assert!(!bench.path("elsewhere/effects.txt").exists());
}

#[test]
fn a_missing_large_value_is_damage_to_a_backup_too() {
    let bench = Bench::new();
    let large = call("a", "demo.random_bytes", json!({ "n": 200_000 }), &[]);
    let plan = bench.plan("p", json!([large]));
    bench.run(&["run", &plan]).ends(0);
    std::fs::remove_dir_all(bench.path(".plans/planwright.db-artifacts")).unwrap();
    let before = findings(&mut bench.command(&["verify", "--json"]));
    let refused = bench.run(&["store", "backup", "copy"]);
    assert_eq!(refused.code, 5, "{refused:#?}");
    assert!(refused.err.contains("is missing"), "{refused:#?}");
    bench
        .run(&["store", "backup", "copy", "--with-damage"])
        .ends(0);
    std::fs::create_dir(bench.path("elsewhere")).unwrap();
    let restored = bench.run(&["store", "restore", "copy", "--into", "elsewhere"]);
    assert!(restored.err.contains("is missing"), "{restored:#?}");
    let after = findings(&mut elsewhere(&bench, &["verify", "--json"]));
    assert_eq!(before, after);
}

#[test]
fn a_backup_of_a_whole_store_says_nothing_of_damage() {
    let bench = Bench::new();
    let plan = bench.plan("p", json!([echo("a", 1, &[])]));
    bench.run(&["run", &plan]).ends(0);
    let made = bench.run(&["store", "backup", "copy", "--with-damage", "--json"]);
    let made = made.ends(0);
    assert_eq!(made.json()["damage"], json!([]));
    assert!(!bench.read("copy/manifest.json").contains("damage"));
}

#[test]
fn a_database_that_is_gone_is_no_empty_workspace() {
    for also in [&[][..], &["planwright.db-heads"], &["planwright.db-wal"]] {
        let bench = Bench::new();
        let plan = bench.plan("p", json!([echo("a", 1, &[])]));
        bench.run(&["run", &plan]).ends(0);
        std::fs::remove_file(bench.path(".plans/planwright.db")).unwrap();
        for name in also {
            std::fs::remove_file(bench.path(".plans").join(name)).unwrap();
        }
        for command in [
            &["verify"][..],
            &["list"],
            &["run", &plan],
            &["show", "p"],
            &["store", "check"],
        ] {
            let said = bench.run(command);
            assert_eq!(said.code, 5, "{command:?} {said:#?}");
            assert!(said.err.contains("the database is gone"), "{said:#?}");
            let named = said.err.contains("plan/p");
            assert_eq!(named, !also.contains(&"planwright.db-heads"), "{said:#?}");
        }
        assert!(!bench.path(".plans/planwright.db").exists());
    }
}

#[test]
fn plans_that_were_lost_with_the_log_are_named_by_list() {
    let bench = Bench::new();
    let kept = bench.plan("kept", json!([echo("a", 1, &[])]));
    bench.run(&["run", &kept]).ends(0);
    let until_here = log_length(&bench);
    let lost = bench.plan("lost", json!([echo("a", 1, &[])]));
    bench.run(&["run", &lost]).ends(0);
    cut(&bench, until_here);
    let said = bench.run(&["list"]);
    assert_eq!(said.code, 5, "{said:#?}");
    assert!(
        said.out.contains("kept") && said.err.contains("plan/lost"),
        "{said:#?}"
    );
    let listed = bench.run(&["list", "--json"]).ends(5).json();
    let of = |id: &str| {
        let lines = listed.as_array().unwrap();
        lines.iter().find(|line| line["id"] == id).unwrap().clone()
    };
    assert_eq!(of("kept").get("damage"), None);
    assert_eq!(of("lost")["status"], "unreadable");
    assert!(
        of("lost")["damage"]
            .as_str()
            .unwrap()
            .contains("acknowledged")
    );
    bench.run(&["verify"]).ends(5);
}
