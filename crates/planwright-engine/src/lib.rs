//! Runs plans: command → decide → append → effects. Async, but knows no vendor.
//!
//! Used as a library, it needs tools and nothing else. Without a store the journal lives in memory
//! (no checkpoints); with one, the same calls survive a crash.
//!
//! ```
//! use planwright_core::plan::{Bounds, Document};
//! use planwright_core::principal::Principal;
//! use planwright_core::run::preview;
//! use planwright_core::tool::{Annotations, ToolDefinition};
//! use planwright_engine::{Engine, FunctionTools, RunOptions, on_step_complete, on_step_start};
//! use serde_json::{Map, json};
//! use std::sync::Arc;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let greet = ToolDefinition::new("text", "greet", "Greets somebody.", json!({
//!     "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
//! }))
//! .with_annotations(Annotations::read_only());
//! let tools = FunctionTools::new()
//!     .with(greet, |call| async move { Ok(json!(format!("Hello {}", call.args["name"].as_str().unwrap_or("?")))) });
//! let engine = Engine::builder(Arc::new(tools)).build();
//!
//! let document = Document::read(br#"{
//!     "title": "Two greetings",
//!     "variables": { "who": "nobody" },
//!     "steps": [
//!         { "id": "first", "tool": "greet", "args": { "name": "${who}" }, "result": "greeting" },
//!         { "id": "second", "tool": "greet", "args": { "name": "whoever heard: ${greeting}" } }
//!     ]
//! }"#, &Bounds::default())?;
//!
//! // A dry run: every call as it would be made, and none made.
//! let candidate = engine.tolerant_candidate(document.clone()).await?;
//! let paper = preview(&candidate.plan, &engine.catalog(), engine.policy(), Engine::DEFAULT_POLICY);
//! assert_eq!(paper.steps[1].args["name"], "whoever heard: <tool result>");
//!
//! // A real one, with variables given at run time, a limit, guards, and callbacks.
//! let mut options = RunOptions::new(Principal::person("ada"));
//! options.variables = Map::from_iter([("who".to_owned(), json!("world"))]);
//! options.max_concurrency = Some(2);
//! options.guards = true;
//! options.observers = vec![
//!     on_step_start(|step| println!("  [{}] {}", step.id, step.tool)),
//!     on_step_complete(|step| println!("    -> {}", step.status)),
//! ];
//! let run = engine.run_document(document, options).await?.wait().await?;
//! assert_eq!(run.status(), "completed");
//! # Ok(())
//! # }
//! ```
//!
//! With `planwright-adapters`, `.store(Arc::new(SqliteStore::open(path)?),
//! Arc::new(FileArtifacts::new(dir)))` on the builder turns checkpoints on; [`Engine::resume`] then
//! goes on where a crash left off.

pub mod access;
mod agent;
mod causes;
pub mod chat;
mod child;
mod command;
mod comments;
#[cfg(feature = "conformance")]
pub mod conformance;
mod consent;
mod context;
mod costs;
pub mod crash;
mod dispatch;
mod edits;
mod engine;
mod functions;
mod history;
mod journal;
mod keeper;
mod looks;
mod masked_text;
pub mod memory;
pub mod notices;
mod observer;
mod orchestrate;
mod pins;
mod plan_tools;
mod planner;
mod plans;
pub mod port;
mod redaction;
mod remote;
mod resume;
mod revocation;
mod run_handle;
mod run_options;
mod start;
mod stats;
mod supervision;
pub mod telemetry;
mod undo;

pub use agent::{AgentSettings, Unmanned};
pub use causes::with_causes;
pub use command::CommandError;
pub use comments::NewComment;
pub use dispatch::{Limits, RunError, read_value, store_value};
pub use edits::{Editing, Reapproval};
pub use engine::{Engine, EngineBuilder, Environment};
pub use functions::FunctionTools;
pub use journal::{LoadError, load_review, load_run, plan_of_run, read_entries};
pub use keeper::{Keeping, Notice, Tended};
pub use looks::MayWait;
pub use masked_text::MaskedText;
pub use observer::{Observer, on_step_complete, on_step_start};
pub use orchestrate::{CheckCriteriaError, Continuation};
pub use plan_tools::{
    Consented, Consenter, NobodyToAsk, PLAN_TOOLS_SERVER, PlanMaker, PlanTool, PlanToolCall,
    PlanTools,
};
pub use planner::{
    CreateError, CreateOrder, Created, FailedPlanning, PlannerEvent, PlannerOptions, PlannerSink,
    RegenerateOrder, Regenerated, Replanned,
};
pub use plans::{Candidate, ReviewError};
pub use redaction::{RedactedArtifacts, Redaction, TooManySecrets};
pub use remote::{RunCommand, ShownText};
pub use revocation::{Sweep, Swept};
pub use run_handle::RunHandle;
pub use run_options::{GivenApproval, RunOptions};
pub use start::StartRunError;
pub use supervision::{Standing, Stopped, Supervisor, SupervisorOptions, end_of_feed};
pub use undo::{Undo, UndoCandidate, UndoRunError};
