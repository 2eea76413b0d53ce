//! A workspace, and the program run in it.

use crate::wait::wait_until;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// A workspace of its own, and a home of its own outside of it.
#[derive(Debug)]
pub struct Bench {
    directory: TempDir,
    home: TempDir,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    /// The one JSON document on stdout.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }

    #[track_caller]
    pub fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// The arguments of a command that stderr hints at: `planwright VERB …`, up to the word with
    /// which the sentence goes on, or to the end of the line.
    #[track_caller]
    pub fn hinted(&self, verb: &str, then: &str) -> Vec<String> {
        let begin = format!("planwright {verb}");
        let (_, rest) = self
            .err
            .split_once(&begin)
            .unwrap_or_else(|| panic!("no hint at `{begin}` in {self:#?}"));
        let line = rest.lines().next().unwrap_or_default();
        let words = line.split_whitespace().take_while(|word| *word != then);
        std::iter::once(verb)
            .chain(words)
            .map(str::to_owned)
            .collect()
    }

    /// One clear error on stderr; nothing on stdout but, with `--json`, the same as a document.
    #[track_caller]
    pub fn complains(self, code: i32, words: &str) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert!(self.err.contains(words), "{words:?} is not in {self:#?}");
        assert_eq!(
            self.err
                .lines()
                .filter(|line| line.starts_with("error: "))
                .count(),
            1,
            "{self:#?}"
        );
        let said = self.out.is_empty() || self.out.starts_with("{\"error\":");
        assert!(said, "{self:#?}");
        self
    }
}

/// Finds the program under test. Cargo builds it before the tests of its package and puts it one
/// folder above their programs.
pub fn program_path() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("planwright");
    assert!(
        program.is_file(),
        "{} is missing: only tests of its package can start the program",
        program.display()
    );
    program
}

impl Default for Bench {
    fn default() -> Self {
        Self::new()
    }
}

impl Bench {
    /// An empty workspace.
    pub fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            home: tempfile::tempdir().unwrap(),
        }
    }

    /// The home of the person who uses the workspace.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// Writes a file of the person's own: `planwright.toml`, or one in `prompts`.
    pub fn write_own(&self, name: &str, text: &str) -> PathBuf {
        let path = self.home().join(".config/planwright").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes `planwright.toml`, as its author would, and trusts it.
    #[track_caller]
    pub fn configure(&self, text: &str) {
        self.write("planwright.toml", text);
        self.trust();
    }

    /// The person trusts what the files of the workspace say now.
    #[track_caller]
    pub fn trust(&self) {
        self.run(&["trust", "--yes"]).ends(0);
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a plan as `<id>.json`.
    pub fn plan(&self, id: &str, steps: Value) -> String {
        self.document(json!({ "id": id, "title": format!("Plan {id}"), "steps": steps }))
    }

    pub fn document(&self, document: Value) -> String {
        let name = format!("{}.json", document["id"].as_str().unwrap_or("plan"));
        self.write(&name, &document.to_string());
        name
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    /// The program as a person starts it from a plain shell: no mark of an agent is in its
    /// environment, also when an agent runs the tests.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(program_path());
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.home()).stdin(Stdio::null());
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Starts a command and lets it go on.
    pub fn start(&self, args: &[&str]) -> Running {
        let mut command = with_default_signals(&self.command(args));
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::of(command)
    }

    /// Waits until the journal of the plan's latest run has an entry of this kind for this step.
    #[track_caller]
    pub fn wait_for(&self, plan: &str, kind: &str, step: &str) {
        wait_until(&format!("{kind} of {step}"), || {
            self.log(plan)
                .iter()
                .any(|entry| entry["kind"] == kind && entry["step"] == step)
        });
    }

    pub fn log(&self, plan: &str) -> Vec<Value> {
        let said = self.run(&["log", plan, "--json"]);
        // A plan that never ran has no entries, and the program says so as a document.
        let entries = if said.code == 0 { &*said.out } else { "" };
        entries
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub fn digest(&self, plan: &str) -> String {
        self.run(&["show", plan, "--json"]).json()["digest"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub fn status(&self, plan: &str) -> String {
        self.run(&["show", plan, "--json"]).json()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

/// The same command, started by this program.
pub fn started_by(starter: &[&str], command: &Command) -> Command {
    let mut started = Command::new(starter[0]);
    started
        .args(&starter[1..])
        .arg(command.get_program())
        .args(command.get_args())
        .env_clear()
        .stdin(Stdio::null());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            started.env(name, value);
        }
    }
    if let Some(directory) = command.get_current_dir() {
        started.current_dir(directory);
    }
    started
}

/// The same command, ended by signals also when the tests themselves were told to ignore some, as by
/// `nohup` or in the background of a script.
pub fn with_default_signals(command: &Command) -> Command {
    started_by(&["env", "--default-signal"], command)
}

pub fn said(output: std::process::Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A command that goes on. Killed if the test ends first.
#[derive(Debug)]
pub struct Running {
    child: Option<Child>,
}

impl From<Child> for Running {
    fn from(child: Child) -> Self {
        Self { child: Some(child) }
    }
}

impl Running {
    pub fn of(mut command: Command) -> Self {
        Self {
            child: Some(command.spawn().unwrap()),
        }
    }

    /// The number of its process.
    pub fn id(&self) -> u32 {
        self.child.as_ref().unwrap().id()
    }

    pub fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.as_ref().unwrap().id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Returns `true` once it has ended by itself.
    pub fn is_over(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    /// The most memory the process has used so far, in MiB; `None` once it is gone.
    pub fn peak_memory(&self) -> Option<u64> {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.child.as_ref()?.id())).ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib / 1024)
    }

    pub fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    pub fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits until it ends and returns its exit code, which a killed command has none of.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        self.child.take().unwrap().wait().unwrap().code()
    }

    pub fn wait(mut self) -> Said {
        said(self.child.take().unwrap().wait_with_output().unwrap())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut child) = self.child.take() else {
            return;
        };
        drop(child.kill());
        if std::thread::panicking() {
            tell_of(child);
        } else {
            drop(child.wait());
        }
    }
}

/// A test that waited in vain for something a command should have done wants to know what that
/// command said.
#[expect(
    clippy::print_stderr,
    reason = "the test failed, and this belongs to what it shows"
)]
fn tell_of(child: Child) {
    eprintln!("meanwhile: {:#?}", child.wait_with_output().map(said));
}
