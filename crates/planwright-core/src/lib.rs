//! The rules of plans, reviews and runs.
//!
//! This crate is pure: no clock, randomness, environment, files or sockets. The time and fresh ids
//! are handed in, so that the same journal always folds to the same state, live, after a crash and
//! in a test.
//!
//! * [`plan`]: the document, its references, validation, digest and graph.
//! * [`planning`]: what models that write plans are told, and how their answers are read.
//! * [`policy`]: what the operator decided about calls and people.
//! * [`briefing`]: what an approver is shown.
//! * [`review`]: the life of a plan: versions, approvals, rejections.
//! * [`run`]: the life of a run: `decide` says what may happen, `apply` notes what happened.
//! * [`journal`]: how both are written down.
//! * [`status`]: the words in which plans, runs and steps are reported.
//! * [`stats`]: figures over all of it.
//! * [`error`]: kinds, codes and next steps of everything that is refused.
//! * [`event`]: what the rest of the world is told about both.
//! * [`tool`]: what is known about tools, and names that look alike.
//! * [`artifact`]: references to values that are stored outside a journal.
//! * [`text`]: text from others made safe to show, and suggestions for mistyped names.
//! * [`secret`]: texts that are sent but never written down, and how they are found again in what
//!   comes back.
#![warn(clippy::wildcard_enum_match_arm)]
#![warn(missing_docs)]

pub mod adjust;
pub mod artifact;
pub mod briefing;
pub mod digest;
pub mod error;
pub mod event;
pub mod id;
pub mod journal;
pub mod json;
pub mod model;
pub mod plan;
pub mod planning;
pub mod policy;
pub mod principal;
pub mod review;
pub mod run;
pub mod secret;
pub mod stats;
pub mod status;
pub mod text;
pub mod time;
pub mod tool;
pub mod trace;
