//! `docs/seeds.md`: each row names what shows a feature, which is carried out here as it is written,
//! and the test that checks it in full.

use super::{features, requests, shows};
use crate::documents::{Stage, Typed};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// A row of the table.
#[derive(Debug)]
pub(super) struct Row {
    number: String,
    /// What shows the feature, without the marks of code.
    pub(super) shown: String,
    test: String,
}

impl Row {
    /// Types the command of the row, and returns what was said.
    #[track_caller]
    pub(super) fn play(&self, stage: &mut Stage) -> String {
        assert!(self.shown.contains("planwright "), "{self:?} is no command");
        let typed = Typed::of(&self.shown);
        if let Err(why) = stage.play(&typed) {
            panic!("{}: {why}", self.number);
        }
        stage.said().to_owned()
    }
}

/// Carries out what a row shows, and panics if it is not so.
pub(super) type Show = fn(&Row);

fn rows() -> Vec<Row> {
    let document = crate::documents::read("docs/seeds.md");
    let lines = document.lines().filter(|line| {
        line.strip_prefix("| ")
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    });
    let row = |line: &str| {
        let line = line.trim_matches('|').replace("\\|", "¦");
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [number, _, shown, test] = cells.as_slice() else {
            panic!("{line}");
        };
        Row {
            number: (*number).to_owned(),
            shown: shown.trim_matches('`').to_owned(),
            test: test.trim_matches('`').to_owned(),
        }
    };
    lines.map(row).collect()
}

/// How each row is carried out.
fn all_shows() -> BTreeMap<&'static str, Show> {
    let tables = [shows::SHOWS, features::SHOWS, requests::SHOWS];
    let mut all = BTreeMap::new();
    for (number, show) in tables.into_iter().flatten() {
        assert!(all.insert(*number, *show).is_none(), "{number} twice");
    }
    all
}

/// Carries out the rows of one document.
#[track_caller]
fn show_all(seed: &str) {
    let shows = all_shows();
    let mut wrong = String::new();
    for row in rows() {
        if !row.number.starts_with(seed) {
            continue;
        }
        let Some(show) = shows.get(row.number.as_str()) else {
            writeln!(wrong, "{}: nothing carries it out", row.number).unwrap();
            continue;
        };
        let outcome = std::panic::catch_unwind(|| show(&row));
        if outcome.is_err() {
            writeln!(wrong, "{}: {}", row.number, row.shown).unwrap();
        }
    }
    assert!(wrong.is_empty(), "these rows are not so:\n{wrong}");
}

#[test]
fn execution_plans_are_shown() {
    show_all("0.");
}

#[test]
fn planning_and_execution_are_shown() {
    show_all("1.");
}

#[test]
fn plan_mode_is_shown() {
    show_all("2.");
}

#[test]
fn reflection_is_shown() {
    show_all("3.");
}

#[test]
fn the_plan_tool_is_shown() {
    show_all("4.");
}

/// A file of tests, and its text.
pub(crate) type TestFile = (PathBuf, String);

/// The tests of the workspace.
pub(crate) fn all_tests() -> Vec<TestFile> {
    fn collect(folder: &Path, files: &mut Vec<TestFile>) {
        for entry in folder.read_dir().unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, files);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                files.push((path, text));
            }
        }
    }
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for entry in crates.read_dir().unwrap().flatten() {
        let tests = entry.path().join("tests");
        if tests.is_dir() {
            collect(&tests, &mut files);
        }
    }
    files
}

/// Whether there is a test of this name that the test command runs: marked as one, not ignored, and
/// in a file that belongs to a program of tests.
pub(crate) fn is_run(files: &[TestFile], name: &str) -> bool {
    files.iter().any(|(path, text)| {
        let Some((before, _)) = text.split_once(&format!("fn {name}(")) else {
            return false;
        };
        let marks = before.rsplit("\n\n").next().unwrap_or_default();
        marks.contains("test") && marks.contains("#[") && !marks.contains("ignore") && belongs(path)
    })
}

/// Whether a file of tests is named by the file above it, up to the program.
fn belongs(path: &Path) -> bool {
    let folder = path.parent().unwrap();
    let name = path.file_stem().unwrap().to_str().unwrap();
    if folder.file_name().is_some_and(|folder| folder == "tests") || name == "main" {
        return true;
    }
    let (above, own) = match name {
        "mod" => (
            folder.parent().unwrap(),
            folder.file_name().unwrap().to_str().unwrap(),
        ),
        _ => (folder, name),
    };
    let mut holders = vec![
        above.join("main.rs"),
        above.join("mod.rs"),
        above.with_extension("rs"),
    ];
    holders.retain(|holder| holder.is_file());
    holders.iter().any(|holder| {
        let text = std::fs::read_to_string(holder).unwrap();
        let named = text.lines().any(|line| {
            line.trim_end_matches(';').trim_start_matches("pub(crate) ") == format!("mod {own}")
        });
        named && belongs(holder)
    })
}

#[test]
fn every_row_is_carried_out_and_names_a_test_that_is_run() {
    let rows = rows();
    assert_eq!(rows.len(), 84);
    let tests = all_tests();
    let shows = all_shows();
    let known: Vec<&str> = rows.iter().map(|row| row.number.as_str()).collect();
    for row in &rows {
        assert!(shows.contains_key(row.number.as_str()), "{row:?}");
        assert!(is_run(&tests, &row.test), "{row:?}: no such test is run");
    }
    assert!(shows.keys().all(|number| known.contains(number)));
    assert_eq!(shows.len(), 84);
    assert!(!is_run(&tests, "all_tests"), "a function is no test");
    assert!(!is_run(&tests, "no_such_test"));
}
