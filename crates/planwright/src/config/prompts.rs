//! Prompts that users write themselves: `NAME.md` in `.plans/prompts`, or in their own directory
//! for all workspaces.

use crate::exit::Failure;
use crate::trust::{Loosening, Subject, home};
use planwright_core::planning::Prompts;
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// The folder, in `.plans` and in the user's own directory.
const FOLDER: &str = "prompts";

/// More files are not prompts.
const MAX_FILES: usize = 100;

/// A prompt that a file replaces.
#[derive(Debug, Clone)]
pub(crate) struct ReplacedPrompt {
    pub(crate) name: String,
    pub(crate) text: String,
}

impl ReplacedPrompt {
    /// What it means in a workspace.
    pub(crate) fn loosening(&self) -> Loosening {
        let Self { name, text } = self;
        let mut loosening = Loosening::new(
            Subject::Prompt(name.clone()),
            format!(".plans/{FOLDER}"),
            format!("{name}.md"),
            format!(
                "models are told this instead of the prompt `{name}` ({} bytes)",
                text.len()
            ),
            &json!(text),
        );
        loosening.content = Some(text.clone());
        loosening
    }
}

/// The prompts of a workspace, and what is wrong with those that are not read.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkspacePrompts {
    pub(crate) prompts: Vec<ReplacedPrompt>,
    pub(crate) problems: Vec<String>,
}

/// Reads the prompts of a workspace. A link that leads out of it is not followed: what is there is
/// the user's, and a model would be told it.
pub(crate) fn read_workspace_prompts(root: &Path, plans: &Path) -> WorkspacePrompts {
    let mut read = WorkspacePrompts::default();
    let root = root.canonicalize().unwrap_or_else(|_| root.to_owned());
    let paths = match list(&plans.join(FOLDER)) {
        Ok(paths) => paths,
        Err(failure) => {
            read.problems.push(failure.message);
            return read;
        }
    };
    for (name, path) in paths {
        let inside = path
            .canonicalize()
            .is_ok_and(|real| real.starts_with(&root));
        if !inside {
            read.problems.push(format!(
                "the prompt {} is a link out of the workspace, and so ignored",
                path.display()
            ));
            continue;
        }
        match read_text(&path) {
            Ok(text) => read.prompts.push(ReplacedPrompt { name, text }),
            Err(failure) => read.problems.push(failure.message),
        }
    }
    read
}

/// The user's own prompts, and these of the workspace in their place.
pub(crate) fn merge_prompts(workspace: Vec<ReplacedPrompt>) -> Result<Prompts, Failure> {
    let mut prompts = Prompts::default();
    if let Some(home) = home() {
        for (name, path) in list(&home.join(FOLDER))? {
            prompts = prompts.with_prompt(name, read_text(&path)?);
        }
    }
    // The workspace's word comes last, and so it counts.
    for ReplacedPrompt { name, text } in workspace {
        prompts = prompts.with_prompt(name, text);
    }
    Ok(prompts)
}

/// The prompts in a folder, by name.
fn list(folder: &Path) -> Result<Vec<(String, PathBuf)>, Failure> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        Err(error) => return Err(unreadable(folder, &error)),
    };
    let mut found = Vec::new();
    for entry in entries.take(MAX_FILES) {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let name = path.file_stem().and_then(|name| name.to_str());
        let is_prompt = path.extension().is_some_and(|ending| ending == "md");
        if let Some(name) = name.filter(|_| is_prompt) {
            found.push((name.to_owned(), path));
        }
    }
    found.sort();
    Ok(found)
}

fn read_text(path: &Path) -> Result<String, Failure> {
    // A pipe in place of the file would never end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let failed = |error: std::io::Error| unreadable(path, &error);
    let file =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|error| failed(error.into()))?;
    let file = File::from(file);
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(unreadable(path, &"it is not a file"));
    }
    let mut text = String::new();
    // One byte more than allowed is enough to know that it is too much.
    let most = Prompts::MAX_BYTES as u64 + 1;
    file.take(most).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

fn unreadable(path: &Path, problem: &dyn std::fmt::Display) -> Failure {
    Failure::usage(format!(
        "cannot read the prompt {}: {problem}",
        path.display()
    ))
}
