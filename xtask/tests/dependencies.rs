//! The rules of `deny.toml`, kept by a machine: which crates may come in, under which licenses, from
//! where, and which of our crates may name them.
//!
//! cargo-deny reads the same file. It is not run here: its packaged builds are too old for this
//! workspace, and compiling it would take longer than all tests.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// The platform whose dependencies are read: others need downloads that nothing here uses.
const PLATFORM: &str = "x86_64-unknown-linux-gnu";

#[test]
fn crates_of_the_outside_are_named_by_the_crates_that_wrap_them_alone() {
    let rules = rules();
    let users = users_of_crates(&metadata());
    let none = BTreeSet::new();
    for ban in rules["bans"]["deny"].as_array().unwrap() {
        let banned = ban["crate"].as_str().unwrap();
        let users = users.get(banned).unwrap_or(&none);
        let Some(wrappers) = ban.get("wrappers").and_then(toml::Value::as_array) else {
            assert!(users.is_empty(), "{banned} came in through {users:?}");
            continue;
        };
        let ours = users.iter().filter(|user| is_ours(user));
        let wrong: Vec<&String> = ours
            .filter(|user| !wrappers.iter().any(|name| name.as_str() == Some(user)))
            .collect();
        assert!(wrong.is_empty(), "{banned} must not be used by {wrong:?}");
    }
}

#[test]
fn every_crate_has_a_license_that_is_allowed() {
    let rules = rules();
    let allowed: BTreeSet<&str> = rules["licenses"]["allow"]
        .as_array()
        .unwrap()
        .iter()
        .map(|license| license.as_str().unwrap())
        .collect();
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    assert!(packages.len() > 100, "only {} crates", packages.len());
    for package in packages {
        let license = package["license"].as_str().unwrap_or_default();
        assert!(
            allows(&allowed, license),
            "{} has the license {license:?}",
            package["name"]
        );
    }
}

#[test]
fn every_crate_comes_from_the_workspace_or_the_registry() {
    for package in metadata()["packages"].as_array().unwrap() {
        let source = package["source"].as_str();
        assert!(
            source.is_none_or(|source| source.starts_with("registry+")),
            "{} comes from {source:?}",
            package["name"]
        );
    }
}

#[test]
fn license_expressions_are_read_as_spdx_says() {
    let allowed = BTreeSet::from(["MIT", "Zlib", "Apache-2.0 WITH LLVM-exception"]);
    for yes in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "(GPL-3.0 OR MIT) AND Zlib",
        "Apache-2.0 WITH LLVM-exception",
    ] {
        assert!(allows(&allowed, yes), "{yes}");
    }
    for no in [
        "",
        "GPL-3.0",
        "MIT AND GPL-3.0",
        "Apache-2.0",
        "MIT AND (GPL-3.0 OR BSL-1.0)",
    ] {
        assert!(!allows(&allowed, no), "{no}");
    }
}

fn rules() -> toml::Table {
    let text = std::fs::read_to_string(format!("{ROOT}/deny.toml")).unwrap();
    text.parse().unwrap()
}

fn is_ours(name: &str) -> bool {
    name.starts_with("planwright") || name == "xtask"
}

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--all-features"])
        .args(["--locked", "--filter-platform", PLATFORM])
        .current_dir(ROOT)
        .output()
        .expect("cargo runs");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Maps the name of each crate to those that depend on it, development dependencies aside.
fn users_of_crates(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let name_of: BTreeMap<&str, &str> = metadata["packages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|package| (text(&package["id"]), text(&package["name"])))
        .collect();
    let mut users = BTreeMap::<String, BTreeSet<String>>::new();
    for node in metadata["resolve"]["nodes"].as_array().unwrap() {
        for dependency in node["deps"].as_array().unwrap() {
            let kinds = dependency["dep_kinds"].as_array().unwrap();
            if kinds.iter().any(|kind| kind["kind"] != "dev") {
                let used = name_of[text(&dependency["pkg"])];
                let user = name_of[text(&node["id"])];
                users
                    .entry(used.to_owned())
                    .or_default()
                    .insert(user.to_owned());
            }
        }
    }
    users
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Judges an SPDX expression: `AND` binds closer than `OR`, and old manifests write `/` for `OR`.
fn allows(allowed: &BTreeSet<&str>, expression: &str) -> bool {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    let verdict = any_allowed(allowed, &mut rest);
    verdict && rest.is_empty()
}

fn any_allowed(allowed: &BTreeSet<&str>, words: &mut &[&str]) -> bool {
    let mut verdict = all_allowed(allowed, words);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        verdict |= all_allowed(allowed, words);
    }
    verdict
}

fn all_allowed(allowed: &BTreeSet<&str>, words: &mut &[&str]) -> bool {
    let mut verdict = one_allowed(allowed, words);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        verdict &= one_allowed(allowed, words);
    }
    verdict
}

fn one_allowed(allowed: &BTreeSet<&str>, words: &mut &[&str]) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let verdict = any_allowed(allowed, words);
            let [")", rest @ ..] = *words else {
                return false;
            };
            *words = rest;
            verdict
        }
        [license, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(format!("{license} WITH {exception}").as_str())
        }
        [license, rest @ ..] => {
            *words = rest;
            allowed.contains(license)
        }
        [] => false,
    }
}
