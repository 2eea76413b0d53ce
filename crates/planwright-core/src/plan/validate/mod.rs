//! Everything that is wrong with a plan, at once.
//!
//! Compiling checks the structure, and single fields with `fields.rs`. The rest needs more: the
//! tools that are there, what they take, what the author promised about scope and inputs. One file
//! per concern.

mod arguments;
mod conditions;
mod expressions;
mod fields;
mod inputs;
mod limits;
mod loops;
mod notations;
mod references;
mod subplans;
mod tools;
mod validated;
mod value_shape;

pub(crate) use arguments::describe;
pub(crate) use expressions::is_type_name;
pub(crate) use fields::check_fields;
pub(crate) use inputs::missing as missing_inputs;
pub(crate) use tools::{ToolNames, bare as bare_name};
pub use validated::{ValidationReport, validate, validate_with};
