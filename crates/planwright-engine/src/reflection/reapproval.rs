//! The change that has to be agreed to after an approved plan was edited or adjusted.

use super::Continuation;
use crate::review::plans::{Candidate, ReviewError};
use crate::run::runs::Runs;
use planwright_core::id::StepId;
use planwright_core::plan::{Document, PlanDiff};
use planwright_core::review::{BuildsOn, Review, steps_already_approved};

/// The question about an edit of an approved plan: the change, and not everything again.
#[derive(Debug, Clone)]
pub struct Reapproval {
    /// The version that was agreed to before.
    pub since: BuildsOn,
    /// The changes since then.
    pub diff: PlanDiff,
    /// The steps that are just as they were agreed to. None if a tool or the policy changed since.
    pub agreed: Vec<StepId>,
    /// The steps that a run tried before without success, and that run again as they are.
    pub again: Vec<StepId>,
}

impl Runs {
    /// Compares an adjustment with the run that it grew out of, as that was agreed to.
    async fn reapproval_of_adjustment(
        &self,
        review: &Review,
    ) -> Result<Option<Reapproval>, ReviewError> {
        let Some(run) = self.adjusted_run(review).await? else {
            return Ok(None);
        };
        // Why it cannot run is said where it is to run.
        let continuation = self.continuation(&run).await.unwrap_or_default();
        Ok(continuation.map(
            |Continuation {
                 since,
                 diff,
                 agreed,
                 again,
                 ..
             }| Reapproval {
                since,
                diff,
                agreed,
                again,
            },
        ))
    }

    /// Returns what changed since the plan was last agreed to, if an edit voided an approval that
    /// no run had used.
    pub async fn reapproval(
        &self,
        review: &Review,
        candidate: &Candidate,
    ) -> Result<Option<Reapproval>, ReviewError> {
        let Some(since) = review.approval_before_edit(self.context.ports.clock.now()) else {
            return self.reapproval_of_adjustment(review).await;
        };
        let plans = self.plans();
        let Some(before) = plans.load_version(review, since.version).await? else {
            return Ok(None);
        };
        let diff = PlanDiff::between(&before.document, &review.current().document);
        let agreed = match self
            .plans()
            .compile(Document::clone(&before.document))
            .await
        {
            // With the same digest, every tool and the policy are what they were.
            Ok(earlier) if earlier.digest == since.digest => steps_already_approved(
                (&earlier.plan, &plans.judge(&earlier.plan)),
                (&candidate.plan, &plans.judge(&candidate.plan)),
            ),
            Ok(_) | Err(ReviewError::Invalid(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Some(Reapproval {
            since,
            diff,
            agreed,
            again: Vec::new(),
        }))
    }
}
