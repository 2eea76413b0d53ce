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
mod facts;
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
mod words;
mod worker;

pub use answer::{
    DecisionResult, InboxCount, LargeBriefing, Page, PlanDecided, RunAccepted, StepDecided,
    ToolLine, Waiting, WrittenCall,
};
pub use comment::{CommentLine, ThreadLine, ThreadWord};
pub use created::{Created, CreatedPlan, StepMetadata};
pub use facts::{ApprovalRefusal, ApprovalStanding, EdgeLine, PlanGraph, StepFacts};
pub use log::LogLine;
pub use plan::{
    ApprovalLine, ApprovalWord, Imported, LeftOut, PlanDetails, PlanLine, RequestedRunLine,
    RunLine, RunProgress,
};
pub use planning::{
    CreateResult, ModelCostLine, PlanningJob, PlanningLine, PlanningStep, PromptResult, dollars,
};
pub use policy::{NoticedRule, PolicyExplanation, StepVerdict};
pub use receipt::{
    ReceiptApproval, ReceiptCall, ReceiptHead, ReceiptOutcome, ReceiptPlan, ReceiptRun,
    ReceiptStatement,
};
pub use reflection::{CriteriaResult, CriterionWire, ReflectionWire};
pub use run::{
    AskedCallWire, AttemptLine, DryRunStep, ErrorWire, ItemResult, LargeValue, RunResult,
    StepLogLine, StepResult, StepTrail, dry_run_result,
};
pub use schema::{
    BriefingShape, DiffShape, EffectShape, FindingShape, PrincipalShape, QuestionShape,
};
pub use stats::{ApprovalStats, DayLine, Prediction, StatsResult, ToolGap, ToolLatency};
pub use template::{TemplateInput, TemplateLine};
pub use token::{NewTokenWire, TokenLine};
pub use undo::{KeptStep, UndoPreview, UndoStep};
pub use validation::{ExpressionResult, ValidationResult};
pub use version::{
    ChangesSince, DiffResult, EditPreviewResult, EditedPlan, LostSafeguardsLine, VersionDocument,
    VersionLine,
};
pub use words::{
    AssessmentShape, EffectClassShape, FindingCodeShape, ListedStatusShape, LogLevelShape,
    PlanStatusShape, PrincipalKindShape, RiskShape, RoleShape, RuleModeShape, RunResultStatusShape,
    RunStatusShape, SeverityShape, StepResultStatusShape, StepStatusShape, VerdictShape,
    WaitingForShape, one_of_words,
};
pub use worker::{
    DeadNoticeLine, DeadNoticeList, DispatchStats, PurgedNotices, QueueLine, QueueList,
    RequeuedNotices, WaitingStepsLine, WorkerCounts, WorkerLine, WorkerList, WorkerStepLine,
};
