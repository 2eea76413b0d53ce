//! What the workspace's file loosens, and the configuration without it. Pure: who trusts what is
//! decided elsewhere.
//!
//! Loosening is what lets something happen that the defaults ask about or forbid, or what sends
//! something elsewhere. Limits, bounds and patience only change how much is done at once.

use super::tables::{HttpGet, SignInTable, Tool};
use super::{Config, FILE};
use crate::config::executors::ScopeMode;
use crate::config::retention::After;
use crate::trust::{Loosening, Subject};
use planwright_adapters::objects::ObjectsLocation;
use planwright_adapters::postgres::Location;
use planwright_core::policy::{
    AdjustmentConsent, LateChoice, Mode, Patterns, RolesTable, RuleDocument, Verdict,
};
use planwright_core::tool::EffectClass;
use serde_json::json;
use std::collections::BTreeSet;

impl Config {
    /// Everything that the workspace's file loosens by itself. Servers, executors and models depend
    /// on other files too.
    pub(crate) fn loosenings(&self) -> Vec<Loosening> {
        let mut found = self.policy_loosenings();
        found.extend(self.role_loosenings());
        found.extend(self.local_loosenings());
        found.extend(self.tool_loosenings());
        if self.agent.scope == ScopeMode::Observe {
            found.push(Loosening::new(
                Subject::AgentScope,
                FILE,
                "[agent] scope",
                "calls of agents outside their plan's scope are noted, not refused",
                &json!("observe"),
            ));
        }
        if self.gateway.mode() != Mode::Enforce {
            found.push(Loosening::new(
                Subject::GatewayMode,
                FILE,
                "[gateway] mode",
                "calls of clients of the gateway are noted, not asked about or refused",
                &json!(self.gateway.mode().as_str()),
            ));
        }
        if !self.gateway.pass.is_empty() {
            found.push(Loosening::new(
                Subject::GatewayPass,
                FILE,
                "[gateway] pass",
                "servers and clients of the gateway are told more of each other",
                &json!(self.gateway.pass),
            ));
        }
        found.extend(self.secret_loosenings());
        found.extend(self.sending_loosenings());
        found.extend(self.service_loosenings());
        found.extend(self.removal_loosening());
        found
    }

    /// The configuration as if the file did not say these things. Servers, models and executors
    /// stay and are refused where they would be used, so that the refusal can name them.
    pub(crate) fn without(mut self, ignored: &BTreeSet<Subject>) -> Self {
        let is_ignored = |subject: Subject| ignored.contains(&subject);
        if is_ignored(Subject::Policy) {
            let mode = self.policy.mode;
            self.policy.rules.retain(|rule| !allows(rule, mode));
            if self.policy.late_bound == Some(LateChoice::Any) {
                self.policy.late_bound = None;
            }
            self.policy.adjust = AdjustmentConsent::Ask;
            self.policy.approval.uses = None;
        }
        if is_ignored(Subject::Roles)
            && let Some(roles) = &mut self.roles
        {
            for names in [&mut roles.author, &mut roles.admin].into_iter().flatten() {
                names.retain(|name| !is_program(name));
            }
        }
        if is_ignored(Subject::RunCommand) {
            self.local.run_command = false;
        }
        if is_ignored(Subject::HttpGet) {
            self.local.http_get = HttpGet::default();
        }
        if is_ignored(Subject::AgentScope) {
            self.agent.scope = ScopeMode::Enforce;
        }
        if is_ignored(Subject::GatewayMode) {
            self.gateway.mode = None;
        }
        if is_ignored(Subject::GatewayPass) {
            self.gateway.pass.clear();
        }
        for (name, tool) in &mut self.tools {
            if loosens(tool) && is_ignored(Subject::Tool(name.clone())) {
                *tool = Tool {
                    class: tool.class.filter(|class| *class == EffectClass::Unsafe),
                    key_argument: None,
                };
            }
        }
        for (name, secret) in &mut self.secrets {
            if is_ignored(Subject::Secret(name.clone())) {
                secret.withhold();
            }
        }
        if is_ignored(Subject::PassphraseFile) {
            self.store.passphrase_file = None;
        }
        if is_ignored(Subject::StoreAddress) {
            self.store.url = None;
        }
        if is_ignored(Subject::ObjectsAddress) {
            self.store.objects = None;
        }
        if is_ignored(Subject::Dispatch) {
            self.dispatch.capabilities.clear();
            self.dispatch.claim = None;
        }
        if is_ignored(Subject::BrokerAddress) {
            self.dispatch.url = None;
        }
        self.webhooks
            .retain(|webhook| !is_ignored(Subject::Webhook(webhook.name().to_owned())));
        if is_ignored(Subject::Telemetry) {
            self.telemetry = crate::telemetry::TelemetryTable::default();
        }
        if is_ignored(Subject::Service) {
            self.serve.metrics_public = false;
            self.serve.allow_hosts.clear();
            self.serve.allow_origins.clear();
            self.sign_in = SignInTable::default();
        }
        if is_ignored(Subject::Removal) {
            self.retention.remove_after = None;
            self.retention.remove_artifacts_after = None;
        }
        self
    }

    /// An allow rule reaches as far as the rules before it let it, so all of `[policy]` is one
    /// subject.
    fn policy_loosenings(&self) -> Vec<Loosening> {
        let policy = &self.policy;
        let written = json!(policy);
        let new = |key: String, value: String| {
            Loosening::new(Subject::Policy, FILE, key, value, &written)
        };
        let mut found = Vec::new();
        for (index, rule) in policy.rules.iter().enumerate() {
            if !allows(rule, policy.mode) {
                continue;
            }
            let key = match &rule.name {
                Some(name) => format!("[[policy.rules]] {} {name:?}", index + 1),
                None => format!("[[policy.rules]] {}", index + 1),
            };
            found.push(new(key, describe_rule(rule)));
        }
        if policy.late_bound == Some(LateChoice::Any) {
            found.push(new(
                "[policy] late_bound".to_owned(),
                "any: values that are only known later are not asked about".to_owned(),
            ));
        }
        if policy.adjust == AdjustmentConsent::Auto {
            found.push(new(
                "[policy] adjust".to_owned(),
                "auto: changes that a model makes to a running plan are agreed to without a person, if they only read"
                    .to_owned(),
            ));
        }
        if policy.approval.uses() > 1 {
            let uses = policy.approval.uses();
            found.push(new(
                "[policy.approval] uses".to_owned(),
                format!("one approval is good for {uses} runs"),
            ));
        }
        found
    }

    /// People need no row here to have a role; programs do.
    fn role_loosenings(&self) -> Option<Loosening> {
        let RolesTable { author, admin, .. } = self.roles.as_ref()?;
        let named = |role: &str, names: &Option<Vec<String>>| -> Vec<String> {
            let names = names.iter().flatten().filter(|name| is_program(name));
            names.map(|name| format!("{name} as {role}")).collect()
        };
        let programs = [named("author", author), named("admin", admin)].concat();
        let value = format!(
            "programs may delete plans or administer the service: {}",
            programs.join(", ")
        );
        (!programs.is_empty()).then(|| {
            Loosening::new(
                Subject::Roles,
                FILE,
                "[roles]",
                value,
                &json!([author, admin]),
            )
        })
    }

    fn local_loosenings(&self) -> Vec<Loosening> {
        let mut found = Vec::new();
        if self.local.run_command {
            found.push(Loosening::new(
                Subject::RunCommand,
                FILE,
                "[local] run_command",
                "plans may run programs on this machine",
                &json!(true),
            ));
        }
        let get = &self.local.http_get;
        if get.enabled {
            let hosts = match get.allow.as_slice() {
                [] => "every host with a public address".to_owned(),
                hosts => hosts.join(", "),
            };
            let value = format!("plans may fetch from the network: {hosts}");
            found.push(Loosening::new(
                Subject::HttpGet,
                FILE,
                "[local.http_get] enabled",
                value,
                &json!([get.enabled, get.allow]),
            ));
        }
        found
    }

    fn tool_loosenings(&self) -> Vec<Loosening> {
        let describe = |(name, tool): (&String, &Tool)| {
            let value = match tool.class {
                Some(EffectClass::Safe) => "a call whose outcome was lost is made again".to_owned(),
                Some(EffectClass::Keyed | EffectClass::Unsafe) | None => format!(
                    "a call whose outcome was lost is made again, with a key{}",
                    tool.key_argument
                        .as_ref()
                        .map_or_else(String::new, |argument| format!(" as `{argument}`"))
                ),
            };
            Loosening::new(
                Subject::Tool(name.clone()),
                FILE,
                format!("[tools.{name:?}]"),
                value,
                &json!([tool.class.map(EffectClass::as_str), tool.key_argument]),
            )
        };
        let loosening = self.tools.iter().filter(|(_, tool)| loosens(tool));
        loosening.map(describe).collect()
    }

    fn secret_loosenings(&self) -> Vec<Loosening> {
        let mut found: Vec<Loosening> = self
            .secrets
            .iter()
            .map(|(name, secret)| secret.loosening(name))
            .collect();
        if let Some(path) = &self.store.passphrase_file {
            found.push(Loosening::new(
                Subject::PassphraseFile,
                FILE,
                "[store] passphrase_file",
                format!("the store is locked with the content of {}", path.display()),
                &json!(path),
            ));
        }
        if let Some(url) = self.workspace_store_url() {
            let shown = Location::parse(url, None)
                .map_or_else(|_| "a database".to_owned(), |location| location.to_string());
            found.push(Loosening::new(
                Subject::StoreAddress,
                FILE,
                "[store] url",
                format!("plans, approvals and results are kept in {shown}"),
                &json!(url),
            ));
        }
        if let Some(url) = self.workspace_objects() {
            let shown = ObjectsLocation::parse(url, []).map_or_else(
                |_| "an object store".to_owned(),
                |location| location.to_string(),
            );
            found.push(Loosening::new(
                Subject::ObjectsAddress,
                FILE,
                "[store] objects",
                format!("large arguments and results are kept in {shown}, with your keys"),
                &json!(url),
            ));
        }
        found
    }

    fn sending_loosenings(&self) -> Vec<Loosening> {
        let mut found: Vec<Loosening> = self
            .webhooks
            .iter()
            .map(crate::config::webhooks::WebhookTable::loosening)
            .collect();
        found.extend(self.dispatch.loosenings());
        let telemetry = &self.telemetry;
        if telemetry.otlp_endpoint.is_some() || telemetry.content {
            let place = match &telemetry.otlp_endpoint {
                Some(url) => url.as_str(),
                None => "the collector that the environment names",
            };
            let content = if telemetry.content {
                ", with the arguments and results of calls"
            } else {
                ""
            };
            found.push(Loosening::new(
                Subject::Telemetry,
                FILE,
                "[telemetry]",
                format!("what is run is sent to {place}{content}"),
                &json!([telemetry.otlp_endpoint, telemetry.content]),
            ));
        }
        found
    }

    fn service_loosenings(&self) -> Option<Loosening> {
        let serve = &self.serve;
        let mut words = Vec::new();
        if serve.metrics_public {
            words.push("figures are shown without a token".to_owned());
        }
        if !serve.allow_hosts.is_empty() {
            words.push(format!("it answers to {}", serve.allow_hosts.join(", ")));
        }
        if !serve.allow_origins.is_empty() {
            words.push(format!(
                "pages of {} may use it",
                serve.allow_origins.join(", ")
            ));
        }
        let mut written = json!([serve.metrics_public, serve.allow_hosts, serve.allow_origins]);
        if let (Some(oidc), Some(written)) = (&self.sign_in.oidc, written.as_array_mut()) {
            words.push(format!("people sign in with {}", oidc.issuer));
            written.push(json!(oidc));
        }
        (!words.is_empty()).then(|| {
            let words = words.join("; ");
            Loosening::new(Subject::Service, FILE, "[serve]", words, &written)
        })
    }
}

impl Config {
    /// What is removed for good cannot be brought back by the user who trusts the folder later.
    fn removal_loosening(&self) -> Option<Loosening> {
        let seconds =
            |after: Option<After>| after.and_then(After::duration).map(|span| span.as_secs());
        let plans = seconds(self.retention.remove_after);
        let artifacts = seconds(self.retention.remove_artifacts_after);
        (plans.is_some() || artifacts.is_some()).then(|| {
            Loosening::new(
                Subject::Removal,
                FILE,
                "[retention]",
                "plans that were put away, or large values without a journal, are removed for good",
                &json!([plans, artifacts]),
            )
        })
    }
}

/// Returns whether a rule lets calls through. One that only warns decides nothing.
fn allows(rule: &RuleDocument, mode: Option<Mode>) -> bool {
    let mode = rule.mode.or(mode).unwrap_or(Mode::Enforce);
    rule.then == Verdict::Allow && mode == Mode::Enforce
}

/// Returns whether a word about a tool makes more happen by itself than without it.
fn loosens(tool: &Tool) -> bool {
    let repeats = matches!(tool.class, Some(EffectClass::Safe | EffectClass::Keyed));
    repeats || tool.key_argument.is_some()
}

/// Returns whether a name in a role is that of an agent or a service.
fn is_program(name: &str) -> bool {
    !name.starts_with("person:")
}

fn describe_rule(rule: &RuleDocument) -> String {
    let tools = match &rule.tool {
        Some(Patterns::One(pattern)) => pattern.clone(),
        Some(Patterns::Several(patterns)) => patterns.join(", "),
        None => "every tool".to_owned(),
    };
    let mut words = vec![format!("calls of {tools} are made without asking")];
    let flag = |name: &str, value: Option<bool>| value.map(|value| format!("{name} = {value}"));
    let named = |name: &str, value: &Option<String>| {
        value.as_ref().map(|value| format!("{name} = {value:?}"))
    };
    let limits = [
        named("server", &rule.server),
        named("capability", &rule.capability),
        flag("read_only", rule.read_only),
        flag("destructive", rule.destructive),
        flag("idempotent", rule.idempotent),
        flag("open_world", rule.open_world),
        rule.class
            .map(|class| format!("class = {:?}", class.as_str())),
        named("if", &rule.condition),
    ];
    let limits: Vec<String> = limits.into_iter().flatten().collect();
    if !limits.is_empty() {
        words.push(format!("where {}", limits.join(" and ")));
    }
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(text: &str) -> Vec<String> {
        let config = Config::parse(text).unwrap();
        let mut names: Vec<String> = config
            .loosenings()
            .iter()
            .map(|loosening| loosening.subject.trust_name())
            .collect();
        names.dedup();
        names
    }

    #[test]
    fn what_loosens_is_found_with_its_key_and_plain_words() {
        let text = r#"
            [local]
            run_command = true
            http_get = { enabled = true, allow = ["10.0.0.1"] }
            [[policy.rules]]
            name = "reads"
            tool = "*"
            then = "allow"
            [policy]
            late_bound = "any"
            adjust = "auto"
            approval = { uses = 3, expires_after = "7d" }
            [roles]
            admin = ["person:ada", "service:ci"]
            [agent]
            scope = "observe"
            [tools."git.push"]
            class = "safe"
            [secrets]
            KEY = { file = "/home/ada/.ssh/id" }
            [store]
            passphrase_file = "p"
            url = "postgres://ada:hunter2@db.example/plans"
            objects = "s3://values/plans?region=eu-1"
            [dispatch]
            capabilities = ["billing"]
            url = "amqp://ada:hunter2@mq.example/plans"
            [[webhooks]]
            name = "ops"
            url = "https://example.org/"
            secret = "KEY"
            [telemetry]
            otlp_endpoint = "http://127.0.0.1:1"
            content = true
            [serve]
            allow_origins = ["https://evil.example"]
            [retention]
            remove_after = "30d"
        "#;
        let expected = [
            "policy rules",
            "policy roles",
            "local run_command",
            "local http_get",
            "tool git.push",
            "agent scope",
            "secret KEY",
            "store passphrase_file",
            "store url",
            "store objects",
            "webhook ops",
            "dispatch capabilities",
            "dispatch url",
            "telemetry export",
            "service access",
            "retention removal",
        ];
        assert_eq!(subjects(text), expected);
        let config = Config::parse(text).unwrap();
        let shown: Vec<String> = config
            .loosenings()
            .iter()
            .map(|loosening| format!("{}: {}", loosening.key, loosening.value))
            .collect();
        let shown = shown.join("\n");
        for words in [
            "[[policy.rules]] 1 \"reads\": calls of * are made without asking",
            "one approval is good for 3 runs",
            "service:ci as admin",
            "10.0.0.1",
            "/home/ada/.ssh/id",
            "with the arguments and results",
        ] {
            assert!(shown.contains(words), "{words} is not in {shown}");
        }
        let ignored = config
            .loosenings()
            .into_iter()
            .map(|loosening| loosening.subject)
            .collect();
        let left = config.without(&ignored).loosenings();
        let left: Vec<Subject> = left
            .into_iter()
            .map(|loosening| loosening.subject)
            .collect();
        assert_eq!(
            left,
            [Subject::Secret("KEY".into())],
            "it stays, and is not read"
        );
    }

    #[test]
    fn what_tightens_needs_no_trust_and_stays() {
        let text = r#"
            [[policy.rules]]
            tool = "local.*"
            then = "deny"
            [[policy.rules]]
            tool = "x.*"
            then = "ask"
            [[policy.rules]]
            tool = "y.*"
            then = "allow"
            mode = "warn"
            [policy]
            late_bound = "ask"
            guarded_tools = ["a.*"]
            same_call = 3
            approval = { four_eyes = true, required = 2 }
            [policy.caps]
            "a.*" = 1
            [roles]
            approver = ["person:ada"]
            operator = ["agent:bot"]
            [tools."git.push"]
            class = "unsafe"
            [limits]
            global = 1
            [agent]
            marks = ["OUR_BOT"]
        "#;
        assert_eq!(subjects(text), [""; 0]);
        let config = Config::parse(text).unwrap();
        let version = config.policy_version().unwrap();
        let kept = config.without(&BTreeSet::from([Subject::Policy, Subject::Roles]));
        assert_eq!(kept.policy_version().unwrap(), version);
    }

    #[test]
    fn an_allow_rule_is_trusted_together_with_the_rules_beside_it() {
        let digest = |text: &str| Config::parse(text).unwrap().loosenings()[0].digest;
        let allow = "[[policy.rules]]\ntool = 'a.*'\nthen = 'allow'\n";
        let deny = "[[policy.rules]]\ntool = 'a.b'\nthen = 'deny'\n";
        assert_eq!(digest(allow), digest(&format!("# a comment\n{allow}")));
        assert_ne!(
            digest(allow),
            digest(&format!("{deny}{allow}")),
            "without the deny rule it reaches further"
        );
    }

    #[test]
    fn rules_that_ask_or_deny_outlive_the_ones_that_allow() {
        let text = "[[policy.rules]]\ntool = '*'\nthen = 'allow'\n\
                    [[policy.rules]]\ntool = 'a.b'\nthen = 'deny'\n";
        let config = Config::parse(text).unwrap();
        let kept = config.without(&BTreeSet::from([Subject::Policy]));
        assert_eq!(kept.rule_count(), 1);
    }
}
