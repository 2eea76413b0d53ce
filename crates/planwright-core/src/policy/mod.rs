//! What the operator decided: which calls may be made, which are asked about, who may say yes, and
//! how often.
//!
//! [`Policy::judge`] says what the policy thinks of one call. It is asked when a plan is reviewed,
//! about what is known by then, and again about every call on the arguments that are sent, in the
//! transaction that records its start. The policy decides nothing about runs by itself: that is
//! `decide`'s.

mod document;
mod duration;
mod grant;
mod judge;
mod late;
mod pattern;
mod plan;
mod read;
mod roles;

pub use document::{
    Adjusting, ApprovalRules, Mode, OpenComments, PolicyDocument, RolesTable, RuleDocument, Verdict,
};
pub use duration::{ParseSpanError, Span};
pub use grant::{GrantRefusal, MAX_PRINCIPAL_NAME};
pub use judge::{Judgement, Noticed, Subject};
pub use late::{LateChoice, ParseLateChoiceError, late_arguments};
pub use pattern::{ParsePatternError, ToolPattern};
pub use plan::{JudgedPlan, JudgedStep, MatchedRule};
pub use read::{Cap, Policy, ReadPolicyError};
pub use roles::{Action, ParsePrincipalError, ParseRoleError, Role, Roles};
