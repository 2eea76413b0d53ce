//! Calls that an agent makes in its own client, outside of every plan: which tool the client's name
//! means, and what the policy says about it.
//!
//! A client names tools in its own way, and a name can mean more than one tool: `mcp__a__b__c` is
//! `b__c` of `a`, or `c` of `a__b`. Everything it can mean is judged, and the strictest verdict
//! counts. So a name can be restricted by mistake and never allowed by mistake.

use super::{CallToJudge, Judgement, Policy, Verdict};
use crate::digest::Digest;
use crate::plan::Step;
use crate::text::sanitize_line;
use crate::tool::{KnownTool, ToolDefinition, ToolName};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A program in which an agent works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentClient {
    /// Claude Code.
    ClaudeCode,
    /// The Codex command line.
    Codex,
    /// The Gemini command line.
    Gemini,
    /// Cursor.
    Cursor,
    /// Goose.
    Goose,
    /// The pi coding agent.
    Pi,
}

impl AgentClient {
    /// Returns the name under which the client's own tools are judged: `claude-code.Bash`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Cursor => "cursor",
            Self::Goose => "goose",
            Self::Pi => "pi",
        }
    }
}

/// A tool as a client names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientTool {
    /// Everything the name can mean; the likeliest first.
    meanings: Vec<ToolName>,
    origin: Origin,
}

/// Where a client's tool comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// It is part of the client.
    Client,
    /// An MCP server has it.
    Server,
    /// An MCP server has it, and the client does not say which.
    UnknownServer,
    /// A server behind Planwright has it: the gateway judges it again.
    Gateway,
    /// It is one of Planwright's own plan tools, which do nothing without consent.
    Plans,
}

/// The reason a text is no name of a tool.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseClientToolError {
    /// The name is empty.
    #[error("the name of the tool is empty")]
    Empty,
    /// The name has this many bytes.
    #[error("the name of the tool has {0} bytes, at most {MAX_NAME} are read")]
    TooLong(usize),
    /// The name has a character that no client puts into one.
    #[error("`{}` is no name of a tool: it contains {found:?}", sanitize_line(.name))]
    Character {
        /// The name that was given.
        name: String,
        /// The character.
        found: char,
    },
    /// The name is built like that of an MCP tool and names no server or no tool.
    #[error("`{0}` names no server and tool: it must be mcp__SERVER__TOOL")]
    Incomplete(String),
}

/// Longer names are a mistake, or an attack.
const MAX_NAME: usize = 256;
/// The prefix of MCP tools in most clients.
const MCP: &str = "mcp__";
const SEPARATOR: &str = "__";
/// The name under which `planwright setup` gives Planwright to clients.
const PLANWRIGHT: &str = "planwright";

impl ClientTool {
    /// Finds out what a client's name for a tool means.
    pub fn parse(client: AgentClient, name: &str) -> Result<Self, ParseClientToolError> {
        check_characters(name)?;
        if let Some(tool) = name.strip_prefix("MCP:") {
            // One client writes `MCP:tool` or `MCP:server:tool`.
            return match tool.split_once(':') {
                Some((server, tool)) => Self::of_server(name, vec![(server, tool)]),
                None => Self::of_unknown_server(tool),
            };
        }
        if let Some(rest) = name.strip_prefix(MCP) {
            return Self::of_server(name, splits(rest));
        }
        if !name.contains(SEPARATOR) {
            return Ok(Self {
                meanings: vec![tool_name(client.as_str(), name)],
                origin: Origin::Client,
            });
        }
        match client {
            AgentClient::Goose => Self::of_server(name, splits(name)),
            // `Mcp__github__delete` is nothing that a client has, and reads like something it has.
            AgentClient::ClaudeCode
            | AgentClient::Codex
            | AgentClient::Gemini
            | AgentClient::Cursor
            | AgentClient::Pi => Err(ParseClientToolError::Incomplete(name.to_owned())),
        }
    }

    /// A tool of a server that the client does not name.
    pub fn of_unknown_server(tool: &str) -> Result<Self, ParseClientToolError> {
        check_characters(tool)?;
        Ok(Self {
            meanings: vec![tool_name("", tool)],
            origin: Origin::UnknownServer,
        })
    }

    fn of_server(name: &str, pairs: Vec<(&str, &str)>) -> Result<Self, ParseClientToolError> {
        let complete = |(server, tool): &(&str, &str)| !server.is_empty() && !tool.is_empty();
        let pairs: Vec<(&str, &str)> = pairs.into_iter().filter(complete).collect();
        let Some(&(server, tool)) = pairs.first() else {
            return Err(ParseClientToolError::Incomplete(name.to_owned()));
        };
        let mut meanings: Vec<ToolName> = Vec::new();
        let mut origin = Origin::Server;
        if server == PLANWRIGHT {
            origin = match tool.split_once(SEPARATOR) {
                None if tool.starts_with("plan_") => Origin::Plans,
                None => Origin::Server,
                Some((behind, tool)) => {
                    meanings.push(tool_name(behind, tool));
                    Origin::Gateway
                }
            };
        }
        for (server, tool) in pairs {
            meanings.push(tool_name(server, tool));
            // `plugin_PLUGIN_SERVER`, and both names may have underscores.
            let mut rest = server.strip_prefix("plugin_").unwrap_or_default();
            while let Some((_, after)) = rest.split_once('_') {
                if !after.is_empty() {
                    meanings.push(tool_name(after, tool));
                }
                rest = after;
            }
        }
        Ok(Self { meanings, origin })
    }

    /// Returns the name under which a plan would call the tool.
    pub fn name(&self) -> String {
        let first = &self.meanings[0];
        match self.origin {
            Origin::UnknownServer => first.tool.clone(),
            Origin::Client | Origin::Server | Origin::Gateway | Origin::Plans => first.to_string(),
        }
    }

    /// Returns whether the tool is part of the client, so that no plan can call it by this name.
    pub fn is_own(&self) -> bool {
        self.origin == Origin::Client
    }
}

/// Clients write names of ASCII letters, digits and a few signs. What looks like such a name and is
/// none is never what it looks like.
fn check_characters(name: &str) -> Result<(), ParseClientToolError> {
    if name.is_empty() {
        return Err(ParseClientToolError::Empty);
    }
    if name.len() > MAX_NAME {
        return Err(ParseClientToolError::TooLong(name.len()));
    }
    let strange = |c: &char| !c.is_ascii_alphanumeric() && !"_-.:/".contains(*c);
    match name.chars().find(strange) {
        Some(found) => Err(ParseClientToolError::Character {
            name: name.to_owned(),
            found,
        }),
        None => Ok(()),
    }
}

/// Every way to split a name into a server and a tool, the shortest server first.
fn splits(name: &str) -> Vec<(&str, &str)> {
    let at = (1..name.len()).filter(|&at| name[at..].starts_with(SEPARATOR));
    at.map(|at| (&name[..at], &name[at + SEPARATOR.len()..]))
        .collect()
}

fn tool_name(server: &str, tool: &str) -> ToolName {
    ToolName {
        server: server.to_owned(),
        tool: tool.to_owned(),
    }
}

/// The verdict of the policy on a call that an agent wants to make in its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientVerdict {
    /// Nothing: the client's own rules decide.
    Unspoken,
    /// A rule that names the tool allows it.
    Allow(String),
    /// A person has to agree, because a rule says so.
    Ask(String),
    /// A person has to agree, because no rule says otherwise.
    AskByDefault(String),
    /// It is not made.
    Deny(String),
    /// The tool is guarded by this pattern: only an approved plan calls it.
    Guarded(String),
}

impl ClientVerdict {
    fn strictness(&self) -> u8 {
        match self {
            Self::Allow(_) => 0,
            Self::Unspoken => 1,
            Self::AskByDefault(_) => 2,
            Self::Ask(_) => 3,
            Self::Guarded(_) => 4,
            Self::Deny(_) => 5,
        }
    }
}

impl Policy {
    /// The patterns of guarded tools, as they are written.
    pub fn guarded_patterns(&self) -> Vec<String> {
        self.guarded.iter().map(ToString::to_string).collect()
    }

    /// Judges a call that an agent wants to make in its client, outside of every plan. Of the tool
    /// only its name is known, so it counts as one that may do anything.
    pub fn judge_client_call(&self, tool: &ClientTool, args: &Value) -> ClientVerdict {
        let unnamed = match tool.origin {
            // It may belong to any server that a pattern names. A pattern matches its own text.
            Origin::UnknownServer => self.named_servers(),
            Origin::Client | Origin::Server | Origin::Gateway | Origin::Plans => BTreeSet::new(),
        };
        let own = &tool.meanings[0].tool;
        let more = unnamed.iter().map(|server| tool_name(server, own));
        let verdicts = tool.meanings.iter().cloned().chain(more);
        let verdicts = verdicts.map(|name| self.judge_meaning(tool.origin, &name, args));
        let strictest = verdicts.max_by_key(ClientVerdict::strictness);
        strictest.unwrap_or_else(|| ClientVerdict::Deny("the tool is not known".to_owned()))
    }

    fn judge_meaning(&self, origin: Origin, name: &ToolName, args: &Value) -> ClientVerdict {
        let definition = ToolDefinition::new(&name.server, &name.tool, "", json!({}));
        let tool = KnownTool::from_server(definition, &Digest::of_bytes(b""), false);
        let judgement = self.judge_call(&CallToJudge {
            tool: Some(&tool),
            args,
            unknown: &BTreeSet::new(),
            step: &Step::default(),
            step_id: "",
            plan: "",
            chosen_by_model: true,
        });
        if judgement.verdict == Verdict::Deny {
            return ClientVerdict::Deny(judgement.explain());
        }
        let mut guarded = self.guarded.iter();
        let guard = guarded.find(|pattern| pattern.matches_alike(tool.folded_name()));
        match (guard, origin) {
            (
                Some(pattern),
                Origin::Client | Origin::Server | Origin::UnknownServer | Origin::Gateway,
            ) => return ClientVerdict::Guarded(pattern.to_string()),
            // They are how a plan is proposed.
            (Some(_), Origin::Plans) | (None, _) => {}
        }
        self.speak(origin, &tool, &judgement)
    }

    /// What is said to the client about a call that is not forbidden.
    fn speak(&self, origin: Origin, tool: &KnownTool, judgement: &Judgement) -> ClientVerdict {
        let by_rule = judgement.rule.as_deref();
        match (judgement.verdict, by_rule) {
            (Verdict::Deny, _) => ClientVerdict::Deny(judgement.explain()),
            (Verdict::Allow, Some(rule)) if self.names_exactly(rule, tool) => {
                ClientVerdict::Allow(judgement.explain())
            }
            (Verdict::Allow, _) => ClientVerdict::Unspoken,
            // The gateway asks by itself, with more knowledge.
            (Verdict::Ask, _) if origin == Origin::Gateway => ClientVerdict::Unspoken,
            (Verdict::Ask, Some(_)) => ClientVerdict::Ask(judgement.explain()),
            (Verdict::Ask, None) => match origin {
                Origin::Server | Origin::UnknownServer => {
                    ClientVerdict::AskByDefault(judgement.explain())
                }
                Origin::Client | Origin::Plans | Origin::Gateway => ClientVerdict::Unspoken,
            },
        }
    }

    /// Returns whether the rule says by name what it allows. `*` was written for plans, in which a
    /// person sees every call.
    fn names_exactly(&self, label: &str, tool: &KnownTool) -> bool {
        let says_something = |text: &str| text.bytes().any(|byte| byte.is_ascii_alphanumeric());
        let rule = self.rules.iter().find(|rule| rule.label == label);
        rule.is_some_and(|rule| {
            rule.tools.as_ref().is_some_and(|patterns| {
                patterns.iter().any(|pattern| {
                    pattern.matches_exactly(tool.folded_name())
                        && says_something(&pattern.to_string())
                })
            })
        })
    }

    /// The servers that patterns of rules and of guarded tools name, as they are written.
    fn named_servers(&self) -> BTreeSet<String> {
        let of_rules = self.rules.iter().flat_map(|rule| {
            let patterns = rule.tools.iter().flatten();
            let servers = patterns.filter_map(|pattern| pattern.server_text());
            servers.chain(rule.server.as_ref().map(|server| server.text()))
        });
        let of_guarded = self
            .guarded
            .iter()
            .filter_map(|pattern| pattern.server_text());
        of_rules.chain(of_guarded).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::PolicyDocument;

    fn policy(document: &Value) -> Policy {
        let document: PolicyDocument = serde_json::from_value(document.clone()).unwrap();
        Policy::read(&document).unwrap()
    }

    fn judge(policy: &Policy, client: AgentClient, name: &str) -> ClientVerdict {
        let args = json!({ "command": "rm -rf build" });
        match ClientTool::parse(client, name) {
            Ok(tool) => policy.judge_client_call(&tool, &args),
            Err(error) => ClientVerdict::Deny(error.to_string()),
        }
    }

    fn claude(policy: &Policy, name: &str) -> ClientVerdict {
        judge(policy, AgentClient::ClaudeCode, name)
    }

    #[test]
    fn the_defaults_ask_about_servers_and_leave_the_client_its_own_tools() {
        let policy = Policy::default();
        assert!(matches!(
            claude(&policy, "mcp__github__delete_repo"),
            ClientVerdict::AskByDefault(_)
        ));
        for own in ["Bash", "Write", "Edit", "ExitPlanMode"] {
            assert_eq!(claude(&policy, own), ClientVerdict::Unspoken, "{own}");
        }
        for ours in [
            "mcp__planwright__plan_propose",
            "mcp__planwright__github__delete_repo",
        ] {
            assert_eq!(claude(&policy, ours), ClientVerdict::Unspoken, "{ours}");
        }
    }

    #[test]
    fn rules_speak_about_tools_of_servers_and_of_the_client() {
        let policy = policy(&json!({ "rules": [
            { "tool": "Bash", "if": "args.command.contains('rm ')", "then": "deny" },
            { "tool": "claude-code.Write", "then": "ask" },
            { "tool": "mcp__github__get_*", "then": "allow" },
            { "tool": "*", "server": "fs", "then": "allow" },
        ] }));
        assert!(matches!(claude(&policy, "Bash"), ClientVerdict::Deny(_)));
        assert!(matches!(claude(&policy, "Write"), ClientVerdict::Ask(_)));
        assert!(matches!(
            claude(&policy, "mcp__github__get_issue"),
            ClientVerdict::Allow(_)
        ));
        // A rule that only says `*` allows nothing in so many words.
        assert_eq!(
            claude(&policy, "mcp__fs__write_file"),
            ClientVerdict::Unspoken
        );
    }

    #[test]
    fn a_guarded_tool_is_guarded_under_every_name_it_can_have() {
        let policy = policy(&json!({
            "guarded_tools": ["github.delete_*", "Bash"],
            "rules": [{ "tool": "github.delete_repo", "then": "allow" }],
        }));
        for name in [
            "mcp__github__delete_repo",
            "mcp__GitHub__Delete-Repo",
            "mcp__github__de1ete_repo",
            "mcp__plugin_tools_github__delete_repo",
            "mcp__plugin_my_tools_github__delete_repo",
            "mcp__planwright__github__delete_repo",
            "MCP:github:delete_repo",
            "MCP:delete_repo",
            "Bash",
            "bash",
            "BASH",
        ] {
            assert!(
                matches!(claude(&policy, name), ClientVerdict::Guarded(_)),
                "{name}: {:?}",
                claude(&policy, name)
            );
        }
        let goose = judge(&policy, AgentClient::Goose, "github__delete_repo");
        assert!(matches!(goose, ClientVerdict::Guarded(_)));
        let everything = self::policy(&json!({ "guarded_tools": ["*"] }));
        assert_eq!(
            claude(&everything, "mcp__planwright__plan_propose"),
            ClientVerdict::Unspoken,
            "a plan can be proposed"
        );
        assert!(matches!(
            claude(&everything, "mcp__planwright__planner"),
            ClientVerdict::Guarded(_)
        ));
    }

    #[test]
    fn an_ambiguous_name_is_judged_as_everything_it_can_mean() {
        let policy = policy(&json!({ "rules": [
            { "tool": "a.b__c", "then": "allow" },
            { "server": "a__b", "then": "deny" },
        ] }));
        assert!(matches!(
            claude(&policy, "mcp__a__b__c"),
            ClientVerdict::Deny(_)
        ));
    }

    #[test]
    fn what_only_looks_like_a_name_is_denied() {
        for name in [
            "",
            "mcp__",
            "mcp____",
            "mcp__github",
            "mcp__github__",
            "Mcp__github__delete_repo",
            "mcp__g\u{456}thub__delete_repo",
            "\u{39c}cp__github__delete_repo",
            "mcp__github__\u{202e}oper_eteled",
            "Ba\u{200b}sh",
            "Bash\n",
            "Bash ",
            "Bash\0",
            &"x".repeat(257),
        ] {
            let verdict = claude(&Policy::default(), name);
            assert!(
                matches!(verdict, ClientVerdict::Deny(_)),
                "{name:?}: {verdict:?}"
            );
        }
    }
}
