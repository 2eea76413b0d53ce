//! The shapes other programs rely on. Adding a field is allowed; changing or removing one is not.

mod log;
mod plan;
mod policy;
mod run;
mod template;
mod token;
mod undo;
mod validation;

pub use log::LogLine;
pub use plan::{ApprovalLine, Imported, PlanDetails, PlanLine, RunLine};
pub use policy::{NoticedRule, PolicyExplanation, StepVerdict};
pub use run::{AskedCallWire, DryRunStep, ErrorWire, ItemResult, RunResult, StepResult, dry_run_result};
pub use template::{TemplateInput, TemplateLine};
pub use token::{NewTokenWire, TokenLine};
pub use undo::{KeptStep, UndoPreview, UndoStep};
pub use validation::ValidationResult;
