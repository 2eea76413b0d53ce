//! Sessions: what the client of the gateway calls, one call at a time, as the run of a plan with a
//! single step whose executor is the client.
//!
//! So every call is judged, guarded, journaled and counted like that of any other executor, and a
//! run of its own makes it.

mod document;
mod followed;
mod looking;
mod open_call;
mod recorded;
mod sessions;

pub(crate) use looking::start_looking;

pub use followed::{FollowedRun, StepAnswer};
pub use open_call::{CallEvent, ClientAnswer, OpenCall, WantedByClient};
pub use recorded::ReadSessionError;
pub use sessions::{OpenSessionError, Session, SessionTerms, Sessions};
