//! Which commands to a run a principal may give.

use super::{Command, Refusal};
use crate::policy::{Permission, Policy};
use crate::principal::PrincipalKind;

impl Policy {
    /// Refuses what this policy does not let its giver do. What the engine orders by itself has no
    /// giver.
    pub fn permit_command(&self, command: &Command) -> Result<(), Refusal> {
        let (by, action) = match command {
            Command::Approve { by, .. } | Command::Deny { by, .. } => (by, Permission::Approve),
            Command::Resolve { by, .. }
            | Command::GiveInput { by, .. }
            | Command::LeaveOut { by, .. } => (by, Permission::Resolve),
            // A rule may hold a run. It never lets one go on.
            Command::Pause { by } if by.kind == PrincipalKind::Policy => return Ok(()),
            Command::Pause { by } | Command::Resume { by } => (by, Permission::Run),
            Command::Cancel { by } | Command::GiveUp { by, .. } => (by, Permission::Cancel),
            // A principal who takes a run back agrees to the calls that do it.
            Command::Undo { by, .. } => (by, Permission::Approve),
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
            | Command::Queue { .. }
            | Command::Isolate { .. }
            | Command::EndIsolation
            | Command::Settle => return Ok(()),
        };
        match action {
            _ if self.roles.permits(by, action) => Ok(()),
            Permission::Approve => Err(Refusal::MayNotApprove(by.clone())),
            Permission::Read
            | Permission::Propose
            | Permission::Delete
            | Permission::Run
            | Permission::Cancel
            | Permission::Resolve
            | Permission::Comment
            | Permission::Administer => Err(Refusal::MayNot {
                by: by.clone(),
                action,
            }),
        }
    }
}
