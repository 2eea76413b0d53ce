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
//! let greet = ToolDefinition::new("text", "greet", "Greets a person.", json!({
//!     "type": "object", "properties": { "name": { "type": "string" } }, "required": ["name"],
//! }))
//! .with_annotations(Annotations::read_only());
//! let tools = FunctionTools::new()
//!     .with(greet, |call| async move {
//!         Ok(json!(format!("Hello {}", call.args["name"].as_str().unwrap_or("?"))))
//!     });
//! let engine = Engine::builder(Arc::new(tools)).build();
//!
//! let document = Document::read(br#"{
//!     "title": "Two greetings",
//!     "variables": { "who": "reader" },
//!     "steps": [
//!         { "id": "first", "tool": "greet", "args": { "name": "${who}" }, "result": "greeting" },
//!         { "id": "second", "tool": "greet", "args": { "name": "all who heard: ${greeting}" } }
//!     ]
//! }"#, &Bounds::default())?;
//!
//! // A dry run: every call as it would be made, and none made.
//! let candidate = engine.plans().compile(document.clone()).await?;
//! let (catalog, policy) = (engine.catalog(), engine.policy());
//! let paper = preview(&candidate.plan, &catalog, policy, Engine::DEFAULT_POLICY);
//! assert_eq!(paper.steps[1].args["name"], "all who heard: ‹result of step first›");
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
//! let run = engine.runs().run_document(document, options).await?.wait().await?;
//! assert_eq!(run.status(), planwright_core::status::RunStatus::Completed);
//! # Ok(())
//! # }
//! ```
//!
//! With `planwright-adapters`, `.store(Arc::new(SqliteStore::open(path)?),
//! Arc::new(FileArtifacts::new(dir)))` on the builder turns checkpoints on; [`Runs::resume`] then
//! goes on where a crash left off.
#![warn(missing_docs)]

pub mod access;
mod agent;
pub mod chat;
#[cfg(feature = "conformance")]
#[expect(missing_docs, reason = "the name of each law is its sentence")]
pub mod conformance;
mod context;
mod dispatch;
mod engine;
mod journal;
mod maintenance;
pub mod memory;
mod overview;
mod plan_tools;
mod planner;
pub mod port;
mod redaction;
mod reflection;
mod review;
mod run;
mod session;
mod supervisor;
pub mod webhooks;
mod worker;

pub use access::{passes, passkeys};
pub use context::{
    AgentSettings, ConcurrencyLimits, DispatchSettings, Observer, Pauses, Retention, StepClaims,
    crash, for_request, on_step_complete, on_step_start, telemetry,
};
pub use dispatch::{RunError, kind_of};
pub use engine::{Engine, EngineBuilder};
pub use journal::call_trail::{CallTrail, SentCalls};
pub use journal::journals::Journals;
pub use journal::load::{LoadError, load_review, load_run, plan_of_run, read_entries};
pub use journal::stored_value::{read_value, store_value};
pub use maintenance::{
    CheckStoreError, Maintenance, MaintenanceNotice, MaintenanceReport, RetentionPass,
    RetentionReport,
};
pub use memory::FunctionTools;
pub use overview::{Figures, Forecast, FoundPlans, Overview, PlanOrder, PlanQuery, PlanSummary};
pub use plan_tools::{
    Consented, Consenter, NoPersonToAsk, PLAN_TOOLS_SERVER, PlanMaker, PlanTool, PlanToolCall,
    PlanTools, PlanWish,
};
pub use planner::{
    CreateError, CreateOrder, FailedPlanning, Planner, PlannerEvent, PlannerOptions, PlannerSink,
    RegenerateOrder, Regenerated, Replanned, WrittenPlan,
};
pub use port::with_causes;
pub use redaction::known_secrets::{RedactedArtifacts, Redaction, TooManySecrets};
pub use redaction::masked_text::MaskedText;
pub use reflection::{CheckCriteriaError, Continuation, Reapproval};
pub use review::briefing::Briefings;
pub use review::comments::NewComment;
pub use review::edits::Editing;
pub use review::given_approval::GivenApproval;
pub use review::inbox::{AwaitingPeople, Inbox};
pub use review::missing_executor::MissingExecutor;
pub use review::plans::{Candidate, Plans, ReviewError, ShownPlan, StoreOptions};
pub use review::revocation::{LostApprovals, Sweep, Swept, adoption_rule};
pub use review::trial::{CheckedDocument, EditPreview, ExplainedPlan, Trials};
pub use review::waits::{PlanWaits, RunWaits, WaitCounts, WaitKind};
pub use run::command::CommandError;
pub use run::handle::RunHandle;
pub use run::options::RunOptions;
pub use run::read_outputs;
pub use run::remote_command::{RunCommand, ShownText};
pub use run::runs::Runs;
pub use run::start::{Difference, StartRunError};
pub use run::undo::{PreparedUndo, UndoCandidate, UndoRunError};
pub use run::write_off::{DamagedRun, WriteOffError};
pub use session::{
    CallEvent, ClientAnswer, FollowedRun, OpenCall, OpenSessionError, ReadSessionError, Session,
    SessionTerms, Sessions, StepAnswer, WantedByClient,
};
pub use supervisor::{CompletedSignIn, Stopped, Supervisor, SupervisorOptions, SupervisorStats};
pub use worker::{Worker, WorkerError, WorkerOptions, Workers, WorkersError};
