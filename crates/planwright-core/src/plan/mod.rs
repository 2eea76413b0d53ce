//! Plans: the document people write, and the checked form that can run.
//!
//! A [`Document`] is what was read. [`validate`] reports everything that is wrong with it at once
//! and, if the structure is sound, gives a [`Plan`]: ids fixed, references parsed, edges known.

mod bounds;
mod checked;
mod code;
mod compile;
mod diff;
mod digest;
mod document;
mod edges;
mod edit;
mod expression;
mod finding;
mod graph;
mod import;
mod known_values;
mod markdown;
mod outputs;
mod recorded;
mod reference;
mod render;
mod safeguard;
mod subplans;
mod validate;

pub use bounds::Bounds;
pub use checked::Plan;
pub use code::{Code, error_page};
pub use diff::{ChangeKind, FieldChange, PlanDiff, StepChange};
pub use digest::DigestFrame;
pub(crate) use digest::executable_step;
pub use document::{
    Action, Agent, Budget, Context, Document, FromTemplate, Input, Limits, OnFailure,
    RestoreContextError, Retry, Step, SubPlan, Think, Undo, is_stored_part_file, json_schema,
    stored_part_file,
};
pub use edges::{Edge, EdgeReason};
pub use edit::{Edit, EditError};
pub(crate) use expression::without_detours;
pub use expression::{ArgumentUse, Condition, ConditionError, Expectation};
pub use finding::{Finding, Severity};
pub use graph::{Graph, StepIx};
pub use import::{ReadPlanError, SourceLocation, read_yaml_value};
pub use known_values::{KnownValues, LatePart, known_args};
pub use markdown::{
    MarkdownForm, MarkdownMeta, MarkdownRejection, ReadMarkdown, from_markdown, from_markdown_as,
    plan_of_prose, steps_of_markdown, to_cursor, to_markdown,
};
pub use outputs::{OutputProblem, Outputs};
pub use recorded::{RecordedCall, document_of_calls};
pub use reference::{
    ParseReferenceError, PathSegment, Reference, ResolveError, Root, Segment, Template, Values,
    literal,
};
pub(crate) use reference::{escape, read_json_text};
pub use render::{Glyph, render};
pub(crate) use safeguard::names_safeguards;
pub use safeguard::{LossKind, SafeguardLoss};
pub use subplans::{KnownPlan, KnownPlans, Subplan, Subplans};
pub use validate::{ValidationReport, validate, validate_with};
pub(crate) use validate::{bare_name, is_type_name};
