//! Which commands to a run a principal may give.

use super::{Command, Refusal, Run};
use crate::policy::{Permission, Policy};
use crate::principal::{Assurance, Principal, PrincipalKind};

impl Policy {
    /// Refuses what this policy does not let its giver do. What the engine orders by itself has no
    /// giver.
    pub fn permit_command(&self, run: &Run, command: &Command) -> Result<(), Refusal> {
        if let Command::LeaveOut { step, by, .. } = command {
            let may_approve = self.roles.permits(by, Permission::Approve);
            run.check_may_leave_out(step, by, may_approve)?;
        }
        if let Command::Approve {
            step, assurance, ..
        } = command
        {
            self.check_assurance(run, step, *assurance)?;
        }
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
            | Command::RecoverOthers { .. }
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

    /// Checks that it is sure enough who approves the step that waits. What a gate stands before
    /// is what the step calls.
    fn check_assurance(&self, run: &Run, step: &str, assurance: Assurance) -> Result<(), Refusal> {
        let Some(ix) = run.find(step) else {
            return Ok(());
        };
        let called = run.definition(ix).tool.as_deref().into_iter();
        let scope = run.plan().document().agent_tools();
        let may_call = scope
            .into_iter()
            .filter(|_| run.definition(ix).tool.is_none());
        let tools: Vec<&str> = called.chain(may_call).collect();
        self.check_approver_of_tools(assurance, &tools)
    }

    /// Checks that it is sure enough who agrees to calls of these tools.
    pub fn check_approver_of_tools(
        &self,
        assurance: Assurance,
        tools: &[&str],
    ) -> Result<(), Refusal> {
        if let Some(tool) = self.wants_in_person(assurance, tools.iter().copied()) {
            return Err(Refusal::InPerson(tool.to_owned()));
        }
        match self.wants_passkey(assurance, tools.iter().copied()) {
            Some(tool) => Err(Refusal::Passkey(tool.to_owned())),
            None => Ok(()),
        }
    }
}

impl Run {
    /// Checks that this principal may leave a step out. What waits for it was agreed to with the
    /// step before it: that it goes on without is for those who may approve.
    pub fn check_may_leave_out(
        &self,
        step: &str,
        by: &Principal,
        may_approve: bool,
    ) -> Result<(), Refusal> {
        let is_waited_for = self
            .find(step)
            .is_some_and(|ix| self.schedule().is_waited_for(ix));
        if is_waited_for && !may_approve {
            return Err(Refusal::MayNotSkip {
                step: step.to_owned(),
                by: by.clone(),
            });
        }
        Ok(())
    }
}
