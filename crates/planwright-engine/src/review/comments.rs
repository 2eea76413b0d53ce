//! Comments on plans, requests for changes, and putting plans away.

use crate::journal::load::load_review;
use crate::review::plans::Plans;
use crate::review::plans::ReviewError;
use planwright_core::id::{CommentId, PlanId};
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::review::{CommentCommand, Review, ReviewCommand, ReviewRefusal};
use planwright_core::run::Shown;
use serde_json::Map;

/// A comment that its author wants to make on a plan.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewComment {
    /// The step it is about; the plan as a whole when absent.
    pub on: Option<String>,
    /// The comment it answers.
    pub reply_to: Option<String>,
    /// The text of the comment.
    pub text: String,
}

impl Plans {
    /// Says something about a plan. Returns the comment's id.
    pub async fn comment(
        &self,
        plan: &PlanId,
        new: NewComment,
        by: &Principal,
    ) -> Result<(CommentId, Review), ReviewError> {
        let comment = CommentId::mint(self.context.ports.ids.entropy());
        let NewComment { on, reply_to, text } = new;
        let command = CommentCommand::Add {
            comment: comment.clone(),
            on,
            reply_to,
            by: by.clone(),
            text,
        };
        let review = self.comment_command(plan, command, by).await?;
        Ok((comment, review))
    }

    /// Says that nothing is left to discuss in the thread of this comment.
    pub async fn resolve_comment(
        &self,
        plan: &PlanId,
        comment: &str,
        by: &Principal,
    ) -> Result<Review, ReviewError> {
        let command = CommentCommand::Resolve {
            comment: comment.to_owned(),
            by: by.clone(),
        };
        self.comment_command(plan, command, by).await
    }

    /// Says that something is left to discuss after all.
    pub async fn reopen_comment(
        &self,
        plan: &PlanId,
        comment: &str,
        by: &Principal,
    ) -> Result<Review, ReviewError> {
        let command = CommentCommand::Reopen {
            comment: comment.to_owned(),
            by: by.clone(),
        };
        self.comment_command(plan, command, by).await
    }

    async fn comment_command(
        &self,
        plan: &PlanId,
        command: CommentCommand,
        by: &Principal,
    ) -> Result<Review, ReviewError> {
        self.permit(by, Permission::Comment)?;
        let (review, head) = load_review(&*self.context.ports.store, plan).await?;
        self.write_review(review, head, &ReviewCommand::Comment(command))
            .await
    }

    /// Asks the author to change something. It voids what was approved, and is no rejection: it
    /// counts for no round.
    pub async fn request_changes(
        &self,
        plan: &PlanId,
        shown: Shown,
        by: &Principal,
        reason: &str,
    ) -> Result<Review, ReviewError> {
        if !self
            .context
            .settings
            .policy
            .roles
            .permits(by, Permission::Approve)
        {
            return Err(
                ReviewRefusal::from(planwright_core::run::Refusal::MayNotApprove(by.clone()))
                    .into(),
            );
        }
        let (review, head) = load_review(&*self.context.ports.store, plan).await?;
        let digest = self.candidate(&review, &Map::new()).await?.digest;
        let command = ReviewCommand::RequestChanges {
            shown,
            digest,
            by: by.clone(),
            reason: reason.to_owned(),
        };
        self.write_review(review, head, &command).await
    }

    /// Puts a plan away that is over. It is kept, and left out of lists.
    pub async fn archive(&self, plan: &PlanId, by: &Principal) -> Result<Review, ReviewError> {
        self.permit(by, Permission::Delete)?;
        let (review, head) = load_review(&*self.context.ports.store, plan).await?;
        let latest_run = self.latest_run_status(&review).await?;
        self.write_review(
            review,
            head,
            &ReviewCommand::Archive {
                by: by.clone(),
                latest_run,
            },
        )
        .await
    }

    /// Takes a plan out of the archive.
    pub async fn unarchive(&self, plan: &PlanId, by: &Principal) -> Result<Review, ReviewError> {
        self.permit(by, Permission::Delete)?;
        let (review, head) = load_review(&*self.context.ports.store, plan).await?;
        self.write_review(review, head, &ReviewCommand::Unarchive { by: by.clone() })
            .await
    }
}
