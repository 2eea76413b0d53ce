//! Files of other accounts. Giving a file away needs the rights of root.

use super::clone::Clone;
use planwright_testing::workbench::said;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};

/// An account that is not the one of the tests.
const OTHER: u32 = 54_321;

const RULES: &str = "[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n";

/// Gives files away; says whether that is possible here.
fn give_away(clone: &Clone, names: &[&str]) -> bool {
    names
        .iter()
        .all(|name| chown(clone.bench.path(name), Some(OTHER), None).is_ok())
}

#[test]
fn plans_of_another_account_in_a_folder_above_are_not_used() {
    let clone = Clone::new();
    clone.bench.configure(RULES);
    let plan = clone.writing_plan();
    clone.bench.write("mine/keep", "");
    std::fs::rename(clone.bench.path(&plan), clone.bench.path("mine/tidy.json")).unwrap();
    clone.bench.write(".plans/keep", "");
    if !give_away(&clone, &[".plans", "planwright.toml"]) {
        return;
    }
    let below = |args: &[&str]| {
        let mut command = clone.bench.command(args);
        said(
            command
                .current_dir(clone.bench.path("mine"))
                .output()
                .unwrap(),
        )
    };
    let doctor = below(&["doctor"]);
    assert!(
        doctor
            .out
            .contains("the plans in a parent folder are not used"),
        "{doctor:#?}"
    );
    let run = below(&["run", "tidy.json"]).complains(3, "not approved");
    for words in [
        "the plans in a parent folder are not used",
        "belongs to uid 54321, not to you",
    ] {
        assert!(run.err.contains(words), "{run:#?}");
    }
    assert!(clone.bench.path("mine/.plans/planwright.db").exists());
    assert!(!clone.bench.path(".plans/planwright.db").exists());
    clone.is_unharmed();
}

#[test]
fn files_of_another_account_are_not_trusted_before_that_account_is_accepted() {
    let clone = Clone::new();
    clone.bench.configure(RULES);
    let plan = clone.writing_plan();
    if !give_away(&clone, &["planwright.toml"]) {
        return;
    }
    clone.is_looked_at_foreign(&plan);
    clone
        .run(&["trust", "--yes"])
        .complains(3, "belongs to uid 54321");
    clone.run(&["trust", "--owner", "54321"]).ends(0);
    clone.run(&["run", &plan]).ends(0);
    assert!(clone.bench.path("pwned").exists());
}

#[test]
fn a_store_of_another_account_is_not_opened() {
    let clone = Clone::new();
    clone.run(&["import", "greet.json"]).ends(0);
    if !give_away(&clone, &[".plans"]) {
        return;
    }
    for args in [&["run", "greet"][..], &["list"], &["serve"]] {
        clone
            .run(args)
            .complains(3, "plans and approvals in it are not yours");
    }
    clone.run(&["doctor"]);
    clone.run(&["trust", "--owner", "54321"]).ends(0);
    clone.run(&["run", "greet"]).ends(0);
}

#[test]
fn files_that_everybody_can_write_are_not_trusted() {
    let clone = Clone::new();
    clone.bench.configure(RULES);
    let plan = clone.writing_plan();
    let file = clone.bench.path("planwright.toml");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o666)).unwrap();
    let said = clone.run(&["run", &plan]).complains(3, "not approved");
    assert!(said.err.contains("every account can write to"), "{said:#?}");
    clone
        .run(&["trust", "--yes"])
        .complains(3, "every account can write");
    clone.is_unharmed();
    // Some disks have no modes: then the person says whose files these are.
    let owner = std::fs::metadata(&file).unwrap().uid().to_string();
    clone.run(&["trust", "--owner", &owner]).ends(0);
    clone.run(&["run", &plan]).ends(0);
}

impl Clone {
    #[track_caller]
    fn is_looked_at_foreign(&self, plan: &str) {
        for args in [
            &["run", plan][..],
            &["validate", plan],
            &["run", plan, "--trust-project-servers"],
        ] {
            let said = self.run(args);
            assert!(
                said.err.contains("belongs to uid 54321, not to you"),
                "{said:#?}"
            );
        }
        self.is_unharmed();
    }
}
