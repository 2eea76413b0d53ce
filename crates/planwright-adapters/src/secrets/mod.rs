//! The places where the operator keeps secrets: variables of the environment, files, the keyring of
//! the operating system.

mod environment;
mod file;
mod keyring;

use planwright_core::secret::{SecretName, SecretText, matches_tool};
use planwright_core::tool::ToolName;
use planwright_engine::port::{BoxFuture, SecretError, Secrets};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;
use zeroize::Zeroizing;

pub use environment::default_variable;

/// The time a file or a keyring may take. A locked keyring may wait for a person, a call must not.
const PATIENCE: Duration = Duration::from_secs(5);

/// The place of one secret. Never the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// A variable of this process's environment.
    Environment(String),
    /// A file that holds the value, or a directory that has such a file under the secret's name.
    File(PathBuf),
    /// An entry of the operating system's keyring.
    Keyring { service: String, user: String },
}

impl fmt::Display for SecretSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Environment(variable) => write!(f, "variable {variable}"),
            Self::File(path) => write!(f, "file {}", path.display()),
            Self::Keyring { service, user } => write!(f, "keyring {service}/{user}"),
        }
    }
}

/// The operator's settings of one secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretSpec {
    pub source: SecretSource,
    /// Patterns of the tools that may have it; `None` for every tool.
    pub tools: Option<Vec<String>>,
    /// The hosts it may be sent to; `None` for every host.
    pub hosts: Option<Vec<String>>,
    /// Why it must not be read.
    pub obstacle: Option<String>,
}

/// The secrets of a workspace. A name the operator did not configure is looked for in one variable
/// of the environment and nowhere else.
#[derive(Debug, Clone, Default)]
pub struct ConfiguredSecrets {
    specs: BTreeMap<SecretName, SecretSpec>,
}

impl ConfiguredSecrets {
    pub fn new(specs: BTreeMap<SecretName, SecretSpec>) -> Self {
        Self { specs }
    }

    /// Returns the place of a secret, and the tools that may have it.
    pub fn spec(&self, name: &SecretName) -> SecretSpec {
        let fallback = || SecretSpec {
            source: SecretSource::Environment(default_variable(name)),
            tools: None,
            hosts: None,
            obstacle: None,
        };
        self.specs.get(name).cloned().unwrap_or_else(fallback)
    }

    /// The secrets that are configured, and those that only the environment has.
    pub fn names(&self) -> BTreeSet<SecretName> {
        let configured = self.specs.keys().cloned();
        let variables: BTreeSet<String> = self.specs.keys().map(default_variable).collect();
        let given =
            environment::given_names().filter(|name| !variables.contains(&default_variable(name)));
        configured.chain(given).collect()
    }
}

impl Secrets for ConfiguredSecrets {
    fn get<'a>(&'a self, name: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>> {
        let spec = self.spec(name);
        if let Some(obstacle) = spec.obstacle {
            return Box::pin(std::future::ready(Err(unreadable(name, obstacle))));
        }
        match spec.source {
            SecretSource::Environment(variable) => {
                let read = environment::read(name, &variable).and_then(|text| usable(name, text));
                Box::pin(std::future::ready(read))
            }
            SecretSource::File(path) => blocking(name, move |name| file::read(name, &path)),
            SecretSource::Keyring { service, user } => {
                blocking(name, move |name| keyring::read(name, &service, &user))
            }
        }
    }

    fn allows(&self, name: &SecretName, tool: &ToolName) -> bool {
        match self.spec(name).tools {
            Some(tools) => tools.iter().any(|pattern| matches_tool(pattern, tool)),
            None => true,
        }
    }

    fn hosts(&self, name: &SecretName) -> Option<Vec<String>> {
        self.spec(name).hosts
    }

    fn names(&self) -> Vec<SecretName> {
        Self::names(self).into_iter().collect()
    }
}

/// A file on a slow disk or a locked keyring must not hold up everything else.
fn blocking(
    name: &SecretName,
    read: impl FnOnce(&SecretName) -> Result<Zeroizing<String>, SecretError> + Send + 'static,
) -> BoxFuture<'static, Result<SecretText, SecretError>> {
    let name = name.clone();
    let for_read = name.clone();
    let reading = tokio::task::spawn_blocking(move || read(&for_read));
    Box::pin(async move {
        let read = tokio::time::timeout(PATIENCE, reading).await;
        let late = |_| unreadable(&name, format!("no answer within {} s", PATIENCE.as_secs()));
        let read = read
            .map_err(late)?
            .map_err(|_| unreadable(&name, "reading it was broken off".to_owned()))?;
        usable(&name, read?)
    })
}

fn usable(name: &SecretName, text: Zeroizing<String>) -> Result<SecretText, SecretError> {
    SecretText::new(text).map_err(|problem| SecretError::Unusable {
        name: name.clone(),
        problem,
    })
}

fn missing(name: &SecretName, place: String) -> SecretError {
    SecretError::Missing {
        name: name.clone(),
        place,
    }
}

fn unreadable(name: &SecretName, reason: String) -> SecretError {
    SecretError::Unreadable {
        name: name.clone(),
        reason,
    }
}
