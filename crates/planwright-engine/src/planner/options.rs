//! How a planner is asked.

use planwright_core::model::ModelUse;
use planwright_core::planning::ContextText;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The options for asking a planner, regardless of what it is to write.
#[derive(Debug, Clone)]
pub struct PlannerOptions {
    /// A configured model by name; the planner's own when absent.
    pub model: Option<String>,
    /// The number of times an answer that is no valid plan is sent back.
    pub rounds: u32,
    /// The most steps; as many as suit the model when absent.
    pub max_steps: Option<usize>,
    /// Offer only the tools of these servers; those of all when empty.
    pub servers: Vec<String>,
    /// What else the planner should know.
    pub context: Vec<ContextText>,
    /// True if the planner is told about the workspace.
    pub snapshot: bool,
    /// True if the planner may look around before it answers, with tools that only read.
    pub explore: bool,
    /// Told how it goes.
    pub told: PlannerSink,
    /// Cancelled when the caller no longer wants the plan. Dropping the future does the same.
    pub cancelled: CancellationToken,
}

impl PlannerOptions {
    /// Rounds in which a model may correct its plan, if the caller sets no other number.
    pub const DEFAULT_ROUNDS: u32 = 3;
    /// More rounds do not help a model that failed so often.
    pub const MAX_ROUNDS: u32 = 10;
}

impl Default for PlannerOptions {
    fn default() -> Self {
        Self {
            model: None,
            rounds: Self::DEFAULT_ROUNDS,
            max_steps: None,
            servers: Vec::new(),
            context: Vec::new(),
            snapshot: true,
            explore: true,
            told: PlannerSink::default(),
            cancelled: CancellationToken::new(),
        }
    }
}

/// Something that happens while a plan is written.
#[derive(Debug, Clone, PartialEq)]
pub enum PlannerEvent {
    /// The model is asked, for this time of so many at most.
    Asked {
        /// Counted from 1.
        round: u32,
        /// Most rounds.
        of: u32,
        /// Name of the model.
        model: String,
    },
    /// So many more bytes of its answer came.
    Heard {
        /// Bytes since the last event.
        bytes: usize,
    },
    /// It looked around with a call.
    Looked {
        /// Full name of the tool.
        tool: String,
        /// Its arguments.
        args: Value,
    },
    /// It answered.
    Answered {
        /// Tokens and cost of the answer.
        used: ModelUse,
    },
    /// The answer is no valid plan. What is wrong with it, one line each.
    SentBack {
        /// Counted from 1.
        round: u32,
        /// Findings about the answer.
        faults: Vec<String>,
    },
}

/// Takes what happens. It never waits.
#[derive(Clone)]
pub struct PlannerSink(Arc<dyn Fn(PlannerEvent) + Send + Sync>);

impl PlannerSink {
    /// Makes a sink of a function that returns at once.
    pub fn new(sink: impl Fn(PlannerEvent) + Send + Sync + 'static) -> Self {
        Self(Arc::new(sink))
    }

    pub(super) fn tell(&self, event: PlannerEvent) {
        (self.0)(event);
    }
}

impl Default for PlannerSink {
    fn default() -> Self {
        Self::new(|_| {})
    }
}

impl fmt::Debug for PlannerSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PlannerSink")
    }
}
