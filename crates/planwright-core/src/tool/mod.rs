//! Tools: their definitions, effect classes and names.

mod artifact_form;
mod catalog;
mod change;
mod definition;
mod lookalike;
mod relevance;
mod scope;
mod seen_shape;

pub use artifact_form::{ArtifactForm, is_artifact_reference};
pub use catalog::{Catalog, KnownTool, ResolveToolError};
pub use change::describe_change;
pub use definition::{Annotations, EffectClass, ToolDefinition, ToolName};
pub use lookalike::FoldedName;
pub(crate) use lookalike::fold_name;
pub use relevance::{Keywords, score_relevance};
pub(crate) use scope::{RUNS_ANYTHING, ToolScope, is_pattern};
pub use seen_shape::{SeenField, SeenShape};
