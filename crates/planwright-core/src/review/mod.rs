//! The life of a plan: versions, approvals, rejections, the runs it was opened for.
//!
//! [`Review::decide`] says what may happen and changes nothing; [`Review::apply`] notes what
//! happened and is the only mutation. `state.rs` holds the tables of what may follow what.
//!
//! Consent lives here: a run is opened only against an approval of exactly the digest that is about
//! to run, which is spent in the same entry.

mod apply;
mod approval;
mod brought;
mod comments;
mod decide;
mod event;
mod history;
mod lost_safeguards;
mod outcome;
mod planning_record;
mod reapproval;
mod refusal;
mod refusal_kind;
mod requested;
mod revocation;
mod state;
mod status;
mod terms;
mod version;

pub use approval::Approval;
pub use comments::{Comment, Resolved, Thread};
pub use decide::{CommentCommand, Creation, ReviewCommand, Revision, RunRequest};
pub use event::ReviewEvent;
pub use history::Review;
pub use lost_safeguards::LostSafeguards;
pub use outcome::{OpenedRun, Rejection, WrittenOffRun};
pub use planning_record::PlanningRecord;
pub use reapproval::steps_already_approved;
pub use refusal::{CommentRefusal, ReviewRefusal};
pub use requested::RequestedRun;
pub use revocation::{Access, Revocation, Revoked, access_holds};
pub use state::{ApprovalState, ReviewStage, ReviewState};
pub use terms::{BuildsOn, Offer, Pin, Terms};
pub use version::{Version, VersionSummary};
