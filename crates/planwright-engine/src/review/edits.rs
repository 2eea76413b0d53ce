//! New versions of plans: drafts, edits, restored versions, and what has to be agreed to again.

use crate::port::AppendError;
use crate::review::plans::{Candidate, Plans, ReviewError, StoreOptions};
use planwright_core::id::PlanId;
use planwright_core::journal::Head;
use planwright_core::plan::{Document, Edit, Finding};
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::review::{PlanningRecord, Review, ReviewCommand, Revision};
use std::sync::Arc;

/// How often an edit is tried again because something else was said about the same version
/// meanwhile.
const TRIES: usize = 16;

/// An editor of a plan, the version that they looked at, and their reason.
#[derive(Debug, Clone)]
pub struct Editing {
    /// The version that the author edited; another current one is a conflict.
    pub based_on: u32,
    /// The author of the edit.
    pub by: Principal,
    /// The author's reason, which is stored with the version.
    pub reason: Option<String>,
}

impl Plans {
    /// Stores a document as a draft: a plan that no person is asked about until it is proposed.
    /// Without an id it gets a fresh one, because two drafts may begin with the same words.
    pub async fn draft(
        &self,
        mut document: Document,
        by: &Principal,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        document
            .id
            .get_or_insert_with(|| PlanId::mint(self.context.ports.ids.entropy()));
        self.store_document(document, by, StoreOptions::draft())
            .await
    }

    /// Puts a draft forward as it is.
    pub async fn propose_draft(&self, id: &PlanId, by: &Principal) -> Result<Review, ReviewError> {
        self.permit(by, Permission::Propose)?;
        let (review, head) = self.load_review(id).await?;
        self.write_review(
            review,
            head,
            &ReviewCommand::ProposeDraft { by: by.clone() },
        )
        .await
    }

    /// The current version with these changes made. Nothing is stored.
    pub fn apply_edits(&self, review: &Review, edits: &[Edit]) -> Result<Document, ReviewError> {
        Ok(review
            .current()
            .document
            .with_edits(edits, &self.context.settings.bounds)?)
    }

    /// Makes changes to a plan as it was at the version that was looked at.
    pub async fn edit_by(
        &self,
        id: &PlanId,
        edits: &[Edit],
        editing: &Editing,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        let (review, _) = self.load_review(id).await?;
        let looked_at = self.find_version(&review, editing.based_on).await?;
        let document = looked_at
            .document
            .with_edits(edits, &self.context.settings.bounds)?;
        self.edit(id, document, editing).await
    }

    /// Stores a changed document as the next version, if the plan is still at the version that was
    /// looked at. The same content changes nothing.
    pub async fn edit(
        &self,
        id: &PlanId,
        document: Document,
        editing: &Editing,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        self.revise(id, document, editing, None, None).await
    }

    /// As [`Plans::edit`], with how the document came about.
    pub(crate) async fn edit_planned(
        &self,
        id: &PlanId,
        document: Document,
        editing: &Editing,
        planning: Option<Box<PlanningRecord>>,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        self.revise(id, document, editing, None, planning).await
    }

    /// Stores the content of an earlier version as the next one.
    pub async fn restore(
        &self,
        id: &PlanId,
        version: u32,
        editing: &Editing,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        let (review, _) = self.load_review(id).await?;
        let found = self.find_version(&review, version).await?;
        let document = Document::clone(&found.document);
        self.revise(id, document, editing, Some(version), None)
            .await
    }

    async fn revise(
        &self,
        id: &PlanId,
        mut document: Document,
        editing: &Editing,
        restored_from: Option<u32>,
        planning: Option<Box<PlanningRecord>>,
    ) -> Result<(Review, Vec<Finding>), ReviewError> {
        let Editing {
            based_on,
            by,
            reason,
        } = editing.clone();
        self.permit(&by, Permission::Propose)?;
        if let Some(found) = document.id.replace(id.clone()).filter(|found| found != id) {
            return Err(ReviewError::OtherPlan {
                plan: id.clone(),
                found,
            });
        }
        let parts = self.settle_context(&mut document, &by).await?;
        let Candidate {
            plan,
            digest,
            findings,
        } = self.compile(document).await?;
        let document = Arc::clone(plan.document());
        let revision = Revision {
            based_on,
            document,
            digest,
            by,
            reason,
            restored_from,
            planning,
        };
        let command = ReviewCommand::Edit(Box::new(revision));
        for _ in 1..TRIES {
            let (review, head) = self.load_review(id).await?;
            // A faster author may have said something about the same version, or made the next one:
            // the core tells.
            match self.write_revision(review, head, (&command, &parts)).await {
                Err(ReviewError::Append(
                    AppendError::Conflict { .. } | AppendError::Duplicate { .. },
                )) => {}
                done => return Ok((done?, findings)),
            }
        }
        let (review, head) = self.load_review(id).await?;
        let written = self.write_revision(review, head, (&command, &parts)).await;
        Ok((written?, findings))
    }

    async fn write_revision(
        &self,
        review: Review,
        head: Head,
        (command, parts): (&ReviewCommand, &[Vec<u8>]),
    ) -> Result<Review, ReviewError> {
        let now = self.context.ports.clock.now();
        let events = review.decide(command, now)?;
        self.keep_parts(&events, parts.to_vec()).await?;
        self.append_review(review, head, (now, events)).await
    }
}
