//! Which servers of which projects the user trusts: a file of the user's, outside every workspace.
//!
//! A project can bring a server, never the trust in it. An entry is bound to the workspace, the
//! server's name and the digest of the launch line as it is written: when that changes, the user is
//! asked again.

use crate::exit::{Exit, Failure};
use planwright_adapters::files::atomic_write;
use planwright_core::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Larger files are not read.
const MAX_BYTES: u64 = 4 << 20;
const VERSION: u32 = 1;

/// The user's directory for this program: `$XDG_CONFIG_HOME/planwright`, else
/// `~/.config/planwright`.
pub(crate) fn home() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("planwright"))
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct TrustEntry {
    workspace: String,
    server: String,
    digest: Digest,
    /// For people who look into the file. Nothing reads it.
    #[serde(default)]
    launch: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    trusted: Vec<TrustEntry>,
}

/// What the user said about a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustState {
    Trusted,
    /// Another launch line was trusted under this name.
    Changed,
    Unknown,
}

/// What the user trusts in one workspace.
#[derive(Debug)]
pub(crate) struct Trust {
    /// Where it is kept, or why nowhere.
    path: Result<PathBuf, String>,
    workspace: Option<String>,
    entries: Vec<TrustEntry>,
    /// Why nothing in the file counts.
    problem: Option<String>,
}

impl Trust {
    /// Reads the file. What cannot be read trusts nothing.
    pub(crate) fn read(workspace: &Path) -> Self {
        let path = locate(workspace);
        let root = canonical(workspace).to_str().map(str::to_owned);
        let (entries, problem) = match path
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|path| load(path))
        {
            Ok(entries) => (entries, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        Self {
            path,
            workspace: root,
            entries,
            problem,
        }
    }

    /// Returns why nothing is trusted, if that is so for another reason than the user's silence.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    pub(crate) fn trust_state(&self, server: &str, digest: &Digest) -> TrustState {
        let mut named = self.entries.iter().filter(|entry| {
            entry.server == server && Some(&entry.workspace) == self.workspace.as_ref()
        });
        match named.next() {
            Some(entry) if entry.digest == *digest => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Unknown,
        }
    }

    /// Trusts this launch line, in place of any other under the same name.
    pub(crate) fn grant(&self, server: &str, digest: Digest, launch: &str) -> Result<(), Failure> {
        self.change(|workspace, entries| {
            entries.retain(|entry| !(entry.server == server && entry.workspace == workspace));
            entries.push(TrustEntry {
                workspace: workspace.to_owned(),
                server: server.to_owned(),
                digest,
                launch: launch.to_owned(),
            });
        })
    }

    /// Takes trust back. Says whether there was any.
    pub(crate) fn revoke(&self, server: &str) -> Result<bool, Failure> {
        let mut found = false;
        self.change(|workspace, entries| {
            let before = entries.len();
            entries.retain(|entry| !(entry.server == server && entry.workspace == workspace));
            found = entries.len() < before;
        })?;
        Ok(found)
    }

    /// Reads, changes and writes under a lock: two programs at once lose nothing of each other.
    fn change(&self, change: impl FnOnce(&str, &mut Vec<TrustEntry>)) -> Result<(), Failure> {
        let path = self
            .path
            .as_ref()
            .map_err(|problem| unusable(problem.clone()))?;
        let workspace = self.workspace.as_deref();
        let workspace =
            workspace.ok_or_else(|| unusable("the workspace's path is not Unicode".to_owned()))?;
        let failed =
            |error: &dyn std::fmt::Display| unusable(format!("{}: {error}", path.display()));
        if let Some(directory) = path.parent() {
            let made = DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory);
            made.map_err(|error| failed(&error))?;
        }
        let _lock = lock(path).map_err(|error| failed(&error))?;
        let mut entries = load(path).map_err(unusable)?;
        change(workspace, &mut entries);
        let content = TrustFile {
            version: VERSION,
            trusted: entries,
        };
        let text = serde_json::to_string_pretty(&content).map_err(|error| failed(&error))?;
        atomic_write(path, format!("{text}\n").as_bytes())
            .map_err(|error| failed(&planwright_engine::with_causes(&error)))
    }
}

fn unusable(problem: String) -> Failure {
    Failure::new(
        Exit::Refused,
        format!("trust cannot be recorded: {problem}"),
    )
    .hint("PLANWRIGHT_TRUST_FILE names another file")
}

/// The user's file. One inside the workspace would be a word of the project, so it does not count.
fn locate(workspace: &Path) -> Result<PathBuf, String> {
    let named = std::env::var_os("PLANWRIGHT_TRUST_FILE").map(PathBuf::from);
    let path = match named.filter(|path| !path.as_os_str().is_empty()) {
        Some(path) if path.is_absolute() => path,
        Some(_) => return Err("PLANWRIGHT_TRUST_FILE is not an absolute path".to_owned()),
        None => home()
            .ok_or("there is no HOME or XDG_CONFIG_HOME to keep it in")?
            .join("trust.json"),
    };
    if is_inside(&path, workspace) {
        return Err(format!(
            "{} lies in the workspace, where plans can write",
            path.display()
        ));
    }
    Ok(path)
}

/// Returns whether a file is, or would be, below a directory, links followed.
pub(super) fn is_inside(path: &Path, directory: &Path) -> bool {
    let existing = path.ancestors().find(|above| above.exists());
    existing.is_some_and(|above| canonical(above).starts_with(canonical(directory)))
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn lock(path: &Path) -> std::io::Result<File> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let file = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&name)?;
    file.lock()?;
    Ok(file)
}

fn load(path: &Path) -> Result<Vec<TrustEntry>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error)),
    };
    let mode = file
        .metadata()
        .map_err(|error| failed(&error))?
        .permissions()
        .mode();
    if mode & 0o022 != 0 {
        return Err(failed(
            &"others can write to it, so nothing in it counts (chmod go-w)",
        ));
    }
    let mut text = String::new();
    file.take(MAX_BYTES + 1)
        .read_to_string(&mut text)
        .map_err(|error| failed(&error))?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed(&"it is too large to be a trust file"));
    }
    let content: TrustFile = serde_json::from_str(&text).map_err(|error| failed(&error))?;
    if content.version != VERSION {
        return Err(failed(&format!(
            "version {} is not known here",
            content.version
        )));
    }
    Ok(content.trusted)
}
