//! Going on with runs that have not ended.

use crate::context::{Request, Tenure, Verdict};
use crate::dispatch::First;
use crate::journal::conversation::is_conversation;
use crate::journal::load::{LoadError, fold_added, load_review};
use crate::port::AcquireError;
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use crate::run::start::{Difference, StartRunError, check_narrow_enough};
use crate::run::undo::{OriginalJournal, load_any_run};
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Head, StreamName};
use planwright_core::policy::Permission;
use planwright_core::review::{Review, ReviewRefusal};
use planwright_core::run::{Command, Run, RunState, StepState};
use planwright_core::status::RunStatus;
use tokio::sync::oneshot;

/// A run that was taken over, and everything that executing it needs.
struct Taken {
    run: Run,
    head: Head,
    tenure: Tenure,
    original: Option<OriginalJournal>,
}

/// The outcome of looking at a run that may be able to go on.
pub(crate) enum Continued {
    Executing(RunHandle),
    /// It has ended, or only a person can move it on.
    Nothing,
}

impl Runs {
    /// Goes on with the latest run of a plan that has not ended.
    pub async fn resume(
        &self,
        id: &PlanId,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let (review, _) = load_review(&*self.context.ports.store, id).await?;
        let opened = review
            .runs()
            .last()
            .ok_or_else(|| StartRunError::NothingToResume(id.clone()))?;
        let (run, head) = self.load_run(&opened.run, &review).await?;
        Box::pin(self.resume_of((run, head), &review, options)).await
    }

    /// Goes on with a run that has not ended.
    pub async fn resume_run(
        &self,
        id: &RunId,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let (review, run, head) = self.load_run_with_review(id).await?;
        Box::pin(self.resume_of((run, head), &review, options)).await
    }

    async fn resume_of(
        &self,
        (run, head): (Run, Head),
        review: &Review,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        // What was adjusted goes on in another run.
        if let RunState::Adjusted { .. } = run.state() {
            return self.continue_adjusted(run.id(), options).await;
        }
        if run.state().is_terminal() {
            return Err(StartRunError::Ended {
                run: run.id().clone(),
                status: run.status(),
            });
        }
        self.plans().permit(&options.by, Permission::Run)?;
        // What was agreed to when it began stays as it is.
        let consent = run.start().consent.as_deref().cloned().unwrap_or_default();
        check_narrow_enough(review.id(), &consent, &options)?;
        run.pause()
            .check_may_lift(&options.by)
            .map_err(ReviewRefusal::from)?;
        let Taken {
            run,
            head,
            tenure,
            original,
        } = self.take_over((run, head), review).await?;
        let first = First::resuming(&options.by);
        let journal = self.continue_journal(&run, head, &tenure);
        Ok(self.execute(run, journal, tenure, options, first, original))
    }

    /// Goes on with a run for the principal who ordered it, if it can go on without a person. A
    /// pause is never lifted here.
    pub(crate) async fn resume_unattended(&self, id: &RunId) -> Result<Continued, StartRunError> {
        let info = self
            .context
            .ports
            .store
            .info(&StreamName::Run(id.clone()))
            .await
            .map_err(LoadError::from)?;
        let Some(info) = info else {
            return Err(LoadError::NoSuchRun(id.clone()).into());
        };
        match info.status.status.run_status() {
            Some(RunStatus::Executing) => {}
            Some(RunStatus::Waiting) if self.waits_for_moving_children(id).await? => {}
            Some(RunStatus::Adjusted) => return self.resume_adjusted(id).await,
            _ => return Ok(Continued::Nothing),
        }
        // Asked before the whole run is read: a run that another process executes is asked about
        // again and again.
        let lease = self.context.ports.store.lease(id).await;
        if let Some(lease) = lease.map_err(LoadError::from)? {
            return Err(AcquireError::Held {
                run: lease.run,
                owner: lease.owner,
                expires_at: lease.expires_at,
            }
            .into());
        }
        let executing = self.resume_stopped(id, First::Nothing).await?;
        Ok(executing.map_or(Continued::Nothing, Continued::Executing))
    }

    /// Gives a decision to a run that waits for it and goes on with the run: what was decided and
    /// what follows from it are one commit. `None` if the run does not go on by itself; then
    /// nothing was done.
    pub(crate) async fn resume_with_decision(
        &self,
        id: &RunId,
        decision: Command,
    ) -> Result<Option<(RunHandle, oneshot::Receiver<Verdict>)>, StartRunError> {
        let (reply, verdict) = oneshot::channel();
        let handle = self
            .resume_stopped(id, First::Decide(Box::new(Request::here(decision, reply))))
            .await?;
        Ok(handle.map(|handle| (handle, verdict)))
    }

    /// Executes a run that no process executes, unless only a person can say that it goes on.
    async fn resume_stopped(
        &self,
        id: &RunId,
        first: First,
    ) -> Result<Option<RunHandle>, StartRunError> {
        let (review, run, head) = self.load_run_with_review(id).await?;
        // Without the lease first: taking it is a write and a new epoch, which a run that only a person
        // can continue is spared.
        if !can_resume_unattended(&run) {
            return Ok(None);
        }
        let options = RunOptions::new(run.start().by.clone());
        let Taken {
            run,
            head,
            tenure,
            original,
        } = self.take_over((run, head), &review).await?;
        // A person may have paused or ended it just now.
        if !can_resume_unattended(&run) {
            self.context
                .ports
                .store
                .release(tenure.lease())
                .await
                .map_err(LoadError::from)?;
            return Ok(None);
        }
        let journal = self.continue_journal(&run, head, &tenure);
        Ok(Some(
            self.execute(run, journal, tenure, options, first, original),
        ))
    }

    /// Goes on with the work of an adjusted run, if the change is agreed to, or policy may agree to
    /// it.
    async fn resume_adjusted(&self, id: &RunId) -> Result<Continued, StartRunError> {
        let Some(continuation) = self.continuation(id).await? else {
            return Ok(Continued::Nothing);
        };
        let digest = continuation.candidate.digest;
        let now = self.context.ports.clock.now();
        let agreed = continuation.review.usable_approvals(&digest, now).is_some();
        if !agreed && !continuation.by_policy {
            return Ok(Continued::Nothing);
        }
        let (run, _) = load_any_run(&self.context, id).await?;
        let options = RunOptions::new(run.start().by.clone());
        Ok(Continued::Executing(
            self.continue_adjusted(id, options).await?,
        ))
    }

    /// Returns whether a child that a parked run waits for has ended or can go on.
    async fn waits_for_moving_children(&self, id: &RunId) -> Result<bool, StartRunError> {
        let (run, _) = load_any_run(&self.context, id).await?;
        for ix in run.schedule().waiting() {
            let StepState::AwaitingPlan { run: child, .. } = run.step(ix) else {
                continue;
            };
            let child = self
                .context
                .ports
                .store
                .info(&StreamName::Run(child.clone()))
                .await
                .map_err(LoadError::from)?;
            let stands = child
                .and_then(|info| info.status.status.run_status())
                .is_some_and(|status| matches!(status, RunStatus::Waiting | RunStatus::Paused));
            if !stands {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Takes a run over that no process executes, as its journal has it now.
    async fn take_over(
        &self,
        (mut run, head): (Run, Head),
        review: &Review,
    ) -> Result<Taken, StartRunError> {
        let id = run.id().clone();
        if let Some(parent) = &run.start().parent {
            return Err(StartRunError::ChildRun {
                run: id,
                parent: parent.clone(),
            });
        }
        let began = run.start().version;
        let current = review.current().number;
        // An undo does what was derived from a run, regardless of later versions of the plan.
        if began != current && run.start().undoes.is_none() {
            return Err(StartRunError::Edited {
                run: began,
                current,
            });
        }
        if let Some(missing) = self.plans().find_missing_executor_of_rest(&run) {
            return Err(missing.into());
        }
        self.refuse_changed_tools(&mut run).await?;
        let tenure = self.acquire(&id).await?;
        // Only what is read under the lease is current.
        let head = fold_added(&*self.context.ports.store, &mut run, head).await?;
        let original = OriginalJournal::load(&self.context, &run).await?;
        Ok(Taken {
            run,
            head,
            tenure,
            original,
        })
    }

    /// Gives the run its sub-plans, which are those that were approved.
    async fn refuse_changed_tools(&self, run: &mut Run) -> Result<(), StartRunError> {
        run.set_subplans(self.plans().subplans(run.plan().document()).await?);
        let current = run.plan().digest(
            &self.context.catalog(),
            &self.context.settings.policy_version,
        );
        let approved = run.start().digest;
        if current == approved {
            return Ok(());
        }
        let difference = match run.start().consent.as_deref() {
            Some(consent) => self.plans().changed_tools(&consent.pins).await,
            None => String::new(),
        };
        Err(StartRunError::ToolsChanged {
            approved,
            current,
            difference: Difference(difference),
        })
    }
}

/// Returns whether the run was not stopped, and did not stand still for so long that a person has
/// to say.
fn can_resume_unattended(run: &Run) -> bool {
    match run.state() {
        // The process that talks with a person at a terminal goes on with it there.
        // So does the client that makes the calls of a run itself.
        RunState::Running => !is_conversation(run.plan().document()) && !run.start().stepwise,
        RunState::Stopping { .. } | RunState::Cancelling => true,
        RunState::Paused
        | RunState::Stalled { .. }
        | RunState::Completed
        | RunState::Failed { .. }
        | RunState::GivenUp
        | RunState::Adjusted { .. }
        | RunState::Cancelled => false,
    }
}
