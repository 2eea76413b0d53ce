//! The policy, read: patterns and predicates parsed once, every mistake reported.

use super::pattern::ServerPattern;
use super::{
    AdjustmentConsent, ApprovalRules, LateChoice, Mode, NeededAssurance, PolicyDocument, Roles,
    RuleDocument, ToolPattern, Verdict,
};
use crate::digest::Digest;
use crate::plan::Condition;
use crate::principal::{Assurance, Principal, PrincipalKind};
use crate::tool::{EffectClass, FoldedName, KnownTool, ToolName, is_pattern};

/// The operator's policy. See [`Policy::read`]; the default is the built-in policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Policy {
    pub(super) rules: Vec<Rule>,
    pub(super) guarded: Vec<ToolPattern>,
    /// Tools that are approved in person.
    pub(super) in_person: Vec<ToolPattern>,
    /// Tools that are approved with a passkey.
    passkey: Vec<ToolPattern>,
    caps: Vec<Cap>,
    /// Rules for approvals of plans.
    pub approval: ApprovalRules,
    /// Default for arguments that are only known later.
    pub late_bound: LateChoice,
    /// Most identical calls in one run.
    pub same_call: Option<u64>,
    /// Consent to changes of reflections.
    pub adjust: AdjustmentConsent,
    /// Roles of principals.
    pub roles: Roles,
    version: Option<String>,
}

/// A limit on the calls of matching tools in one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cap {
    /// Tools that are counted together.
    pub pattern: ToolPattern,
    /// Most calls of these tools in one run.
    pub limit: u64,
}

/// One rule, read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rule {
    /// The label in every output: the rule's name, or its place.
    pub(super) label: String,
    pub(super) tools: Option<Vec<ToolPattern>>,
    pub(super) server: Option<ServerPattern>,
    pub(super) capability: Option<String>,
    pub(super) annotations: AnnotationFilter,
    pub(super) class: Option<EffectClass>,
    pub(super) condition: Option<Condition>,
    pub(super) then: Verdict,
    pub(super) reason: Option<String>,
    pub(super) mode: Mode,
}

/// The annotations that a rule requires of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AnnotationFilter {
    read_only: Option<bool>,
    destructive: Option<bool>,
    idempotent: Option<bool>,
    open_world: Option<bool>,
}

impl AnnotationFilter {
    /// A server that is not trusted counts as dangerous in every way.
    pub(super) fn is_met(&self, tool: &KnownTool) -> bool {
        let annotations = &tool.definition.annotations;
        let believed = tool.trusted;
        let is = |wanted: Option<bool>, actual: bool| wanted.is_none_or(|wanted| wanted == actual);
        is(self.read_only, tool.is_read_only())
            && is(self.destructive, !believed || annotations.is_destructive())
            && is(self.idempotent, believed && annotations.is_idempotent())
            && is(
                self.open_world,
                !believed || annotations.open_world_hint != Some(false),
            )
    }

    fn names_any(&self) -> bool {
        [
            self.read_only,
            self.destructive,
            self.idempotent,
            self.open_world,
        ]
        .iter()
        .any(Option::is_some)
    }
}

/// Everything that is wrong with a policy, each with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("; "))]
pub struct ReadPolicyError(pub Vec<String>);

const MAX_RULES: usize = 1_000;

impl Default for Policy {
    fn default() -> Self {
        Self {
            rules: Vec::new(),
            guarded: Vec::new(),
            in_person: Vec::new(),
            passkey: Vec::new(),
            caps: Vec::new(),
            approval: ApprovalRules::default(),
            late_bound: LateChoice::Any,
            same_call: None,
            adjust: AdjustmentConsent::Ask,
            roles: Roles::default(),
            version: None,
        }
    }
}

impl Policy {
    /// Reads what the operator wrote, or reports every mistake in it.
    pub fn read(document: &PolicyDocument) -> Result<Self, ReadPolicyError> {
        let mut mistakes = Mistakes::default();
        if document.rules.len() > MAX_RULES {
            mistakes.0.push(format!(
                "there are {} rules, at most {MAX_RULES} are read",
                document.rules.len()
            ));
        }
        let mode = document.mode.unwrap_or(Mode::Enforce);
        let rules = document.rules.iter().take(MAX_RULES).enumerate();
        let rules = rules
            .filter_map(|(index, rule)| mistakes.parse_rule(index, rule, mode))
            .collect();
        let guarded = mistakes.parse_patterns("guarded_tools", &document.guarded_tools);
        let in_person = mistakes.parse_patterns("approval.in_person", &document.approval.in_person);
        let passkey = mistakes.parse_passkeys(document, mode);
        let caps = document.caps.iter().filter_map(|(pattern, &limit)| {
            let pattern = mistakes.parse_pattern(&format!("caps.\"{pattern}\""), pattern)?;
            Some(Cap { pattern, limit })
        });
        let caps = caps.collect();
        mistakes.check_approval(&document.approval);
        if document.same_call == Some(0) {
            mistakes
                .0
                .push("same_call: 0 would stop every call".to_owned());
        }
        if matches!(document.late_bound, Some(LateChoice::Constraint(_))) {
            mistakes
                .0
                .push("late_bound: `any` or `ask`; a constraint belongs to one step".to_owned());
        }
        let roles = match &document.roles {
            Some(table) => Roles::read(table).unwrap_or_else(|error| {
                mistakes.0.push(format!("roles: {error}"));
                Roles::default()
            }),
            None => Roles::default(),
        };
        if !mistakes.0.is_empty() {
            return Err(ReadPolicyError(mistakes.0));
        }
        let written = serde_json::to_value(document).expect("a policy has only string keys");
        let is_default = *document == PolicyDocument::default();
        Ok(Self {
            rules,
            guarded,
            in_person,
            passkey,
            caps,
            approval: document.approval.clone(),
            late_bound: document.late_bound.clone().unwrap_or(LateChoice::Any),
            same_call: document.same_call,
            adjust: document.adjust,
            roles,
            version: (!is_default).then(|| format!("policy-{}", Digest::of_json(&written).hex())),
        })
    }

    /// The name of what is written in it; nothing if it is the built-in policy. It is part of every
    /// digest.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// Returns whether some rule depends on what is sent.
    pub(super) fn looks_at_args(&self) -> bool {
        self.rules.iter().any(|rule| rule.condition.is_some())
    }

    /// Returns the principal that approves what this policy lets through.
    pub fn principal(&self) -> Principal {
        match &self.version {
            None => Principal::read_only_policy(),
            Some(version) => {
                let name = version.chars().take("policy-".len() + 12).collect();
                Principal {
                    kind: PrincipalKind::Policy,
                    name,
                }
            }
        }
    }

    /// The pattern by which a tool is guarded: names that look alike are too.
    pub fn guards(&self, tool: &KnownTool) -> Option<String> {
        let guards = |pattern: &&ToolPattern| pattern.matches_alike(tool.folded_name());
        self.guarded.iter().find(guards).map(ToString::to_string)
    }

    /// Refuses the word of a client for its person where a tool is approved in person. Returns the
    /// tool.
    pub fn wants_in_person<'a>(
        &self,
        assurance: Assurance,
        mut tools: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        if assurance != Assurance::HostMediated || self.in_person.is_empty() {
            return None;
        }
        tools.find(|tool| is_excepted(&self.in_person, tool))
    }

    /// Refuses an approval without a passkey where a tool is approved with one. Returns the tool. What a rule lets
    /// through by itself is no approval of a person.
    pub fn wants_passkey<'a>(
        &self,
        assurance: Assurance,
        mut tools: impl Iterator<Item = &'a str>,
    ) -> Option<&'a str> {
        let enough = matches!(assurance, Assurance::Passkey | Assurance::Policy);
        if enough || self.passkey.is_empty() {
            return None;
        }
        tools.find(|tool| is_excepted(&self.passkey, tool))
    }

    /// The caps that a tool falls under. A look-alike falls under them too.
    pub fn caps_for_tool(&self, tool: &KnownTool) -> Vec<Cap> {
        self.caps
            .iter()
            .filter(|cap| cap.pattern.matches_alike(tool.folded_name()))
            .cloned()
            .collect()
    }
}

/// Returns whether one of these patterns covers a tool, or may.
fn is_excepted(patterns: &[ToolPattern], tool: &str) -> bool {
    // What is no name of a tool is none that was excepted.
    let name = ToolName::try_from(tool.to_owned()).map(|name| FoldedName::new(&name));
    // A pattern of a scope could cover what was.
    is_pattern(tool)
        || name.map_or(true, |name| {
            patterns.iter().any(|pattern| pattern.matches_alike(&name))
        })
}

/// Collects what is wrong.
#[derive(Debug, Default)]
struct Mistakes(Vec<String>);

impl Mistakes {
    fn parse_pattern(&mut self, place: &str, pattern: &str) -> Option<ToolPattern> {
        ToolPattern::parse(pattern)
            .map_err(|error| self.0.push(format!("{place}: {error}")))
            .ok()
    }

    fn parse_patterns(&mut self, place: &str, patterns: &[String]) -> Vec<ToolPattern> {
        patterns
            .iter()
            .filter_map(|pattern| self.parse_pattern(place, pattern))
            .collect()
    }

    fn parse_rule(&mut self, index: usize, rule: &RuleDocument, mode: Mode) -> Option<Rule> {
        let place = format!("rule {}", index + 1);
        let label = rule.name.clone().unwrap_or_else(|| place.clone());
        let condition = match &rule.condition {
            Some(source) => match Condition::parse(source) {
                Ok(condition) => {
                    self.check_names(&place, &condition);
                    Some(condition)
                }
                Err(error) => {
                    self.0.push(format!("{place} ({label}): `if`: {error}"));
                    return None;
                }
            },
            None => None,
        };
        let before = self.0.len();
        let tools = rule
            .tool
            .as_ref()
            .map(|tools| self.parse_patterns(&place, tools.all()));
        if tools.as_ref().is_some_and(Vec::is_empty) && before == self.0.len() {
            self.0
                .push(format!("{place} ({label}): `tool` names nothing"));
        }
        let server = rule.server.as_deref().map(ServerPattern::new);
        let annotations = AnnotationFilter {
            read_only: rule.read_only,
            destructive: rule.destructive,
            idempotent: rule.idempotent,
            open_world: rule.open_world,
        };
        let unbounded = tools.is_none()
            && server.is_none()
            && rule.capability.is_none()
            && rule.class.is_none()
            && condition.is_none()
            && !annotations.names_any();
        if unbounded && rule.then == Verdict::Allow {
            self.0.push(format!(
                "{place} ({label}): it would allow everything; write tool = \"*\" to mean it"
            ));
        }
        Some(Rule {
            label,
            tools,
            server,
            capability: rule.capability.clone(),
            annotations,
            class: rule.class,
            condition,
            then: rule.then,
            reason: rule.reason.clone(),
            mode: rule.mode.unwrap_or(mode),
        })
    }

    /// The tools that are approved with a passkey, by the rules and by their list.
    fn parse_passkeys(&mut self, document: &PolicyDocument, mode: Mode) -> Vec<ToolPattern> {
        let mut patterns = self.parse_patterns("approval.passkey", &document.approval.passkey);
        for (index, rule) in document.rules.iter().take(MAX_RULES).enumerate() {
            let Some(NeededAssurance::Passkey) = rule.assurance else {
                continue;
            };
            let place = format!("rule {}", index + 1);
            match &rule.tool {
                None => self.0.push(format!(
                    "{place}: `assurance` needs `tool`, which says of what"
                )),
                Some(_) if rule.then != Verdict::Ask => self.0.push(format!(
                    "{place}: `assurance` is about approvals, which only `then = \"ask\"` wants"
                )),
                Some(tools) if rule.mode.unwrap_or(mode) == Mode::Enforce => {
                    // Mistakes in them are told with the rule itself.
                    let read = tools.all().iter();
                    patterns.extend(read.filter_map(|tool| ToolPattern::parse(tool).ok()));
                }
                Some(_) => {}
            }
        }
        patterns
    }

    /// A predicate about a name that does not exist would be an error at every call.
    fn check_names(&mut self, place: &str, condition: &Condition) {
        let known = super::judge::NAMES;
        for name in condition.names() {
            if !known.contains(&name.as_str()) && !crate::plan::is_type_name(&name) {
                self.0.push(format!(
                    "{place}: `{name}` is not known in `if`; there are {}",
                    known.join(", ")
                ));
            }
        }
    }

    fn check_approval(&mut self, rules: &ApprovalRules) {
        if rules.required == Some(0) || rules.required.is_some_and(|n| n > 100) {
            self.0
                .push("approval.required: between 1 and 100 people".to_owned());
        }
        if rules.uses == Some(0) {
            self.0
                .push("approval.uses: 0 would make every approval void".to_owned());
        }
        if rules.uses() > 1 && rules.expires_after.is_none() {
            self.0
                .push("approval.uses: more than one use needs `expires_after`".to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(document: serde_json::Value) -> Result<Policy, ReadPolicyError> {
        Policy::read(&serde_json::from_value(document).unwrap())
    }

    #[test]
    fn tools_are_approved_with_a_passkey_by_their_list_or_by_a_rule() {
        for policy in [
            json!({ "approval": { "passkey": ["bank.*"] } }),
            json!({ "rules": [{ "tool": "bank.*", "then": "ask", "assurance": "passkey" }] }),
        ] {
            let policy = read(policy).unwrap();
            let wants = |assurance, tools: &[&'static str]| {
                policy.wants_passkey(assurance, tools.iter().copied())
            };
            let both = ["files.read", "bank.pay"];
            for assurance in [
                Assurance::Terminal,
                Assurance::CommandLine,
                Assurance::Program,
                Assurance::Token,
                Assurance::WebSignIn,
                Assurance::SingleSignOn,
                Assurance::HostMediated,
            ] {
                assert_eq!(wants(assurance, &both), Some("bank.pay"), "{assurance:?}");
                assert_eq!(wants(assurance, &["files.read"]), None);
                // What a scope covers may be one of them, and so may a name that looks alike.
                assert_eq!(wants(assurance, &["b*"]), Some("b*"));
                assert_eq!(wants(assurance, &["BANK.pay"]), Some("BANK.pay"));
            }
            for enough in [Assurance::Passkey, Assurance::Policy] {
                assert_eq!(wants(enough, &both), None);
            }
        }
        let none = Policy::default();
        assert_eq!(
            none.wants_passkey(Assurance::Token, ["bank.pay"].into_iter()),
            None
        );
    }

    #[test]
    fn a_rule_wants_a_passkey_for_tools_that_it_names_and_asks_about() {
        let with = |rule: serde_json::Value| read(json!({ "rules": [rule] }));
        let nameless = with(json!({ "server": "bank", "then": "ask", "assurance": "passkey" }));
        assert!(nameless.unwrap_err().to_string().contains("`tool`"));
        let allowed = with(json!({ "tool": "bank.*", "then": "allow", "assurance": "passkey" }));
        assert!(allowed.unwrap_err().to_string().contains("ask"));
        let only_told =
            json!({ "tool": "bank.*", "then": "ask", "assurance": "passkey", "mode": "observe" });
        let policy = with(only_told).unwrap();
        assert_eq!(
            policy.wants_passkey(Assurance::Token, ["bank.pay"].into_iter()),
            None
        );
        let known: Result<PolicyDocument, _> = serde_json::from_value(
            json!({ "rules": [{ "tool": "a", "then": "ask", "assurance": "retina" }] }),
        );
        assert!(known.is_err());
    }
}
