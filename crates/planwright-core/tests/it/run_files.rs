//! Reading the scripts and journals that are checked in beside the tests.
#![expect(
    clippy::disallowed_methods,
    reason = "tests read their scripts from files and their size from the environment"
)]

use std::path::PathBuf;

/// A path under `tests/`.
pub(crate) fn path(relative: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(relative)
}

pub(crate) fn read(relative: &str) -> String {
    let path = path(relative);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn write(relative: &str, text: &str) {
    std::fs::write(path(relative), text).unwrap();
}

/// The names of the files in a folder that end in `.extension`, without it, sorted.
pub(crate) fn names(folder: &str, extension: &str) -> Vec<String> {
    let listed = std::fs::read_dir(path(folder))
        .unwrap()
        .map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = listed
        .filter_map(|name| {
            let name = name.into_string().ok()?;
            name.strip_suffix(extension)?
                .strip_suffix('.')
                .map(str::to_owned)
        })
        .collect();
    names.sort();
    names
}

/// A setting from the environment.
pub(crate) fn setting(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Compares a checked-in text with what it should be, or rewrites it when `UPDATE_DOCS` is set.
pub(crate) fn check(relative: &str, expected: &str) {
    if setting("UPDATE_DOCS").is_some() {
        write(relative, expected);
    }
    let found = read(relative);
    assert!(
        found == expected,
        "tests/{relative} is not what the code says; if the change is meant, run again with UPDATE_DOCS=1\n{}",
        first_difference(&found, expected)
    );
}

fn first_difference(found: &str, expected: &str) -> String {
    let lines = found.lines().zip(expected.lines()).enumerate();
    lines
        .into_iter()
        .find(|(_, (found, expected))| found != expected)
        .map_or_else(
            || "the lengths differ".to_owned(),
            |(at, (found, expected))| {
                format!("line {}:\n  file: {found}\n  code: {expected}", at + 1)
            },
        )
}
