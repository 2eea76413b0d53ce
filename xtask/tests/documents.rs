//! The documents for developers name files that exist: a map that lies costs more than none.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

use std::path::{Path, PathBuf};

/// The first folder of a short path, and the folder it stands for. Documents may also leave `src`
/// out: `engine/run` is `crates/planwright-engine/src/run`.
const SHORT: &[(&str, &str)] = &[
    ("core", "crates/planwright-core"),
    ("api", "crates/planwright-api"),
    ("engine", "crates/planwright-engine"),
    ("adapters", "crates/planwright-adapters"),
    ("server", "crates/planwright-server"),
    ("testing", "crates/planwright-testing"),
    ("mcp", "crates/planwright-mcp"),
    ("planwright", "crates/planwright"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .unwrap()
        .to_owned()
}

/// The documents that say where things are.
fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["ARCHITECTURE.md", "CONTRIBUTING.md", "AGENTS.md"]
        .map(|name| root().join(name))
        .into();
    for entry in std::fs::read_dir(root().join("docs/design")).unwrap() {
        found.push(entry.unwrap().path());
    }
    found
}

/// The paths in backticks, `{a,b}` written out. A word with a space, a star or an ellipsis is none.
fn paths(text: &str) -> Vec<String> {
    let words = text.split('`').skip(1).step_by(2);
    let is_path = |word: &&str| {
        let known = |folder: &str| {
            SHORT.iter().any(|(short, _)| *short == folder)
                || ["crates", "xtask", "docs", "examples", "bench", "fuzz"].contains(&folder)
        };
        let signs = |c: char| c.is_ascii_alphanumeric() || "/_-.{},".contains(c);
        word.split_once('/')
            .is_some_and(|(folder, _)| known(folder))
            && word.chars().all(signs)
    };
    words.filter(is_path).flat_map(expand).collect()
}

fn expand(path: &str) -> Vec<String> {
    let Some((before, rest)) = path.split_once('{') else {
        return vec![path.to_owned()];
    };
    let (choices, after) = rest.split_once('}').unwrap();
    choices
        .split(',')
        .map(|choice| format!("{before}{choice}{after}"))
        .collect()
}

fn exists(path: &str) -> bool {
    let (folder, rest) = path.split_once('/').unwrap();
    let long = SHORT
        .iter()
        .find(|(short, _)| *short == folder)
        .map(|(_, long)| root().join(long));
    match long {
        Some(long) => long.join(rest).exists() || long.join("src").join(rest).exists(),
        None => root().join(path).exists(),
    }
}

#[test]
fn every_path_in_the_documents_for_developers_exists() {
    let mut seen = 0;
    let mut missing = Vec::new();
    for document in documents() {
        let text = std::fs::read_to_string(&document).unwrap();
        for path in paths(&text) {
            seen += 1;
            if !exists(&path) {
                missing.push(format!("{}: {path}", document.display()));
            }
        }
    }
    assert!(
        seen > 150,
        "only {seen} paths were found: are they written otherwise now?"
    );
    assert!(missing.is_empty(), "not there: {missing:#?}");
}

#[test]
fn a_path_that_is_gone_is_found_out() {
    let text =
        "see `core/no_such_file.rs`, `engine/run/{start,nothing}.rs` and `cargo xtask check`";
    let gone: Vec<String> = paths(text)
        .into_iter()
        .filter(|path| !exists(path))
        .collect();
    assert_eq!(gone, ["core/no_such_file.rs", "engine/run/nothing.rs"]);
}

/// The crates whose examples the check runs.
const WITH_EXAMPLES: [&str; 2] = ["planwright-core", "planwright-engine"];

fn source_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    paths
        .flat_map(|path| match path.is_dir() {
            true => source_files(&path),
            false => vec![path],
        })
        .collect()
}

#[test]
fn examples_are_only_in_crates_whose_examples_are_run() {
    let mut examples = 0;
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let folder = entry.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap().to_owned();
        for file in source_files(&folder.join("src")) {
            let Ok(text) = std::fs::read_to_string(&file) else {
                continue;
            };
            let begins = |line: &str| line == "/// ```" || line == "//! ```";
            let count = text
                .lines()
                .map(str::trim)
                .filter(|line| begins(line))
                .count();
            examples += count;
            assert!(
                count == 0 || WITH_EXAMPLES.contains(&name.as_str()),
                "{} has an example that is not run: add the crate to the doc tests of the check",
                file.display()
            );
        }
    }
    assert!(
        examples > 0,
        "no example was found: they are written in another way"
    );
}
