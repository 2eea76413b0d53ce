//! The user's key, by which stores are theirs: a file of the user's, outside every store.
//!
//! No file of a workspace can say where it is, and neither can an agent: who chooses the key chooses
//! whose approvals count.

use super::record::{home, is_inside};
use crate::config::file::Config;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::Printer;
use crate::workspace::principal::is_agent;
use planwright_adapters::signing::{KeyFileError, KeyOrigin, SigningKey};
use planwright_adapters::sqlite::StoreOwner;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const VARIABLE: &str = "PLANWRIGHT_STORE_KEY_FILE";
const FILE: &str = "store.key";

/// What the key is needed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyUse {
    /// To look at stores: a user without a key owns none.
    Read,
    /// To write: a key is made if there is none.
    Write,
}

impl From<KeyFileError> for Failure {
    fn from(error: KeyFileError) -> Self {
        let failure = Self::from_error(Exit::Refused, &error);
        match error {
            KeyFileError::OpenToOthers { path, .. } => {
                failure.hint(format!("chmod 600 {}", path.display()))
            }
            KeyFileError::NotOurs { .. } | KeyFileError::Io { .. } => failure.hint(format!(
                "{VARIABLE}, or [store] key_file in your own planwright.toml, names another file"
            )),
            KeyFileError::NotAKey(_) => failure
                .hint("put the file back, or move it away: stores of its key are adopted anew"),
            KeyFileError::Copied(_) => {
                failure.hint(format!("{VARIABLE} names a file outside of the workspace"))
            }
            KeyFileError::Random(_) => failure,
        }
    }
}

/// Says who opens a store in this workspace.
pub(crate) fn find_store_owner(
    (config, workspace): (&Config, &Path),
    needed: KeyUse,
    printer: Printer,
) -> Result<StoreOwner, Failure> {
    let read = read_store_key(config, workspace, needed);
    match (read, needed) {
        (Ok(Some(key)), _) => Ok(StoreOwner::Key(Arc::new(key))),
        (Ok(None), _) => Ok(StoreOwner::Unknown),
        (Err(failure), KeyUse::Write) => Err(failure),
        (Err(failure), KeyUse::Read) => {
            printer.warn(&format!("no store is yours: {}", failure.message));
            Ok(StoreOwner::Unknown)
        }
    }
}

/// Reads the user's key; for writing, makes one if there is none.
pub(crate) fn read_store_key(
    config: &Config,
    workspace: &Path,
    needed: KeyUse,
) -> Result<Option<SigningKey>, Failure> {
    let (path, origin) = locate(config, workspace)?;
    Ok(match needed {
        KeyUse::Read => SigningKey::read(&path, origin)?,
        KeyUse::Write => Some(SigningKey::read_or_create(&path, origin)?),
    })
}

/// The user's file, and where it may come from. One that was named may be shared by machines.
fn locate(config: &Config, workspace: &Path) -> Result<(PathBuf, KeyOrigin), Failure> {
    let variable = std::env::var_os(VARIABLE).map(PathBuf::from);
    let variable = variable.filter(|path| !path.as_os_str().is_empty() && !is_agent());
    if let Some(path) = &variable
        && !path.is_absolute()
    {
        return Err(Failure::usage(format!(
            "{VARIABLE} is not an absolute path"
        )));
    }
    let named = variable.or_else(|| config.store_key_file());
    if let Some(path) = named {
        if is_inside(&path, workspace) {
            return Err(Failure::refused(format!(
                "the key file {} lies in the workspace, where plans can write",
                path.display()
            ))
            .hint("keep it elsewhere, for yourself only"));
        }
        return Ok((path, KeyOrigin::Anywhere));
    }
    let home = home().ok_or_else(|| {
        Failure::refused("there is no place for the key that makes stores yours").hint(format!(
            "set HOME or XDG_CONFIG_HOME, or name a file with {VARIABLE}"
        ))
    })?;
    let path = home.join(FILE);
    // In one's home directory the file is in the workspace, and a clone could bring one there.
    let origin = match is_inside(&path, workspace) {
        true => KeyOrigin::MadeHere,
        false => KeyOrigin::Anywhere,
    };
    Ok((path, origin))
}
