//! Secrets on their way into a call: read before the start is recorded, held in memory, and gone
//! with the call.

use crate::engine::Environment;
use crate::port::SecretError;
use planwright_core::plan::Plan;
use planwright_core::run::{StepError, StepErrorCode};
use planwright_core::secret::{SecretName, SecretText};
use planwright_core::tool::ToolName;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// How long a source may take. The run waits for it.
const PATIENCE: Duration = Duration::from_secs(8);

/// What stands for each secret when arguments are resolved.
#[derive(Default)]
pub(crate) struct SecretValues(BTreeMap<SecretName, Value>);

impl SecretValues {
    /// The references themselves: what is digested, reviewed and checked by expressions.
    pub(super) fn shown(names: &[SecretName]) -> Self {
        Self(
            names
                .iter()
                .map(|name| (name.clone(), Value::String(name.reference())))
                .collect(),
        )
    }

    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(&SecretName::new(name)?)
    }
}

impl fmt::Debug for SecretValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Environment {
    /// Learns every secret of the plan before anything is called. A step may read from a file what
    /// another one was given, and a resumed run may see again what was sent before the crash. What
    /// is not there is nobody's yet.
    pub(super) async fn learn_secrets(&self, plan: &Plan) {
        for name in plan.all_secrets() {
            if let Err(error) = self.read_secret(&name).await {
                tracing::debug!(plan = %plan.id(), error = error.message, "a secret is not known yet");
            }
        }
    }

    /// The values for one call, or why it cannot be made. From here on they are masked wherever
    /// they come back.
    pub(super) async fn unseal(
        &self,
        names: &[SecretName],
        tool: &ToolName,
    ) -> Result<SecretValues, StepError> {
        let mut values = BTreeMap::new();
        for name in names {
            if !self.secrets.allows(name, tool) {
                let message = format!("the tool `{tool}` may not have the secret `{name}`");
                return Err(StepError::new(StepErrorCode::SecretNotAllowed, message));
            }
            let secret = self.read_secret(name).await?;
            values.insert(name.clone(), Value::String(secret.expose().to_owned()));
        }
        Ok(SecretValues(values))
    }

    async fn read_secret(&self, name: &SecretName) -> Result<SecretText, StepError> {
        let unavailable =
            |message: String| StepError::new(StepErrorCode::SecretUnavailable, message);
        let late = || SecretError::Unreadable {
            name: name.clone(),
            reason: format!("no answer within {} s", PATIENCE.as_secs()),
        };
        let read = tokio::time::timeout(PATIENCE, self.secrets.get(name)).await;
        let secret = read
            .unwrap_or_else(|_| Err(late()))
            .map_err(|error| unavailable(error.to_string()))?;
        self.redaction
            .learn(name, &secret)
            .map_err(|error| unavailable(error.to_string()))?;
        Ok(secret)
    }
}
