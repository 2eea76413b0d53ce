//! Plans as tools of a model: make one, run one, or both at once.
//!
//! They go through the same consent as everything else and give none themselves: what policy may
//! approve by itself runs, what a person has to agree to is asked where they are ([`Consenter`]) or
//! comes back as pending. A result is always a JSON object; every error is in it.

mod consenter;
mod execute;
mod found;
mod outcome;

pub use crate::agent::plan_tool::{PLAN_TOOLS_SERVER, PlanTool};
pub use consenter::{Consented, Consenter, NoPersonToAsk, PlanMaker, PlanWish};
pub(crate) use found::{plans_by_trace, trace_of_call, trace_of_run};

use crate::context::{Observer, Observers};
use crate::engine::Engine;
use outcome::{created_value, failure_value};
use planwright_core::id::PlanId;
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::run::StepErrorCode;
use planwright_core::trace::TraceId;
use serde_json::{Map, Value};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// The most bytes of a goal.
const MAX_GOAL: usize = 16 << 10;
/// The most bytes of what a model passes on of its conversation.
const MAX_CONTEXT: usize = 64 << 10;

/// One call of a plan tool.
#[derive(Debug, Clone)]
pub struct PlanToolCall {
    /// The tool that is called.
    pub tool: PlanTool,
    /// The arguments, as the model wrote them.
    pub args: Map<String, Value>,
    /// The same for every attempt at the same call: what an earlier one began is gone on with.
    pub key: String,
    /// An earlier attempt was made, and how far it came is unknown.
    pub again: bool,
    /// Cancelled when the result is no longer wanted.
    pub cancelled: CancellationToken,
}

impl PlanToolCall {
    /// A call that is made once.
    pub fn new(tool: PlanTool, args: Map<String, Value>, key: impl Into<String>) -> Self {
        Self {
            tool,
            args,
            key: key.into(),
            again: false,
            cancelled: CancellationToken::new(),
        }
    }

    /// Names what this call begins, so that another attempt finds it.
    fn trace(&self) -> TraceId {
        TraceId::of_name(&self.key)
    }
}

/// The plan tools of one model.
#[derive(Debug, Clone)]
pub struct PlanTools {
    engine: Engine,
    maker: Arc<dyn PlanMaker>,
    consenter: Arc<dyn Consenter>,
    /// The agent that proposes and runs. It never approves.
    by: Principal,
    observers: Observers,
}

impl PlanTools {
    /// `by` is the agent on whose behalf plans are proposed; anybody else would be taken for an
    /// agent too.
    pub fn new(engine: Engine, maker: Arc<dyn PlanMaker>, by: &Principal) -> Self {
        let by = Principal::agent(by.name.clone());
        Self {
            engine,
            maker,
            consenter: Arc::new(NoPersonToAsk),
            by,
            observers: Observers::default(),
        }
    }

    /// Who is asked about what policy may not approve by itself.
    #[must_use]
    pub fn asking(self, consenter: Arc<dyn Consenter>) -> Self {
        Self { consenter, ..self }
    }

    /// Who is told about the runs that are begun here.
    #[must_use]
    pub fn watched_by(self, observers: Vec<Arc<dyn Observer>>) -> Self {
        Self {
            observers: Observers(observers),
            ..self
        }
    }

    /// Does what is asked for. The outcome is always a JSON object with `success`.
    pub async fn call(&self, call: &PlanToolCall) -> Value {
        let done = match call.tool {
            PlanTool::Create => self.create(call).await.map(|review| created_value(&review)),
            PlanTool::Execute => Box::pin(self.execute_named(call)).await,
            PlanTool::CreateAndExecute => Box::pin(self.create_and_execute(call)).await,
        };
        done.unwrap_or_else(|problem| failure_value(&problem))
    }

    async fn create(&self, call: &PlanToolCall) -> Result<Review, Problem> {
        let goal = needed_text(call, "goal")?;
        if goal.len() > MAX_GOAL {
            return Err(Problem::new(format!(
                "`goal` has more than {MAX_GOAL} bytes"
            )));
        }
        if call.again
            && let Some(review) = self.begun_plan(call.trace()).await?
        {
            return Ok(review);
        }
        let wish = PlanWish {
            goal: goal.to_owned(),
            context: context(call)?,
        };
        let making = self
            .maker
            .make(wish, self.by.clone(), call.trace(), call.cancelled.clone());
        tokio::select! {
            made = making => made.map_err(Problem::new),
            () = call.cancelled.cancelled() => Err(Problem::cancelled()),
        }
    }

    async fn execute_named(&self, call: &PlanToolCall) -> Result<Value, Problem> {
        let id: PlanId = needed_text(call, "planId")?
            .parse()
            .map_err(|error| Problem::new(format!("`planId`: {error}")))?;
        let variables = match call.args.get("variables") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(variables)) => variables.clone(),
            Some(_) => return Err(Problem::new("`variables` must be an object")),
        };
        let (review, _) = self
            .engine
            .plans()
            .load_review(&id)
            .await
            .map_err(|error| Problem::of(&error))?;
        Box::pin(self.execute(call, review, variables)).await
    }

    async fn create_and_execute(&self, call: &PlanToolCall) -> Result<Value, Problem> {
        let review = self.create(call).await?;
        Box::pin(self.execute(call, review, Map::new())).await
    }
}

/// A text that the tool cannot do without.
fn needed_text<'a>(call: &'a PlanToolCall, name: &str) -> Result<&'a str, Problem> {
    let problem = match call.args.get(name) {
        Some(Value::String(text)) => match text.trim() {
            "" => "must not be empty",
            text => return Ok(text),
        },
        None | Some(Value::Null) => "is missing",
        Some(_) => "must be a text",
    };
    Err(Problem::new(format!("`{name}` {problem}")))
}

/// What the model passes on of its conversation.
fn context(call: &PlanToolCall) -> Result<Option<String>, Problem> {
    match call.args.get("context") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.len() > MAX_CONTEXT => Err(Problem::new(format!(
            "`context` has more than {MAX_CONTEXT} bytes"
        ))),
        Some(Value::String(text)) => Ok(Some(text.clone()).filter(|text| !text.trim().is_empty())),
        Some(_) => Err(Problem::new("`context` must be text")),
    }
}

/// Why a plan tool did not do what was asked, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    message: String,
    /// What validation found, when that is the reason.
    findings: Vec<String>,
    plan: Option<PlanId>,
}

impl Problem {
    /// Says that the caller gave the call up.
    fn cancelled() -> Self {
        Self::new(StepErrorCode::Cancelled.as_str())
    }

    fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            findings: Vec::new(),
            plan: None,
        }
    }

    /// An error with all that it has to say about its causes.
    fn of(error: &dyn std::error::Error) -> Self {
        Self::new(crate::with_causes(error))
    }

    fn about(mut self, plan: &PlanId) -> Self {
        self.plan = Some(plan.clone());
        self
    }
}
