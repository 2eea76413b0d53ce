//! The policy as it is written. Strict: a misspelt rule would protect nothing.

use super::{LateChoice, TimeSpan};
use crate::json::is_default;
use crate::tool::EffectClass;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The decision about a call.
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
    /// Every verdict, the mildest first.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the verdict's word in policies.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// The weight of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// Reported only by `planwright policy`.
    Observe,
    /// Shown to the approver; decides nothing.
    Warn,
    /// Decides.
    Enforce,
}

impl Mode {
    /// Every mode, the mildest first.
    pub const ALL: [Self; 3] = [Self::Observe, Self::Warn, Self::Enforce];

    /// Returns the mode's word in policies.
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
    /// The rules; the first that matches decides.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<RuleDocument>,
    /// Rules for approvals of plans.
    #[serde(skip_serializing_if = "is_default")]
    pub approval: ApprovalRules,
    /// The default choice for arguments that are only known later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_bound: Option<LateChoice>,
    /// Tools that only a person's approval lets through, even if a rule allows them.
    #[serde(skip_serializing_if = "Vec::is_empty", alias = "guardedTools")]
    pub guarded_tools: Vec<String>,
    /// Calls per run, by tool pattern.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub caps: BTreeMap<String, u64>,
    /// The same call (tool and arguments) made more often in one run is a runaway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub same_call: Option<u64>,
    /// The party that agrees to the changes of a reflection.
    #[serde(skip_serializing_if = "is_default")]
    pub adjust: AdjustmentConsent,
    /// Comes from a table of its own.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub roles: Option<RolesTable>,
}

/// The party that agrees to the changes of a reflection.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdjustmentConsent {
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
    /// Name of the rule in every output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Glob over tool names; several mean any of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<Patterns>,
    /// Pattern over the names of servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// Capability the step names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    /// The tool only reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The tool may destroy something.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// The tool may be called again with the same arguments.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// The tool reaches beyond its own system.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
    /// Effect class of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<EffectClass>,
    /// CEL over `tool`, `server`, `args`, `step`, `plan`, `labels`, `capability`.
    #[serde(default, rename = "if", skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
    /// The verdict on calls that match.
    pub then: Verdict,
    /// The assurance that approvals of the tools it names need. The other conditions of the rule do not limit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assurance: Option<NeededAssurance>,
    /// The reason shown with the verdict.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Mode of this rule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<Mode>,
}

/// The assurance that approvals need of the person who gives them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NeededAssurance {
    /// The person has just used a passkey of their own.
    Passkey,
}

/// One pattern or several.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Patterns {
    /// One pattern.
    One(String),
    /// Several patterns, of which any may match.
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

/// Rules for a complete approval of a plan, and its lifetime.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalRules {
    /// The proposer of a version does not approve it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub four_eyes: bool,
    /// Number of different people that have to agree. 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub required: Option<u32>,
    /// Number of runs one approval is good for. 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub uses: Option<u32>,
    /// An approval that was not used by then is void.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expires_after: Option<TimeSpan>,
    /// A step whose approval was not given by then fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step_expires_after: Option<TimeSpan>,
    /// The effect of open comments on an approval.
    #[serde(skip_serializing_if = "is_default")]
    pub open_comments: OpenComments,
    /// Tools whose plans and calls a person approves at a terminal or signed in to the service, and
    /// never through a client that says that its person agreed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub in_person: Vec<String>,
    /// Tools whose plans and calls a person approves on the page, after using a passkey of their own there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub passkey: Vec<String>,
}

/// The effect of open comments on an approval.
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
    /// Returns the number of people that have to agree, at least one.
    pub fn required(&self) -> u32 {
        self.required.unwrap_or(1).max(1)
    }

    /// Returns the number of runs one approval is good for, at least one.
    pub fn uses(&self) -> u32 {
        self.uses.unwrap_or(1).max(1)
    }
}

/// The holders of each role, as `kind:name`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RolesTable {
    /// Principals that may read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewer: Option<Vec<String>>,
    /// Principals that may propose plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<Vec<String>>,
    /// Principals that may run plans.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Vec<String>>,
    /// Principals that may approve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approver: Option<Vec<String>>,
    /// Principals that may administer the service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub admin: Option<Vec<String>>,
}
