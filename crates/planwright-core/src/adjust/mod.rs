//! The results of a reflection: how the work stands, and which changes would put it right.
//!
//! Adjustments are data until a set of them was checked as a whole and applied to a document as a
//! whole. They never carry consent: what they change is a new version of the plan.

mod adjustment;
mod answer;
mod apply;
mod assessment;
mod criteria;
mod data;
mod progress;
mod prompt;
mod schema;

pub use adjustment::Adjustment;
pub use answer::Reflected;
pub use apply::AdjustError;
pub use assessment::{Assessment, UnknownAssessment};
pub use criteria::{criteria_messages, criteria_schema, read_criteria, settled_by_steps};
pub use data::{StepStory, as_data};
pub use progress::{Adjustable, StepProgress};
pub use prompt::{EarlierReflection, ReflectionRequest, reflection_messages};
pub use schema::reflection_schema;
