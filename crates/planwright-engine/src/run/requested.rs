//! Runs that were requested before the plan was approved: once it is, one process starts them.

use crate::journal::load::load_review;
use crate::port::{AppendError, StoreError, StreamInfo};
use crate::review::inbox::Inbox;
use crate::review::plans::{Plans, ReviewError};
use crate::run::handle::RunHandle;
use crate::run::options::RunOptions;
use crate::run::runs::Runs;
use crate::run::start::StartRunError;
use planwright_core::id::PlanId;
use planwright_core::policy::Permission;
use planwright_core::review::{RequestedRun, Review, ReviewCommand, RunRequest};
use planwright_core::status::CachedStatus;

/// Other writers that are waited for before giving up.
const MAX_TRIES: usize = 10;

/// Where plans stand of which a run may have been requested. One that has run may be wanted again.
const MAY_BE_REQUESTED: [CachedStatus; 4] = [
    CachedStatus::Proposed,
    CachedStatus::NeedsReview,
    CachedStatus::Approved,
    CachedStatus::Opened,
];

/// Plans that are looked at for requests: the ones that changed last.
const MAX_LOOKED_AT: usize = 1000;

impl Plans {
    /// Records that a run of the plan is wanted as soon as it is approved. Any process that serves
    /// the store then starts it, once.
    pub async fn request_run(
        &self,
        plan: &PlanId,
        request: RunRequest,
    ) -> Result<Review, ReviewError> {
        self.permit(&request.by, Permission::Run)?;
        let command = ReviewCommand::RequestRun(Box::new(request));
        let mut left = MAX_TRIES;
        loop {
            let (review, head) = load_review(&*self.context.ports.store, plan).await?;
            left -= 1;
            match self.write_review(review, head, &command).await {
                Err(ReviewError::Append(AppendError::Conflict { .. })) if left > 0 => {}
                done => return done,
            }
        }
    }
}

impl Runs {
    /// Starts the run that was requested of a plan, if exactly that is approved. `None`: nothing is
    /// to start, or not yet. The request ends with the run, in one commit, so that of several
    /// processes one starts it. With `queued`, it is only begun, and waits for one of so many others
    /// to end.
    pub async fn start_requested(
        &self,
        plan: &PlanId,
        queued: Option<u32>,
    ) -> Result<Option<RunHandle>, StartRunError> {
        let mut left = MAX_TRIES;
        loop {
            let (review, head) = load_review(&*self.context.ports.store, plan).await?;
            let now = self.context.ports.clock.now();
            let Some(requested) = review.startable_run(now).cloned() else {
                return Ok(None);
            };
            self.check_startable(&review).await?;
            let candidate = Box::pin(self.check_runnable(&review, &requested.variables)).await?;
            // The approval is for the tools as they were: these are others.
            if candidate.digest != requested.digest {
                return Ok(None);
            }
            left -= 1;
            let options = options_of(requested, queued);
            match Box::pin(self.open(review, head, candidate, options, None)).await {
                // Another process started it, or wrote something else to the plan.
                Err(StartRunError::Append(AppendError::Conflict { .. })) if left > 0 => {}
                started => return started.map(Some),
            }
        }
    }
}

fn options_of(requested: RequestedRun, queued: Option<u32>) -> RunOptions {
    RunOptions {
        variables: requested.variables,
        trace: requested.trace,
        queued,
        ..RunOptions::new(requested.by)
    }
}

impl Inbox {
    /// The plans of which a run is wanted as soon as they are approved, those that changed last
    /// first. Plans that cannot be read are left out.
    pub async fn plans_with_requested_runs(&self) -> Result<Vec<PlanId>, StoreError> {
        let store = &*self.context.ports.store;
        let now = self.context.ports.clock.now();
        let mut found = Vec::new();
        let plans = store.plans_in(&MAY_BE_REQUESTED, None).await?.into_iter();
        // A request is an entry of the plan: where nothing was written lately, none is left.
        let lately = |info: &StreamInfo| now.since(info.updated_at) < RequestedRun::VALID_FOR;
        for info in plans.take_while(lately).take(MAX_LOOKED_AT) {
            let plan = info.status.plan;
            match load_review(store, &plan).await {
                Ok((review, _)) if review.requested_run(now).is_some() => found.push(plan),
                Ok(_) => {}
                // One damaged plan does not hide the others.
                Err(error) => tracing::warn!(%plan, %error, "a plan cannot be looked at"),
            }
        }
        Ok(found)
    }
}
