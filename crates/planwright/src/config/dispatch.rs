//! `[dispatch]` of `planwright.toml`: which steps are carried out by workers, and the broker that tells them where to
//! look.

use crate::config::file::FILE;
use crate::trust::{Loosening, Subject};
use planwright_adapters::broker::BrokerAddress;
use planwright_core::policy::TimeSpan;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeSet;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct DispatchTable {
    /// The capabilities whose steps workers carry out. Others are words for people.
    pub(crate) capabilities: BTreeSet<String>,
    /// `amqp://…` or `redis://…`. Without it the store tells the workers.
    pub(super) url: Option<String>,
    /// Time after which a worker that says nothing has lost what it had claimed.
    pub(crate) claim: Option<TimeSpan>,
}

impl DispatchTable {
    pub(crate) fn url(&self) -> Option<&str> {
        self.url.as_deref().filter(|url| !url.is_empty())
    }

    /// Takes from another table what this one does not say.
    pub(super) fn or(self, other: &Self) -> Self {
        let says_capabilities = !self.capabilities.is_empty();
        Self {
            capabilities: match says_capabilities {
                true => self.capabilities,
                false => other.capabilities.clone(),
            },
            url: self
                .url
                .filter(|url| !url.is_empty())
                .or_else(|| other.url.clone()),
            claim: self.claim.or(other.claim),
        }
    }

    /// What it lets happen: steps are carried out elsewhere, and a broker learns which steps run when and is sent a password.
    pub(super) fn loosenings(&self) -> Vec<Loosening> {
        let mut found = Vec::new();
        if !self.capabilities.is_empty() {
            let names: Vec<&str> = self.capabilities.iter().map(String::as_str).collect();
            let words = format!(
                "steps with the capabilities {} are carried out by workers",
                names.join(", ")
            );
            found.push(Loosening::new(
                Subject::Dispatch,
                FILE,
                "[dispatch] capabilities",
                words,
                &json!(names),
            ));
        }
        if let Some(url) = self.url() {
            let shown = BrokerAddress::parse(url, None)
                .map_or_else(|_| "a broker".to_owned(), |address| address.to_string());
            found.push(Loosening::new(
                Subject::BrokerAddress,
                FILE,
                "[dispatch] url",
                format!("{shown} is told which steps wait for a worker"),
                &json!(url),
            ));
        }
        found
    }
}
