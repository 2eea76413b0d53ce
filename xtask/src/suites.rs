//! All test programs, started directly and several at a time, so that no core waits while a suite
//! waits for a timer, a server or the disk.
//!
//! cargo builds them and is not asked again: it holds a lock on its folder while it runs, and lints
//! or documentation could not be made meanwhile.

use crate::output::{Output, Shown, relay_output};
use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

/// The suites that take longest, in this order. They start first: one that started last would run
/// alone at the end.
const LONGEST_FIRST: &[&str] = &[
    "planwright/kill",
    "planwright/distributed",
    "planwright/service",
    "planwright/endurance",
    "planwright/it",
    "planwright-engine/it",
    "planwright/real",
    "planwright-core/it",
    "planwright-adapters/it",
    "planwright/model",
    "planwright-adapters/postgres",
    "planwright-adapters/broker",
    "planwright-adapters/mcp",
    "planwright-server/it",
    "planwright/events",
];

/// How many tests a check gives a second try.
const MAX_RETRIED_TESTS: usize = 3;

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
    shown: Shown,
    retried: Retried,
}

/// What is run once more of a suite that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Retried {
    /// The tests that it names, as Rust's harness does.
    FailedTests,
    /// All of it: it is short, and its tests are not started one by one.
    Whole,
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
            shown: Shown::AsItRuns,
            retried: Retried::FailedTests,
        }
    }

    pub(crate) fn with_args(self, args: Vec<String>) -> Self {
        Self { args, ..self }
    }

    pub(crate) fn with_variable(self, name: &'static str, value: &str) -> Self {
        let variable = Some((name, value.to_owned()));
        Self { variable, ..self }
    }

    /// Shows what it says only if it fails.
    pub(crate) fn quiet(self) -> Self {
        let shown = Shown::IfItFails;
        Self { shown, ..self }
    }

    /// Counts as one test where failures are retried.
    pub(crate) fn retried_whole(self) -> Self {
        let retried = Retried::Whole;
        Self { retried, ..self }
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

    /// Runs the program and says how that ended. Returns what failed.
    fn run_to_end(self) -> Option<Failure> {
        let started = Instant::now();
        let output = relay_output(&self.name, self.command(), self.shown);
        if output.as_ref().is_ok_and(|output| output.succeeded) {
            let seconds = started.elapsed().as_secs_f64();
            println!("== {}: ok in {seconds:.0} s", self.name);
            return None;
        }
        Some(Failure {
            suite: self,
            output,
        })
    }

    /// The suite with these of its tests alone.
    fn alone(self, tests: &[String]) -> Self {
        if self.retried == Retried::Whole {
            return self;
        }
        let mut args = self.args.clone();
        args.extend(["--exact".to_owned(), "--test-threads=1".to_owned()]);
        args.extend(tests.iter().cloned());
        self.with_args(args)
    }

    /// Whether this many tests passed. A name that fits no test would run none, and end well.
    fn passed(&self, output: &Output, tests: usize) -> bool {
        let counted = self.retried == Retried::Whole || output.counts == Some((tests, 0));
        output.succeeded && counted
    }

    /// The call of the program as cargo would make it.
    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .current_dir(&self.folder)
            .envs(self.variable.clone())
            .env("CARGO", env!("CARGO"))
            .env("CARGO_MANIFEST_DIR", &self.folder)
            .env("CARGO_PKG_NAME", &self.package);
        command
    }
}

/// A suite that failed.
#[derive(Debug)]
pub(crate) struct Failure {
    suite: Suite,
    /// What it said. A suite that could not even be started said nothing.
    output: Result<Output>,
}

/// Runs the suites, `at_once` of them at a time, and returns those that failed. All are run, also
/// after one failed.
pub(crate) fn run_suites(suites: Vec<Suite>, at_once: usize) -> Vec<Failure> {
    let waiting = Mutex::new(VecDeque::from(suites));
    let failed = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                // No lock is held while the suite runs.
                while let Some(suite) = { lock(&waiting).pop_front() } {
                    let failure = suite.run_to_end();
                    lock(&failed).extend(failure);
                }
            });
        }
    });
    failed.into_inner().unwrap_or_else(PoisonError::into_inner)
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs tests that failed beside all the other suites once more, by themselves, and returns the
/// suites that fail again. Deadlines of real programs are missed where several suites share two
/// processors; a test that passes alone is named, not forgotten. More than a few are no accident.
pub(crate) fn retry_alone(failures: Vec<Failure>) -> Vec<Failure> {
    let tests: usize = failures.iter().map(|it| it.retried_tests().len()).sum();
    if tests > MAX_RETRIED_TESTS {
        return failures;
    }
    failures.into_iter().filter_map(Failure::retry).collect()
}

/// Prints what each of the suites said last, and fails with their names if there are any.
pub(crate) fn report(failures: &[Failure]) -> Result<()> {
    for failure in failures {
        println!("== {}: FAILED", failure.suite.name);
        match &failure.output {
            Ok(output) => output.print_end(&failure.suite.name),
            Err(error) => println!("{error:#}"),
        }
    }
    let names: Vec<&str> = failures.iter().map(|it| it.suite.name.as_str()).collect();
    ensure!(names.is_empty(), "failed: {}", names.join("; "));
    Ok(())
}

impl Failure {
    /// The tests that failed, of a suite that came to its end and names all of them. One that broke
    /// off has tests that did not run.
    fn failed_tests(&self) -> &[String] {
        let output = self.output.as_ref().ok();
        let whole = output.filter(|output| {
            output.counts.map(|(_, failed)| failed) == Some(output.failed_tests.len())
        });
        whole.map_or(&[], |output| &output.failed_tests)
    }

    /// The names of what is run once more.
    fn retried_tests(&self) -> Vec<String> {
        match self.suite.retried {
            Retried::FailedTests => self.failed_tests().to_vec(),
            Retried::Whole => vec![self.suite.name.clone()],
        }
    }

    /// Runs what failed by itself. A suite that names no test has failed for good.
    fn retry(self) -> Option<Self> {
        let tests = self.retried_tests();
        if tests.is_empty() {
            return Some(self);
        }
        let again = self.suite.alone(&tests);
        let output = relay_output(&again.name, again.command(), again.shown);
        let passed = output
            .as_ref()
            .is_ok_and(|output| again.passed(output, tests.len()));
        if !passed {
            return Some(Self {
                suite: again,
                output,
            });
        }
        let (name, tests) = (&again.name, tests.join(", "));
        println!("== {name}: UNSTABLE: failed beside the others and passed alone: {tests}");
        None
    }
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
        failed.sort_by(|one, other| one.suite.name.cmp(&other.suite.name));
        let error = report(&failed).unwrap_err().to_string();
        assert_eq!(error, "failed: bad; missing");
        let missing = failed[1].output.as_ref().unwrap_err().to_string();
        assert_eq!(missing, "cannot start missing");
        assert!(report(&[]).is_ok());
        assert_eq!(retry_alone(failed).len(), 2, "no test of theirs is known");
    }

    /// A script that says what the harness of Rust's tests says.
    fn script(text: &str) -> Suite {
        let suite = Suite::of_program("script".to_owned(), Path::new("/bin/sh"), Path::new("/"));
        let args = ["-c", text, "script"].map(str::to_owned);
        suite.with_args(args.to_vec())
    }

    #[test]
    fn suites_run_at_the_same_time() {
        let folder = tempfile::tempdir().unwrap();
        let meets = |mine: &str, other: &str| {
            let text = format!(
                "touch {mine}; for i in $(seq 1000); do test -e {other} && exit 0; sleep 0.03; done; exit 1"
            );
            Suite {
                folder: folder.path().to_owned(),
                ..script(&text)
            }
        };
        let failed = run_suites(vec![meets("a", "b"), meets("b", "a")], 2);
        assert!(failed.is_empty(), "{failed:?}");
    }

    const FAILED: &str =
        "echo \"test a::b ... FAILED\"; echo \"test result: FAILED. 1 passed; 1 failed\"; exit 101";

    fn fails_again(text: &str) -> bool {
        !retry_alone(run_suites(vec![script(text)], 1)).is_empty()
    }

    #[test]
    fn a_test_that_fails_is_run_once_more_by_itself() {
        let alone = r#"test "$*" = "--exact --test-threads=1 a::b""#;
        let passes = "echo \"test result: ok. 1 passed; 0 failed\"; exit 0";
        assert!(!fails_again(&format!(
            "{alone} && {{ {passes}; }}; {FAILED}"
        )));
        assert!(fails_again(FAILED), "it fails alone too");
        let runs_none = "echo \"test result: ok. 0 passed; 0 failed\"; exit 0";
        assert!(fails_again(&format!(
            "{alone} && {{ {runs_none}; }}; {FAILED}"
        )));
        assert!(
            fails_again(&format!("{alone} && exit 0; {FAILED}")),
            "it says nothing"
        );
    }

    #[test]
    fn a_suite_without_named_tests_is_run_again_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let once = format!("mkdir {0}/seen && exit 1; exit 0", folder.path().display());
        let failed = run_suites(vec![script(&once).retried_whole()], 1);
        assert!(retry_alone(failed).is_empty());
        let failed = run_suites(vec![script("exit 1").retried_whole()], 1);
        assert_eq!(retry_alone(failed).len(), 1);
        let many = (0..4).map(|_| script("exit 1").retried_whole()).collect();
        assert_eq!(retry_alone(run_suites(many, 1)).len(), 4);
    }

    #[test]
    fn a_suite_that_broke_off_has_failed_for_good() {
        let passes = "test $# -gt 0 && { echo \"test result: ok. 1 passed; 0 failed\"; exit 0; }";
        let broke_off = "echo \"test a::b ... FAILED\"; kill -ABRT $$";
        assert!(fails_again(&format!("{passes}; {broke_off}")));
        let more = "echo \"test a::b ... FAILED\"; echo \"test result: FAILED. 1 passed; 2 failed\"; exit 101";
        assert!(fails_again(&format!("{passes}; {more}")));
    }

    #[test]
    fn many_failures_are_no_accident() {
        let passes = "test $# -gt 0 && { echo \"test result: ok. 4 passed; 0 failed\"; exit 0; }";
        let fails = "for t in a b c d; do echo \"test $t ... FAILED\"; done; \
            echo \"test result: FAILED. 0 passed; 4 failed\"; exit 101";
        assert!(fails_again(&format!("{passes}; {fails}")));
    }
}
