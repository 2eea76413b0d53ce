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
    only_for: Option<OnlyFor>,
    /// The user does not trust the file that says where it is. It stays known, so that it is not
    /// looked for elsewhere, where no list of tools would hold.
    #[serde(skip)]
    withheld: bool,
}

/// `only_for`: what a secret is bound to.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OnlyFor {
    tools: Option<Vec<String>>,
    hosts: Option<Vec<String>>,
}

impl Secret {
    /// The patterns of the tools that may have it. `tools` is the older place for them.
    fn tools(&self) -> Option<&Vec<String>> {
        let bound = self.only_for.as_ref();
        bound
            .and_then(|bound| bound.tools.as_ref())
            .or(self.tools.as_ref())
    }

    fn hosts(&self) -> Option<&Vec<String>> {
        self.only_for.as_ref()?.hosts.as_ref()
    }

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
        let tools = match self.tools() {
            Some(tools) => tools.join(", "),
            None => "every tool".to_owned(),
        };
        let tools = match self.hosts() {
            Some(hosts) => format!("{tools}, for {}", hosts.join(", ")),
            None => tools,
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
        if let Some(bound) = &secret.only_for {
            check_bounds(secret, bound).map_err(|problem| wrong(&problem))?;
        }
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
                tools: secret.tools().cloned(),
                hosts: secret.hosts().cloned(),
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

/// A list that can match nothing is a mistake, and one that says two things is another.
fn check_bounds(secret: &Secret, bound: &OnlyFor) -> Result<(), String> {
    if secret.tools.is_some() && bound.tools.is_some() {
        return Err("has `tools` twice: keep those of `only_for`".to_owned());
    }
    if bound.tools.is_none() && bound.hosts.is_none() {
        return Err("has an `only_for` without `tools` and `hosts`".to_owned());
    }
    let is_host = |host: &String| {
        let name = host.strip_prefix("*.").unwrap_or(host);
        let (name, port) = name.rsplit_once(':').unwrap_or((name, "443"));
        let plain = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        !name.is_empty() && name.chars().all(plain) && port.parse::<u16>().is_ok()
    };
    let mut hosts = bound.hosts.iter().flatten();
    match hosts.find(|host| !is_host(host)) {
        Some(host) => Err(format!(
            "is bound to `{host}`, which is no host: write `api.example.com`, with a port if you \
             like, or `*.example.com`"
        )),
        None => Ok(()),
    }
}

fn keyring_entry(text: &str) -> SecretSource {
    let (service, user) = text.rsplit_once('/').unwrap_or((text, ""));
    SecretSource::Keyring {
        service: service.to_owned(),
        user: user.to_owned(),
    }
}
