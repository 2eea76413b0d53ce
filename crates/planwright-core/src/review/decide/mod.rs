//! What may happen to a plan: one command a file.

mod approve;
mod archive;
mod command;
mod comment;
mod create;
mod delete;
mod draft;
mod edit;
mod expire;
mod expire_approvals;
mod open_run;
mod propose;
mod propose_draft;
mod reject;
mod request_changes;
mod revoke;
mod unarchive;

pub use command::Command;
pub use comment::CommentCommand;
pub use create::Creation;
pub use edit::Revision;

use super::{Refusal, Review, ReviewEvent};
use crate::time::Timestamp;

impl Review {
    /// Says what happens if `command` is given now. An empty list means: nothing, and that is fine.
    pub fn decide(&self, command: &Command, now: Timestamp) -> Result<Vec<ReviewEvent>, Refusal> {
        match command {
            Command::Create(creation) => self.decide_create(creation),
            Command::Propose {
                document,
                digest,
                by,
            } => self.decide_propose(document, *digest, by),
            Command::Draft {
                document,
                digest,
                by,
            } => self.decide_draft(document, *digest, by),
            Command::ProposeDraft { by } => self.decide_propose_draft(by),
            Command::Edit(revision) => self.decide_edit(revision),
            Command::Approve {
                shown,
                digest,
                by,
                assurance,
                offer,
            } => self.decide_approve(*shown, *digest, (by, *assurance), offer, now),
            Command::Reject {
                shown,
                digest,
                by,
                reason,
            } => self.decide_reject(*shown, *digest, by, reason),
            Command::OpenRun { run, digest } => self.decide_open_run(run, *digest, now),
            Command::Delete { by, executing } => self.decide_delete(by, *executing),
            Command::RequestChanges {
                shown,
                digest,
                by,
                reason,
            } => self.decide_request_changes(*shown, *digest, by, reason),
            Command::Expire {
                after_days,
                latest_run,
            } => Ok(self.decide_expire(*after_days, *latest_run, now)),
            Command::ExpireApprovals => Ok(self.decide_expire_approvals(now)),
            Command::RevokeApprovals(revocation) => self.decide_revoke(revocation, now),
            Command::Archive { by, latest_run } => self.decide_archive(by, *latest_run),
            Command::Unarchive { by } => self.decide_unarchive(by),
            Command::Comment(command) => self.decide_comment(command),
        }
    }
}
