//! The real program in a workspace of its own.

use crate::shapes::Shape;
use planwright_testing::postgres::server;
use serde_json::Value;
use std::cell::Cell;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;

const CONFIGURATION: &str = r#"
[local]
run_command = true

[tools."local.run_command"]
class = "keyed"

[servers.local]
serial_writes = false
"#;

/// A directory in which one plan is run, killed and resumed.
pub(crate) struct Workspace {
    directory: TempDir,
    home: TempDir,
    started: Cell<bool>,
    /// The database that the store is in; without one it is a file of the directory.
    database: Option<String>,
    pub(crate) shape: Shape,
}

/// How one execution of the program ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    Killed,
    Completed,
    /// A person has to say what happened.
    Waits,
    Other(String),
}

impl Ended {
    fn of(output: &Output) -> Self {
        match (output.status.code(), output.status.signal()) {
            (Some(0), _) => Self::Completed,
            (Some(4), _) => Self::Waits,
            (_, Some(9)) => Self::Killed,
            _ => Self::Other(format!(
                "{}: {}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            )),
        }
    }
}

impl Workspace {
    pub(crate) fn new(shape: &Shape) -> Self {
        Self::with_store(shape, None)
    }

    /// A workspace whose store is an empty database of its own.
    pub(crate) fn on_postgres(shape: &Shape) -> Self {
        static MADE: AtomicUsize = AtomicUsize::new(0);
        let name = format!("killed_{}", MADE.fetch_add(1, Ordering::Relaxed));
        server().create_database(&name);
        Self::with_store(shape, Some(server().url(&name)))
    }

    fn with_store(shape: &Shape, database: Option<String>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("plan.json"), shape.plan().to_string()).unwrap();
        std::fs::write(directory.path().join("planwright.toml"), CONFIGURATION).unwrap();
        let workspace = Self {
            directory,
            home: tempfile::tempdir().unwrap(),
            started: Cell::new(false),
            database,
            shape: shape.clone(),
        };
        let trusted = workspace.execute(&["trust", "--yes"], None);
        assert!(trusted.status.success(), "{trusted:?}");
        workspace
    }

    pub(crate) fn path(&self) -> &Path {
        self.directory.path()
    }

    /// Executes the plan: resumes its run if there is one, else starts it. Killed at the given
    /// point if it is reached.
    pub(crate) fn go_on(&self, crash_at: Option<u64>) -> Ended {
        if self.started.get() {
            let output = self.execute(&["resume", "killed", "--json"], crash_at);
            match output.status.code() {
                // Killed before the run existed.
                Some(2) => {}
                // Killed between the last entry and the exit: there is nothing left to resume.
                Some(3) if self.status().as_deref() == Some("completed") => {
                    return Ended::Completed;
                }
                _ => return Ended::of(&output),
            }
        }
        self.started.set(true);
        Ended::of(&self.execute(&["run", "plan.json", "--yes", "--json"], crash_at))
    }

    pub(crate) fn status(&self) -> Option<String> {
        self.json(&["show", "killed", "--json"])?["status"]
            .as_str()
            .map(str::to_owned)
    }

    /// What a command prints, if it succeeds.
    pub(crate) fn json(&self, args: &[&str]) -> Option<Value> {
        let output = self.execute(args, None);
        output
            .status
            .success()
            .then(|| serde_json::from_slice(&output.stdout).expect("one JSON document"))
    }

    /// The journal of the run, entry by entry; empty before there is one.
    pub(crate) fn journal(&self) -> Vec<Value> {
        let output = self.execute(&["log", "killed", "--json"], None);
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        text.lines()
            .map(|line| serde_json::from_str(line).expect("one JSON entry per line"))
            .collect()
    }

    pub(crate) fn execute(&self, args: &[&str], crash_at: Option<u64>) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command.args(args).current_dir(self.path()).env_clear();
        command
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("PLANWRIGHT_DIR", self.path());
        if let Some(database) = &self.database {
            command.env("PLANWRIGHT_STORE", database);
        }
        if let Some(at) = crash_at {
            command.env("PLANWRIGHT_CRASH_AT", at.to_string());
        }
        command.output().expect("the program starts")
    }
}
