//! The document people and models write: its fields, its scope, its inputs, its JSON Schema, and the
//! parts of its context that are stored elsewhere.

mod action;
mod inputs;
mod plan;
mod schema;
mod scope;
mod step;
mod stored_context;

pub use action::{Agent, Input, SubPlan, Think};
pub use plan::{Budget, Context, Document, FromTemplate, Limits, OnFailure};
pub use schema::json_schema;
pub use step::{Action, Retry, Step, Undo};
pub use stored_context::{RestoreContextError, is_stored_part_file, stored_part_file};
