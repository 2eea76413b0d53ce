//! `[[webhooks]]` of `planwright.toml`: who is told what happens. Never a secret, only its name.

use crate::config::file::FILE;
use crate::exit::Failure;
use crate::trust::{Loosening, Subject};
use crate::workspace::app::App;
use planwright_adapters::webhook::{Format, HttpWebhook, WebhookOptions};
use planwright_core::secret::SecretName;
use planwright_engine::memory::SystemClock;
use planwright_engine::port::Outbox;
use planwright_engine::webhooks::Webhook;
use planwright_engine::webhooks::{Courier, CourierWatch};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::Arc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// More endpoints than this are a mistake.
const MAX_ENDPOINTS: usize = 64;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookTable {
    name: String,
    url: String,
    /// The name of the secret that signs.
    secret: Option<String>,
    /// Several, while one replaces another.
    #[serde(default)]
    secrets: Vec<String>,
    #[serde(default)]
    events: Vec<String>,
    #[serde(default)]
    format: FormatName,
    #[serde(default)]
    allow_private: bool,
    /// Where people find the service: links in notices begin with it.
    service_url: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FormatName {
    #[default]
    Standard,
    CloudEvents,
}

impl WebhookTable {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// What the file makes of it.
    pub(crate) fn loosening(&self) -> Loosening {
        let events = match self.events.as_slice() {
            [] => "everything that happens".to_owned(),
            events => events.join(", "),
        };
        let private = if self.allow_private {
            ", also inside this network"
        } else {
            ""
        };
        Loosening::new(
            Subject::Webhook(self.name.clone()),
            FILE,
            format!("[[webhooks]] {}", self.name),
            format!("{events} is sent to {}{private}", self.url),
            &json!(self),
        )
    }
}

/// Reads the table.
pub(crate) fn read_webhooks(tables: &[WebhookTable]) -> Result<Vec<WebhookOptions>, Failure> {
    let wrong = |name: &str, problem: &str| {
        Failure::usage(format!("{FILE}: the webhook `{name}`: {problem}"))
            .hint("To see what can be written: planwright explain webhooks")
    };
    if tables.len() > MAX_ENDPOINTS {
        return Err(Failure::usage(format!(
            "{FILE}: at most {MAX_ENDPOINTS} webhooks are supported"
        )));
    }
    let mut names = BTreeSet::new();
    let mut options = Vec::new();
    for table in tables {
        if !names.insert(&table.name) {
            return Err(wrong(&table.name, "there are two of this name"));
        }
        let named = |name: &String| {
            SecretName::new(name)
                .ok_or_else(|| wrong(&table.name, &format!("{name:?} is no name of a secret")))
        };
        let secrets = table
            .secret
            .iter()
            .chain(&table.secrets)
            .map(named)
            .collect::<Result<_, _>>()?;
        let webhook = WebhookOptions {
            name: table.name.clone(),
            url: table.url.clone(),
            secrets,
            events: table.events.clone(),
            format: match table.format {
                FormatName::Standard => Format::Standard,
                FormatName::CloudEvents => Format::CloudEvents,
            },
            allow_private: table.allow_private,
            service_url: table.service_url.clone(),
        };
        webhook
            .validate()
            .map_err(|problem| wrong(&table.name, &problem.to_string()))?;
        options.push(webhook);
    }
    Ok(options)
}

impl App {
    /// The endpoints, ready to be told.
    pub(crate) fn webhooks(&self) -> Result<Vec<Arc<HttpWebhook>>, Failure> {
        let open = |options: WebhookOptions| {
            let name = options.name.clone();
            let webhook = HttpWebhook::new(
                options,
                Arc::clone(&self.secrets),
                self.engine.redaction().clone(),
                Arc::new(SystemClock::default()),
            );
            let wrong =
                |problem| Failure::usage(format!("{FILE}: the webhook `{name}`: {problem}"));
            webhook.map(Arc::new).map_err(wrong)
        };
        self.context
            .config
            .webhooks()?
            .into_iter()
            .map(open)
            .collect()
    }

    /// What is still to be told; absent in a workspace without a store.
    pub(crate) fn outbox(&self) -> Option<Arc<dyn Outbox>> {
        let whole = self.whole.as_ref()?;
        Some(Arc::<dyn crate::workspace::store_address::WholeStore>::clone(whole))
    }

    /// Tells the endpoints what happens until it is told to stop, each by a task of its own.
    pub(crate) fn start_couriers(
        &self,
        watch: &Arc<dyn CourierWatch>,
        stop: &CancellationToken,
    ) -> Result<Vec<JoinHandle<()>>, Failure> {
        let Some(outbox) = self.outbox() else {
            return Ok(Vec::new());
        };
        let start = |webhook: Arc<HttpWebhook>| {
            let webhook: Arc<dyn Webhook> = webhook;
            let courier = Courier::new(self.engine.clone(), Arc::clone(&outbox), webhook);
            tokio::spawn(courier.watched_by(Arc::clone(watch)).run(stop.clone()))
        };
        Ok(self.webhooks()?.into_iter().map(start).collect())
    }
}
