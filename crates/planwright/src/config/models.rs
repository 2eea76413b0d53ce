//! `[models]` of `planwright.toml`: who plans, thinks and reflects, and where those models are.
//! Never a key.
//!
//! The user's own file may have the same table; the project's goes before it. What a project says
//! about places of models counts only once the user trusts it: prompts hold the project's files,
//! and keys are the user's.

use crate::config::file::{Config, FILE};
use crate::exit::Failure;
use crate::trust::{Loosening, Subject, Trust, TrustState};
use planwright_adapters::model::{
    Effort, ModelOptions, Price, ProviderKind, ProviderOptions, RoleSettings, Structured, builtin,
};
use planwright_adapters::secrets::SecretSource;
use planwright_core::digest::Digest;
use planwright_core::model::ModelRole;
use planwright_core::text::nearest_names;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::str::FromStr as _;
use std::time::Duration;

/// Names the default model and overrides every file.
const MODEL: &str = "PLANWRIGHT_MODEL";

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelsTable {
    default: Option<String>,
    planner: Option<String>,
    reflector: Option<String>,
    executor: Option<String>,
    chat: Option<String>,
    providers: BTreeMap<String, ProviderTable>,
    prices: BTreeMap<String, PriceTable>,
    settings: BTreeMap<String, SettingsTable>,
}

/// How models are asked in one role.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct SettingsTable {
    temperature: Option<f64>,
    effort: Option<String>,
    thinking_tokens: Option<u32>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct ProviderTable {
    kind: Option<Kind>,
    base_url: Option<String>,
    key_env: Option<String>,
    /// `env:NAME`, `file:PATH` or `keyring:SERVICE/USER`.
    key: Option<String>,
    structured: Option<String>,
    timeout_seconds: Option<u64>,
    silence_seconds: Option<u64>,
    retries: Option<usize>,
    loading_seconds: Option<u64>,
    context_tokens: Option<u64>,
    answer_tokens: Option<u32>,
    insecure: Option<bool>,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    OpenAi,
    Anthropic,
    Gemini,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: f64,
    output: f64,
    cached: Option<f64>,
}

/// What the files say.
#[derive(Debug)]
pub(crate) struct DescribedModels {
    pub(crate) options: ModelOptions,
    /// Providers that the project's file describes, with what the user has to agree to. Also those
    /// on this machine: anyone can listen here, and the key that is sent is the user's.
    pub(crate) foreign: BTreeMap<String, Digest>,
}

impl DescribedModels {
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.options
            .check()
            .map_err(|problem| wrong(problem.to_string()))
    }
}

/// The name under which trust in a provider is kept.
pub(crate) fn trust_name(provider: &str) -> String {
    Subject::Provider(provider.to_owned()).trust_name()
}

/// What the project's file says about places of models.
pub(crate) fn loosenings(config: &Config, workspace: &Path) -> Result<Vec<Loosening>, Failure> {
    let DescribedModels { options, foreign } = config.models(workspace, &set_variable)?;
    let describe = |(name, digest): (String, Digest)| {
        let provider = options.providers.get(&name)?;
        let key = match &provider.key {
            Some(source) => format!("with your key: {source}"),
            None => "without a key".to_owned(),
        };
        let mut loosening = Loosening::new(
            Subject::Provider(name.clone()),
            FILE,
            format!("[models.providers.{name}]"),
            format!(
                "everything that models are asked here is sent to {}, {key}",
                provider.base_url
            ),
            &json!(null),
        );
        loosening.digest = digest;
        if provider.insecure {
            loosening = loosening.warning("it is not encrypted on its way");
        }
        Some(loosening)
    };
    Ok(foreign.into_iter().filter_map(describe).collect())
}

/// A variable of the environment, unless it is empty.
fn set_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// The models that can be asked now: what the files and the environment say, and what the user
/// trusts.
pub(crate) fn usable(
    config: &Config,
    workspace: &Path,
    trust_project: bool,
) -> Result<ModelOptions, Failure> {
    let DescribedModels {
        mut options,
        foreign,
    } = config.models(workspace, &set_variable)?;
    if !foreign.is_empty() && !trust_project {
        let trust = Trust::read(workspace);
        for (name, digest) in foreign {
            let what = match trust.trust_state(&trust_name(&name), &digest) {
                TrustState::Trusted => continue,
                TrustState::Changed => "is not what you trusted",
                TrustState::Unknown => "is not trusted",
            };
            if let Some(provider) = options.providers.get_mut(&name) {
                provider.obstacle = Some(format!(
                    "the provider `{name}` of {FILE} {what} (planwright trust)"
                ));
            }
        }
    }
    if let Some(model) = set_variable(MODEL) {
        options.default = Some(model);
    }
    Ok(options)
}

/// Reads both tables. Relative paths start in the workspace.
pub(crate) fn describe(
    project: &ModelsTable,
    user: &ModelsTable,
    workspace: &Path,
    variable: &dyn Fn(&str) -> Option<String>,
) -> Result<DescribedModels, Failure> {
    let mut providers: BTreeMap<String, ProviderOptions> = builtin(variable).into_iter().collect();
    let mut foreign = BTreeMap::new();
    for (name, table) in &user.providers {
        let options = table.applied(name, providers.get(name), workspace)?;
        providers.insert(name.clone(), options);
    }
    for (name, table) in &project.providers {
        let options = table.applied(name, providers.get(name), workspace)?;
        if table.says_where() {
            let key = options.key.as_ref().map(ToString::to_string);
            let mut written = vec![json!(options.base_url), json!(key)];
            written.extend(options.insecure.then(|| json!("insecure")));
            foreign.insert(name.clone(), Digest::of_json(&json!(written)));
        }
        providers.insert(name.clone(), options);
    }
    let mut prices = BTreeMap::new();
    for (model, price) in user.prices.iter().chain(&project.prices) {
        let PriceTable {
            input,
            output,
            cached,
        } = *price;
        prices.insert(
            model.clone(),
            Price {
                input,
                output,
                cached,
            },
        );
    }
    let roles = ModelRole::ALL.into_iter();
    let roles =
        roles.filter_map(|role| Some((role, project.of(role).or_else(|| user.of(role))?.clone())));
    let settings = settings(&user.settings, &project.settings)?;
    let default = project.default.clone().or_else(|| user.default.clone());
    let options = ModelOptions {
        default,
        roles: roles.collect(),
        settings,
        providers,
        prices,
    };
    Ok(DescribedModels { options, foreign })
}

/// The settings of the roles. The project's word goes before the user's, key by key.
fn settings(
    user: &BTreeMap<String, SettingsTable>,
    project: &BTreeMap<String, SettingsTable>,
) -> Result<BTreeMap<ModelRole, RoleSettings>, Failure> {
    let mut settings: BTreeMap<ModelRole, RoleSettings> = BTreeMap::new();
    for (word, table) in user.iter().chain(project) {
        let role: ModelRole = word.parse().map_err(wrong)?;
        let lacks = |problem: &str| wrong(format!("the settings of {role}: {problem}"));
        let effort = match (&table.effort, table.thinking_tokens) {
            (Some(_), Some(_)) => {
                return Err(lacks("`effort` and `thinking_tokens` say the same thing"));
            }
            (Some(word), None) => {
                Some(Effort::from_str(word).map_err(|error| lacks(&error.to_string()))?)
            }
            (None, tokens) => tokens.map(Effort::Tokens),
        };
        let of_role = settings.entry(role).or_default();
        of_role.temperature = table.temperature.or(of_role.temperature);
        of_role.effort = effort.or(of_role.effort);
    }
    Ok(settings)
}

fn wrong(problem: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("{FILE}: [models] {problem}"))
        .hint("To see what can be written: planwright explain models")
}

impl ModelsTable {
    fn of(&self, role: ModelRole) -> Option<&String> {
        match role {
            ModelRole::Planner => self.planner.as_ref(),
            ModelRole::Reflector => self.reflector.as_ref(),
            ModelRole::Executor => self.executor.as_ref(),
            ModelRole::Chat => self.chat.as_ref(),
        }
    }
}

impl ProviderTable {
    /// Returns whether it says where the provider is or what it is told, and not only how to treat
    /// it.
    fn says_where(&self) -> bool {
        self.base_url.is_some()
            || self.key.is_some()
            || self.key_env.is_some()
            || self.kind.is_some()
            || self.insecure == Some(true)
    }

    /// The provider with what this table says about it.
    fn applied(
        &self,
        name: &str,
        known: Option<&ProviderOptions>,
        workspace: &Path,
    ) -> Result<ProviderOptions, Failure> {
        let lacks = |problem: &str| wrong(format!("the provider `{name}`: {problem}"));
        let kind = self.kind.map(|kind| match kind {
            Kind::OpenAi => ProviderKind::OpenAi,
            Kind::Anthropic => ProviderKind::Anthropic,
            Kind::Gemini => ProviderKind::Gemini,
        });
        let mut options = match (known, kind, &self.base_url) {
            (Some(known), _, _) => known.clone(),
            (None, Some(kind), Some(base_url)) => ProviderOptions::new(kind, base_url),
            (None, None, _) => return Err(lacks("`kind` is missing: openai, anthropic or gemini")),
            (None, _, None) => return Err(lacks("`base_url` is missing")),
        };
        options.kind = kind.unwrap_or(options.kind);
        if let Some(base_url) = &self.base_url {
            options.base_url.clone_from(base_url);
        }
        if let Some(key) = self.key(workspace).map_err(|problem| lacks(&problem))? {
            options.key = Some(key);
        }
        if let Some(word) = &self.structured {
            options.structured = structured(word).map_err(|problem| lacks(&problem))?;
        }
        let seconds = |given: Option<u64>, default| given.map_or(default, Duration::from_secs);
        options.timeout = seconds(self.timeout_seconds, options.timeout);
        options.silence = seconds(self.silence_seconds, options.silence).min(options.timeout);
        options.loading = seconds(self.loading_seconds, options.loading);
        options.retries = self.retries.unwrap_or(options.retries);
        options.context_tokens = self.context_tokens.or(options.context_tokens);
        options.answer_tokens = self.answer_tokens.or(options.answer_tokens);
        options.insecure = self.insecure.unwrap_or(options.insecure);
        Ok(options)
    }

    fn key(&self, workspace: &Path) -> Result<Option<SecretSource>, String> {
        match (&self.key_env, &self.key) {
            (Some(_), Some(_)) => Err("`key_env` and `key` are two places of one key".to_owned()),
            (Some(variable), None) => named_variable(variable).map(Some),
            (None, Some(place)) => key_place(place, workspace).map(Some),
            (None, None) => Ok(None),
        }
    }
}

fn named_variable(variable: &str) -> Result<SecretSource, String> {
    if variable.is_empty() || variable.contains(['=', '\0']) {
        return Err("`key_env` names no variable".to_owned());
    }
    Ok(SecretSource::Environment(variable.to_owned()))
}

/// The value is not repeated in the message: it may be the key itself.
fn key_place(place: &str, workspace: &Path) -> Result<SecretSource, String> {
    let unknown = || {
        "`key` says where the key is kept, never what it is: env:NAME, file:PATH or keyring:SERVICE/USER"
            .to_owned()
    };
    match place.split_once(':') {
        Some(("env", variable)) => named_variable(variable),
        Some(("file", path)) if !path.is_empty() => Ok(SecretSource::File(workspace.join(path))),
        Some(("keyring", entry)) => match entry.rsplit_once('/') {
            Some((service, user)) if !service.is_empty() && !user.is_empty() => {
                Ok(SecretSource::Keyring {
                    service: service.to_owned(),
                    user: user.to_owned(),
                })
            }
            _ => Err("`key` names no entry of the keyring: write keyring:SERVICE/USER".to_owned()),
        },
        _ => Err(unknown()),
    }
}

fn structured(word: &str) -> Result<Structured, String> {
    word.parse().map_err(|error| {
        let known = ["auto", "json_schema", "json_object", "tool", "text"].map(str::to_owned);
        match nearest_names(word, known).first() {
            Some(near) => format!("{error}; did you mean `{near}`?"),
            None => format!("{error}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(project: &str, user: &str) -> Result<DescribedModels, Failure> {
        let read = |text: &str| toml::from_str::<ModelsTable>(text).expect("the table can be read");
        let described = describe(&read(project), &read(user), Path::new("/w"), &|_| None)?;
        described.check()?;
        Ok(described)
    }

    #[test]
    fn the_project_goes_before_the_user() {
        let user = "default = 'openai/a'\nplanner = 'mine/b'\n[providers.mine]\nkind = 'openai'\n\
                    base_url = 'https://example.org/v1'\nretries = 1";
        let described =
            described("default = 'ollama/c'\n[providers.mine]\nretries = 7", user).unwrap();
        let options = &described.options;
        assert_eq!(options.of_role(ModelRole::Chat), Some("ollama/c"));
        assert_eq!(options.of_role(ModelRole::Planner), Some("mine/b"));
        assert_eq!(options.providers["mine"].retries, 7);
        assert!(described.foreign.is_empty(), "patience needs no trust");
    }

    #[test]
    fn each_role_is_asked_in_its_own_way() {
        let user = "[settings.planner]\ntemperature = 0.5\neffort = 'low'";
        let project =
            "[settings.planner]\nthinking_tokens = 4000\n[settings.chat]\neffort = 'high'";
        let options = described(project, user).unwrap().options;
        let planner = options.settings[&ModelRole::Planner];
        assert_eq!(planner.temperature, Some(0.5));
        assert_eq!(planner.effort, Some(Effort::Tokens(4000)));
        let chat = options.settings[&ModelRole::Chat];
        assert_eq!((chat.temperature, chat.effort), (None, Some(Effort::High)));
    }

    #[test]
    fn what_a_project_says_about_places_needs_trust() {
        let foreign = |text: &str| described(text, "").unwrap().foreign.len();
        assert_eq!(
            foreign("[providers.openai]\nbase_url = 'https://example.org/v1'"),
            1
        );
        assert_eq!(foreign("[providers.openai]\nkey_env = 'OTHER_SECRET'"), 1);
        assert_eq!(
            foreign("[providers.x]\nkind = 'gemini'\nbase_url = 'https://example.org/v1'"),
            1
        );
        assert_eq!(
            foreign(
                "[providers.x]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1/v1'\nkey_env = 'K'"
            ),
            1,
            "on this machine too: the key is the user's"
        );
        assert_eq!(
            foreign("[providers.openai]\nretries = 0\nstructured = 'tool'"),
            0
        );
    }

    #[test]
    fn mistakes_are_named_and_a_key_in_the_file_is_not_repeated() {
        for (text, words) in [
            ("default = 'gpt-5'", "no name of a model"),
            ("default = 'nobody/x'", "`nobody`, which is not configured"),
            (
                "[providers.x]\nbase_url = 'http://127.0.0.1/v1'",
                "`kind` is missing",
            ),
            ("[providers.x]\nkind = 'openai'", "`base_url` is missing"),
            (
                "[providers.x]\nkind = 'openai'\nbase_url = 'http://example.org/v1'",
                "insecure = true",
            ),
            (
                "[providers.openai]\nstructured = 'json_shema'",
                "did you mean `json_schema`?",
            ),
            ("[providers.openai]\nkey = 'sk-canary'", "never what it is"),
            (
                "[providers.openai]\nkey = 'keyring:x'",
                "keyring:SERVICE/USER",
            ),
            (
                "[providers.openai]\nkey_env = 'A'\nkey = 'env:B'",
                "two places",
            ),
            (
                "[providers.openai]\ntimeout_seconds = 0",
                "no answer would ever come",
            ),
            ("[settings.planer]\ntemperature = 1", "no role of a model"),
            ("[settings.chat]\ntemperature = 3", "between 0 and 2"),
            ("[settings.chat]\neffort = 'hard'", "is no effort"),
            (
                "[settings.chat]\neffort = 'low'\nthinking_tokens = 9",
                "the same thing",
            ),
            (
                "[prices.\"openai/x\"]\ninput = -1\noutput = 2",
                "not a number of dollars",
            ),
        ] {
            let failure = described(text, "").unwrap_err();
            assert!(
                failure.message.contains(words),
                "{text}: {}",
                failure.message
            );
            assert!(!failure.message.contains("canary"));
        }
    }

    #[test]
    fn keys_have_three_places() {
        for (place, shown) in [
            ("env:A_KEY", "variable A_KEY"),
            ("file:keys/a", "file /w/keys/a"),
            ("keyring:planwright/openai", "keyring planwright/openai"),
        ] {
            let options = described(&format!("[providers.openai]\nkey = '{place}'"), "")
                .unwrap()
                .options;
            assert_eq!(
                options.providers["openai"]
                    .key
                    .as_ref()
                    .unwrap()
                    .to_string(),
                shown
            );
        }
    }
}
