//! Workers, the steps that wait for them and the queues of a broker, as other programs see them.

use planwright_core::time::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A worker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerLine {
    pub id: String,
    pub host: String,
    pub pid: u32,
    pub version: String,
    /// The steps that it takes; empty if it executes runs only.
    pub capabilities: Vec<String>,
    /// Steps that it carries out at once.
    pub concurrency: u32,
    /// `working`, `idle`, `draining` or `gone`.
    pub state: &'static str,
    #[schema(value_type = String, format = DateTime)]
    pub started_at: Timestamp,
    /// When the store last heard of it: some seconds ago at most, while it is there.
    #[schema(value_type = String, format = DateTime)]
    pub seen_at: Timestamp,
    /// Steps that it carries out.
    pub steps: Vec<WorkerStepLine>,
    /// Runs that it executes.
    pub runs: Vec<String>,
    /// Tools that it has, by their full names.
    pub tools: Vec<String>,
}

/// A step that a worker carries out.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WorkerStepLine {
    pub run: String,
    pub step: String,
    pub attempt: u32,
}

/// Steps that no worker has taken yet.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingStepsLine {
    pub capability: String,
    pub steps: u64,
    /// How long the first of them has waited.
    pub oldest_seconds: u64,
}

/// What `workers --json` prints and `GET /workers` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct WorkerList {
    /// Those that are there, and those that are gone and had taken a step.
    pub workers: Vec<WorkerLine>,
    /// What waits for a worker, by capability.
    pub waiting: Vec<WaitingStepsLine>,
    /// The plans of the runs that are named above, as far as they are known.
    pub plans: BTreeMap<String, String>,
}

/// The queue of one capability at the broker.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct QueueLine {
    pub capability: String,
    /// Notices that wait for a worker.
    pub waiting: u64,
    /// Notices that a worker holds, if the broker tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<u64>,
    /// Notices that were given up.
    pub dead: u64,
    /// When the oldest waiting notice was sent, if the broker tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub oldest: Option<Timestamp>,
    /// How often notices were delivered again, if the broker tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redelivered: Option<u64>,
}

/// What `queue list --json` prints and `GET /queues` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct QueueList {
    pub queues: Vec<QueueLine>,
}

/// A notice that was given up. Without its run it cannot be read: it is not one of ours.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeadNoticeLine {
    pub id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The plan of the run, if the store has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// How often it was delivered, if the broker tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deliveries: Option<u64>,
    /// When it was given up, if the broker tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub since: Option<Timestamp>,
}

/// What `queue show --json` prints and `GET /queues/{capability}/dead` answers.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct DeadNoticeList {
    pub capability: String,
    /// The oldest first.
    pub dead: Vec<DeadNoticeLine>,
}

/// How many notices were sent again.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct RequeuedNotices {
    pub requeued: u64,
}

/// How many notices were forgotten.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
pub struct PurgedNotices {
    pub purged: u64,
}

/// Workers and queues among the figures.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct DispatchStats {
    pub workers: WorkerCounts,
    /// What waits for a worker, by capability.
    pub waiting: Vec<WaitingStepsLine>,
    /// The queues of the broker; absent without one, or if it does not answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queues: Option<Vec<QueueLine>>,
    /// Why there is nothing about the queues of the broker, or about the workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How many workers there are, by what they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct WorkerCounts {
    pub working: u64,
    pub idle: u64,
    pub draining: u64,
}
