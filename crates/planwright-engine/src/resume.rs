//! Going on with runs that have not ended.

use crate::engine::Engine;
use crate::journal::{load_review, load_run};
use crate::run_handle::RunHandle;
use crate::run_options::RunOptions;
use crate::start::{Difference, StartRunError};
use crate::undo::Mirror;
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::Subplans;
use planwright_core::policy::Action;
use planwright_core::review::Review;
use planwright_core::run::{Command, Run, RunState};

impl Engine {
    /// Goes on with the latest run of a plan that has not ended.
    pub async fn resume(&self, id: &PlanId, options: RunOptions) -> Result<RunHandle, StartRunError> {
        let (review, _) = load_review(&*self.env.store, id).await?;
        let opened = review.runs().last().ok_or_else(|| StartRunError::NothingToResume(id.clone()))?;
        self.resume_of(&opened.run, &review, options).await
    }

    /// Goes on with a run that has not ended.
    pub async fn resume_run(&self, id: &RunId, options: RunOptions) -> Result<RunHandle, StartRunError> {
        let plan = crate::journal::plan_of_run(&*self.env.store, id).await?;
        let (review, _) = load_review(&*self.env.store, &plan).await?;
        self.resume_of(id, &review, options).await
    }

    async fn resume_of(
        &self,
        id: &RunId,
        review: &Review,
        options: RunOptions,
    ) -> Result<RunHandle, StartRunError> {
        let (run, _) = load_run(&*self.env.store, id, review, &self.env.bounds).await?;
        if run.state().is_terminal() {
            return Err(StartRunError::Ended { run: id.clone(), status: run.status() });
        }
        if let Some(parent) = &run.start().parent {
            return Err(StartRunError::ChildRun { run: id.clone(), parent: parent.clone() });
        }
        let (began, current) = (run.start().version, review.current().number);
        // An undo does what was derived from a run, whatever became of the plan.
        if began != current && run.start().undoes.is_none() {
            return Err(StartRunError::Edited { run: began, current });
        }
        self.permit(&options.by, Action::Run)?;
        let subplans = self.refuse_changed_tools(run).await?;
        let lease = self.env.store.acquire(id, &self.env.owner, self.env.lease_ttl).await?;
        // Only what is read under the lease is current.
        let (mut run, head) = load_run(&*self.env.store, id, review, &self.env.bounds).await?;
        run.know_subplans(subplans);
        let mirror = Mirror::of(&self.env, &run).await?;
        let paused = *run.state() == RunState::Paused;
        let first = if paused { vec![Command::Resume { by: options.by.clone() }] } else { Vec::new() };
        Ok(self.execute(run, head, lease, options, first, mirror))
    }

    /// Returns the sub-plans of the run, which are those that were approved.
    async fn refuse_changed_tools(&self, mut run: Run) -> Result<Subplans, StartRunError> {
        let subplans = self.subplans(run.plan().document()).await?;
        run.know_subplans(subplans.clone());
        let current = run.plan().digest(&self.catalog(), &self.env.policy_version);
        let approved = run.start().digest;
        if current == approved {
            return Ok(subplans);
        }
        let difference = match run.start().consent.as_deref() {
            Some(consent) => self.changed_tools(&consent.pins).await,
            None => String::new(),
        };
        Err(StartRunError::ToolsChanged { approved, current, difference: Difference(difference) })
    }
}
