//! Prompts that users write themselves: `NAME.md` in `.plans/prompts`, or in their own directory
//! for all workspaces.

use crate::exit::Failure;
use crate::workspace::servers;
use planwright_core::planning::Prompts;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::Path;

/// The folder, in `.plans` and in the user's own directory.
const FOLDER: &str = "prompts";

/// More files are not prompts.
const MAX_FILES: usize = 100;

/// The prompts of the workspace, and those of the user where the workspace has none.
pub(crate) fn read(plans: &Path) -> Result<Prompts, Failure> {
    let mut prompts = Prompts::default();
    // The workspace's word comes last, and so it counts.
    for folder in [servers::home(), Some(plans.to_owned())]
        .into_iter()
        .flatten()
    {
        prompts = read_folder(&folder.join(FOLDER), prompts)?;
    }
    Ok(prompts)
}

fn read_folder(folder: &Path, mut prompts: Prompts) -> Result<Prompts, Failure> {
    let unreadable = |path: &Path, error: &std::io::Error| {
        Failure::usage(format!(
            "cannot read the prompt {}: {error}",
            path.display()
        ))
    };
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(prompts);
        }
        Err(error) => return Err(unreadable(folder, &error)),
    };
    for entry in entries.take(MAX_FILES) {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let name = path
            .file_stem()
            .and_then(|name| name.to_str())
            .map(str::to_owned);
        let Some(name) = name.filter(|_| path.extension().is_some_and(|ending| ending == "md"))
        else {
            continue;
        };
        let mut text = String::new();
        // One byte more than allowed is enough to know that it is too much.
        let most = Prompts::MAX_BYTES as u64 + 1;
        let read = File::open(&path).and_then(|file| file.take(most).read_to_string(&mut text));
        read.map_err(|error| unreadable(&path, &error))?;
        prompts = prompts.with_prompt(name, text);
    }
    Ok(prompts)
}
