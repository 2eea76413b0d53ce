//! Secrets in the environment of this process. Children do not inherit it.

use super::{missing, unreadable};
use planwright_core::secret::SecretName;
use planwright_engine::port::SecretError;
use zeroize::Zeroizing;

const PREFIX: &str = "PLANWRIGHT_SECRET_";

/// The variable of a secret that is not configured: `PLANWRIGHT_SECRET_GITHUB_TOKEN` for
/// `github-token`.
pub fn default_variable(name: &SecretName) -> String {
    format!(
        "{PREFIX}{}",
        name.as_str().to_ascii_uppercase().replace('-', "_")
    )
}

pub(super) fn read(name: &SecretName, variable: &str) -> Result<Zeroizing<String>, SecretError> {
    match std::env::var_os(variable).filter(|value| !value.is_empty()) {
        None => Err(missing(name, format!("the variable {variable} is not set"))),
        Some(value) => {
            let text = value.into_string();
            text.map(Zeroizing::new)
                .map_err(|_| unreadable(name, format!("the variable {variable} is not UTF-8")))
        }
    }
}

/// The names of the secrets that are given by their own variables.
pub(super) fn given_names() -> impl Iterator<Item = SecretName> {
    std::env::vars_os()
        .filter_map(|(variable, _)| SecretName::new(variable.to_str()?.strip_prefix(PREFIX)?))
}
