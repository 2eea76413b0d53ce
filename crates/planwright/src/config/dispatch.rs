//! `[dispatch]` of `planwright.toml`: the broker that tells workers where to look.

use crate::config::file::FILE;
use crate::trust::{Loosening, Subject};
use planwright_adapters::broker::BrokerAddress;
use serde::Deserialize;
use serde_json::json;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DispatchTable {
    /// `amqp://…` or `redis://…`.
    pub(super) url: Option<String>,
    /// The capabilities whose queues are looked at.
    pub(super) capabilities: Vec<String>,
}

impl DispatchTable {
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    pub(crate) fn capabilities(&self) -> &[String] {
        &self.capabilities
    }

    /// A broker learns which steps run when, and is sent a password.
    pub(super) fn loosening(&self) -> Option<Loosening> {
        let url = self.url()?;
        let shown = BrokerAddress::parse(url, None)
            .map_or_else(|_| "a broker".to_owned(), |address| address.to_string());
        Some(Loosening::new(
            Subject::BrokerAddress,
            FILE,
            "[dispatch] url",
            format!("{shown} is told which steps wait for a worker"),
            &json!(url),
        ))
    }
}
