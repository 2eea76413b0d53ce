//! What is known about tools: their definitions, how dangerous a call is, and which name means
//! which tool.

mod catalog;
mod definition;
mod difference;
mod lookalike;

pub use catalog::{Catalog, KnownTool, ResolveToolError};
pub use definition::{Annotations, EffectClass, ToolDefinition, ToolName};
pub use difference::difference;
pub use lookalike::FoldedName;
pub(crate) use lookalike::fold_name;
