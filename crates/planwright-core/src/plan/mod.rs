//! What a plan is: the document people write, and the checked form that can run.
//!
//! A [`Document`] is what was read. [`validate`] reports everything that is wrong with it at once
//! and, if the structure is sound, gives a [`Plan`]: ids fixed, references parsed, edges known.

mod agent_tools;
mod binding;
mod bounds;
mod checked;
mod code;
mod compile;
mod condition;
mod context;
mod diff;
mod digest;
mod document;
mod edit;
mod evaluate;
mod expression;
mod fields;
mod finding;
mod given;
mod graph;
mod import;
mod literal;
mod markdown;
mod names;
mod nearest;
mod predicate;
mod printable;
mod reference;
mod render;
mod schema;
mod secret_names;
mod subplans;
mod template;
mod validate;

pub use bounds::Bounds;
pub use checked::Plan;
pub use code::{Code, error_page};
pub use condition::{ConditionError, Expectation};
pub use context::{RestoreContextError, file_of_stored, is_stored_file};
pub use diff::{ChangeKind, FieldChange, PlanDiff, StepChange};
pub use document::{
    Action, Agent, Budget, Context, Document, FromTemplate, Input, Limits, OnFailure, Retry, Step,
    SubPlan, Think, Undo,
};
pub use edit::{Edit, EditError};
pub use finding::{Finding, Severity};
pub use graph::{Graph, StepIx};
pub use import::{Place, ReadPlanError};
pub(crate) use literal::escape;
pub use literal::literal;
pub use markdown::{
    MarkdownForm, MarkdownMeta, MarkdownRejection, ReadMarkdown, from_markdown, from_markdown_as,
    to_cursor, to_markdown,
};
pub use nearest::nearest;
pub use predicate::{ArgumentUse, Condition};
pub(crate) use printable::is_invisible;
pub use printable::{printable, visible};
pub use reference::{ParseReferenceError, PathSegment, Reference, Root};
pub use render::{Glyph, render};
pub use schema::json_schema;
pub use subplans::{KnownPlan, KnownPlans, Subplan, Subplans};
pub use template::{ResolveError, Segment, Template, Values};
pub use validate::{Validated, validate, validate_with};
pub(crate) use validate::{bare_name, is_type_name};
