//! `[secrets]` of `planwright.toml`: where each secret is kept and which tools may have it. Never a
//! value.

use crate::config::file::FILE;
use crate::exit::Failure;
use planwright_adapters::secrets::{ConfiguredSecrets, SecretSource, SecretSpec};
use planwright_core::secret::SecretName;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// By name.
pub(crate) type SecretTable = BTreeMap<String, Secret>;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Secret {
    env: Option<String>,
    file: Option<PathBuf>,
    keyring: Option<String>,
    tools: Option<Vec<String>>,
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
