//! The JSON documents that other programs rely on: what `--json` prints and what HTTP answers.
//!
//! Adding a field is allowed; changing or removing one is not. Nothing is decided here: each document
//! is a plain record, made from types of the core. What has to be read from a store first is read by
//! the caller.
//!
//! The doc comments of types that derive `ToSchema` are the descriptions in `docs/openapi.json`.

mod answer;
mod comment;
mod created;
mod log;
mod plan;
mod planning;
mod policy;
mod receipt;
mod reflection;
mod run;
mod schema;
mod stats;
mod template;
mod token;
mod undo;
mod validation;
mod version;

pub use answer::{
    LargeBriefing, Page, PlanDecided, RunAccepted, StepDecided, ToolLine, Waiting, WrittenCall,
};
pub use comment::{CommentLine, ThreadLine};
pub use created::{Created, CreatedPlan, StepMetadata};
pub use log::LogLine;
pub use plan::{ApprovalLine, Imported, LeftOut, PlanDetails, PlanLine, RunLine};
pub use planning::{CreateResult, ModelCostLine, PlanningLine, PromptResult};
pub use policy::{NoticedRule, PolicyExplanation, StepVerdict};
pub use receipt::{
    ReceiptApproval, ReceiptCall, ReceiptHead, ReceiptOutcome, ReceiptPlan, ReceiptRun,
    ReceiptStatement,
};
pub use reflection::{CriteriaResult, CriterionWire, ReflectionWire};
pub use run::{
    AskedCallWire, DryRunStep, ErrorWire, ItemResult, LargeValue, RunResult, StepResult,
    dry_run_result,
};
pub use schema::{BriefingShape, FindingShape, PrincipalShape};
pub use stats::{ApprovalStats, Prediction, StatsResult, ToolGap, ToolLatency};
pub use template::{TemplateInput, TemplateLine};
pub use token::{NewTokenWire, TokenLine};
pub use undo::{KeptStep, UndoPreview, UndoStep};
pub use validation::ValidationResult;
pub use version::{ChangesSince, DiffResult, EditedPlan, LostSafeguardsLine, VersionLine};
