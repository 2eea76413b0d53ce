//! What is known about tools: their definitions, how dangerous a call is, and which name means
//! which tool.

mod catalog;
mod definition;
mod difference;

pub use catalog::{Catalog, KnownTool, ResolveToolError};
pub use definition::{Annotations, EffectClass, ToolDefinition, ToolName};
pub use difference::difference;
