//! Plans that models write: what a planner is told, what it must answer, and how its answer is
//! read.
//!
//! Everything here is pure: the same goal, tools and texts make the same prompt. Nothing asks a
//! model, and nothing a model says is taken for more than a proposal: an answer becomes a
//! [`Document`](crate::plan::Document) that is validated like any other, and that people or policy
//! agree to by its digest.

mod answer;
mod budget;
mod catalog;
mod exploration;
mod facts;
mod fallback;
mod merge;
mod prompt;
mod prompts;
mod quote;
mod remarks;
mod repair;
mod schema;
mod signature;
mod snapshot;
mod tool_schema;

pub use answer::{PlanOrigin, ReadAnswerError, read_answer};
pub use budget::{PromptBudget, estimate_tokens};
pub use catalog::describe_failed_tools;
pub use exploration::{
    Explored, MAX_LOOKS, PlanningLook, bound_result, choose_for_looking, invite_to_look,
    is_for_looking, write_seen,
};
pub use facts::PlannerFacts;
pub use fallback::{SavedTemplate, fallback_draft, rank_templates};
pub use merge::{StepFate, StepOutcome, merge_remaining, merge_steps, merge_whole};
pub use prompt::{ContextText, PlannerTask, Prompt, PromptRequest, build_prompt, kept_steps};
pub use prompts::{
    CHAT, CHECK, EXECUTOR, FillPromptError, PROMPTS, PromptTemplate, Prompts, REFLECT,
};
pub use quote::{fence_text, quote_text};
pub use repair::{AnswerFault, repair_messages};
pub use schema::{SchemaDetail, StepSlot, StepsSchemaRequest, steps_schema};
pub use snapshot::{SnapshotFile, WorkspaceSnapshot};
pub use tool_schema::simplify_schema;
