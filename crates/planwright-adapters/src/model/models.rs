//! All configured models behind one door.

use super::ask::ask;
use super::dialect::Dialect;
use super::options::{ModelOptions, ProviderOptions, split};
use super::price::Price;
use super::settings::RoleSettings;
use crate::secrets::{ConfiguredSecrets, SecretSource, SecretSpec};
use genai::Client;
use planwright_core::model::{ModelRole, ModelUse, TokenUsage};
use planwright_core::secret::{SecretName, SecretText};
use planwright_engine::Redaction;
use planwright_engine::port::{
    BoxFuture, KeyState, Model, ModelAnswer, ModelError, ModelInfo, ModelRequest, Secrets as _,
};
use reqwest::redirect;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The models of a workspace. Making it costs nothing: keys are read and connections made when a
/// caller asks a model.
#[derive(Clone)]
pub struct Models(Arc<Shared>);

pub(super) struct Shared {
    options: ModelOptions,
    keys: ConfiguredSecrets,
    pub(super) redaction: Redaction,
    /// For encrypted connections, and for plain ones.
    clients: [OnceLock<Client>; 2],
    /// Ways to ask for JSON that were found out: by model and name of the schema.
    learned: Mutex<BTreeMap<(String, String), Dialect>>,
}

impl fmt::Debug for Models {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Models")
            .field("models", &self.0.options.named_models())
            .finish_non_exhaustive()
    }
}

/// One model, found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target<'a> {
    /// `provider/name`.
    pub(super) model: &'a str,
    pub(super) provider_name: &'a str,
    pub(super) provider: &'a ProviderOptions,
    /// As the provider knows it.
    pub(super) name: &'a str,
}

impl Models {
    /// Prepares the providers. A fault of one provider stops only the questions to it.
    pub fn new(options: ModelOptions, redaction: Redaction) -> Self {
        let key = |(name, provider): (&String, &ProviderOptions)| {
            let spec = SecretSpec {
                obstacle: None,
                source: provider.key.clone()?,
                tools: None,
                hosts: None,
            };
            Some((key_name(name)?, spec))
        };
        let keys = ConfiguredSecrets::new(options.providers.iter().filter_map(key).collect());
        let clients = Default::default();
        let learned = Mutex::default();
        Self(Arc::new(Shared {
            options,
            keys,
            redaction,
            clients,
            learned,
        }))
    }

    /// Returns the price of a model's tokens, if it is known.
    pub fn price(&self, model: &str) -> Option<Price> {
        self.0.price(model)
    }

    /// Returns the reason why a model cannot be asked, as far as it shows without asking.
    pub fn obstacle(&self, model: &str) -> Option<String> {
        self.0.lookup(model).ok()?.provider.problem()
    }

    /// Returns the way this model is asked for JSON of a schema of this name, as far as it was
    /// found out.
    pub fn dialect(&self, model: &str, schema: &str) -> Option<Dialect> {
        let target = self.0.lookup(model).ok()?;
        Some(self.0.dialect(&target, schema))
    }
}

/// Keys are masked under this name.
fn key_name(provider: &str) -> Option<SecretName> {
    SecretName::new(&format!("key-of-{provider}"))
}

impl Shared {
    /// The model to ask.
    pub(super) fn usable<'a>(
        &'a self,
        role: ModelRole,
        model: Option<&'a str>,
    ) -> Result<Target<'a>, ModelError> {
        let target = self.target(role, model)?;
        match target.provider.problem() {
            Some(message) => Err(ModelError::Unavailable {
                model: target.model.to_owned(),
                message,
            }),
            None => Ok(target),
        }
    }

    fn target<'a>(
        &'a self,
        role: ModelRole,
        model: Option<&'a str>,
    ) -> Result<Target<'a>, ModelError> {
        let model = model
            .or_else(|| self.options.of_role(role))
            .ok_or(ModelError::NotConfigured { role })?;
        self.lookup(model)
    }

    /// Finds a model by `provider/name`, or by the name alone if one configured model has it.
    fn lookup<'a>(&'a self, model: &'a str) -> Result<Target<'a>, ModelError> {
        let find = |model: &'a str| {
            let (provider_name, name) = split(model)?;
            let provider = self.options.providers.get(provider_name)?;
            Some(Target {
                model,
                provider_name,
                provider,
                name,
            })
        };
        let by_name_alone = || {
            let named = self.options.named_models().into_iter();
            let mut alike =
                named.filter(|known| split(known).is_some_and(|(_, name)| name == model));
            let only = alike.next().filter(|_| alike.next().is_none())?;
            find(only)
        };
        find(model).or_else(by_name_alone).ok_or_else(|| {
            let known = self.options.named_models().into_iter().map(str::to_owned);
            let providers = self
                .options
                .providers
                .keys()
                .map(|name| format!("{name}/…"));
            ModelError::Unknown {
                name: model.to_owned(),
                known: known.chain(providers).collect(),
            }
        })
    }

    pub(super) fn settings(&self, role: ModelRole) -> RoleSettings {
        let settings = self.options.settings.get(&role).copied();
        settings.unwrap_or_default()
    }

    /// The key, read afresh so that a change is seen. It is known as secret before it is used.
    pub(super) async fn key(&self, target: &Target<'_>) -> Result<Option<SecretText>, ModelError> {
        let Some(name) = key_name(target.provider_name).filter(|_| target.provider.key.is_some())
        else {
            return Ok(None);
        };
        let no_key = |hint: String| ModelError::NoKey {
            model: target.model.to_owned(),
            hint,
        };
        let key = self
            .keys
            .get(&name)
            .await
            .map_err(|error| no_key(error.to_string()))?;
        self.redaction
            .learn(&name, &key)
            .map_err(|error| no_key(error.to_string()))?;
        Ok(Some(key))
    }

    pub(super) fn client(&self, target: &Target<'_>) -> Result<&Client, ModelError> {
        let encrypted = target.provider.is_encrypted();
        let place = &self.clients[usize::from(encrypted)];
        if let Some(client) = place.get() {
            return Ok(client);
        }
        let client = build(encrypted).map_err(|error| ModelError::Unavailable {
            model: target.model.to_owned(),
            message: crate::outbound::describe_failure(&error),
        })?;
        Ok(place.get_or_init(|| client))
    }

    pub(super) fn price(&self, model: &str) -> Option<Price> {
        self.options
            .prices
            .get(model)
            .copied()
            .or_else(|| Price::built_in(model))
    }

    /// Puts the price to the tokens that a model took.
    pub(super) fn price_use(
        &self,
        target: &Target<'_>,
        role: ModelRole,
        usage: TokenUsage,
    ) -> ModelUse {
        let cost = self.price(target.model).map(|price| price.of(usage));
        ModelUse {
            role,
            model: target.model.to_owned(),
            usage,
            cost,
        }
    }

    pub(super) fn dialect(&self, target: &Target<'_>, schema: &str) -> Dialect {
        let learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        let known = learned
            .get(&(target.model.to_owned(), schema.to_owned()))
            .copied();
        known.unwrap_or_else(|| Dialect::first(target.provider.kind, target.provider.structured))
    }

    pub(super) fn learn_dialect(&self, target: &Target<'_>, schema: &str, dialect: Dialect) {
        let mut learned = self.learned.lock().unwrap_or_else(PoisonError::into_inner);
        learned.insert((target.model.to_owned(), schema.to_owned()), dialect);
    }

    fn info(&self, target: &Target<'_>) -> ModelInfo {
        let roles = ModelRole::ALL.into_iter();
        ModelInfo {
            name: target.model.to_owned(),
            roles: roles
                .filter(|&role| self.options.of_role(role) == Some(target.model))
                .collect(),
            endpoint: target.provider.base_url.clone(),
            key: target.provider.key.as_ref().map(key_state),
            context_tokens: target.provider.context_tokens,
        }
    }
}

/// Returns whether a key is there, as far as one can see without reading it.
fn key_state(source: &SecretSource) -> KeyState {
    let present = match source {
        SecretSource::Environment(variable) => {
            std::env::var_os(variable).is_some_and(|value| !value.is_empty())
        }
        SecretSource::File(path) => path.exists(),
        SecretSource::Keyring { .. } => cfg!(feature = "keyring"),
    };
    KeyState {
        source: source.to_string(),
        present,
    }
}

fn build(encrypted: bool) -> reqwest::Result<Client> {
    crate::tls::install_provider();
    let web = reqwest::Client::builder()
        .user_agent(concat!("planwright/", env!("CARGO_PKG_VERSION")))
        // A redirect could lead anywhere, and it would take the key along.
        .redirect(redirect::Policy::none())
        .referer(false)
        // What is unpacked could be a thousand times what was sent.
        .no_gzip()
        .connect_timeout(CONNECT_TIMEOUT);
    let web = if encrypted {
        web.https_only(true).build()?
    } else {
        web.no_proxy().tls_certs_only([]).build()?
    };
    Ok(Client::builder()
        .with_reqwest(web)
        .build()
        .expect("a client that is given whole needs nothing else"))
}

impl Model for Models {
    fn models(&self) -> Vec<ModelInfo> {
        let named = self.0.options.named_models().into_iter();
        named
            .filter_map(|model| Some(self.0.info(&self.0.lookup(model).ok()?)))
            .collect()
    }

    fn resolve(&self, role: ModelRole, model: Option<&str>) -> Result<ModelInfo, ModelError> {
        self.0
            .target(role, model)
            .map(|target| self.0.info(&target))
    }

    fn price_use(
        &self,
        role: ModelRole,
        model: Option<&str>,
        usage: TokenUsage,
    ) -> Result<ModelUse, ModelError> {
        let target = self.0.target(role, model)?;
        Ok(self.0.price_use(&target, role, usage))
    }

    fn ask(&self, request: ModelRequest) -> BoxFuture<'static, Result<ModelAnswer, ModelError>> {
        let shared = Arc::clone(&self.0);
        Box::pin(async move { ask(&shared, request).await })
    }
}
