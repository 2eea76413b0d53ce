//! The direction of the crates, kept by a machine: what each may never depend on, from `cargo
//! metadata`.

#![expect(
    clippy::unwrap_used,
    reason = "a test that cannot go on says so by panicking"
)]

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

/// Per crate: dependencies that must never appear in its own manifest (development dependencies
/// aside).
const NEVER: &[(&str, &[&str])] = &[
    (
        "planwright-core",
        &[
            "tokio",
            "tokio-util",
            "futures",
            "tracing-subscriber",
            "rusqlite",
            "sqlx",
            "tokio-postgres",
            "lapin",
            "redis",
            "genai",
            "rmcp",
            "axum",
            "reqwest",
            "clap",
            "rand",
            "getrandom",
            "notify",
            "tempfile",
            "rustix",
            "planwright-api",
            "planwright-engine",
            "planwright-adapters",
            "planwright-server",
            "planwright",
        ],
    ),
    (
        "planwright-api",
        &[
            "tokio",
            "tokio-util",
            "futures",
            "rusqlite",
            "sqlx",
            "tokio-postgres",
            "lapin",
            "redis",
            "genai",
            "rmcp",
            "axum",
            "reqwest",
            "clap",
            "ratatui",
            "planwright-engine",
            "planwright-adapters",
            "planwright-server",
            "planwright",
        ],
    ),
    (
        "planwright-engine",
        &[
            "rusqlite",
            "sqlx",
            "tokio-postgres",
            "lapin",
            "redis",
            "genai",
            "rmcp",
            "axum",
            "reqwest",
            "clap",
            "ratatui",
            "notify",
            "planwright-api",
            "planwright-adapters",
            "planwright-server",
            "planwright",
        ],
    ),
    (
        "planwright-adapters",
        &[
            "axum",
            "clap",
            "ratatui",
            "planwright-api",
            "planwright-server",
            "planwright",
        ],
    ),
    (
        "planwright-server",
        &[
            "rusqlite",
            "sqlx",
            "tokio-postgres",
            "lapin",
            "redis",
            "genai",
            "rmcp",
            "clap",
            "ratatui",
            "planwright-adapters",
            "planwright",
        ],
    ),
    (
        "planwright",
        &[
            "rusqlite",
            "sqlx",
            "tokio-postgres",
            "lapin",
            "redis",
            "rmcp",
            "genai",
        ],
    ),
    // Every check waits until it is built.
    (
        "xtask",
        &[
            "tokio",
            "rusqlite",
            "reqwest",
            "planwright-core",
            "planwright-api",
            "planwright-engine",
            "planwright-adapters",
            "planwright-server",
            "planwright",
        ],
    ),
];

#[test]
fn no_crate_depends_on_what_it_must_never_use() {
    let direct = direct_dependencies();
    for (name, never) in NEVER {
        let used = direct
            .get(*name)
            .unwrap_or_else(|| panic!("there is no crate {name}"));
        let wrong: Vec<&&str> = never
            .iter()
            .filter(|never| used.contains(**never))
            .collect();
        assert!(wrong.is_empty(), "{name} must never depend on {wrong:?}");
    }
}

#[test]
fn versions_live_in_the_workspace_manifest() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let mut manifests = vec![
        format!("{root}/xtask/Cargo.toml"),
        format!("{root}/bench/Cargo.toml"),
        format!("{root}/fuzz/Cargo.toml"),
    ];
    for entry in std::fs::read_dir(format!("{root}/crates")).unwrap() {
        manifests.push(
            entry
                .unwrap()
                .path()
                .join("Cargo.toml")
                .display()
                .to_string(),
        );
    }
    assert!(manifests.len() >= 8);
    for manifest in manifests {
        let text = std::fs::read_to_string(&manifest).unwrap();
        let own = text
            .lines()
            .filter(|line| line.contains("version = \""))
            .collect::<Vec<_>>();
        assert!(
            own.is_empty(),
            "{manifest} names versions of its own: {own:?}"
        );
    }
}

fn direct_dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
        ])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    packages
        .iter()
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap();
            let normal = dependencies
                .iter()
                .filter(|dependency| dependency["kind"] != "dev")
                .map(name);
            (name(package), normal.collect())
        })
        .collect()
}
