//! The installed servers, and workspaces that use them.

use crate::wait::wait_until;
use crate::workbench::{Bench, Running, Said, said};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Every server the tests know.
pub const ALL: [&str; 8] = [
    "everything",
    "filesystem",
    "memory",
    "git",
    "time",
    "sqlite",
    "workshop",
    "shop",
];

/// A variable that every server started here carries, so that what is left behind can be found.
const MARK: &str = "PLANWRIGHT_REAL_TEST";

/// A workspace with servers, and a user whose own files lie elsewhere.
#[derive(Debug)]
pub struct Project {
    pub bench: Bench,
    home: TempDir,
}

impl Project {
    /// A workspace whose `.mcp.json` names these servers. Automation trusts them.
    pub fn with(servers: &[&str]) -> Self {
        let project = Self {
            bench: Bench::new(),
            home: tempfile::tempdir().unwrap(),
        };
        std::fs::create_dir(project.bench.path("files")).unwrap();
        let entries = servers
            .iter()
            .map(|&name| (name.to_owned(), project.entry(name)));
        project.name(&json!(entries.collect::<serde_json::Map<String, Value>>()));
        project
    }

    /// Writes a `.mcp.json` with these servers.
    pub fn name(&self, servers: &Value) {
        self.bench
            .write(".mcp.json", &json!({ "mcpServers": servers }).to_string());
        self.configure("");
    }

    /// Adds to the operator's file. On a busy machine an interpreter takes long to start.
    pub fn configure(&self, more: &str) {
        let named: Value = serde_json::from_str(&self.bench.read(".mcp.json")).unwrap();
        let mut text = String::new();
        for name in named["mcpServers"]
            .as_object()
            .unwrap()
            .keys()
            .filter(|name| ALL.contains(&name.as_str()))
        {
            writeln!(text, "servers.{name}.start_timeout_seconds = 120").unwrap();
        }
        self.bench
            .write("planwright.toml", &format!("{text}{more}"));
        self.run(&["trust", "--yes"]).ends(0);
    }

    /// How a server is started: through its interpreter, in its pinned version.
    pub fn entry(&self, name: &str) -> Value {
        let root = self.bench.root().canonicalize().unwrap();
        let file = |name: &str| json!(root.join(name));
        let node = |package: &str| {
            installed(&format!(
                "node/node_modules/@modelcontextprotocol/server-{package}/dist/index.js"
            ))
        };
        let script = |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
        let (command, args) = match name {
            "everything" => (interpreter("node"), json!([node("everything"), "stdio"])),
            "filesystem" => (
                interpreter("node"),
                json!([node("filesystem"), file("files")]),
            ),
            "memory" => (interpreter("node"), json!([node("memory")])),
            "git" => (installed("py/bin/mcp-server-git"), json!([])),
            "time" => (
                installed("py/bin/mcp-server-time"),
                json!(["--local-timezone", "UTC"]),
            ),
            "sqlite" => (
                installed("py-early/bin/mcp-server-sqlite"),
                json!(["--db-path", file("rows.db")]),
            ),
            "workshop" => (
                installed("py/bin/python"),
                json!([script("workshop.py"), file("effects.txt")]),
            ),
            "shop" => (
                installed("py-early/bin/python"),
                json!([script("shop.py"), file("effects.txt")]),
            ),
            other => panic!("no server {other}"),
        };
        json!({ "command": command, "args": args, "env": { MARK: root, "MEMORY_FILE_PATH": file("memory.jsonl") } })
    }

    /// A file of the workspace, by the path that servers see.
    pub fn file(&self, name: &str) -> String {
        self.bench
            .root()
            .canonicalize()
            .unwrap()
            .join(name)
            .to_str()
            .unwrap()
            .to_owned()
    }

    /// The program, with a user who trusts nothing yet.
    pub fn untrusting(&self, args: &[&str]) -> Command {
        let mut command = self.bench.command(args);
        command.env("XDG_CONFIG_HOME", self.home.path());
        // Servers call programs such as git.
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.untrusting(args);
        command.env("PLANWRIGHT_TRUST_PROJECT_SERVERS", "1");
        command
    }

    pub fn run(&self, args: &[&str]) -> Said {
        said(self.command(args).output().unwrap())
    }

    /// Runs a plan with everything approved, and returns its result.
    #[track_caller]
    pub fn result(&self, id: &str, steps: Value) -> Value {
        let plan = self.bench.plan(id, steps);
        self.run(&["run", &plan, "--yes", "--json"]).ends(0).json()
    }

    pub fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        Running::of(command)
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

    /// How many entries of this kind the journal of the plan's latest run has.
    pub fn count(&self, plan: &str, kind: &str) -> usize {
        self.log(plan)
            .iter()
            .filter(|entry| entry["kind"] == kind)
            .count()
    }

    /// Lines of the file that effects are counted in.
    pub fn effects(&self) -> Vec<String> {
        self.bench
            .read("effects.txt")
            .lines()
            .map(str::to_owned)
            .collect()
    }

    /// Processes that were started for this workspace and are still there.
    fn servers_left(&self) -> Vec<u32> {
        let wanted = format!("{MARK}={}", self.file(""));
        let wanted = wanted.trim_end_matches('/');
        let processes = std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let is_one = |id: &u32| {
            let environment = std::fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
            environment
                .split(|&byte| byte == 0)
                .any(|entry| entry == wanted.as_bytes())
        };
        processes.filter(is_one).collect()
    }

    /// Waits until every server of this workspace is gone.
    #[track_caller]
    pub fn leaves_no_server_behind(&self) {
        wait_until("the servers to be gone", || self.servers_left().is_empty());
    }

    /// Returns `true` if at least one server of this workspace runs.
    pub fn has_servers(&self) -> bool {
        !self.servers_left().is_empty()
    }
}

/// A file of an installed server. Its absence is a mistake of the person who runs the tests, and is
/// said.
pub fn installed(path: &str) -> PathBuf {
    let found = peers_folder().join(path);
    assert!(
        found.exists(),
        "{} is not installed: run `cargo xtask peers` first",
        found.display()
    );
    found
}

/// The folder that `cargo xtask peers` fills: `peers`, in the target directory that this test
/// program was built in.
fn peers_folder() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    let folder = tests
        .ancestors()
        .map(|folder| folder.join("peers"))
        .find(|folder| folder.is_dir());
    folder.unwrap_or_else(|| panic!("no peers are installed: run `cargo xtask peers` first"))
}

/// A program of the machine, by its path.
pub fn interpreter(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap();
    let found = std::env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|file| file.is_file());
    found
        .unwrap_or_else(|| panic!("{name} is not installed: the tests need Node, npm and Python 3"))
}
