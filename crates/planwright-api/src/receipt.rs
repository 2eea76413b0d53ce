//! What a signed receipt says about a run.

use planwright_core::digest::Digest;
use planwright_core::principal::{Assurance, Principal};
use planwright_core::time::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The payload of a receipt: what was approved, by whom, what was sent, what came back, and where
/// the journals stand that say so.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptStatement {
    /// `receipt`.
    pub planwright: String,
    pub format: u32,
    pub issued_at: Timestamp,
    pub issued_by: Principal,
    pub plan: ReceiptPlan,
    pub approvals: Vec<ReceiptApproval>,
    pub run: ReceiptRun,
    pub calls: Vec<ReceiptCall>,
    /// The last entries of the journals of the plan and of the run.
    pub heads: Vec<ReceiptHead>,
}

/// What was approved.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptPlan {
    pub id: String,
    pub version: u32,
    /// Covers everything that changes what is executed.
    pub digest: Digest,
    /// The version as it was written, with its steps.
    pub document: Value,
}

/// A yes that the run used, or a yes to one of its calls.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptApproval {
    pub by: Principal,
    pub at: Timestamp,
    /// Of the plan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// How we know that it was them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assurance: Option<Assurance>,
    /// The one step that it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
}

/// The run, from its start to its end.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptRun {
    pub id: String,
    pub started_at: Timestamp,
    pub started_by: Principal,
    pub status: String,
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub variables: Map<String, Value>,
}

/// One call of a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptCall {
    pub step: String,
    pub attempt: u64,
    pub tool: String,
    /// SHA-256 over the tool's name and the arguments that were sent.
    pub call: Digest,
    pub at: Timestamp,
    /// The arguments as they were sent, with secrets by name. Absent if they cannot be proved by the
    /// digest any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Value>,
    /// Absent if the run ended before the call did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ReceiptOutcome>,
}

/// How a call ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReceiptOutcome {
    /// The kind of the entry: `attempt_succeeded`, `attempt_failed`, `attempt_cancelled`,
    /// `attempt_interrupted`, `outcome_lost`, `outcome_resolved`.
    pub kind: String,
    pub at: Timestamp,
    /// What else the entry says: the value that came back, or the error. Secrets are masked.
    #[serde(flatten)]
    pub fields: Map<String, Value>,
}

/// Where a journal stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptHead {
    pub stream: String,
    pub seq: u64,
    pub hash: Digest,
}
