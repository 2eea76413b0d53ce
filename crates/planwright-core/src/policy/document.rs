//! The policy as it is written. Strict: a misspelt rule protects nobody.

use super::{LateChoice, Span};
use crate::json::is_default;
use crate::tool::EffectClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is done about a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It may be made without a person.
    Allow,
    /// A person has to agree.
    Ask,
    /// It is not made.
    Deny,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// How much a rule counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Only told when somebody asks what the policy says.
    Observe,
    /// Shown to whoever approves; decides nothing.
    Warn,
    Enforce,
}

impl Mode {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Observe => "observe",
            Self::Warn => "warn",
            Self::Enforce => "enforce",
        }
    }
}

/// `[policy]` and `[roles]`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyDocument {
    /// The mode of rules that name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleDocument>,
    #[serde(skip_serializing_if = "is_default")]
    pub approval: ApprovalRules,
    /// What holds for arguments that are only known later, when the approver does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_bound: Option<LateChoice>,
    /// Tools that only a person's approval lets through, whatever the rules say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub guarded_tools: Vec<String>,
    /// Calls per run, by tool pattern.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub caps: BTreeMap<String, u64>,
    /// The same call (tool and arguments) made more often in one run is a runaway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_call: Option<u64>,
    /// Who agrees to what a reflection changes.
    #[serde(skip_serializing_if = "is_default")]
    pub adjust: Adjusting,
    /// Comes from a table of its own.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub roles: Option<RolesTable>,
}

/// Who agrees to what a reflection changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adjusting {
    /// A person.
    #[default]
    Ask,
    /// Policy, if everything that is new, other or tried again only reads and is allowed; else a
    /// person.
    Auto,
}

/// One rule: everything it names must be so for it to match.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleDocument {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Glob over tool names; several mean any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Patterns>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<EffectClass>,
    /// CEL over `tool`, `server`, `args`, `step`, `plan`, `labels`, `capability`.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    pub then: Verdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// One pattern or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Patterns {
    One(String),
    Several(Vec<String>),
}

impl Patterns {
    pub(super) fn all(&self) -> &[String] {
        match self {
            Self::One(pattern) => std::slice::from_ref(pattern),
            Self::Several(patterns) => patterns,
        }
    }
}

/// What makes an approval of a plan complete, and how long it lasts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalRules {
    /// Whoever proposed a version does not approve it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub four_eyes: bool,
    /// How many different people have to agree. 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<u32>,
    /// How many runs one approval is good for. 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// An approval that was not used by then is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<Span>,
    /// A step whose approval was not given by then fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_expires_after: Option<Span>,
    /// What comments that nobody settled mean for an approval.
    #[serde(skip_serializing_if = "is_default")]
    pub open_comments: OpenComments,
}

/// What comments that nobody settled mean for an approval of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OpenComments {
    /// Nothing is approved before they are settled.
    Block,
    /// They are shown.
    #[default]
    Note,
}

impl ApprovalRules {
    pub fn required(&self) -> u32 {
        self.required.unwrap_or(1).max(1)
    }

    pub fn uses(&self) -> u32 {
        self.uses.unwrap_or(1).max(1)
    }
}

/// Who has which role, as `kind:name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolesTable {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewer: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin: Option<Vec<String>>,
}
