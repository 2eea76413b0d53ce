//! `planwright.toml`: what the operator decided. Strict, because a misspelt setting protects
//! nothing.

#[cfg(test)]
mod loosening_lives;
mod loosenings;
mod policy;
mod tables;

use self::tables::{
    BoundsTable, ChatTable, LimitsTable, Local, PlansTable, StoreTable, Tool, UserFile,
};
use crate::config::always;
use crate::config::dispatch::DispatchTable;
use crate::config::executors::{self, AgentTable, ExecutorTable, ScopeMode};
use crate::config::models::{self, DescribedModels, ModelsTable};
use crate::config::retention::{After, RetentionTable};
use crate::config::secrets::{self, SecretTable};
use crate::config::webhooks::{self, WebhookTable};
use crate::exit::Failure;
use crate::telemetry::TelemetryTable;
use crate::terminal::printer::line;
use crate::trust::home;
use crate::workspace::agent_marks::check_mark;
use crate::workspace::servers::ServerTable;
use planwright_adapters::local::{HttpOptions, LocalOptions};
use planwright_adapters::process::Children;
use planwright_adapters::secrets::ConfiguredSecrets;
use planwright_adapters::toolbox::ToolboxOptions;
use planwright_adapters::webhook::WebhookOptions;
use planwright_core::plan::Bounds;
use planwright_core::policy::{PolicyDocument, RolesTable, RuleDocument, TimeSpan};
use planwright_core::text::nearest_names;
use planwright_engine::{AgentSettings, ConcurrencyLimits, Engine, Retention};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(crate) use self::tables::{GatewayTable, OidcTable, ServeTable, SignInTable};

/// The name of the file, in the workspace.
pub(crate) const FILE: &str = "planwright.toml";

/// Everything that can be configured. Absent means the default.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    local: Local,
    tools: BTreeMap<String, Tool>,
    limits: LimitsTable,
    servers: BTreeMap<String, ServerTable>,
    /// The user's own file.
    #[serde(skip)]
    user: UserFile,
    /// What the user allows for good in this folder.
    #[serde(skip)]
    always: Vec<RuleDocument>,
    bounds: BoundsTable,
    secrets: SecretTable,
    store: StoreTable,
    /// Who plans, thinks and reflects.
    models: ModelsTable,
    /// What is recorded for operators, and where it goes.
    telemetry: TelemetryTable,
    /// The HTTP service.
    serve: ServeTable,
    sign_in: SignInTable,
    /// Who is told what happens.
    webhooks: Vec<WebhookTable>,
    /// Which calls may be made, which are asked about, and what makes an approval complete.
    policy: PolicyDocument,
    /// Who may do what; absent means that every person may do everything.
    roles: Option<RolesTable>,
    /// Minutes without an entry after which an executing plan counts as stalled.
    stalled_after_minutes: Option<u64>,
    /// The times for which plans are waited for and kept.
    plans: PlansTable,
    /// What leaves the database, and what is removed.
    retention: RetentionTable,
    /// What a chat may spend.
    chat: ChatTable,
    /// How the gateway treats its clients.
    gateway: GatewayTable,
    /// Programs that work on agent steps.
    executors: BTreeMap<String, ExecutorTable>,
    /// What holds for every executor.
    agent: AgentTable,
    /// Which steps are carried out by workers.
    dispatch: DispatchTable,
    /// The file with servers that the command line names.
    #[serde(skip)]
    servers_file: Option<PathBuf>,
}

/// Deeper documents could exhaust the stack, so no setting raises this.
const DEEPEST: usize = 100;

/// The longest time limit of calls.
const LONGEST_CALL: Duration = Duration::from_secs(24 * 60 * 60);

impl Config {
    /// Reads the workspace's file and the user's; no file means the defaults.
    pub(crate) fn read(workspace: &Path) -> Result<Self, Failure> {
        let mut config = match text_of(&workspace.join(FILE))? {
            Some(text) => Self::parse(&text)?,
            None => Self::default(),
        };
        if let Some(path) = home().map(|home| home.join(FILE))
            && let Some(text) = text_of(&path)?
        {
            let name = path.display().to_string();
            config.user = toml::from_str(&text).map_err(|error| explain(&name, &text, &error))?;
            check_servers(&name, &config.user.servers)?;
            executors::check(&name, &config.user.executors)?;
            check_marks(&name, &config.user.agent.marks)?;
        }
        config.always = always::read_rules(workspace)?;
        config.policy()?;
        // Together: the project's file may name a provider that the user's file describes.
        config.models(workspace, &|_| None)?.check()?;
        Ok(config)
    }

    /// Reads a named file in the same form.
    pub(crate) fn read_file(path: &Path) -> Result<Self, Failure> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Failure::usage(format!("cannot read {}: {error}", path.display())))?;
        Self::parse(&text)
    }

    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let config: Self = toml::from_str(text).map_err(|error| explain(FILE, text, &error))?;
        config.check()?;
        Ok(config)
    }

    /// The servers of the workspace's file.
    pub(crate) fn servers(&self) -> &BTreeMap<String, ServerTable> {
        &self.servers
    }

    /// The servers of the user's file.
    pub(crate) fn user_servers(&self) -> &BTreeMap<String, ServerTable> {
        &self.user.servers
    }

    /// The executors of the workspace's file.
    pub(crate) fn executors(&self) -> &BTreeMap<String, ExecutorTable> {
        &self.executors
    }

    /// The executors of the workspace's file that count: the user's own of the same name come
    /// first.
    pub(crate) fn project_executors(&self) -> impl Iterator<Item = (&String, &ExecutorTable)> {
        let all = self.executors.iter();
        all.filter(|(name, _)| !self.user.executors.contains_key(*name))
    }

    /// The executors of the user's file.
    pub(crate) fn user_executors(&self) -> &BTreeMap<String, ExecutorTable> {
        &self.user.executors
    }

    /// What holds for every executor.
    pub(crate) fn agents(&self) -> AgentSettings {
        AgentSettings {
            observe_scope: self.agent.scope == ScopeMode::Observe,
        }
    }

    /// What both files add to the marks of agents. A file can only add.
    pub(crate) fn agent_marks(&self) -> impl Iterator<Item = &String> {
        self.agent.marks.iter().chain(&self.user.agent.marks)
    }

    /// What both files say about a server, the workspace's first.
    pub(crate) fn server(&self, name: &str) -> impl Iterator<Item = &ServerTable> {
        self.servers
            .get(name)
            .into_iter()
            .chain(self.user.servers.get(name))
    }

    /// What the user's own file says about a server.
    pub(crate) fn own_server(&self, name: &str) -> Option<&ServerTable> {
        self.user.servers.get(name)
    }

    /// A limit of zero would stop everything without a word.
    fn check(&self) -> Result<(), Failure> {
        check_servers(FILE, &self.servers)?;
        executors::check(FILE, &self.executors)?;
        check_marks(FILE, &self.agent.marks)?;
        let limits = &self.limits;
        let per = limits
            .per_server
            .iter()
            .chain(&limits.per_tool)
            .map(|(name, n)| (name.as_str(), *n));
        let all = per.chain(limits.global.map(|n| ("global", n)));
        let stored = limits.stored_megabytes_per_principal;
        let all = all.chain(stored.map(|n| ("stored_megabytes_per_principal", n as usize)));
        if let Some((name, _)) = all.into_iter().find(|&(_, n)| n == 0) {
            return Err(Failure::usage(format!(
                "{FILE}: the limit `{name}` is 0, so nothing could run"
            ))
            .hint("use 1 or more, or leave it out"));
        }
        let longest = LONGEST_CALL.as_secs();
        if let Some(seconds) = limits.call_timeout_seconds
            && !(1..=longest).contains(&seconds)
        {
            return Err(Failure::usage(format!(
                "{FILE}: `call_timeout_seconds` is {seconds}; it can be 1 to {longest}"
            )));
        }
        if self.bounds.max_depth.is_some_and(|depth| depth > DEEPEST) {
            return Err(Failure::usage(format!(
                "{FILE}: `max_depth` is at most {DEEPEST}"
            )));
        }
        let days = (self.plans.archive_after_days, self.plans.delete_after_days);
        self.retention.check(days)?;
        self.secrets(Path::new(""))?;
        self.webhooks()?;
        self.policy().map(drop)
    }

    /// Returns where secrets are kept. Relative paths start in the workspace.
    pub(crate) fn secrets(&self, workspace: &Path) -> Result<ConfiguredSecrets, Failure> {
        secrets::read_secrets(&self.secrets, workspace)
    }

    /// The file that holds the store's passphrase. Relative paths start in the workspace.
    pub(crate) fn passphrase_file(&self, workspace: &Path) -> Option<PathBuf> {
        self.store
            .passphrase_file
            .as_ref()
            .map(|path| workspace.join(path))
    }

    /// The database that the workspace's file names as the store.
    fn workspace_store_url(&self) -> Option<&str> {
        self.store.url.as_deref().filter(|url| !url.is_empty())
    }

    /// The database that holds the store, if it is not a file of the workspace.
    pub(crate) fn store_url(&self) -> Option<&str> {
        let of_user = self.user.store.url.as_deref();
        self.workspace_store_url()
            .or_else(|| of_user.filter(|url| !url.is_empty()))
    }

    /// Which steps are carried out by workers and which broker tells them: what the workspace's file says, and the
    /// user's own where it says nothing.
    pub(crate) fn dispatch(&self) -> DispatchTable {
        self.dispatch.clone().or(&self.user.dispatch)
    }

    /// Takes servers from a file that the user named, before those of all other files.
    pub(crate) fn name_servers_file(&mut self, path: PathBuf) {
        self.servers_file = Some(path);
    }

    /// The file with servers that the user named on the command line.
    pub(crate) fn servers_file(&self) -> Option<&Path> {
        self.servers_file.as_deref()
    }

    /// The bucket that the workspace's file names for large values.
    fn workspace_objects(&self) -> Option<&str> {
        self.store.objects.as_deref().filter(|url| !url.is_empty())
    }

    /// The bucket that holds the large values, if the store does not.
    pub(crate) fn objects_url(&self) -> Option<&str> {
        let of_user = self.user.store.objects.as_deref();
        self.workspace_objects()
            .or_else(|| of_user.filter(|url| !url.is_empty()))
    }

    /// The file with the key of the user's stores, as their own file names it. Relative paths start
    /// beside that file.
    pub(crate) fn store_key_file(&self) -> Option<PathBuf> {
        let named = self.user.store.key_file.as_ref()?;
        Some(home()?.join(named))
    }

    /// The models of both files, given the variables of the environment.
    pub(crate) fn models(
        &self,
        workspace: &Path,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<DescribedModels, Failure> {
        models::describe(&self.models, &self.user.models, workspace, variable)
    }

    pub(crate) fn telemetry(&self) -> &TelemetryTable {
        &self.telemetry
    }

    /// What a chat may spend, with everything that comes of it.
    pub(crate) fn chat_budget(&self) -> planwright_engine::chat::ChatBudget {
        planwright_engine::chat::ChatBudget {
            calls: self.chat.max_calls,
            tokens: self.chat.max_tokens,
        }
    }

    /// How the gateway treats its clients.
    pub(crate) fn gateway(&self) -> &GatewayTable {
        &self.gateway
    }

    /// `[policy]` and `[roles]` as they are in force, as TOML.
    pub(crate) fn policy_text(&self) -> Result<String, String> {
        if self.policy == PolicyDocument::default() && self.roles.is_none() {
            return Ok(String::new());
        }
        let document = serde_json::json!({ "policy": &self.policy, "roles": &self.roles });
        let written = without_nulls(document);
        toml::to_string_pretty(&written).map_err(|error| error.to_string())
    }

    pub(crate) fn sign_in(&self) -> &SignInTable {
        &self.sign_in
    }

    pub(crate) fn serve(&self) -> &ServeTable {
        &self.serve
    }

    /// The endpoints that are told what happens.
    pub(crate) fn webhooks(&self) -> Result<Vec<WebhookOptions>, Failure> {
        webhooks::read_webhooks(&self.webhooks)
    }

    pub(crate) fn local(&self, workspace: &Path, children: &Children) -> LocalOptions {
        LocalOptions {
            workspace: workspace.into(),
            run_command: self.local.run_command,
            http_get: HttpOptions {
                enabled: self.local.http_get.enabled,
                allow: self.local.http_get.allow.clone(),
            },
            children: children.clone(),
        }
    }

    pub(crate) fn toolbox(&self) -> ToolboxOptions {
        let tools = || self.tools.iter();
        // The workspace's word comes last, and so it counts.
        let servers = || self.user.servers.iter().chain(&self.servers);
        ToolboxOptions {
            classes: tools()
                .filter_map(|(name, tool)| Some((name.clone(), tool.class?)))
                .collect(),
            key_arguments: tools()
                .filter_map(|(name, tool)| Some((name.clone(), tool.key_argument.clone()?)))
                .collect(),
            limits: servers()
                .filter_map(|(name, server)| Some((name.clone(), server.max_calls?)))
                .collect(),
            serial_writes: servers()
                .filter_map(|(name, server)| Some((name.clone(), server.serial_writes?)))
                .collect(),
        }
    }

    pub(crate) fn limits(&self) -> ConcurrencyLimits {
        let LimitsTable {
            global,
            per_server,
            per_tool,
            call_timeout_seconds: _,
            stored_megabytes_per_principal: _,
        } = self.limits.clone();
        ConcurrencyLimits {
            global: global.unwrap_or_else(|| ConcurrencyLimits::default().global),
            per_server,
            per_tool,
        }
    }

    pub(crate) fn call_timeout(&self) -> Duration {
        let seconds = self.limits.call_timeout_seconds;
        seconds.map_or(Engine::DEFAULT_CALL_TIMEOUT, Duration::from_secs)
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        let megabytes = self.limits.stored_megabytes_per_principal;
        megabytes.map_or(Engine::DEFAULT_STORED_BYTES, |limit| u64::from(limit) << 20)
    }

    pub(crate) fn bounds(&self) -> Bounds {
        let default = Bounds::default();
        let table = &self.bounds;
        Bounds {
            max_document_bytes: table
                .max_document_bytes
                .unwrap_or(default.max_document_bytes),
            max_steps: table.max_steps.unwrap_or(default.max_steps),
            max_edges: table.max_edges.unwrap_or(default.max_edges),
            max_depth: table.max_depth.unwrap_or(default.max_depth),
            max_text: table.max_text.unwrap_or(default.max_text),
            max_resolved_bytes: table
                .max_resolved_bytes
                .unwrap_or(default.max_resolved_bytes),
        }
    }

    /// The most bytes that logs of servers may take, if they are limited.
    pub(crate) fn max_logs_bytes(&self) -> Option<u64> {
        self.retention.max_logs_bytes
    }

    /// Returns how long plans are waited for and kept.
    pub(crate) fn retention(&self) -> Retention {
        let default = Retention::default();
        let table = &self.plans;
        let own = &self.retention;
        // 0 days mean: for ever.
        let after = |span: Option<After>, days: Option<u32>| {
            let days = days.filter(|days| *days > 0);
            let days = days.map(|days| Duration::from_hours(24).saturating_mul(days));
            span.map_or(days, After::duration)
        };
        let minutes = self
            .stalled_after_minutes
            .or(table.executor_timeout_minutes)
            .map(|minutes| Duration::from_secs(minutes.saturating_mul(60)));
        let stalled_after = table.stalled_after.map(TimeSpan::as_duration).or(minutes);
        Retention {
            stale_after_days: table.stale_after_days.unwrap_or(default.stale_after_days),
            stalled_after: stalled_after.unwrap_or(default.stalled_after),
            archive_after: after(own.archive_after, table.archive_after_days),
            delete_after: after(own.delete_after, table.delete_after_days),
            seal_after: own.seal_after.map_or(default.seal_after, After::duration),
            remove_after: own.remove_after.and_then(After::duration),
            remove_artifacts_after: own.artifact_grace(),
        }
    }
}

/// Returns whether a text is a file of the user's that can be read.
pub(crate) fn check_user_file(text: &str) -> Result<(), Failure> {
    let name = "your planwright.toml";
    let file: UserFile = toml::from_str(text).map_err(|error| explain(name, text, &error))?;
    check_servers(name, &file.servers)
}

/// TOML has no word for nothing.
fn without_nulls(mut value: serde_json::Value) -> serde_json::Value {
    if let Some(object) = value.as_object_mut() {
        object.retain(|_, value| !value.is_null());
        for (_, value) in object.iter_mut() {
            *value = without_nulls(value.take());
        }
    }
    value
}

/// The text of a file, if there is one.
fn text_of(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Failure::usage(format!(
            "cannot read {}: {error}",
            path.display()
        ))),
    }
}

fn check_servers(file: &str, servers: &BTreeMap<String, ServerTable>) -> Result<(), Failure> {
    for (name, table) in servers {
        if table.max_calls == Some(0) {
            return Err(Failure::usage(format!(
                "{file}: the limit `{name}` is 0, so nothing could run"
            ))
            .hint("use 1 or more, or leave it out"));
        }
        table.check(name).map_err(|problem| {
            Failure::usage(format!("{file}, [servers.{}]: {problem}", line(name)))
        })?;
    }
    Ok(())
}

fn check_marks(file: &str, marks: &[String]) -> Result<(), Failure> {
    let checked = marks.iter().try_for_each(|mark| check_mark(mark));
    checked.map_err(|problem| Failure::usage(format!("{file}, [agent] marks: {problem}")))
}

/// The file, the line, the key, and the key that was probably meant.
fn explain(file: &str, text: &str, error: &toml::de::Error) -> Failure {
    let line = error
        .span()
        .map(|span| text[..span.start.min(text.len())].matches('\n').count() + 1);
    let place = line.map_or_else(|| file.to_owned(), |line| format!("{file}, line {line}"));
    let message = error.message();
    let names: Vec<&str> = message.split('`').skip(1).step_by(2).collect();
    let Some((unknown, known)) = names
        .split_first()
        .filter(|_| message.starts_with("unknown "))
    else {
        return Failure::usage(format!("{place}: {message}"));
    };
    let near = nearest_names(unknown, known.iter().map(|&name| name.to_owned()));
    let what = if message.starts_with("unknown variant") {
        "value"
    } else {
        "key"
    };
    let failure = Failure::usage(format!("{place}: the {what} `{unknown}` is unknown"));
    match near.first() {
        Some(near) => failure.hint(format!("did you mean `{near}`?")),
        None => failure.hint(format!("known here: {}", known.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use planwright_core::tool::EffectClass;

    #[test]
    fn an_unknown_key_is_named_with_its_line_and_the_nearest_one() {
        let failure = Config::parse("[local]\nrun_comand = true\n").unwrap_err();
        assert_eq!(
            failure.message,
            "planwright.toml, line 2: the key `run_comand` is unknown"
        );
        assert_eq!(failure.hint.as_deref(), Some("did you mean `run_command`?"));
    }

    #[test]
    fn every_setting_can_be_written() {
        let text = r#"
            stalled_after_minutes = 5
            [local]
            run_command = true
            [local.http_get]
            enabled = true
            allow = ["example.org"]
            [tools."demo.echo"]
            class = "keyed"
            key_argument = "value"
            [limits]
            global = 10
            stored_megabytes_per_principal = 100
            [limits.per_server]
            demo = 3
            [limits.per_tool]
            "demo.sleep" = 2
            [servers.local]
            serial_writes = false
            max_calls = 8
            [bounds]
            max_steps = 10
            [secrets]
            GITHUB_TOKEN = { env = "GH_TOKEN", tools = ["github.*"] }
            key = { file = "/run/secrets" }
            db = { keyring = "planwright/db" }
            [policy]
            mode = "enforce"
            late_bound = "ask"
            guarded_tools = ["github.delete_*"]
            same_call = 50
            [[policy.rules]]
            name = "reads"
            tool = ["demo.*", "read_file"]
            server = "demo"
            capability = "x"
            read_only = true
            destructive = false
            idempotent = true
            open_world = false
            class = "safe"
            if = "args.path.startsWith('docs/')"
            then = "allow"
            reason = "harmless"
            mode = "warn"
            [policy.approval]
            four_eyes = true
            required = 2
            uses = 3
            expires_after = "7d"
            step_expires_after = "1h"
            [policy.caps]
            "github.*" = 10
            [serve]
            metrics_public = true
            allow_hosts = ["plans.example.org"]
            allow_origins = ["https://app.example.org"]
            max_connections = 100
            max_in_flight = 10
            max_in_flight_per_principal = 5
            max_runs = 3
            requests_per_second = 10
            burst = 20
            [roles]
            approver = ["person:ada"]
            [store]
            passphrase_file = "/run/secrets/planwright"
            [models]
            default = "anthropic/claude-sonnet-4-5"
            chat = "local/small"
            [models.providers.local]
            kind = "openai"
            base_url = "http://127.0.0.1:8080/v1"
            key_env = "LOCAL_KEY"
            structured = "json_object"
            context_tokens = 8192
            [models.prices."local/small"]
            input = 0
            output = 0.5
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!(config.retention().stalled_after, Duration::from_secs(300));
        assert_eq!(config.bounds().max_steps, 10);
        assert_eq!(config.limits().per_tool["demo.sleep"], 2);
        assert_eq!(config.stored_bytes(), 100 << 20);
        assert_eq!(config.serve().max_runs, Some(3));
        assert_eq!(config.toolbox().classes["demo.echo"], EffectClass::Keyed);
    }

    #[test]
    fn retention_that_makes_no_sense_is_refused() {
        let text = r#"
            [retention]
            archive_after = "2h"
            seal_after = "1d"
            remove_after = "30d"
            max_logs_bytes = 1000000
        "#;
        let retention = Config::parse(text).unwrap().retention();
        let hours = |hours| Some(Duration::from_hours(hours));
        assert_eq!(retention.archive_after, hours(2));
        assert_eq!(retention.seal_after, hours(24));
        assert_eq!(retention.remove_after, hours(24 * 30));
        assert_eq!(retention.remove_artifacts_after, hours(24));
        let plain = Config::parse("").unwrap().retention();
        assert_eq!(plain.seal_after, hours(24 * 90));
        assert_eq!((plain.archive_after, plain.remove_after), (None, None));
        assert_eq!(plain.remove_artifacts_after, None);
        let never = Config::parse("[retention]\nseal_after = 'never'").unwrap();
        assert_eq!(never.retention().seal_after, None);
        for (text, words) in [
            ("[retention]\nseal_afer = '1d'", "seal_after"),
            ("[retention]\nseal_after = '1 fortnight'", "or never"),
            ("[retention]\nseal_after = '0s'", "no span of time"),
            ("[retention]\nseal_after = 90", "string"),
            (
                "[retention]\nseal_after = 'never'\nremove_after = '1d'",
                "`seal_after` is never",
            ),
            ("[retention]\nmax_logs_bytes = 10", "at least"),
            (
                "[retention]\narchive_after = '1d'\n[plans]\narchive_after_days = 1",
                "say the same thing",
            ),
        ] {
            let failure = Config::parse(text).unwrap_err();
            let said = format!("{} {:?}", failure.message, failure.hint);
            assert!(said.contains(words), "{text}: {said}");
        }
    }

    #[test]
    fn a_secret_has_one_place_and_a_plain_name() {
        for wrong in [
            "A = {}",
            "A = { env = \"X\", file = \"y\" }",
            "A = { env = \"\" }",
            "A = { keyring = \"service\" }",
            "\"a b\" = { env = \"X\" }",
            "A = { value = \"x\" }",
            "A = \"x\"",
        ] {
            let failure = Config::parse(&format!("[secrets]\n{wrong}\n")).unwrap_err();
            assert!(
                failure.message.starts_with("planwright.toml"),
                "{wrong}: {}",
                failure.message
            );
        }
    }

    #[test]
    fn a_server_is_described_in_full_or_refused() {
        let text = r#"
            [servers.git]
            command = "mcp-server-git"
            args = ["--repository", "."]
            env = { TOKEN = "${TOKEN}" }
            cwd = "sub"
            trust_annotations = false
            start_timeout_seconds = 5
            enabled = true
            max_calls = 2
            [servers.remote]
            url = "https://example.org/mcp"
            headers = { Authorization = "Bearer ${TOKEN}" }
        "#;
        let config = Config::parse(text).unwrap();
        assert_eq!(
            config.servers()["git"].launch().unwrap().line(),
            "mcp-server-git --repository ."
        );
        for (text, words) in [
            ("[servers.git]\ncomand = 'x'", "`comand` is unknown"),
            ("[servers.'a.b']\ncommand = 'x'", "1 to 64 letters"),
            ("[servers.demo]\ncommand = 'x'", "part of the program"),
            ("[servers.git]\ncommand = 'x'\nurl = 'y'", "both"),
            ("[servers.git]\nargs = ['x']", "neither"),
            (
                "[servers.git]\ncommand = 'x'\nstart_timeout_seconds = 0",
                "never start",
            ),
            ("[servers.git]\nmax_calls = 0", "is 0"),
        ] {
            let failure = Config::parse(text).unwrap_err();
            assert!(
                failure.message.contains(words),
                "{text}: {}",
                failure.message
            );
        }
    }

    #[test]
    fn a_limit_of_zero_is_refused() {
        assert!(Config::parse("[limits]\nglobal = 0").is_err());
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line() {
        let failure = Config::parse("[limits]\nglobal = \"many\"").unwrap_err();
        assert!(
            failure.message.starts_with("planwright.toml, line 2: "),
            "{}",
            failure.message
        );
    }
}
