//! The files in `.plans` that hold plain text: written from the journal, and not needed by it.

use crate::workspace::app::{GITIGNORE, Workspace};
use planwright_core::id::PlanId;
use std::io;
use std::path::{Path, PathBuf};

/// How deep `.plans` is looked through.
const DEEPEST: usize = 8;

/// What lies in `.plans` besides the store.
#[derive(Debug, Default)]
pub(super) struct PlainFiles {
    /// Files this program wrote from the journal.
    pub(super) ours: Vec<PathBuf>,
    /// Anything else: it is left alone, and named.
    pub(super) others: Vec<PathBuf>,
}

impl PlainFiles {
    pub(super) fn find(workspace: &Workspace) -> io::Result<Self> {
        let mut found = Self::default();
        found.look(workspace, &workspace.plans, 0)?;
        found.ours.sort();
        found.others.sort();
        Ok(found)
    }

    fn look(&mut self, workspace: &Workspace, directory: &Path, depth: usize) -> io::Result<()> {
        let entries = match std::fs::read_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            let path = entry.path();
            // The file that hides the folder from git says nothing about plans.
            let hides = path == workspace.plans.join(GITIGNORE);
            if hides || belongs_to_store(workspace, &path) {
                continue;
            }
            if entry.file_type()?.is_dir() && depth < DEEPEST {
                self.look(workspace, &path, depth + 1)?;
            } else if is_ours(&workspace.plans, &path) && entry.file_type()?.is_file() {
                self.ours.push(path);
            } else {
                self.others.push(path);
            }
        }
        Ok(())
    }

    /// Removes our own, and the directories that are empty then.
    pub(super) fn remove(&self, workspace: &Workspace) -> io::Result<()> {
        for path in &self.ours {
            match std::fs::remove_file(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
            let above = path
                .ancestors()
                .skip(1)
                .take_while(|above| *above != workspace.plans);
            for directory in above {
                // Other files stay, and their directory with them.
                if std::fs::remove_dir(directory).is_err() {
                    break;
                }
            }
        }
        Ok(())
    }
}

/// The database and everything whose name begins with its own.
fn belongs_to_store(workspace: &Workspace, path: &Path) -> bool {
    let database = workspace.database.as_os_str().as_encoded_bytes();
    path.as_os_str().as_encoded_bytes().starts_with(database)
}

fn is_ours(plans: &Path, path: &Path) -> bool {
    let Ok(inside) = path.strip_prefix(plans) else {
        return false;
    };
    let parts: Vec<&str> = inside.iter().filter_map(|part| part.to_str()).collect();
    let of_plan = |plan: &str, rest: &[&str]| {
        plan.parse::<PlanId>().is_ok()
            && match rest {
                [name] => {
                    matches!(*name, "plan.json" | "plan.md" | "session.jsonl")
                        || name.starts_with(".tmp-")
                }
                ["artifacts", ..] => true,
                _ => false,
            }
    };
    match parts.as_slice() {
        ["logs", ..] => true,
        ["archive", plan, rest @ ..] => of_plan(plan, rest),
        [plan, rest @ ..] => of_plan(plan, rest),
        [] => false,
    }
}
