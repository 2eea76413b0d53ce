//! A workspace, and the program run in it.

use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long another process may take to get somewhere.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Bench {
    directory: TempDir,
}

/// How a command ended and what it said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// The one JSON document on stdout.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error} in {self:#?}"))
    }

    #[track_caller]
    pub(crate) fn ends(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        self
    }

    /// One clear error on stderr, nothing on stdout.
    #[track_caller]
    pub(crate) fn complains(self, code: i32, words: &str) -> Self {
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
        assert_eq!(self.out, "", "{self:#?}");
        self
    }
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        self.directory.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        path
    }

    /// Writes a plan as `<id>.json`.
    pub(crate) fn plan(&self, id: &str, steps: Value) -> String {
        self.document(json!({ "id": id, "title": format!("Plan {id}"), "steps": steps }))
    }

    pub(crate) fn document(&self, document: Value) -> String {
        let name = format!("{}.json", document["id"].as_str().unwrap_or("plan"));
        self.write(&name, &document.to_string());
        name
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_default()
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_planwright"));
        command
            .args(args)
            .current_dir(self.root())
            .env_clear()
            .env("PATH", "/usr/bin:/bin");
        command.env("HOME", self.root()).stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Starts a command and lets it go on.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::of(command)
    }

    /// Waits until the journal of the plan's latest run has an entry of this kind for this step.
    #[track_caller]
    pub(crate) fn wait_for(&self, plan: &str, kind: &str, step: &str) {
        wait_until(&format!("{kind} of {step}"), || {
            self.log(plan)
                .iter()
                .any(|entry| entry["kind"] == kind && entry["step"] == step)
        });
    }

    pub(crate) fn log(&self, plan: &str) -> Vec<Value> {
        let said = self.run(&["log", plan, "--json"]);
        said.out
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }

    pub(crate) fn digest(&self, plan: &str) -> String {
        self.run(&["show", plan, "--json"]).json()["digest"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    pub(crate) fn status(&self, plan: &str) -> String {
        self.run(&["show", plan, "--json"]).json()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }
}

pub(crate) fn said(output: std::process::Output) -> Said {
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A command that goes on. Killed if the test ends first.
pub(crate) struct Running {
    child: Option<Child>,
}

impl From<Child> for Running {
    fn from(child: Child) -> Self {
        Self { child: Some(child) }
    }
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        Self {
            child: Some(command.spawn().unwrap()),
        }
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        let id = i32::try_from(self.child.as_ref().unwrap().id()).unwrap();
        rustix::process::kill_process(rustix::process::Pid::from_raw(id).unwrap(), signal).unwrap();
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        self.child.as_mut().unwrap().try_wait().unwrap().is_some()
    }

    pub(crate) fn interrupt(&self) {
        self.signal(rustix::process::Signal::INT);
    }

    pub(crate) fn kill(mut self) {
        let mut child = self.child.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    pub(crate) fn wait(mut self) -> Said {
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

#[track_caller]
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(15));
    }
}

/// The keys of an object, sorted.
#[track_caller]
pub(crate) fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> = value
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    keys
}

/// The step of a run's result.
#[track_caller]
pub(crate) fn step<'a>(result: &'a Value, id: &str) -> &'a Value {
    let steps = result["steps"].as_array().unwrap();
    steps
        .iter()
        .find(|step| step["id"] == id)
        .unwrap_or_else(|| panic!("no step {id} in {result:#}"))
}

/// A step that calls a tool.
pub(crate) fn call(id: &str, tool: &str, args: Value, after: &[&str]) -> Value {
    json!({ "id": id, "title": format!("Step {id}"), "tool": tool, "args": args, "dependsOn": after })
}

pub(crate) fn echo(id: &str, value: impl Into<Value>, after: &[&str]) -> Value {
    call(id, "demo.echo", json!({ "value": value.into() }), after)
}

pub(crate) fn sleep(id: &str, ms: u64, after: &[&str]) -> Value {
    call(id, "demo.sleep", json!({ "ms": ms, "value": id }), after)
}

/// A call with an effect that is seen from outside: one line in `effects.txt`.
pub(crate) fn effect(id: &str, after: &[&str]) -> Value {
    call(
        id,
        "append_file",
        json!({ "path": "effects.txt", "content": format!("{id}\n") }),
        after,
    )
}

/// A command at a terminal: a person can see its stderr and type.
pub(crate) struct Terminal {
    running: Running,
    keyboard: std::fs::File,
    screen: Arc<Mutex<String>>,
}

impl Terminal {
    pub(crate) fn start(bench: &Bench, args: &[&str]) -> Self {
        Self::of(bench.command(args))
    }

    pub(crate) fn of(command: Command) -> Self {
        Self::opened(command, false)
    }

    /// A command whose stdout the person sees too: it may move the cursor, and asks where it is.
    pub(crate) fn whole(command: Command) -> Self {
        Self::opened(command, true)
    }

    fn opened(mut command: Command, whole: bool) -> Self {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&master).unwrap();
        unlockpt(&master).unwrap();
        let size = rustix::termios::Winsize {
            ws_row: 40,
            ws_col: 160,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&master, size).unwrap();
        let name = ptsname(&master, Vec::new()).unwrap().into_string().unwrap();
        let slave = || {
            std::fs::OpenOptions::new()
                .read(true)
                .write(true)
                .open(&name)
                .unwrap()
        };
        command.stdin(slave()).stderr(slave()).stdout(Stdio::null());
        if whole {
            command.stdout(slave());
        }
        let running = Running::of(command);
        let keyboard = std::fs::File::from(master);
        let screen: Arc<Mutex<String>> = Arc::default();
        let mut reader = keyboard.try_clone().unwrap();
        let seen = Arc::clone(&screen);
        let mut cursor = keyboard.try_clone().unwrap();
        // Ends with the terminal: reading fails once no process holds its other side.
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = reader.read(&mut buffer) {
                let text = String::from_utf8_lossy(&buffer[..count]);
                if whole && text.contains("\u{1b}[6n") {
                    // As a terminal does that is asked where its cursor is.
                    drop(cursor.write_all(b"\x1b[1;1R"));
                }
                seen.lock().unwrap().push_str(&text);
            }
        });
        Self {
            running,
            keyboard,
            screen,
        }
    }

    pub(crate) fn seen(&self) -> String {
        self.screen.lock().unwrap().clone()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, words: &str) {
        wait_until(words, || self.seen().contains(words));
    }

    pub(crate) fn types(&mut self, text: &str) {
        self.keyboard.write_all(text.as_bytes()).unwrap();
    }

    pub(crate) fn interrupt(&self) {
        self.running.interrupt();
    }

    /// Waits for the command to end and returns its exit code.
    #[track_caller]
    pub(crate) fn ends(&mut self) -> Option<i32> {
        wait_until("the command to end", || self.running.is_over());
        self.running.child.take().unwrap().wait().unwrap().code()
    }
}
