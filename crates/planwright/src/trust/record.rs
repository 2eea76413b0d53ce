//! What the user trusts in which folders: a file of the user's, outside every workspace.
//!
//! A folder can bring a loosening, never the trust in it. An entry is bound to the folder, the name
//! of the loosening and the digest of exactly what is written: when that changes, the user is asked
//! again.

use super::ownership::{self, ForeignFile};
use crate::exit::{Exit, Failure};
use crate::workspace::principal::is_agent;
use planwright_adapters::files::{atomic_write, lock_beside};
use planwright_core::digest::Digest;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
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

/// One thing that the user trusts in one folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TrustEntry {
    #[serde(rename = "workspace")]
    pub(crate) folder: String,
    /// The name of the loosening. That of a server is its name alone; others have a space in them,
    /// which names of servers cannot have.
    #[serde(rename = "server")]
    pub(crate) name: String,
    pub(crate) digest: Digest,
    /// For people who look into the file. Nothing decides by it.
    #[serde(default, rename = "launch")]
    pub(crate) words: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct TrustFile {
    version: u32,
    trusted: Vec<TrustEntry>,
}

/// What the user said about a loosening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TrustState {
    Trusted,
    /// Something else was trusted under this name.
    Changed,
    Unknown,
}

/// What the user trusts in one folder.
#[derive(Debug)]
pub(crate) struct Trust {
    /// Where it is kept, or why nowhere.
    path: Result<PathBuf, String>,
    folder: Option<String>,
    entries: Vec<TrustEntry>,
    /// Files that others could change or did write: with one of them nothing counts.
    foreign: Vec<ForeignFile>,
    /// Why nothing in the file counts.
    problem: Option<String>,
}

impl Trust {
    /// Reads the user's file. What cannot be read trusts nothing.
    pub(crate) fn read(workspace: &Path) -> Self {
        Self::read_file(locate(workspace), workspace)
    }

    /// Reads what the file at this place says about a folder.
    pub(crate) fn read_file(path: Result<PathBuf, String>, workspace: &Path) -> Self {
        let folder = canonical(workspace).to_str().map(str::to_owned);
        let (entries, problem) = match path
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|path| load(path))
        {
            Ok(entries) => (entries, None),
            Err(problem) => (Vec::new(), Some(problem)),
        };
        let mut trust = Self {
            path,
            folder,
            entries,
            foreign: Vec::new(),
            problem,
        };
        let accepted = |uid: u32| trust.accepts_owner(uid);
        trust.foreign = ownership::find_foreign(workspace, &accepted);
        if let Some(file) = trust.foreign.first() {
            trust.problem = Some(file.to_string());
        }
        trust
    }

    /// Returns why nothing is trusted, if that is so for another reason than the user's silence.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Returns the files because of which nothing here can be trusted.
    pub(crate) fn foreign(&self) -> &[ForeignFile] {
        &self.foreign
    }

    /// Returns everything that is trusted, in every folder.
    pub(crate) fn entries(&self) -> &[TrustEntry] {
        &self.entries
    }

    /// Returns the folder as entries spell it.
    pub(crate) fn folder(&self) -> Option<&str> {
        self.folder.as_deref()
    }

    pub(crate) fn trust_state(&self, name: &str, digest: &Digest) -> TrustState {
        if !self.foreign.is_empty() {
            return TrustState::Unknown;
        }
        match self.find(name) {
            Some(entry) if entry.digest == *digest => TrustState::Trusted,
            Some(_) => TrustState::Changed,
            None => TrustState::Unknown,
        }
    }

    fn find(&self, name: &str) -> Option<&TrustEntry> {
        self.entries
            .iter()
            .find(|entry| entry.name == name && Some(&entry.folder) == self.folder.as_ref())
    }

    /// Returns whether the user said that files of this account may be used here.
    fn accepts_owner(&self, uid: u32) -> bool {
        self.find(&owner_name(uid)).is_some()
    }

    /// Trusts exactly this, in place of anything else under the same name.
    pub(crate) fn grant(&self, name: &str, digest: Digest, words: &str) -> Result<(), Failure> {
        self.grant_all([(name.to_owned(), digest, words.to_owned())])
    }

    /// Trusts exactly these, all or none.
    pub(crate) fn grant_all(
        &self,
        granted: impl IntoIterator<Item = (String, Digest, String)>,
    ) -> Result<(), Failure> {
        if let Some(file) = self.foreign.first() {
            return Err(unusable(file.to_string()).hint(file.remedy()));
        }
        self.record(granted)
    }

    /// Says that files of this account may be used in this folder.
    pub(crate) fn accept_owner(&self, uid: u32) -> Result<(), Failure> {
        let digest = Digest::of_json(&serde_json::json!({ "owner": uid }));
        let words = format!("files of {}", ownership::account(uid));
        self.record([(owner_name(uid), digest, words)])
    }

    fn record(
        &self,
        granted: impl IntoIterator<Item = (String, Digest, String)>,
    ) -> Result<(), Failure> {
        self.change(|folder, entries| {
            for (name, digest, words) in granted {
                entries.retain(|entry| !(entry.name == name && entry.folder == folder));
                entries.push(TrustEntry {
                    folder: folder.to_owned(),
                    name,
                    digest,
                    words,
                });
            }
        })
    }

    /// Takes trust in one thing back. Says whether there was any.
    pub(crate) fn revoke(&self, name: &str) -> Result<bool, Failure> {
        self.remove(|entry| entry.name == name)
            .map(|count| count > 0)
    }

    /// Takes everything in this folder back. Says how much that was.
    pub(crate) fn revoke_all(&self) -> Result<usize, Failure> {
        self.remove(|_| true)
    }

    fn remove(&self, named: impl Fn(&TrustEntry) -> bool) -> Result<usize, Failure> {
        let mut removed = 0;
        self.change(|folder, entries| {
            let before = entries.len();
            entries.retain(|entry| !(entry.folder == folder && named(entry)));
            removed = before - entries.len();
        })?;
        Ok(removed)
    }

    /// Reads, changes and writes under a lock: two programs at once lose nothing of each other.
    fn change(&self, change: impl FnOnce(&str, &mut Vec<TrustEntry>)) -> Result<(), Failure> {
        let path = self
            .path
            .as_ref()
            .map_err(|problem| unusable(problem.clone()))?;
        let folder = self.folder.as_deref();
        let folder =
            folder.ok_or_else(|| unusable("the folder's path is not Unicode".to_owned()))?;
        let failed =
            |error: &dyn std::fmt::Display| unusable(format!("{}: {error}", path.display()));
        if let Some(directory) = path.parent() {
            let made = DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(directory);
            made.map_err(|error| failed(&error))?;
        }
        let _lock = lock_beside(path).map_err(|error| failed(&error))?;
        let mut entries = load(path).map_err(unusable)?;
        change(folder, &mut entries);
        let content = TrustFile {
            version: VERSION,
            trusted: entries,
        };
        let text = serde_json::to_string_pretty(&content).map_err(|error| failed(&error))?;
        atomic_write(path, format!("{text}\n").as_bytes())
            .map_err(|error| failed(&planwright_engine::with_causes(&error)))
    }
}

/// The name under which files of another account are accepted.
fn owner_name(uid: u32) -> String {
    format!("owner {uid}")
}

fn unusable(problem: String) -> Failure {
    Failure::new(
        Exit::Refused,
        format!("trust cannot be recorded: {problem}"),
    )
    .hint("PLANWRIGHT_TRUST_FILE names another file")
}

/// The user's file. One inside the workspace would be a word of the project, so it does not count.
/// An agent does not choose which file says what is trusted.
fn locate(workspace: &Path) -> Result<PathBuf, String> {
    let named = std::env::var_os("PLANWRIGHT_TRUST_FILE").map(PathBuf::from);
    let named = named.filter(|_| !is_agent());
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
pub(crate) fn is_inside(path: &Path, directory: &Path) -> bool {
    let existing = path.ancestors().find(|above| above.exists());
    existing.is_some_and(|above| canonical(above).starts_with(canonical(directory)))
}

fn canonical(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn load(path: &Path) -> Result<Vec<TrustEntry>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(failed(&error)),
    };
    let found = file.metadata().map_err(|error| failed(&error))?;
    if !ownership::is_own(found.uid()) {
        let owner = ownership::account(found.uid());
        return Err(failed(&format!(
            "it belongs to {owner}, so nothing in it counts"
        )));
    }
    if found.permissions().mode() & 0o022 != 0 {
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
