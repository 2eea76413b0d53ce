//! Which commands to a run a principal may give.

use super::{Command, Refusal};
use crate::policy::{Action, Policy};

impl Policy {
    /// Refuses what this policy does not let its giver do. What the engine orders by itself has no
    /// giver.
    pub fn permit_command(&self, command: &Command) -> Result<(), Refusal> {
        let (by, action) = match command {
            Command::Approve { by, .. } | Command::Deny { by, .. } => (by, Action::Approve),
            Command::Resolve { by, .. }
            | Command::GiveInput { by, .. }
            | Command::LeaveOut { by, .. } => (by, Action::Resolve),
            Command::Pause { by } | Command::Resume { by } => (by, Action::Run),
            Command::Cancel { by } | Command::GiveUp { by, .. } => (by, Action::Cancel),
            // Whoever takes a run back agrees to the calls that do it.
            Command::Undo { by, .. } => (by, Action::Approve),
            Command::Start { .. }
            | Command::Fail { .. }
            | Command::Skip { .. }
            | Command::OpenLoop { .. }
            | Command::CloseLoop { .. }
            | Command::AskInput { .. }
            | Command::ResumeChildren
            | Command::NoteUndone { .. }
            | Command::Report { .. }
            | Command::TakeTurn { .. }
            | Command::NoteModel { .. }
            | Command::Tick
            | Command::Recover
            | Command::AskApprovals
            | Command::Stall { .. }
            | Command::Reflect { .. }
            | Command::Adjust { .. }
            | Command::Abandon { .. }
            | Command::NoteCriteria { .. }
            | Command::Settle => return Ok(()),
        };
        match action {
            _ if self.roles.may(by, action) => Ok(()),
            Action::Approve => Err(Refusal::MayNotApprove(by.clone())),
            Action::Read
            | Action::Propose
            | Action::Delete
            | Action::Run
            | Action::Cancel
            | Action::Resolve
            | Action::Comment
            | Action::Administer => Err(Refusal::MayNot {
                by: by.clone(),
                action,
            }),
        }
    }
}
