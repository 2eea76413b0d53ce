//! Reading plans in every spelling people and models write them.
//!
//! The dialects are brought into the canonical form on the JSON value, before serde sees it: the
//! model itself then knows one spelling and refuses every key it does not know. Nothing is guessed
//! beyond what is written down in [`dialect`].

mod dialect;
mod error;
mod normalise;
mod read;
mod yaml;

pub use error::{ReadPlanError, SourceLocation};
pub(super) use read::explain;
pub(super) use yaml::parse_yaml;
pub use yaml::read_yaml_value;
