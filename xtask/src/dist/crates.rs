//! The crates that are linked into the program: for the list of its parts, and for their licenses.
//!
//! `cargo tree` says which they are: it chooses features for the program alone, without the tests
//! and tools of the workspace. `cargo metadata` and the lock file say what they are. Macros and build
//! scripts run while the program is built, and are no part of it.

use crate::dist::description::NAME;
use crate::dist::program::root;
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A crate, named as `cargo tree` names it: `serde v1.0.228`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Crate {
    pub(super) key: String,
    pub(super) name: String,
    pub(super) version: String,
    pub(super) license: String,
    /// The hash of the archive in the registry; our own crates have none.
    pub(super) checksum: Option<String>,
    /// Where its sources are.
    pub(super) folder: PathBuf,
    /// The keys of the crates it uses, as far as they are linked.
    pub(super) uses: BTreeSet<String>,
}

impl Crate {
    pub(super) fn is_ours(&self) -> bool {
        self.checksum.is_none()
    }
}

/// Reads the crates of the program for a platform, in the order of their names.
pub(super) fn read_linked(triple: &str) -> Result<Vec<Crate>> {
    let tree = ask_cargo(&[
        "tree",
        "--locked",
        "--package",
        NAME,
        "--edges",
        "normal,no-proc-macro",
        "--target",
        triple,
        "--prefix",
        "none",
        "--format",
        "{p}",
    ])?;
    let linked = read_tree(&tree);
    let metadata = ask_cargo(&[
        "metadata",
        "--locked",
        "--format-version",
        "1",
        "--filter-platform",
        triple,
    ])?;
    let metadata = serde_json::from_str(&metadata).context("cargo metadata is no JSON")?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock")).context("no Cargo.lock")?;
    let crates = describe(&metadata, &linked, &read_checksums(&lock));
    ensure!(
        crates.len() == linked.len(),
        "cargo metadata knows {} of the {} crates of the program",
        crates.len(),
        linked.len()
    );
    Ok(crates)
}

fn ask_cargo(args: &[&str]) -> Result<String> {
    let mut cargo = Command::new(env!("CARGO"));
    let output = cargo.args(args).current_dir(root()).output();
    let output = output.context("cannot run cargo")?;
    ensure!(
        output.status.success(),
        "cargo {} failed: {}",
        args.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).context("cargo says no text")
}

/// Reads lines such as `serde v1.0.228` and `planwright v0.1.0 (/folder)`. What was listed above is
/// marked with a star.
fn read_tree(tree: &str) -> BTreeSet<String> {
    let key = |line: &str| {
        let mut words = line.split_whitespace();
        Some(format!("{} {}", words.next()?, words.next()?))
    };
    tree.lines().filter_map(key).collect()
}

/// Reads the hashes of the crates that come from a registry.
fn read_checksums(lock: &str) -> BTreeMap<String, String> {
    let value = |block: &str, name: &str| {
        let mut lines = block.lines();
        let line = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(" = \""));
        line.map(|value| value.trim_end_matches('"').to_owned())
    };
    let package = |block: &str| {
        let key = format!("{} v{}", value(block, "name")?, value(block, "version")?);
        Some((key, value(block, "checksum")?))
    };
    lock.split("[[package]]").filter_map(package).collect()
}

fn describe(
    metadata: &Value,
    linked: &BTreeSet<String>,
    checksums: &BTreeMap<String, String>,
) -> Vec<Crate> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let key = |package: &Value| {
        let [name, version] = ["name", "version"].map(|field| text(&package[field]));
        format!("{name} v{version}")
    };
    let packages = list(&metadata["packages"]);
    let keys: BTreeMap<String, String> = packages
        .iter()
        .map(|package| (text(&package["id"]), key(package)))
        .collect();
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for node in list(&metadata["resolve"]["nodes"]) {
        let is_normal = |used: &Value| {
            let kinds = list(&used["dep_kinds"]);
            kinds.iter().any(|kind| kind["kind"].is_null())
        };
        let used = list(&node["deps"]);
        let used = used.iter().filter(|used| is_normal(used));
        let used = used.filter_map(|used| keys.get(&text(&used["pkg"])));
        let used = used.filter(|key| linked.contains(*key)).cloned();
        uses.insert(text(&node["id"]), used.collect());
    }
    let mut crates: Vec<Crate> = packages
        .iter()
        .filter(|package| linked.contains(&key(package)))
        .map(|package| Crate {
            key: key(package),
            name: text(&package["name"]),
            version: text(&package["version"]),
            // Old manifests write a stroke for OR.
            license: text(&package["license"]).replace('/', " OR "),
            checksum: checksums.get(&key(package)).cloned(),
            folder: Path::new(&text(&package["manifest_path"]))
                .parent()
                .map_or_else(PathBuf::new, Path::to_owned),
            uses: uses.remove(&text(&package["id"])).unwrap_or_default(),
        })
        .collect();
    crates.sort_by(|one, other| one.key.cmp(&other.key));
    crates
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The program and one crate that it uses.
    pub(in crate::dist) fn example() -> Vec<Crate> {
        let dependency = Crate {
            key: "leaf v1.2.3".to_owned(),
            name: "leaf".to_owned(),
            version: "1.2.3".to_owned(),
            license: "MIT OR Apache-2.0".to_owned(),
            checksum: Some("ab".repeat(32)),
            folder: root().join("docs"),
            uses: BTreeSet::new(),
        };
        let program = Crate {
            key: format!("{NAME} v0.1.0"),
            name: NAME.to_owned(),
            checksum: None,
            uses: BTreeSet::from([dependency.key.clone()]),
            ..dependency.clone()
        };
        vec![dependency, program]
    }

    #[test]
    fn the_program_has_its_crates_and_none_of_the_tests() {
        let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
        let crates = read_linked(&triple).unwrap();
        let find = |name: &str| crates.iter().find(|found| found.name == name);
        for linked in ["planwright", "planwright-core", "serde_json", "rusqlite"] {
            assert!(find(linked).is_some(), "{linked} is missing");
        }
        for not_linked in ["xtask", "proptest", "insta", "serde_derive", "cc"] {
            assert_eq!(find(not_linked), None);
        }
        let program = find("planwright").unwrap();
        assert!(program.is_ours());
        let names: Vec<&str> = program.uses.iter().map(String::as_str).collect();
        assert!(names.iter().any(|name| name.starts_with("clap v")));
        let json = find("serde_json").unwrap();
        assert_eq!(json.checksum.as_ref().unwrap().len(), 64);
        assert_eq!(json.license, "MIT OR Apache-2.0");
        assert!(json.folder.join("Cargo.toml").is_file());
    }
}
