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
    let address = BrokerAddress::parse(url, password.as_deref())
        .map_err(|error| Failure::from_error(Exit::Usage, &error).hint(FORM))?;
    Ok(Some(address))
}

const FORM: &str = "amqp://USER@HOST/VHOST or redis://HOST/NUMBER, with the password in PLANWRIGHT_DISPATCH_PASSWORD";

/// Makes the broker of an address.
pub(crate) fn open_broker(address: BrokerAddress) -> Result<Arc<dyn Broker>, BrokerError> {
    broker::open_with(address, BrokerLimits::default())
}
