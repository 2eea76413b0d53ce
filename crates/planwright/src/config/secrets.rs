//! `[secrets]` of `planwright.toml`: where each secret is kept and which tools may have it. Never a
//! value.

use crate::config::file::FILE;
use crate::exit::Failure;
use crate::trust::{Loosening, Subject};
use planwright_adapters::secrets::{ConfiguredSecrets, SecretSource, SecretSpec};
use planwright_core::secret::SecretName;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// By name.
pub(crate) type SecretTable = BTreeMap<String, Secret>;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Secret {
    env: Option<String>,
    file: Option<PathBuf>,
    keyring: Option<String>,
    tools: Option<Vec<String>>,
    /// The user does not trust the file that says where it is. It stays known, so that it is not
    /// looked for elsewhere, where no list of tools would hold.
    #[serde(skip)]
    withheld: bool,
}

impl Secret {
    /// From here on it is not read.
    pub(crate) fn withhold(&mut self) {
        self.withheld = true;
    }

    /// What the file makes of it.
    pub(crate) fn loosening(&self, name: &str) -> Loosening {
        let place = match (&self.env, &self.file, &self.keyring) {
            (Some(variable), ..) => format!("the variable {variable}"),
            (None, Some(path), _) => format!("the file {}", path.display()),
            (None, None, Some(entry)) => format!("the keyring's {entry}"),
            (None, None, None) => "nowhere".to_owned(),
        };
        let tools = match &self.tools {
            Some(tools) => tools.join(", "),
            None => "every tool".to_owned(),
        };
        Loosening::new(
            Subject::Secret(name.to_owned()),
            FILE,
            format!("[secrets] {name}"),
            format!("is read from {place} and can be given to {tools}"),
            &json!(self),
        )
    }
}

/// Reads the table. Relative paths start in the workspace.
pub(crate) fn read_secrets(
    table: &SecretTable,
    workspace: &Path,
) -> Result<ConfiguredSecrets, Failure> {
    let spec = |(name, secret): (&String, &Secret)| {
        let wrong =
            |problem: &str| Failure::usage(format!("{FILE}: the secret `{name}` {problem}"));
        let valid = SecretName::new(name).ok_or_else(|| {
            wrong("has a name that no plan can use").hint("use ASCII letters, digits, `_` and `-`")
        })?;
        let sources = [
            secret.env.clone().map(SecretSource::Environment),
            secret
                .file
                .as_ref()
                .map(|path| SecretSource::File(workspace.join(path))),
            secret.keyring.as_deref().map(keyring_entry),
        ];
        let mut given = sources.into_iter().flatten();
        let (Some(source), None) = (given.next(), given.next()) else {
            return Err(wrong("needs exactly one of `env`, `file` and `keyring`"));
        };
        match &source {
            SecretSource::Environment(name) if name.is_empty() || name.contains(['=', '\0']) => {
                return Err(wrong("names no variable"));
            }
            SecretSource::Keyring { service, user } if service.is_empty() || user.is_empty() => {
                return Err(wrong("names no entry").hint("write keyring = \"service/user\""));
            }
            SecretSource::Environment(_) | SecretSource::File(_) | SecretSource::Keyring { .. } => {
            }
        }
        Ok((
            valid,
            SecretSpec {
                source,
                tools: secret.tools.clone(),
                obstacle: secret.withheld.then(|| {
                    format!("{FILE} says where it is, and is not trusted (planwright trust)")
                }),
            },
        ))
    };
    Ok(ConfiguredSecrets::new(
        table.iter().map(spec).collect::<Result<_, _>>()?,
    ))
}

fn keyring_entry(text: &str) -> SecretSource {
    let (service, user) = text.rsplit_once('/').unwrap_or((text, ""));
    SecretSource::Keyring {
        service: service.to_owned(),
        user: user.to_owned(),
    }
}
