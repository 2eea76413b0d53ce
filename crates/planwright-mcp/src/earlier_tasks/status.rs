//! How a task stands, as clients of the earlier era are told.

use crate::caller::Caller;
use planwright_core::status::RunStatus;
use planwright_core::time::Timestamp;
use planwright_engine::port::StreamInfo;
use serde_json::{Value, json};

/// How often a client may ask how a task stands.
const POLL_MS: u64 = 1_000;

/// The states of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskStatus {
    Working,
    InputRequired,
    Completed,
    Failed,
    Cancelled,
}

impl TaskStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Working => "working",
            Self::InputRequired => "input_required",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    pub(super) fn is_terminal(self) -> bool {
        match self {
            Self::Completed | Self::Failed | Self::Cancelled => true,
            Self::Working | Self::InputRequired => false,
        }
    }

    /// The state of a task whose run has this status.
    fn of_run(status: RunStatus, has_person: bool) -> Self {
        match status {
            RunStatus::Completed => Self::Completed,
            RunStatus::CompletedWithFailures | RunStatus::Failed | RunStatus::Adjusted => {
                Self::Failed
            }
            RunStatus::Cancelled => Self::Cancelled,
            // Where no person can be asked, others decide, and the client has nothing to do.
            RunStatus::Waiting if has_person => Self::InputRequired,
            RunStatus::Waiting | RunStatus::Executing | RunStatus::Paused | RunStatus::Stalled => {
                Self::Working
            }
        }
    }
}

/// A task at one moment.
#[derive(Debug)]
pub(super) struct TaskView {
    pub(super) id: String,
    pub(super) status: TaskStatus,
    pub(super) message: String,
    pub(super) created: Timestamp,
    pub(super) updated: Timestamp,
}

impl TaskView {
    /// A run as a task under this id.
    pub(super) fn of_run(id: &str, info: &StreamInfo, caller: &Caller) -> Option<Self> {
        let status = info.status.status.run_status()?;
        Some(Self {
            id: id.to_owned(),
            status: TaskStatus::of_run(status, caller.person.is_some()),
            message: format!("the run is {status}"),
            created: info.created_at,
            updated: info.updated_at,
        })
    }

    pub(super) fn to_value(&self) -> Value {
        json!({
            "taskId": self.id,
            "status": self.status.as_str(),
            "statusMessage": self.message,
            "createdAt": self.created.to_string(),
            "lastUpdatedAt": self.updated.to_string(),
            // A run is in the journal, and stays.
            "ttl": null,
            "pollInterval": POLL_MS,
        })
    }
}
