//! The conformance suites of the protocol against our servers, with and without other servers behind
//! them, and against our client.
//!
//! `conformance.toml` lists the scenarios that do not pass, each with the reason. A listed one that
//! passes is as much a failure as another that does not.

use crate::gateway::{Served, token};
use crate::token_proxy::TokenProxy;
use planwright_testing::peers::{Project, installed};
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io::BufRead as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Which suite is run, and how.
#[derive(Clone, Copy)]
struct Era {
    package: &'static str,
    requirements: &'static [&'static str],
    /// What the server with the suite's own tools speaks.
    fixtures: &'static str,
    /// Fewer scenarios would mean that the suite was not run.
    at_least: usize,
}

const EARLIER: Era = Era {
    package: "conformance-2025",
    requirements: &["--spec-version", "2025-11-25"],
    fixtures: "earlier",
    at_least: 30,
};

const MODERN: Era = Era {
    package: "conformance-2026",
    requirements: &["--requirements", "2026-07-28"],
    fixtures: "modern",
    at_least: 45,
};

/// The server with the tools, resources and prompts that the suite wants, ended with the test.
pub(crate) struct Fixtures {
    child: Child,
    url: String,
}

impl Fixtures {
    /// The server in one of its eras, `earlier` or `modern`.
    pub(crate) fn start(era: &str) -> Self {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/conformance_server.py");
        let mut child = Command::new(installed("py/bin/python"))
            .arg(script)
            .arg(era)
            .env_clear()
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut port = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufReader::new(stdout)
            .read_line(&mut port)
            .unwrap();
        let url = format!("http://127.0.0.1:{}/mcp", port.trim());
        Self { child, url }
    }
}

impl Drop for Fixtures {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// The suite, with the interpreter that it needs.
fn suite(era: Era, side: &str) -> Command {
    let mut suite = Command::new(installed(NODE));
    suite
        .arg(installed(&format!(
            "node-conformance/node_modules/{}/dist/index.js",
            era.package
        )))
        .arg(side)
        .args(era.requirements);
    suite
}

pub(crate) const NODE: &str = "node-conformance/node_modules/.bin/node";

/// The scenarios of a suite, and whether each passed.
fn results(era: Era, suite: &mut Command) -> BTreeMap<String, bool> {
    let output = suite.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut results = BTreeMap::new();
    for line in said.lines() {
        let Some((mark, rest)) = line.split_once(' ') else {
            continue;
        };
        let (Some((name, _)), "✓" | "✗") = (rest.split_once(": "), mark) else {
            continue;
        };
        results.insert(name.to_owned(), mark == "✓");
    }
    assert!(
        results.len() >= era.at_least,
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    results
}

fn test_server(era: Era, url: &str) -> BTreeMap<String, bool> {
    results(era, suite(era, "server").args(["--url", url]))
}

/// What is listed under a name, by scenario.
fn listed(name: &str) -> BTreeMap<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/conformance.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let tables: BTreeMap<String, BTreeMap<String, Vec<String>>> = toml::from_str(&text).unwrap();
    let reasons = tables
        .get(name)
        .unwrap_or_else(|| panic!("nothing is listed for {name}"));
    let by_scenario = reasons.iter().flat_map(|(reason, scenarios)| {
        scenarios
            .iter()
            .map(move |scenario| (scenario.clone(), reason.clone()))
    });
    by_scenario.collect()
}

#[track_caller]
fn compare(name: &str, results: &BTreeMap<String, bool>) {
    let listed = listed(name);
    let failed: BTreeSet<&String> = results
        .iter()
        .filter(|(_, passed)| !**passed)
        .map(|(scenario, _)| scenario)
        .collect();
    let expected: BTreeSet<&String> = listed.keys().collect();
    let broken: Vec<_> = failed.difference(&expected).collect();
    let mended: Vec<_> = expected.difference(&failed).collect();
    assert!(
        broken.is_empty() && mended.is_empty(),
        "{name}: not in the list and failed: {broken:?}; in the list and passed or gone: {mended:?}"
    );
}

/// A workspace whose only server is the one with the fixtures, under their own names.
pub(crate) fn workspace(fixtures: &Fixtures) -> Project {
    let project = Project::with(&[]);
    project.name(&json!({ "fixtures": { "type": "http", "url": fixtures.url } }));
    project.configure(
        "[gateway]\nnames = 'plain'\npass = ['sampling', 'roots', 'templates']\n\
         [[policy.rules]]\ntool = 'fixtures.*'\nthen = 'allow'\n",
    );
    project
}

/// A server behind the gateway passes what it passes without it, and fails what it fails.
fn test_gateway(era: Era, year: &str) {
    let fixtures = Fixtures::start(era.fixtures);
    let project = workspace(&fixtures);
    let owner = token(&project, "person", "admin", "ada");
    let served = Served::start(&project);
    let proxy = TokenProxy::start(&served.url, &owner);
    let (direct, behind) = std::thread::scope(|scope| {
        let direct = scope.spawn(|| test_server(era, &fixtures.url));
        let behind = test_server(era, &proxy.url("/mcp/gateway"));
        (direct.join().unwrap(), behind)
    });
    compare(&format!("without the gateway, {year}"), &direct);
    compare(&format!("behind the gateway, {year}"), &behind);
    let same: BTreeSet<&String> = direct.keys().collect();
    assert_eq!(same, behind.keys().collect());
}

#[test]
fn a_server_of_the_earlier_era_passes_behind_the_gateway_what_it_passes_without_it() {
    test_gateway(EARLIER, "2025-11-25");
}

#[test]
fn a_modern_server_passes_behind_the_gateway_what_it_passes_without_it() {
    test_gateway(MODERN, "2026-07-28");
}

#[test]
fn plans_are_served_as_both_eras_of_the_protocol_say() {
    let project = Project::with(&[]);
    let owner = token(&project, "person", "admin", "ada");
    let served = Served::start(&project);
    let proxy = TokenProxy::start(&served.url, &owner);
    for (era, year) in [(EARLIER, "2025-11-25"), (MODERN, "2026-07-28")] {
        let results = test_server(era, &proxy.url("/mcp"));
        compare(&format!("plans, {year}"), &results);
    }
}

/// Wants a client to come back after half a second, and soon after that. Where all scenarios share
/// two processors it is tried by itself.
const TIMED: &str = "sse-retry";

/// What the suite has a client do is done by the command line, in a workspace of its own each time.
#[test]
fn our_client_does_what_both_eras_of_the_protocol_say() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/conformance_client.py");
    let python = installed("py/bin/python");
    let client = format!("{} {}", python.display(), script.display());
    let project = Project::with(&[]);
    let command = project.command(&[]);
    let program = command.get_program();
    // One after the other: each starts all its scenarios at once, and they have deadlines.
    for (era, year) in [(EARLIER, "2025-11-25"), (MODERN, "2026-07-28")] {
        let suite = || {
            let mut suite = suite(era, "client");
            suite
                .args(["--command", &client, "--timeout", "180000"])
                .env("PLANWRIGHT", program);
            suite
        };
        let mut all = suite();
        if era.package == EARLIER.package {
            all.args(["--suite", "all"]);
        }
        let era = Era {
            at_least: 15,
            ..era
        };
        let mut results = results(era, &mut all);
        if results.get(TIMED) == Some(&false) {
            let alone = || suite().args(["--scenario", TIMED]).output().unwrap();
            let is_in_time = (0..5).any(|_| alone().status.success());
            results.insert(TIMED.to_owned(), is_in_time);
        }
        compare(&format!("client, {year}"), &results);
    }
}
