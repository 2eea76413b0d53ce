//! Which commands to a run a principal may give.

use super::{Command, Refusal, Run};
use crate::policy::{Permission, Policy};
use crate::principal::Principal;

impl Policy {
    /// Refuses what this policy does not let its giver do. What the engine orders by itself has no
    /// giver.
    pub fn permit_command(&self, run: &Run, command: &Command) -> Result<(), Refusal> {
        if let Command::LeaveOut { step, by, .. } = command {
            self.permit_leaving_out(run, step, by)?;
        }
        let (by, action) = match command {
            Command::Approve { by, .. } | Command::Deny { by, .. } => (by, Permission::Approve),
            Command::Resolve { by, .. }
            | Command::GiveInput { by, .. }
            | Command::LeaveOut { by, .. } => (by, Permission::Resolve),
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

    /// What waits for a step was agreed to with the step before it: that it goes on without is for
    /// those who may agree to it.
    fn permit_leaving_out(&self, run: &Run, step: &str, by: &Principal) -> Result<(), Refusal> {
        let is_waited_for = run.find(step).is_some_and(|ix| run.is_waited_for(ix));
        if is_waited_for && !self.roles.permits(by, Permission::Approve) {
            return Err(Refusal::MayNotSkip {
                step: step.to_owned(),
                by: by.clone(),
            });
        }
        Ok(())
    }
}
