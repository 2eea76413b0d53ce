//! Whose files these are. What another account wrote, or can rewrite, is not the user's word.

use rustix::process::{geteuid, getuid};
use std::fmt;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// What is looked at, relative to the workspace.
const FILES: [&str; 7] = [
    "",
    "planwright.toml",
    ".mcp.json",
    ".vscode",
    ".vscode/mcp.json",
    ".plans",
    ".plans/prompts",
];

const STICKY: u32 = 0o1000;
const OTHERS_WRITE: u32 = 0o002;

/// A file of the workspace that another account wrote or can rewrite.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ForeignFile {
    pub(crate) path: PathBuf,
    pub(crate) problem: Problem,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It belongs to this account.
    Owner(u32),
    /// Every account can write to it; it belongs to this one.
    Writable(u32),
}

impl fmt::Display for ForeignFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match self.problem {
            Problem::Owner(uid) => {
                write!(f, "{path} belongs to {}, not to you", account(uid))
            }
            Problem::Writable(_) => write!(f, "every account can write to {path}"),
        }
    }
}

impl ForeignFile {
    /// Returns whether another account owns it.
    pub(crate) fn has_other_owner(&self) -> bool {
        matches!(self.problem, Problem::Owner(_))
    }

    /// What the user can do about it.
    pub(crate) fn remedy(&self) -> String {
        match self.problem {
            Problem::Owner(uid) => format!(
                "planwright trust --owner {uid} if you know that account and use its files here"
            ),
            Problem::Writable(uid) => format!(
                "chmod o-w {}; on a disk that has no modes, planwright trust --owner {uid}",
                self.path.display()
            ),
        }
    }
}

/// Finds what is not the user's in a workspace. Files of an account that `accepted` says yes to
/// count as the user's, with any mode.
pub(crate) fn find_foreign(workspace: &Path, accepted: &dyn Fn(u32) -> bool) -> Vec<ForeignFile> {
    let look = |name: &&str| {
        let path = if name.is_empty() {
            workspace.to_owned()
        } else {
            workspace.join(name)
        };
        let problem = judge(&std::fs::metadata(&path).ok()?, accepted)?;
        Some(ForeignFile { path, problem })
    };
    FILES.iter().filter_map(look).collect()
}

/// Returns the account that a folder above, or the plans in it, belongs to, if it is not the user.
pub(crate) fn foreign_owner(folder: &Path, plans: &Path) -> Option<ForeignFile> {
    [folder, plans].into_iter().find_map(|path| {
        let found = std::fs::metadata(path).ok()?;
        (!is_own(found.uid())).then(|| ForeignFile {
            path: path.to_owned(),
            problem: Problem::Owner(found.uid()),
        })
    })
}

fn judge(found: &Metadata, accepted: &dyn Fn(u32) -> bool) -> Option<Problem> {
    let uid = found.uid();
    let mode = found.mode();
    if accepted(uid) {
        return None;
    }
    if !is_own(uid) {
        return Some(Problem::Owner(uid));
    }
    // In a sticky directory others can add files, and each file's owner is looked at by itself.
    let shared = found.is_dir() && mode & STICKY != 0;
    (mode & OTHERS_WRITE != 0 && !shared).then_some(Problem::Writable(uid))
}

/// Returns whether what this account wrote is the user's word: the user's own, the one who became
/// root by sudo, and root, who can change everything anyway.
pub(crate) fn is_own(uid: u32) -> bool {
    let is_root = geteuid().is_root();
    let behind_sudo = || {
        let named = std::env::var("SUDO_UID").ok()?;
        named.parse::<u32>().ok()
    };
    uid == 0
        || uid == geteuid().as_raw()
        || uid == getuid().as_raw()
        || is_root && behind_sudo() == Some(uid)
}

/// Returns whether only the user could have written this.
pub(super) fn is_users(found: &Metadata) -> bool {
    judge(found, &|_| false).is_none()
}

/// An account as people know it.
pub(crate) fn account(uid: u32) -> String {
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let name = accounts.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        (fields.nth(1)?.parse() == Ok(uid)).then(|| name.to_owned())
    });
    match name {
        Some(name) => format!("{name} (uid {uid})"),
        None => format!("uid {uid}"),
    }
}
