//! What a reflection comes to: how the work stands, and which changes would put it right.
//!
//! Adjustments are data until a set of them was checked as a whole and applied to a document as a whole. They never carry
//! consent: what they change is a new version of the plan.

mod adjustment;
mod assessment;

pub use adjustment::Adjustment;
pub use assessment::{Assessment, UnknownAssessment};
