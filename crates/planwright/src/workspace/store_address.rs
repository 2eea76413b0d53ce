//! Which store a command uses: the one of the workspace, or a Postgres database that is named.

use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use planwright_adapters::postgres::{Location, LocationError, OpenPostgresError};
use planwright_adapters::store_copy::CopySide;
use planwright_engine::port::{
    Answers, Artifacts, Outbox, Passes, Passkeys, RetentionStore, Store, Tokens,
};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

/// The variable that names the store of every command.
pub(crate) const VARIABLE: &str = "PLANWRIGHT_STORE";
/// Names the file of the workspace, also where the configuration names a database.
pub(crate) const WORKSPACE_FILE: &str = "sqlite";
/// The variable with the password, as other programs for Postgres read it.
const PASSWORD_VARIABLE: &str = "PGPASSWORD";

/// A database that serves every port.
pub(crate) trait WholeStore:
    Store + Tokens + Passes + Passkeys + Answers + Outbox + RetentionStore
{
}

impl<T: Store + Tokens + Passes + Passkeys + Answers + Outbox + RetentionStore> WholeStore for T {}

/// A store as `store copy` names it.
#[derive(Debug, Clone)]
pub(crate) enum StoreAddress {
    /// The file of the workspace.
    Workspace,
    /// The file of another one.
    File(PathBuf),
    Database(Box<Location>),
}

impl PartialEq for StoreAddress {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}

impl fmt::Display for StoreAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Workspace => f.write_str(WORKSPACE_FILE),
            Self::File(path) => write!(f, "{WORKSPACE_FILE}:{}", path.display()),
            Self::Database(location) => location.fmt(f),
        }
    }
}

impl FromStr for StoreAddress {
    type Err = LocationError;

    fn from_str(text: &str) -> Result<Self, LocationError> {
        if text == WORKSPACE_FILE {
            return Ok(Self::Workspace);
        }
        let file = text.strip_prefix(WORKSPACE_FILE);
        if let Some(path) = file.and_then(|rest| rest.strip_prefix(':')) {
            return Ok(Self::File(path.into()));
        }
        let password = std::env::var(PASSWORD_VARIABLE).ok();
        let location = Location::parse(text, password.as_deref())?;
        Ok(Self::Database(Box::new(location)))
    }
}

/// A store that was opened to be copied.
pub(crate) struct OpenedSide {
    pub(crate) store: Arc<dyn WholeStore>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    pub(crate) is_encrypted: bool,
}

impl OpenedSide {
    pub(crate) fn side(&self) -> CopySide<'_> {
        CopySide {
            store: &*self.store,
            artifacts: &*self.artifacts,
            tokens: &*self.store,
            passes: &*self.store,
            passkeys: &*self.store,
        }
    }
}

impl From<LocationError> for Failure {
    fn from(error: LocationError) -> Self {
        Self::from_error(Exit::Usage, &error)
            .hint("postgres://USER@HOST:PORT/DATABASE with the password in PGPASSWORD, or sqlite")
    }
}

impl From<OpenPostgresError> for Failure {
    fn from(error: OpenPostgresError) -> Self {
        let failure = Self::from_classified(&error);
        match error {
            OpenPostgresError::Unreachable(_) => failure.hint(
                "The server has to run, have this database, and let this user in (the password can be in PGPASSWORD). To try it: psql with the same address",
            ),
            OpenPostgresError::NewerSchema { .. } => {
                failure.hint("use the newer version of planwright")
            }
            OpenPostgresError::Empty
            | OpenPostgresError::Encrypted
            | OpenPostgresError::NotEncrypted
            | OpenPostgresError::Unlock(_)
            | OpenPostgresError::Passphrase(_)
            | OpenPostgresError::Unsuitable(_)
            | OpenPostgresError::Certificates(_)
            | OpenPostgresError::Thread(_)
            | OpenPostgresError::Store(_) => failure,
        }
    }
}

/// The address of the store, if it is not the file of the workspace: from the command line, from the environment, or from
/// a configuration that the user wrote or trusts.
pub(crate) fn find_location(context: &CommandContext) -> Result<Option<Location>, Failure> {
    let variable = || std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let configured = context.config.store_url();
    let named = context.unlock.store().map(str::to_owned).or_else(variable);
    let Some(address) = named.as_deref().or(configured) else {
        return Ok(None);
    };
    if address == WORKSPACE_FILE {
        return Ok(None);
    }
    if configured != Some(address) {
        // The store decides whose approvals count, and a database does not prove who wrote them.
        refuse_agents("choose the store").map_err(|failure| {
            failure.hint("a person names the store in [store] url of planwright.toml")
        })?;
    }
    let password = std::env::var(PASSWORD_VARIABLE).ok();
    Ok(Some(Location::parse(address, password.as_deref())?))
}

/// Refuses a command that works on the files of a store.
pub(crate) fn refuse_database(context: &CommandContext, instead: &str) -> Result<(), Failure> {
    match find_location(context)? {
        None => Ok(()),
        Some(location) => Err(Failure::refused(format!(
            "this command works on the files of a store, and this store is {location}"
        ))
        .hint(instead)),
    }
}
