//! The way from the MCP server of a step to the gateway of its attempt, for `mcp --step`.

use super::call::read_place;
use crate::exit::Failure;
use planwright_adapters::executor::{CallGatewayError, call_gateway};
use planwright_core::run::{StepError, StepErrorCode};
use planwright_engine::port::{BoxFuture, GatewayTool};
use planwright_mcp::StepTools;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// The gateway that the environment names.
pub(super) struct RemoteStep {
    address: Arc<str>,
    token: Arc<str>,
}

/// The token stays out of every log.
impl fmt::Debug for RemoteStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("RemoteStep");
        shown
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl RemoteStep {
    pub(super) fn from_environment() -> Result<Self, Failure> {
        let (address, token) = read_place()?;
        Ok(Self {
            address: address.into(),
            token: token.into(),
        })
    }

    fn ask(
        &self,
        call: Option<(String, Value)>,
    ) -> impl Future<Output = Result<Value, StepError>> + Send + 'static {
        let address = Arc::clone(&self.address);
        let token = Arc::clone(&self.token);
        async move {
            let call = call
                .as_ref()
                .map(|(tool, args)| (tool.as_str(), args.clone()));
            let answered = call_gateway(&address, &token, call).await;
            answered.map_err(|error| explain(&error))
        }
    }
}

impl StepTools for RemoteStep {
    fn list(&self) -> BoxFuture<'static, Result<Vec<GatewayTool>, StepError>> {
        let asked = self.ask(None);
        Box::pin(async move {
            serde_json::from_value(asked.await?).map_err(|_| explain(&CallGatewayError::Unreadable))
        })
    }

    fn call(&self, tool: String, args: Value) -> BoxFuture<'static, Result<Value, StepError>> {
        Box::pin(self.ask(Some((tool, args))))
    }
}

fn explain(error: &CallGatewayError) -> StepError {
    match error {
        CallGatewayError::Refused { code, message } => {
            StepError::new(code.as_str().into(), message.clone())
        }
        // The gateway ends with its attempt.
        CallGatewayError::Unreachable(_) => StepError::new(
            StepErrorCode::Stopped,
            format!("the step is over, or its run has ended: {error}"),
        ),
        CallGatewayError::Address(_) | CallGatewayError::Unreadable => {
            StepError::new(StepErrorCode::ExecutorFailed, error.to_string())
        }
    }
}
