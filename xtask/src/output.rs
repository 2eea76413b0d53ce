//! What a program says while it runs: shown line by line under its name, and its end kept, so that
//! it can be shown again after everything else when the program failed.

use anyhow::{Context as _, Result};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::process::Command;

/// How many of its last lines are shown again.
const KEPT_LINES: usize = 400;

/// When the lines of a program are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    AsItRuns,
    IfItFails,
}

/// How a program ended and what it said last.
#[derive(Debug, Default)]
pub(crate) struct Output {
    pub(crate) succeeded: bool,
    /// The tests that it says have failed.
    pub(crate) failed_tests: Vec<String>,
    /// How many tests passed and how many failed, once it came to its end.
    pub(crate) counts: Option<(usize, usize)>,
    last_lines: VecDeque<String>,
    /// How many lines came before those.
    earlier_lines: usize,
}

impl Output {
    /// Prints its last lines: of Rust's tests, from where they tell their failures.
    pub(crate) fn print_end(&self, name: &str) {
        for line in self.end() {
            println!("{name} | {line}");
        }
    }

    fn end(&self) -> Vec<String> {
        let failures = self.last_lines.iter().position(|line| line == "failures:");
        let begin = failures.unwrap_or(0);
        let left_out = self.earlier_lines + begin;
        let lines = self.last_lines.iter().skip(begin).cloned();
        let first = (left_out > 0).then(|| format!("({left_out} lines before these)"));
        first.into_iter().chain(lines).collect()
    }

    fn keep(&mut self, line: String) {
        let test = line.strip_prefix("test ");
        let failed = test.and_then(|test| test.strip_suffix(" ... FAILED"));
        let failed = failed.map(|name| name.trim_end_matches(" - should panic").to_owned());
        self.failed_tests.extend(failed);
        self.counts = self.counts.or_else(|| read_counts(&line));
        if self.last_lines.len() == KEPT_LINES {
            self.last_lines.pop_front();
            self.earlier_lines += 1;
        }
        self.last_lines.push_back(line);
    }
}

/// Reads `test result: FAILED. 3 passed; 1 failed; …`.
fn read_counts(line: &str) -> Option<(usize, usize)> {
    let (_, counts) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut counts = counts.split("; ");
    let passed = counts.next()?.strip_suffix(" passed")?;
    let failed = counts.next()?.strip_suffix(" failed")?;
    Some((passed.parse().ok()?, failed.parse().ok()?))
}

/// Runs a command and returns how it ended, with what it said.
pub(crate) fn relay_output(name: &str, mut command: Command, shown: Shown) -> Result<Output> {
    let (reader, writer) = std::io::pipe().context("no pipe")?;
    command
        .stdout(writer.try_clone().context("no pipe")?)
        .stderr(writer);
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {name}"))?;
    // Its ends of the pipe must not stay open here, or the lines would never end.
    drop(command);
    let mut output = Output::default();
    // The child may be killed by a test that prints bytes which are no text.
    for line in BufReader::new(reader).split(b'\n') {
        let line = line.with_context(|| format!("cannot read what {name} says"))?;
        let line = String::from_utf8_lossy(&line).into_owned();
        if shown == Shown::AsItRuns {
            println!("{name} | {line}");
        }
        output.keep(line);
    }
    output.succeeded = child.wait()?.success();
    Ok(output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(lines: impl IntoIterator<Item = String>) -> Output {
        let mut output = Output::default();
        lines.into_iter().for_each(|line| output.keep(line));
        output
    }

    #[test]
    fn the_end_begins_where_tests_tell_their_failures() {
        let said = "running 2 tests\ntest a ... ok\ntest b - should panic ... FAILED\n\nfailures:\n\n---- b ----\n\n\
            failures:\n    b\n\ntest result: FAILED. 1 passed; 1 failed; 0 ignored";
        let output = output(said.lines().map(str::to_owned));
        assert_eq!(output.failed_tests, ["b"]);
        assert_eq!(output.counts, Some((1, 1)));
        let end = output.end();
        assert_eq!(
            end[..4],
            ["(4 lines before these)", "failures:", "", "---- b ----"]
        );
        assert_eq!(end.last().unwrap(), said.lines().last().unwrap());
    }

    #[test]
    fn of_other_programs_the_last_lines_are_kept() {
        let output = output((0..KEPT_LINES + 5).map(|number| number.to_string()));
        let end = output.end();
        assert_eq!(end.len(), KEPT_LINES + 1);
        assert_eq!(end[..2], ["(5 lines before these)", "5"]);
        assert_eq!(output.counts, None);
    }
}
