//! The commands of a plan's life, one a file.

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
mod request_run;
mod revoke;
mod unarchive;
mod write_off;

pub use command::ReviewCommand;
pub use comment::CommentCommand;
pub use create::Creation;
pub use edit::Revision;
pub use request_run::RunRequest;

use super::{Review, ReviewEvent, ReviewRefusal};
use crate::time::Timestamp;

impl Review {
    /// Says what happens if `command` is given now. An empty list means: nothing, and that is fine.
    pub fn decide(
        &self,
        command: &ReviewCommand,
        now: Timestamp,
    ) -> Result<Vec<ReviewEvent>, ReviewRefusal> {
        match command {
            ReviewCommand::Create(creation) => self.decide_create(creation),
            ReviewCommand::Propose {
                document,
                digest,
                by,
            } => self.decide_propose(document, *digest, by),
            ReviewCommand::Draft {
                document,
                digest,
                by,
            } => self.decide_draft(document, *digest, by),
            ReviewCommand::ProposeDraft { by } => self.decide_propose_draft(by),
            ReviewCommand::Edit(revision) => self.decide_edit(revision),
            ReviewCommand::Approve {
                shown,
                digest,
                by,
                assurance,
                offer,
            } => self.decide_approve(*shown, *digest, (by, *assurance), offer, now),
            ReviewCommand::Reject {
                shown,
                digest,
                by,
                reason,
            } => self.decide_reject(*shown, *digest, by, reason),
            ReviewCommand::OpenRun { run, digest } => self.decide_open_run(run, *digest, now),
            ReviewCommand::RequestRun(request) => self.decide_request_run(request, now),
            ReviewCommand::WriteOffRun { run, by, loss } => self.decide_write_off(run, by, loss),
            ReviewCommand::Delete { by, executing } => self.decide_delete(by, *executing),
            ReviewCommand::RequestChanges {
                shown,
                digest,
                by,
                reason,
            } => self.decide_request_changes(*shown, *digest, by, reason),
            ReviewCommand::Expire {
                after_days,
                latest_run,
            } => Ok(self.decide_expire(*after_days, *latest_run, now)),
            ReviewCommand::ExpireApprovals => Ok(self.decide_expire_approvals(now)),
            ReviewCommand::RevokeApprovals(revocation) => self.decide_revoke(revocation, now),
            ReviewCommand::Archive { by, latest_run } => self.decide_archive(by, *latest_run),
            ReviewCommand::Unarchive { by } => self.decide_unarchive(by),
            ReviewCommand::Comment(command) => self.decide_comment(command),
        }
    }
}
