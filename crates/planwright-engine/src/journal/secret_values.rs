//! Secrets on their way into a call: read before the start is recorded, held in memory, and gone
//! with the call.

use crate::context::Context;
use crate::port::Ids;
use crate::redaction::learning::{learn_secrets, read_secret};
use planwright_core::plan::Plan;
use planwright_core::run::{StepError, StepErrorCode};
use planwright_core::secret::{SecretName, check_hosts};
use planwright_core::tool::ToolName;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// The texts that stand for secrets when arguments are resolved.
#[derive(Default)]
pub(crate) struct SecretValues(BTreeMap<SecretName, Value>);

impl SecretValues {
    /// The references themselves: what is digested, reviewed and checked by expressions.
    pub(crate) fn placeholders(names: &[SecretName]) -> Self {
        Self(
            names
                .iter()
                .map(|name| (name.clone(), Value::String(name.reference())))
                .collect(),
        )
    }

    /// A random mark for each secret, for arguments that are written down, and the names by their marks.
    pub(crate) fn marks(names: &[SecretName], ids: &dyn Ids) -> (Self, BTreeMap<String, String>) {
        let mut values = BTreeMap::new();
        let mut marked = BTreeMap::new();
        for name in names {
            let mark = format!("secret-{:016x}{:016x}", ids.entropy(), ids.entropy());
            values.insert(name.clone(), Value::String(mark.clone()));
            marked.insert(mark, name.to_string());
        }
        (Self(values), marked)
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(&SecretName::new(name)?)
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Context {
    /// Learns every secret of the plan before anything is called. A step may read from a file what
    /// another one was given, and a resumed run may see again what was sent before the crash.
    pub(crate) async fn learn_secrets(&self, plan: &Plan) {
        learn_secrets(&*self.ports.secrets, &self.redaction, plan.all_secrets()).await;
    }

    /// The values for one call with these arguments, or why it cannot be made. From here on they are masked wherever
    /// they come back.
    pub(crate) async fn unseal(
        &self,
        names: &[SecretName],
        tool: &ToolName,
        args: &Value,
    ) -> Result<SecretValues, StepError> {
        let mut values = BTreeMap::new();
        for name in names {
            if !self.ports.secrets.allows(name, tool) {
                let message = format!("the tool `{tool}` may not have the secret `{name}`");
                return Err(StepError::new(StepErrorCode::SecretNotAllowed, message));
            }
            if let Some(hosts) = self.ports.secrets.hosts(name) {
                check_hosts(args, &hosts).map_err(|error| {
                    let message = format!("the call may not have the secret `{name}`: {error}");
                    StepError::new(StepErrorCode::SecretNotAllowed, message)
                })?;
            }
            let secret = read_secret(&*self.ports.secrets, &self.redaction, name)
                .await
                .map_err(|error| {
                    StepError::new(StepErrorCode::SecretUnavailable, error.to_string())
                })?;
            values.insert(name.clone(), Value::String(secret.expose().to_owned()));
        }
        Ok(SecretValues(values))
    }
}
