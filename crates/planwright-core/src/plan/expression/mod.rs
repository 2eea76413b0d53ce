//! CEL: expressions parsed, evaluated within limits, and bound to what `when`, `expect` and
//! `constraints` mean for a step.

mod condition;
mod evaluate;
mod growth;
mod hosts;
mod parse;
mod paths;
mod plain_paths;
mod predicate;

pub use condition::{ConditionError, Expectation};
pub(super) use parse::Expression;
pub(super) use paths::NamedPath;
pub(crate) use plain_paths::without_detours;
pub use predicate::{ArgumentUse, Condition};
