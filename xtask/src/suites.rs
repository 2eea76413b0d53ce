//! All test programs, started directly and several at a time, so that no core waits while a suite
//! waits for a timer, a server or the disk.
//!
//! cargo builds them and is not asked again: it holds a lock on its folder while it runs, and lints
//! or documentation could not be made meanwhile.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The suites that take longest, in this order. They start first: one that started last would run
/// alone at the end.
const LONGEST_FIRST: &[&str] = &[
    "planwright/kill",
    "planwright/service",
    "planwright/endurance",
    "planwright/it",
    "planwright-engine/it",
    "planwright/real",
    "planwright-core/it",
    "planwright-adapters/it",
    "planwright/model",
    "planwright-adapters/mcp",
    "planwright-server/it",
    "planwright/events",
];

/// One test program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Suite {
    /// Its package and its target, as in `planwright/kill`.
    name: String,
    package: String,
    program: PathBuf,
    /// The folder of its package, where cargo would start it.
    folder: PathBuf,
    args: Vec<String>,
    /// A variable that it needs besides those of cargo.
    variable: Option<(&'static str, String)>,
}

/// Reads what `cargo test --no-run --message-format=json` says about the programs it built.
pub(crate) fn read_suites(messages: &str) -> Result<Vec<Suite>> {
    let mut suites = Vec::new();
    for line in messages.lines().filter(|line| line.starts_with('{')) {
        let message: Value = serde_json::from_str(line).context("cargo says no JSON")?;
        suites.extend(Suite::read(&message));
    }
    ensure!(!suites.is_empty(), "cargo built no test program");
    suites.sort_by_key(|suite| {
        let place = LONGEST_FIRST.iter().position(|name| *name == suite.name);
        (place.unwrap_or(LONGEST_FIRST.len()), suite.name.clone())
    });
    Ok(suites)
}

/// Reads where cargo put a program that is no test.
pub(crate) fn read_program(messages: &str, name: &str) -> Result<PathBuf> {
    let found = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["target"]["name"] == name && message["profile"]["test"] == false)
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    found.with_context(|| format!("cargo built no program {name}"))
}

impl Suite {
    /// Makes a suite of a program that cargo would not start by itself.
    pub(crate) fn of_program(name: String, program: &Path, folder: &Path) -> Self {
        Self {
            package: name.clone(),
            name,
            program: program.to_owned(),
            folder: folder.to_owned(),
            args: Vec::new(),
            variable: None,
        }
    }

    pub(crate) fn with_args(self, args: Vec<String>) -> Self {
        Self { args, ..self }
    }

    pub(crate) fn with_variable(self, name: &'static str, value: &str) -> Self {
        let variable = Some((name, value.to_owned()));
        Self { variable, ..self }
    }

    fn read(message: &Value) -> Option<Self> {
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let program = message["executable"].as_str()?;
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?;
        let package = folder.file_name()?.to_str()?;
        let target = match message["target"]["kind"][0].as_str()? {
            "test" => message["target"]["name"].as_str()?,
            kind => kind,
        };
        let name = format!("{package}/{target}");
        Some(Self {
            package: package.to_owned(),
            ..Self::of_program(name, Path::new(program), folder)
        })
    }

    /// Runs the program as cargo would and returns if it passed.
    fn run(&self) -> Result<bool> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.folder)
            .envs(self.variable.clone())
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package);
        relay_output(&self.name, command)
    }
}

/// Runs the suites, `at_once` of them at a time, and returns the names of those that failed. All
/// are run, also after one failed.
pub(crate) fn run_suites(suites: Vec<Suite>, at_once: usize) -> Vec<String> {
    let waiting = Mutex::new(VecDeque::from(suites));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                // The lock is let go before the suite runs.
                while let Some(suite) = { lock(&waiting).pop_front() } {
                    let started = Instant::now();
                    let verdict = suite.run();
                    let seconds = started.elapsed().as_secs_f64();
                    match verdict {
                        Ok(true) => println!("== {}: ok in {seconds:.0} s", suite.name),
                        Ok(false) => lock(&failed).push(suite.name),
                        Err(error) => lock(&failed).push(format!("{}: {error:#}", suite.name)),
                    }
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs a command, prints its lines with its name before each, and returns if it succeeded.
pub(crate) fn relay_output(name: &str, mut command: Command) -> Result<bool> {
    let (reader, writer) = std::io::pipe().context("no pipe")?;
    command
        .stdout(writer.try_clone().context("no pipe")?)
        .stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    // Its ends of the pipe must not stay open here, or the lines would never end.
    drop(command);
    // The child may be killed by a test that prints bytes which are no text.
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.with_context(|| format!("cannot read what {name} says"))?;
        println!("{name} | {}", String::from_utf8_lossy(&line));
    }
    Ok(child.wait()?.success())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn artifact(package: &str, kind: &str, target: &str, is_test: bool) -> String {
        json!({
            "reason": "compiler-artifact",
            "manifest_path": format!("/w/crates/{package}/Cargo.toml"),
            "target": { "kind": [kind], "name": target },
            "profile": { "test": is_test },
            "executable": format!("/w/target/{target}"),
        })
        .to_string()
    }

    #[test]
    fn only_test_programs_are_suites_and_the_longest_come_first() {
        let messages = [
            artifact("planwright-core", "lib", "planwright_core", true),
            artifact("planwright", "bin", "planwright", false),
            artifact("planwright-core", "test", "it", true),
            artifact("planwright", "test", "kill", true),
        ];
        let suites = read_suites(&messages.join("\n")).unwrap();
        let names: Vec<&str> = suites.iter().map(|suite| suite.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "planwright/kill",
                "planwright-core/it",
                "planwright-core/lib"
            ]
        );
        assert_eq!(suites[0].folder, Path::new("/w/crates/planwright"));
        assert!(read_suites("{\"reason\":\"build-finished\"}").is_err());
        let program = read_program(&messages.join("\n"), "planwright").unwrap();
        assert_eq!(program, Path::new("/w/target/planwright"));
        assert!(read_program(&messages.join("\n"), "kill").is_err());
    }

    #[test]
    fn every_suite_runs_and_those_that_fail_are_named() {
        let suite = |name: &str, program: &str| {
            Suite::of_program(name.to_owned(), Path::new(program), Path::new("/"))
        };
        let suites = vec![
            suite("bad", "/bin/false"),
            suite("good", "/bin/true"),
            suite("missing", "/nowhere"),
        ];
        let mut failed = run_suites(suites, 2);
        failed.sort();
        assert_eq!(failed.len(), 2);
        assert_eq!(failed[0], "bad");
        assert!(failed[1].starts_with("missing: cannot start"), "{failed:?}");
    }
}
