//! Creating plans.

use crate::journal::load::{LoadError, load_review};
use crate::port::AppendError;
use crate::review::plans::Plans;
use crate::review::plans::{Candidate, ReviewError};
use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::plan::{Document, Finding};
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::review::{Creation, Review, ReviewCommand, ReviewEvent};
use planwright_core::trace::TraceId;
use std::sync::Arc;

/// How often a creation is decided again because the journal of a deleted plan has grown meanwhile.
const MAX_TRIES: usize = 16;

impl Plans {
    /// Creates a plan, as a proposal or as a draft. Refused when there is a plan with its id: of
    /// several callers who create it at once, one succeeds. A document without an id gets a fresh
    /// one.
    pub async fn create_plan(
        &self,
        mut document: Document,
        by: &Principal,
        draft: bool,
        trace: Option<TraceId>,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        self.permit(by, Permission::Propose)?;
        let id = document
            .id
            .get_or_insert_with(|| PlanId::mint(self.context.ports.ids.entropy()))
            .clone();
        let mut existing = self.find_review(&id).await?;
        // Said before the document is looked at: an id that is taken makes the rest of it moot.
        if let Some((review, _)) = &existing {
            review.check_creatable()?;
        }
        let parts = self.settle_context(&mut document, by).await?;
        let Candidate {
            plan,
            digest,
            findings,
        } = self.compile(document).await?;
        let creation = Creation {
            document: Arc::clone(plan.document()),
            digest,
            by: by.clone(),
            draft,
        };
        let mut tries_left = MAX_TRIES;
        loop {
            match self
                .write_creation(&id, existing, (&creation, &parts), trace)
                .await
            {
                // Another caller was faster: what they wrote decides.
                Err(ReviewError::Append(
                    AppendError::Conflict { .. } | AppendError::Duplicate { .. },
                )) if tries_left > 0 => {
                    tries_left -= 1;
                    existing = self.find_review(&id).await?;
                }
                done => return Ok((done?, findings)),
            }
        }
    }

    async fn write_creation(
        &self,
        id: &PlanId,
        existing: Option<(Review, Head)>,
        (creation, parts): (&Creation, &[Vec<u8>]),
        trace: Option<TraceId>,
    ) -> Result<Review, ReviewError> {
        let now = self.context.ports.clock.now();
        let traced = |event: ReviewEvent| event.traced(trace);
        let Some((review, head)) = existing else {
            let first = traced(creation.first_event());
            let events = std::slice::from_ref(&first);
            self.keep_parts(events, parts.to_vec()).await?;
            return self.open_review(id, now, first).await;
        };
        let events = review.decide(&ReviewCommand::Create(creation.clone()), now)?;
        let events: Vec<_> = events.into_iter().map(traced).collect();
        self.keep_parts(&events, parts.to_vec()).await?;
        self.append_review(review, head, (now, events)).await
    }

    async fn find_review(&self, id: &PlanId) -> Result<Option<(Review, Head)>, LoadError> {
        match load_review(&*self.context.ports.store, id).await {
            Ok(found) => Ok(Some(found)),
            Err(LoadError::NoSuchPlan(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
