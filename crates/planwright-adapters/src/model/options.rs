//! The operator's settings of models, and the faults they may have.

use super::dialect::Structured;
use super::price::Price;
use super::settings::RoleSettings;
use crate::secrets::SecretSource;
use planwright_core::model::ModelRole;
use reqwest::Url;
use std::collections::BTreeMap;
use std::time::Duration;

/// All models that can be asked. A model is named `provider/name`.
#[derive(Debug, Clone, Default)]
pub struct ModelOptions {
    /// For every role without a model of its own.
    pub default: Option<String>,
    pub roles: BTreeMap<ModelRole, String>,
    /// How models are asked in a role.
    pub settings: BTreeMap<ModelRole, RoleSettings>,
    pub providers: BTreeMap<String, ProviderOptions>,
    /// By model; they go before the prices that are built in.
    pub prices: BTreeMap<String, Price>,
}

/// Whose wire format a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderKind {
    /// OpenAI, and everything that offers its chat completions.
    OpenAi,
    Anthropic,
    Gemini,
}

impl ProviderKind {
    /// As tracing conventions name it.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gcp.gemini",
        }
    }
}

/// One place that has models.
#[derive(Debug, Clone)]
pub struct ProviderOptions {
    pub kind: ProviderKind,
    /// The address at which its API begins, with the version: `https://api.openai.com/v1`.
    pub base_url: String,
    /// The place of its key. None is sent when absent.
    pub key: Option<SecretSource>,
    pub structured: Structured,
    /// For one whole answer.
    pub timeout: Duration,
    /// Between two signs of life of an answer, the first included.
    pub silence: Duration,
    /// The number of times a question is asked again that may be answered later.
    pub retries: usize,
    /// Before the first of them; it grows.
    pub pause: Duration,
    /// The time a server may take that is still loading its model.
    pub loading: Duration,
    /// The most tokens its models read, if that is known.
    pub context_tokens: Option<u64>,
    /// The longest answer where the question does not say; the provider's own limit when absent.
    pub answer_tokens: Option<u32>,
    /// Plain http, also to other machines.
    pub insecure: bool,
    /// The reason why it must not be asked, if the caller has one.
    pub obstacle: Option<String>,
}

impl ProviderOptions {
    pub fn new(kind: ProviderKind, base_url: impl Into<String>) -> Self {
        Self {
            kind,
            base_url: base_url.into(),
            key: None,
            structured: Structured::Auto,
            timeout: Duration::from_mins(10),
            silence: Duration::from_mins(2),
            retries: 4,
            pause: Duration::from_millis(500),
            loading: Duration::from_mins(2),
            context_tokens: None,
            answer_tokens: None,
            insecure: false,
            obstacle: None,
        }
    }

    /// Returns the address at which this model is asked.
    pub(super) fn answers_at(&self, model: &str) -> String {
        let base = self.base_url.trim_end_matches('/');
        match self.kind {
            ProviderKind::OpenAi => format!("{base}/chat/completions"),
            ProviderKind::Anthropic => format!("{base}/messages"),
            ProviderKind::Gemini => format!("{base}/models/{model}:streamGenerateContent?alt=sse"),
        }
    }

    pub(super) fn is_encrypted(&self) -> bool {
        self.base_url.starts_with("https:")
    }

    /// Returns whether its models are on this machine.
    pub fn is_local(&self) -> bool {
        Url::parse(&self.base_url).is_ok_and(|url| is_this_machine(&url))
    }

    /// Returns the reason why it cannot be asked.
    pub(super) fn problem(&self) -> Option<String> {
        self.obstacle.clone().or_else(|| self.check().err())
    }

    fn check(&self) -> Result<(), String> {
        let url = Url::parse(&self.base_url)
            .map_err(|error| format!("the base_url cannot be read: {error}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err("the base_url is neither http nor https".to_owned());
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(
                "the base_url holds a user name or password: keys have a place of their own"
                    .to_owned(),
            );
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(
                "the base_url ends with a query or a fragment: it is only where the API begins"
                    .to_owned(),
            );
        }
        if url.scheme() == "http" && !self.insecure && !is_this_machine(&url) {
            let host = url.host_str().unwrap_or_default();
            return Err(format!(
                "the base_url is unencrypted, and {host} is another machine: prompts and the key could be read on the \
                 way (`insecure = true` allows it)"
            ));
        }
        if self.timeout.is_zero() || self.silence.is_zero() {
            return Err("a time limit is 0, so no answer would ever come".to_owned());
        }
        if self.retries > MAX_RETRIES {
            return Err(format!(
                "a question is asked again at most {MAX_RETRIES} times"
            ));
        }
        Ok(())
    }
}

/// More than this is no patience, but a mistake.
const MAX_RETRIES: usize = 20;

fn is_this_machine(url: &Url) -> bool {
    let host = url
        .host_str()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']');
    host == "localhost"
        || host
            .parse::<std::net::IpAddr>()
            .is_ok_and(|address| address.is_loopback())
}

/// A fault that keeps the models from being used as they are configured.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidModels {
    #[error("the provider {0:?} is not named by 1 to 48 letters, digits, `_` and `-`")]
    ProviderName(String),
    #[error("the provider `{name}`: {problem}")]
    Provider { name: String, problem: String },
    #[error(
        "`{0}` is no name of a model: write provider/name, such as `anthropic/claude-sonnet-4-5`"
    )]
    ModelName(String),
    #[error("the model `{model}` is of the provider `{provider}`, which is not configured")]
    UnknownProvider { model: String, provider: String },
    #[error("the price of `{0}` is not a number of dollars")]
    Price(String),
    #[error("the settings of {role}: {problem}")]
    Settings {
        role: ModelRole,
        problem: &'static str,
    },
}

impl ModelOptions {
    /// Reports a fault before any provider is asked.
    pub fn check(&self) -> Result<(), InvalidModels> {
        for (name, provider) in &self.providers {
            let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if name.is_empty() || name.len() > 48 || !name.bytes().all(named) {
                return Err(InvalidModels::ProviderName(name.clone()));
            }
            let wrong = |problem| InvalidModels::Provider {
                name: name.clone(),
                problem,
            };
            provider.check().map_err(wrong)?;
        }
        for model in self.default.iter().chain(self.roles.values()) {
            let (provider, _) =
                split(model).ok_or_else(|| InvalidModels::ModelName(model.clone()))?;
            if !self.providers.contains_key(provider) {
                let model = model.clone();
                let provider = provider.to_owned();
                return Err(InvalidModels::UnknownProvider { model, provider });
            }
        }
        for (&role, settings) in &self.settings {
            if let Some(problem) = settings.problem() {
                return Err(InvalidModels::Settings { role, problem });
            }
        }
        for (model, price) in &self.prices {
            split(model).ok_or_else(|| InvalidModels::ModelName(model.clone()))?;
            if !price.is_sound() {
                return Err(InvalidModels::Price(model.clone()));
            }
        }
        Ok(())
    }

    /// The model of a role, if there is one.
    pub fn of_role(&self, role: ModelRole) -> Option<&str> {
        self.roles
            .get(&role)
            .or(self.default.as_ref())
            .map(String::as_str)
    }

    /// Every model that is named, once.
    pub fn named_models(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .default
            .iter()
            .chain(self.roles.values())
            .map(String::as_str)
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

/// Longer names than this are no names.
const MAX_NAME: usize = 256;

/// The provider of a model and its name there, which may have slashes of its own.
pub(super) fn split(model: &str) -> Option<(&str, &str)> {
    let (provider, name) = model.split_once('/')?;
    // It becomes part of a URL with one provider, so only what needs no escaping there.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-:/@+".contains(&byte);
    let fits = !name.is_empty()
        && model.len() <= MAX_NAME
        && name.bytes().all(plain)
        && !name.contains("..");
    fits.then_some((provider, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(base_url: &str) -> ModelOptions {
        let provider = ProviderOptions::new(ProviderKind::OpenAi, base_url);
        ModelOptions {
            providers: [("local".to_owned(), provider)].into(),
            ..ModelOptions::default()
        }
    }

    #[test]
    fn plain_http_stays_on_this_machine() {
        for fine in [
            "http://127.0.0.1:8080/v1",
            "http://localhost/v1",
            "http://[::1]:1/v1",
            "https://example.org/v1",
        ] {
            assert_eq!(with(fine).check(), Ok(()), "{fine}");
        }
        for wrong in [
            "http://example.org/v1",
            "http://10.0.0.1/v1",
            "ftp://x",
            "x",
            "https://u:p@x/v1",
            "https://x/?k=1",
        ] {
            assert!(with(wrong).check().is_err(), "{wrong}");
        }
        let mut options = with("http://example.org/v1");
        options
            .providers
            .get_mut("local")
            .expect("it is there")
            .insecure = true;
        assert_eq!(options.check(), Ok(()));
    }

    #[test]
    fn a_model_is_named_by_its_provider_and_its_name_there() {
        assert_eq!(
            split("openrouter/meta/llama-3:free"),
            Some(("openrouter", "meta/llama-3:free"))
        );
        for wrong in [
            "gpt",
            "openai/",
            "openai/a b",
            "openai/a?b",
            "gemini/../x",
            "openai/a\n",
        ] {
            assert_eq!(split(wrong), None, "{wrong}");
        }
        let mut options = with("http://localhost/v1");
        options.default = Some("nobody/model".to_owned());
        assert!(matches!(
            options.check(),
            Err(InvalidModels::UnknownProvider { .. })
        ));
    }
}
