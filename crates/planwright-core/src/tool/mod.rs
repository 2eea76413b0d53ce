//! Tools: their definitions, effect classes and names.

mod catalog;
mod change;
mod definition;

mod lookalike;

pub use catalog::{Catalog, KnownTool, ResolveToolError};
pub use change::describe_change;
pub use definition::{Annotations, EffectClass, ToolDefinition, ToolName};
pub use lookalike::FoldedName;
pub(crate) use lookalike::fold_name;
