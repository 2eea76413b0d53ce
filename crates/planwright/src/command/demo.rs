//! `demo`: the whole story, with the real program: review, approval, a parallel run, kill -9,
//! recovery, audit.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, Printer};
use crate::workspace::principal::is_agent;
use crate::workspace::store_address::{VARIABLE, WORKSPACE_FILE};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Keep the workspace, to look around in it afterwards.
    #[arg(long)]
    keep: bool,
}

const PLAN: &str = "release-notes";
/// How long the first run may take to get to where it is killed.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) fn run(
    printer: Printer,
    dir: Option<&Path>,
    store: Option<&str>,
    args: &Args,
) -> Result<Exit, Failure> {
    let mut stage = Stage::set(printer, dir, args.keep)?;
    if let Some(store) = store {
        stage.store = store.to_owned();
    }
    let told = stage.tell();
    stage.clear();
    told.map(|()| Exit::Done)
}

/// A workspace, and the program that is shown in it.
struct Stage {
    printer: Printer,
    program: PathBuf,
    workspace: PathBuf,
    /// Made for the demo, and removed after it.
    temporary: bool,
    /// The workspace's own, if the command line does not name another: no demo gets into a team's store by
    /// a variable.
    store: String,
}

impl Stage {
    fn set(printer: Printer, dir: Option<&Path>, keep: bool) -> Result<Self, Failure> {
        let failed = |error: std::io::Error| {
            Failure::new(Exit::RunFailed, format!("cannot set the stage: {error}"))
        };
        let program = std::env::current_exe().map_err(failed)?;
        let (workspace, temporary) = match dir.filter(|dir| !dir.as_os_str().is_empty()) {
            Some(dir) => {
                std::fs::create_dir_all(dir).map_err(failed)?;
                let mut found = std::fs::read_dir(dir).map_err(failed)?;
                if found.next().is_some() {
                    return Err(Failure::usage(format!("{} is not empty", dir.display()))
                        .hint("the demo writes files: give it an empty directory"));
                }
                (dir.to_owned(), false)
            }
            None => {
                let name = format!("planwright-demo-{}", std::process::id());
                let workspace = std::env::temp_dir().join(name);
                std::fs::create_dir(&workspace).map_err(failed)?;
                (workspace, !keep)
            }
        };
        let workspace = workspace.canonicalize().map_err(failed)?;
        std::fs::create_dir_all(workspace.join("src")).map_err(failed)?;
        for (name, text) in [
            ("auth.txt", "login, logout, refresh"),
            ("billing.txt", "invoices, refunds"),
        ] {
            std::fs::write(workspace.join("src").join(name), text).map_err(failed)?;
        }
        std::fs::write(workspace.join("plan.json"), format!("{:#}\n", plan())).map_err(failed)?;
        Ok(Self {
            printer,
            program,
            workspace,
            temporary,
            store: WORKSPACE_FILE.to_owned(),
        })
    }

    fn tell(&self) -> Result<(), Failure> {
        self.chapter("1. A plan is data. It is checked before anything else.");
        self.show(&["validate", "plan.json"])?;
        self.show(&["import", "plan.json"])?;
        self.show(&["show", PLAN])?;
        self.chapter("2. It is not approved, so it does not run.");
        self.show_refused(&["run", PLAN])?;
        self.chapter("3. A person approves exactly what was shown, by its digest.");
        let digest = self.digest()?;
        if is_agent() {
            // Playing the person would be an agent's way to a person's approval.
            self.show_refused(&["approve", PLAN, "--digest", &digest])?;
            self.printer.talk(
                "\nThis shell belongs to an agent, so no person can approve here, and the demo ends. Start it in a terminal \
                 of your own to see the run, the crash and the recovery.",
            );
            return Ok(());
        }
        self.show(&["approve", PLAN, "--digest", &digest])?;
        self.chapter("4. It runs in parallel. In the middle, the process is killed with SIGKILL.");
        self.crash()?;
        self.show(&["list"])?;
        self.chapter("5. Resuming repeats nothing that was done.");
        self.show(&["resume", PLAN])?;
        self.chapter("6. The journal has everything, and can prove it.");
        self.show(&["log", PLAN])?;
        self.show(&["replay", PLAN, "--offline"])?;
        self.show(&["verify"])?;
        let note = std::fs::read_to_string(self.workspace.join("notes.txt")).unwrap_or_default();
        self.printer.talk(&format!(
            "\nnotes.txt, written by the plan:\n{}",
            crate::terminal::printer::block(&note)
        ));
        Ok(())
    }

    fn chapter(&self, title: &str) {
        self.printer
            .talk(&format!("\n{}", self.printer.err(BOLD, title)));
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .current_dir(&self.workspace)
            .stdin(Stdio::null());
        command
            .env("PLANWRIGHT_DIR", &self.workspace)
            .env(VARIABLE, &self.store)
            .env_remove("PLAN_RUNTIME_STORE_PATH");
        // What is shown is talk: it goes where the chapters go, in their order.
        command.stdout(std::io::stderr()).stderr(std::io::stderr());
        command
    }

    fn announce(&self, args: &[&str]) {
        self.printer.talk(
            &self
                .printer
                .err(DIM, &format!("$ planwright {}", args.join(" "))),
        );
    }

    fn show(&self, args: &[&str]) -> Result<(), Failure> {
        self.expect(args, Exit::Done)
    }

    fn show_refused(&self, args: &[&str]) -> Result<(), Failure> {
        self.expect(args, Exit::Refused)
    }

    fn expect(&self, args: &[&str], exit: Exit) -> Result<(), Failure> {
        self.announce(args);
        let status = self
            .command(args)
            .status()
            .map_err(|error| self.broken(args, &error.to_string()))?;
        if status.code() == Some(exit.code().into()) {
            Ok(())
        } else {
            Err(self.broken(args, &status.to_string()))
        }
    }

    fn broken(&self, args: &[&str], how: &str) -> Failure {
        Failure::new(
            Exit::RunFailed,
            format!(
                "the demo expected otherwise of `planwright {}`: {how}",
                args.join(" ")
            ),
        )
    }

    fn document(&self, args: &[&str]) -> Result<Value, Failure> {
        let output = self.command(args).stdout(Stdio::piped()).output();
        let output = output.map_err(|error| self.broken(args, &error.to_string()))?;
        serde_json::from_slice(&output.stdout)
            .map_err(|error| self.broken(args, &error.to_string()))
    }

    fn digest(&self) -> Result<String, Failure> {
        let shown = self.document(&["show", PLAN, "--json"])?;
        Ok(shown["digest"].as_str().unwrap_or_default().to_owned())
    }

    /// Runs the plan in a process of its own and kills it once two steps are done.
    fn crash(&self) -> Result<(), Failure> {
        let args = ["run", PLAN];
        self.announce(&args);
        let mut child = self
            .command(&args)
            .spawn()
            .map_err(|error| self.broken(&args, &error.to_string()))?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE && !self.workspace.join("draft.txt").exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        if let Some(pid) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
            // It may have ended by itself, which the next line shows.
            let _ = kill_process(pid, Signal::KILL);
        }
        let status = child
            .wait()
            .map_err(|error| self.broken(&args, &error.to_string()))?;
        self.printer.talk(
            &self
                .printer
                .err(DIM, &format!("(the process ended: {status})")),
        );
        if status.success() {
            Err(self.broken(&args, "it was over before it could be killed"))
        } else {
            Ok(())
        }
    }

    fn clear(&self) {
        if self.temporary {
            // What stays is in the system's temporary directory.
            drop(std::fs::remove_dir_all(&self.workspace));
        } else {
            self.printer
                .talk(&format!("the workspace is {}", self.workspace.display()));
        }
    }
}

/// Two files are read at the same time while two checks go on; then the notes are written.
fn plan() -> Value {
    json!({
        "id": PLAN,
        "title": "Write the release notes",
        "goal": "Collect what changed and write it down.",
        "steps": [
            { "id": "auth", "title": "Read the changes of auth", "tool": "local.read_file",
              "args": { "path": "src/auth.txt" } },
            { "id": "billing", "title": "Read the changes of billing", "tool": "local.read_file",
              "args": { "path": "src/billing.txt" } },
            { "id": "first_draft", "title": "Write a draft", "tool": "local.write_file",
              "args": { "path": "draft.txt", "content": "auth: ${auth}\nbilling: ${billing}\n" } },
            { "id": "links", "title": "Check the links", "tool": "demo.sleep",
              "args": { "ms": 1200, "value": "all links work" }, "dependsOn": ["first_draft"] },
            { "id": "spelling", "title": "Check the spelling", "tool": "demo.sleep",
              "args": { "ms": 900, "value": "no mistakes" }, "dependsOn": ["first_draft"] },
            { "id": "notes", "title": "Write the notes", "tool": "local.write_file",
              "args": { "path": "notes.txt",
                        "content": "auth: ${auth}\nbilling: ${billing}\n${links}, ${spelling}\n" } },
        ],
    })
}
