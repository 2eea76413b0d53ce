//! The operator's policy: calls that are allowed, asked about or denied, approvers, and limits.
//!
//! [`Policy::judge_call`] says what the policy thinks of one call. It is asked when a plan is reviewed,
//! about what is known by then, and again about every call on the arguments that are sent, in the
//! transaction that records its start. The policy decides nothing about runs by itself: that is
//! `decide`'s.

mod always;
mod client_call;
mod document;
mod grant;
mod judge;
mod late;
mod pattern;
mod plan;
mod read;
mod refusal_kind;
mod roles;
mod sign_in;
mod time_span;

pub use always::AlwaysRule;
pub use client_call::{AgentClient, ClientTool, ClientVerdict, ParseClientToolError};
pub use document::{
    AdjustmentConsent, ApprovalRules, Mode, NeededAssurance, OpenComments, Patterns,
    PolicyDocument, RolesTable, RuleDocument, Verdict,
};
pub use grant::{GrantRefusal, MAX_PRINCIPAL_NAME};
pub use judge::{CallToJudge, Judgement, UnenforcedRule};
pub use late::{LateChoice, ParseLateChoiceError, late_arguments};
pub use pattern::{ParsePatternError, ToolPattern};
pub use plan::{JudgedPlan, JudgedStep, PolicyDenial};
pub use read::{Cap, Policy, ReadPolicyError};
pub use roles::{ParsePrincipalError, ParseRoleError, Permission, Role, Roles};
pub use sign_in::{SignInRefusal, SignInRules};
pub use time_span::{ParseTimeSpanError, TimeSpan};
