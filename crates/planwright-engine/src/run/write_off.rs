//! Ending a run whose journal is damaged. Nothing of the journal is changed: the plan's own journal
//! says that the run is over, and who accepted that what it did is not known.

use crate::journal::load::{LoadError, load_review};
use crate::port::{StoreError, StreamInfo, StreamStatus};
use crate::review::plans::ReviewError;
use crate::run::runs::Runs;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::review::ReviewCommand;
use planwright_core::status::{CachedStatus, RunStatus};

/// A run whose journal cannot be read.
#[derive(Debug, Clone)]
pub struct DamagedRun {
    /// The run.
    pub run: RunId,
    /// The plan it belongs to.
    pub plan: PlanId,
    /// The damage, in words.
    pub loss: String,
    status: StreamStatus,
}

/// The reason a run was not written off. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum WriteOffError {
    /// The journal of the run is whole.
    #[error("the journal of {0} is not damaged")]
    NotDamaged(RunId),
    /// The store has never known the run.
    #[error("there is no run {0}")]
    NoSuchRun(RunId),
    /// A live process executes the run.
    #[error("a process executes {0}; it stops as soon as it notices the damage")]
    Executed(RunId),
    /// The plan does not allow it.
    #[error(transparent)]
    Review(#[from] ReviewError),
}

impl From<StoreError> for WriteOffError {
    fn from(error: StoreError) -> Self {
        Self::Review(LoadError::from(error).into())
    }
}

impl Runs {
    /// Looks for the damage of a run.
    pub async fn find_damage(&self, run: &RunId) -> Result<DamagedRun, WriteOffError> {
        let store = &*self.context.ports.store;
        let stream = StreamName::Run(run.clone());
        let info = store.info(&stream).await?;
        // Of a run that lost all of its entries only its plan may know.
        let StreamInfo { status, .. } =
            info.ok_or_else(|| WriteOffError::NoSuchRun(run.clone()))?;
        let (review, _) = load_review(store, &status.plan)
            .await
            .map_err(ReviewError::from)?;
        let loss = match self.load_run(run, &review).await {
            Ok(_) => return Err(WriteOffError::NotDamaged(run.clone())),
            Err(
                error @ (LoadError::Damaged { .. }
                | LoadError::Plan(_)
                | LoadError::Store(StoreError::Damaged { .. })),
            ) => crate::port::with_causes(&error),
            Err(error) => return Err(ReviewError::from(error).into()),
        };
        Ok(DamagedRun {
            run: run.clone(),
            plan: status.plan.clone(),
            loss,
            status,
        })
    }

    /// Ends a damaged run: the plan can be executed, archived or deleted again. Repeated, it
    /// finishes what was broken off.
    pub async fn write_off(
        &self,
        damaged: &DamagedRun,
        by: &Principal,
    ) -> Result<(), WriteOffError> {
        let DamagedRun {
            run,
            plan,
            loss,
            status,
        } = damaged;
        let store = &*self.context.ports.store;
        // No process can take it over meanwhile: the store gives no lease on a damaged journal.
        if self.is_executed(run).await? {
            return Err(WriteOffError::Executed(run.clone()));
        }
        let plans = self.plans();
        plans
            .permit(by, Permission::Resolve)
            .map_err(ReviewError::from)?;
        let (review, head) = load_review(store, plan).await.map_err(ReviewError::from)?;
        let command = ReviewCommand::WriteOffRun {
            run: run.clone(),
            by: by.clone(),
            loss: loss.clone(),
        };
        // The plan first, which decides: if the process dies before the status is corrected, repeating
        // this corrects it.
        plans.write_review(review, head, &command).await?;
        let ended = StreamStatus {
            status: CachedStatus::Run(RunStatus::Failed),
            ..status.clone()
        };
        let stream = StreamName::Run(run.clone());
        store.correct_status(&stream, ended).await?;
        Ok(())
    }
}
