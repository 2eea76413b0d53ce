//! What is known about tools: their definitions, how dangerous a call is, and which name means
//! which tool.

mod catalog;
mod change;
mod definition;

mod lookalike;

pub use catalog::{Catalog, KnownTool, ResolveToolError};
pub use change::describe_change;
pub use definition::{Annotations, EffectClass, ToolDefinition, ToolName};
pub use lookalike::FoldedName;
pub(crate) use lookalike::fold_name;
