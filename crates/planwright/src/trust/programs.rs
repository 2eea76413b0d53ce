//! What a person has to see before a program of the workspace is started: a server or an executor.

use super::{Loosening, Subject};
use crate::config::executors::ExecutorTable;
use crate::workspace::servers::{Launch, ListedServer};
use serde_json::json;
use std::path::Path;

/// Variables by which a file decides which program runs, or what it loads first.
const STEERING: [&str; 8] = [
    "PATH",
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "BASH_ENV",
    "GIT_SSH_COMMAND",
];

/// Describes a server as what it is: a program that is started, or an address that is told things.
pub(crate) fn server_loosening(server: &ListedServer, workspace: &Path) -> Loosening {
    let Launch {
        kind: _,
        command,
        args,
        env,
        cwd,
        url,
        headers,
        env_file,
        headers_helper,
    } = &server.launch;
    let value = match url {
        Some(url) => format!("calls are sent to {url}"),
        None => "a program is started with your rights, and its tools can be called".to_owned(),
    };
    let mut loosening = Loosening::new(
        Subject::Server(server.name.clone()),
        server.source.to_string(),
        format!("server {}", server.name),
        value,
        &json!(null),
    );
    loosening.digest = server.digest;
    if let Some(command) = command {
        let words: Vec<&String> = std::iter::once(command).chain(args).collect();
        let directory = cwd.as_deref().unwrap_or(".");
        loosening = loosening.part("command", server.launch.line());
        if cwd.is_some() {
            loosening = loosening.part("directory", directory);
        }
        loosening = warn_of_own_files(loosening, workspace, Path::new(directory), words);
        // A bare name is looked for in the path that the file gives.
        if env.contains_key("PATH") && !command.contains('/') {
            loosening = loosening.warning(format!(
                "{command:?} is looked for in the PATH that this file sets"
            ));
        }
    }
    for (name, value) in env {
        loosening = loosening.part("variable", format!("{name} = {value}"));
        if name != "PATH" && STEERING.contains(&name.as_str()) {
            loosening = loosening.warning(format!("{name} can make it run something else"));
        }
    }
    if let Some(file) = env_file {
        loosening = loosening.part("variables of", file);
    }
    if let Some(helper) = headers_helper {
        loosening = loosening.part("headers of", helper);
        loosening = loosening.warning("this command is run with your rights");
    }
    for (name, value) in headers {
        loosening = loosening.part("header", format!("{name}: {value}"));
    }
    if server.is_believed() {
        loosening = loosening.warning(
            "which of its tools only read is its own word, and those are called without asking",
        );
    }
    loosening
}

/// Describes an executor with the files of the project that it would start.
pub(crate) fn executor_loosening(name: &str, table: &ExecutorTable, workspace: &Path) -> Loosening {
    let directory = table.cwd.as_deref().unwrap_or_else(|| Path::new("."));
    warn_of_own_files(
        table.loosening(name),
        workspace,
        directory,
        &table.launch_line(name),
    )
}

/// Warns about words of a launch line that are files of the project: the digest of the line does
/// not cover their content.
fn warn_of_own_files<'a>(
    mut loosening: Loosening,
    workspace: &Path,
    directory: &Path,
    words: impl IntoIterator<Item = &'a String>,
) -> Loosening {
    let from = workspace.join(directory);
    let is_own = |word: &&String| {
        let looks_like_a_path = word.contains('/') || word.contains('.');
        looks_like_a_path && from.join(word).is_file() && from.join(word).starts_with(workspace)
    };
    for file in words.into_iter().filter(is_own) {
        loosening = loosening.warning(format!(
            "`{file}` is a file of this project: anyone who can change it decides what runs"
        ));
    }
    loosening
}
