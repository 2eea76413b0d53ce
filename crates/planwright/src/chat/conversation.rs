//! One conversation: a plan with a single agent step that asks the person what they say next. So it
//! is journaled, guarded and resumed like everything else.

use crate::exit::Failure;
use crate::terminal::printer::line;
use crate::workspace::app::{App, user};
use crate::workspace::plan_source::{load_plan, parse_id, pick_run};
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::{Document, literal};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::run::{Reply, Run, Shown, StepReport, StepState};
use planwright_engine::chat::{CHAT_LABEL, ChatBudget, is_conversation};
use planwright_engine::{GivenApproval, PlanTool, RunCommand, RunHandle, RunOptions};
use serde_json::{Map, Value, json};

/// The step that converses.
const STEP: &str = "chat";

/// The longest title, in characters.
const MAX_TITLE: usize = 60;

/// Who proposes what comes out of a conversation. It never approves anything.
pub(super) fn agent() -> Principal {
    Principal::agent("chat")
}

/// What a conversation is begun with.
#[derive(Debug, Clone, Default)]
pub(super) struct ConversationTerms {
    /// The tools the model is offered, by their full names.
    pub(super) tools: Vec<String>,
    pub(super) max_turns: Option<u32>,
    pub(super) budget: ChatBudget,
}

/// What a conversation was offered when it began.
#[derive(Debug, Clone, Copy)]
pub(super) struct OfferedTools {
    /// The plan tools.
    pub(super) plans: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Conversation {
    pub(super) plan: PlanId,
    pub(super) run: RunId,
}

/// Where a conversation stands.
#[derive(Debug)]
pub(super) enum ConversationState {
    /// The model has answered and it is the person's turn.
    AwaitingMessage { said: String },
    /// A call waits for a person.
    AwaitingDecision(Vec<RunId>),
    /// It is over.
    Ended { error: Option<String> },
    /// It was interrupted, or is paused: it goes on when it is resumed.
    Interrupted,
}

impl Conversation {
    /// Begins a conversation with what the person said first.
    pub(super) async fn begin(
        app: &App,
        terms: &ConversationTerms,
        message: &str,
    ) -> Result<(Self, RunHandle), Failure> {
        let id = format!("chat-{:08x}", app.engine.entropy() & 0xffff_ffff);
        let document = document(&id, terms, message)?;
        let (review, _) = app.engine.plans().propose(document, &agent()).await?;
        let candidate = app
            .engine
            .runs()
            .check_runnable(&review, &Map::new())
            .await?;
        let by = user();
        let mut options = RunOptions::new(by.clone());
        // Starting a chat approves the conversation only: each call that is not read-only is still
        // asked about.
        options.approval = match by.kind {
            PrincipalKind::Person => Some(GivenApproval::new(
                Shown::Digest(candidate.digest),
                by,
                Assurance::CommandLine,
            )),
            PrincipalKind::Agent | PrincipalKind::Service | PrincipalKind::Policy => {
                app.engine.plans().consent_of_policy(&review, &candidate)
            }
        };
        let handle = app.engine.runs().start(review.id(), options).await?;
        Ok((
            Self {
                plan: review.id().clone(),
                run: handle.run_id().clone(),
            },
            handle,
        ))
    }

    /// The conversation with this id, and what it was offered.
    pub(super) async fn find(app: &App, id: &str) -> Result<(Self, OfferedTools), Failure> {
        let (review, _) = load_plan(app, &parse_id(id)?).await?;
        if !is_conversation(&review.current().document) {
            return Err(
                Failure::usage(format!("plan `{}` is no conversation", review.id()))
                    .hint("To list the conversations: planwright list --label chat"),
            );
        }
        let run = pick_run(&review, None)?;
        let tools = &review.current().document.tools_required;
        let plans = tools.iter().any(|name| PlanTool::from_name(name).is_some());
        Ok((
            Self {
                plan: review.id().clone(),
                run,
            },
            OfferedTools { plans },
        ))
    }

    pub(super) async fn load_run(&self, app: &App) -> Result<Run, Failure> {
        let (review, _) = app.engine.plans().load_review(&self.plan).await?;
        Ok(app.engine.runs().load_run(&self.run, &review).await?.0)
    }

    /// Goes on where it is.
    pub(super) async fn go_on(&self, app: &App) -> Result<RunHandle, Failure> {
        Ok(app
            .engine
            .runs()
            .resume_run(&self.run, RunOptions::new(user()))
            .await?)
    }

    /// Tells the model what the person says, and goes on.
    pub(super) async fn tell(&self, app: &App, message: &str) -> Result<RunHandle, Failure> {
        let values = Map::from_iter([("message".to_owned(), Value::String(message.to_owned()))]);
        self.reply(app, Reply::Values(values)).await?;
        self.go_on(app).await
    }

    /// Ends the conversation by declining the model's question.
    pub(super) async fn end(&self, app: &App) -> Result<(), Failure> {
        if self.reply(app, Reply::Decline).await? {
            self.go_on(app).await?.wait().await?;
        }
        Ok(())
    }

    /// Returns whether there was something to reply to.
    async fn reply(&self, app: &App, reply: Reply) -> Result<bool, Failure> {
        let run = self.load_run(app).await?;
        let Some(ix) = run.find(STEP) else {
            return Ok(false);
        };
        let StepState::AwaitingInput { asked, .. } = run.step(ix) else {
            return Ok(false);
        };
        let step = STEP.to_owned();
        let question = asked.digest();
        let command = RunCommand::GiveInput {
            step,
            by: user(),
            question,
            replies: vec![reply],
        };
        app.engine.runs().command(&self.run, command).await?;
        Ok(true)
    }
}

/// Returns where this run of a conversation stands.
pub(super) fn conversation_state(run: &Run, app: &App) -> ConversationState {
    let Some(ix) = run.find(STEP) else {
        return ConversationState::Ended { error: None };
    };
    if run.state().is_terminal() {
        let report = StepReport::new(run, ix, app.now());
        let error = report
            .error
            .map(|error| format!("{}: {}", error.code, error.message));
        return ConversationState::Ended { error };
    }
    match run.step(ix) {
        StepState::AwaitingInput { asked, .. } => {
            let said = asked
                .questions
                .first()
                .map(|question| question.message.clone());
            ConversationState::AwaitingMessage {
                said: said.unwrap_or_default(),
            }
        }
        StepState::AwaitingPlan { run, .. } => {
            ConversationState::AwaitingDecision(vec![run.clone()])
        }
        _ => ConversationState::Interrupted,
    }
}

fn document(id: &str, terms: &ConversationTerms, message: &str) -> Result<Document, Failure> {
    let title: String = line(message.trim()).chars().take(MAX_TITLE).collect();
    let budget = &terms.budget;
    // What the person types is text, and nothing in it a reference.
    let instruction = literal(Value::String(message.to_owned()));
    let document = json!({
        "id": id,
        "title": format!("Chat: {title}"),
        "toolsRequired": terms.tools,
        "limits": { "budget": { "calls": budget.calls, "tokens": budget.tokens } },
        "steps": [{
            "id": STEP,
            "title": "Conversation",
            "labels": [CHAT_LABEL],
            "agent": { "instruction": instruction, "converse": true, "maxTurns": terms.max_turns },
        }],
    });
    serde_json::from_value(document)
        .map_err(|error| Failure::usage(format!("the chat cannot start: {error}")))
}
