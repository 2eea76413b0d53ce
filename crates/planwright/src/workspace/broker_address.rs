//! Which broker a command uses: the one that is named, or that of the configuration.

use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;
use crate::workspace::principal::refuse_agents;
use planwright_adapters::broker::{self, BrokerAddress, BrokerLimits};
use planwright_engine::port::{Broker, BrokerError};
use std::sync::Arc;

/// The variable that names the broker of every command.
pub(crate) const VARIABLE: &str = "PLANWRIGHT_DISPATCH";
/// The variable with the password, if the address has none.
const PASSWORD_VARIABLE: &str = "PLANWRIGHT_DISPATCH_PASSWORD";

/// The address of the broker, if there is one: from the command line, from the environment, or from a configuration that the
/// user wrote or trusts.
pub(crate) fn find_broker(
    context: &CommandContext,
    named: Option<&str>,
) -> Result<Option<BrokerAddress>, Failure> {
    let variable = || std::env::var(VARIABLE).ok().filter(|text| !text.is_empty());
    let table = context.config.dispatch();
    let configured = table.url();
    let named = named.map(str::to_owned).or_else(variable);
    let Some(url) = named.as_deref().or(configured) else {
        return Ok(None);
    };
    if configured != Some(url) {
        // It would be sent a password, and be told which steps run.
        refuse_agents("choose the broker").map_err(|failure| {
            failure.hint("a person names the broker in [dispatch] url of planwright.toml")
        })?;
    }
    let password = std::env::var(PASSWORD_VARIABLE).ok();
    let address = BrokerAddress::parse(url, password.as_deref()).map_err(|error| match error {
        // No broker was asked: the reason alone says it.
        BrokerError::Refused(reason)
        | BrokerError::Unreachable(reason)
        | BrokerError::Unreadable(reason) => Failure::new(Exit::Usage, reason).hint(FORM),
    })?;
    Ok(Some(address))
}

impl From<BrokerError> for Failure {
    fn from(error: BrokerError) -> Self {
        let failure = Self::from_classified(&error);
        match error {
            BrokerError::Unreachable(_) => failure
                .hint("Runs go on without it. To see whether it answers again: planwright doctor"),
            BrokerError::Refused(_) => failure.hint(FORM),
            BrokerError::Unreadable(_) => {
                failure.hint("To forget it with all that was given up: planwright queue purge")
            }
        }
    }
}

const FORM: &str = "amqp://USER@HOST/VHOST or redis://HOST/NUMBER, with the password in PLANWRIGHT_DISPATCH_PASSWORD";

/// Makes the broker of an address.
pub(crate) fn open_broker(address: BrokerAddress) -> Result<Arc<dyn Broker>, BrokerError> {
    broker::open_with(address, BrokerLimits::default())
}
