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
#[derive(Debug)]
pub(crate) struct Output {
    pub(crate) succeeded: bool,
    /// The tests that it says have failed.
    pub(crate) failed_tests: Vec<String>,
    last_lines: VecDeque<String>,
}

impl Output {
    /// Prints its last lines: of Rust's tests, from where they tell their failures.
    pub(crate) fn print_end(&self, name: &str) {
        let begin = self.last_lines.iter().position(|line| line == "failures:");
        for line in self.last_lines.iter().skip(begin.unwrap_or(0)) {
            println!("{name} | {line}");
        }
    }

    fn keep(&mut self, line: String) {
        let test = line.strip_prefix("test ");
        let failed = test.and_then(|test| test.strip_suffix(" ... FAILED"));
        self.failed_tests.extend(failed.map(str::to_owned));
        if self.last_lines.len() == KEPT_LINES {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line);
    }
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
    let mut output = Output {
        succeeded: false,
        failed_tests: Vec::new(),
        last_lines: VecDeque::new(),
    };
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
