//! How a task stands, as clients of the earlier era are told.

use crate::caller::Caller;
use crate::task::POLL_MS;
use planwright_core::status::RunStatus;
use planwright_core::time::Timestamp;
use planwright_engine::port::StreamInfo;
use rmcp::model::TaskStatus;
use serde_json::{Value, json};

/// The state of a task whose run has this status.
fn status_of_run(status: RunStatus, has_person: bool) -> TaskStatus {
    match status {
        RunStatus::Completed => TaskStatus::Completed,
        RunStatus::CompletedWithFailures | RunStatus::Failed | RunStatus::Adjusted => {
            TaskStatus::Failed
        }
        RunStatus::Cancelled => TaskStatus::Cancelled,
        // Where no person can be asked, others decide, and the client has nothing to do.
        RunStatus::Waiting if has_person => TaskStatus::InputRequired,
        RunStatus::Waiting | RunStatus::Executing | RunStatus::Paused | RunStatus::Stalled => {
            TaskStatus::Working
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
            status: status_of_run(status, caller.person.is_some()),
            message: format!("the run is {status}"),
            created: info.created_at,
            updated: info.updated_at,
        })
    }

    pub(super) fn to_value(&self) -> Value {
        json!({
            "taskId": self.id,
            "status": self.status,
            "statusMessage": self.message,
            "createdAt": self.created.to_string(),
            "lastUpdatedAt": self.updated.to_string(),
            // A run is in the journal, and stays.
            "ttl": null,
            "pollInterval": POLL_MS,
        })
    }
}
