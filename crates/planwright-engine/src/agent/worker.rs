//! The built-in executor: a model with the plan's tools. Everything it said is in the journal, so
//! that after a crash it goes on where it was, and nothing is called twice.

use super::messages::{data, failure, refusal, tools_in_scope};
use super::tool_calls::{CallOutcome, ToolCalls};
use super::tool_offer::{FIND_TOOLS, ToolOffer};
use super::wait_until_unwanted;
use crate::port::{ModelAnswer, ModelError, ModelRequest};
use crate::run::child::ChildAnswer;
use planwright_core::model::{Message, ModelRole, ModelUse, WantedCall};
use planwright_core::planning::{CHAT, EXECUTOR};
use planwright_core::run::{
    AgentTurn, Asked, CallReport, Question, Reply, StepError, StepErrorCode, StoredValue,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

/// What is shown of a text that a person is asked about, in bytes.
const MAX_SHOWN: usize = 48 << 10;

/// Searches for tools in a row.
const MAX_SEARCHES: usize = 8;

/// One attempt of the built-in executor.
#[derive(Debug)]
pub(crate) struct Worker {
    calls: ToolCalls,
    messages: Vec<Message>,
    /// The number of answers of a person that were taken in.
    heard: usize,
    /// What answers took that cannot be used, and so are no turns.
    wasted: Vec<ModelUse>,
    offer: ToolOffer,
    /// Searches for tools since the last turn, and what they took.
    searches: usize,
    searched: Option<ModelUse>,
}

impl Worker {
    pub(crate) fn new(calls: ToolCalls) -> Self {
        Self {
            calls,
            messages: Vec::new(),
            heard: 0,
            wasted: Vec::new(),
            offer: ToolOffer::default(),
            searches: 0,
            searched: None,
        }
    }

    /// Works until the step is done, waits for a person, or cannot go on. Also says what was spent
    /// and is in no turn.
    pub(crate) async fn work(mut self) -> (ChildAnswer, Vec<ModelUse>) {
        let over = match self.talk().await {
            Ok(text) => self
                .calls
                .store_result(Value::String(text))
                .await
                .map(CallReport::Succeeded),
            Err(answer) => Err(answer),
        };
        let answer = over.unwrap_or_else(|answer| answer);
        self.wasted.extend(self.searched.take());
        let large = match &answer {
            CallReport::Succeeded(stored @ StoredValue::Artifact(_)) => {
                self.calls.value(stored).await.ok()
            }
            _ => None,
        };
        ((answer, large.map(std::sync::Arc::new)), self.wasted)
    }

    /// Returns the text the step comes to.
    async fn talk(&mut self) -> Result<String, CallReport> {
        let order = std::sync::Arc::clone(&self.calls.order);
        let Some(agent) = order.definition.agent.as_deref() else {
            return Err(CallReport::NotMade);
        };
        let form = if agent.converse { &CHAT } else { &EXECUTOR };
        let system = order.assignment.system(
            (&self.calls.runs.context.settings.prompts, form),
            &order.tools,
        );
        let system = system.map_err(|error| {
            CallReport::Failed(StepError::new(StepErrorCode::BadPrompt, error.to_string()))
        })?;
        self.messages = vec![
            Message::system(system),
            Message::user(order.assignment.task(agent)),
        ];
        for turn in &order.turns {
            if let Some(text) = self.follow(turn, agent.converse).await? {
                return Ok(text);
            }
        }
        loop {
            let mut answer = self.ask(agent.converse).await?;
            if self.search(&mut answer)? {
                continue;
            }
            let turn = self
                .calls
                .take_turn(&answer.text, answer.calls, Some(answer.used))
                .await?;
            if let Some(text) = self.follow(&turn, agent.converse).await? {
                return Ok(text);
            }
        }
    }

    async fn ask(&mut self, converse: bool) -> Result<ModelAnswer, CallReport> {
        let runs = &self.calls.runs;
        let order = &self.calls.order;
        if *runs.context.active.draining().borrow() {
            return Err(CallReport::NotMade);
        }
        let role = if converse {
            ModelRole::Chat
        } else {
            ModelRole::Executor
        };
        let mut request = ModelRequest::new(role, self.messages.clone());
        request.model = order.model.clone();
        let catalog = runs.context.catalog();
        let tools = tools_in_scope(&catalog, &order.tools);
        request.tools = self.offer.offer(&tools, &latest_words(&self.messages));
        request.told = order.said.clone();
        let cancelled = CancellationToken::new();
        request.cancelled = cancelled.clone();
        let answered = tokio::select! {
            biased;
            answered = runs.context.ports.model.ask(request) => answered,
            () = wait_until_unwanted(self.calls.commands.clone()) => {
                cancelled.cancel();
                return Err(CallReport::NotMade);
            }
        };
        crate::crash::point("agent: model answered");
        let answer = answered.map_err(|error| model_failed(&error))?;
        let complaint = if answer.cut && !converse {
            "the answer was cut off at the limit of tokens"
        } else if answer.text.trim().is_empty() && answer.calls.is_empty() {
            "the model said nothing"
        } else {
            return Ok(answer);
        };
        self.wasted.push(answer.used);
        Err(CallReport::Failed(
            StepError::new(StepErrorCode::NoAnswer, complaint).retryable(true),
        ))
    }

    /// Answers searches for tools. Nothing happens by them, so they are no turns; what they took is
    /// part of the next. Returns whether the model has to be asked again.
    fn search(&mut self, answer: &mut ModelAnswer) -> Result<bool, CallReport> {
        let calls = std::mem::take(&mut answer.calls);
        let (searches, others): (Vec<WantedCall>, Vec<WantedCall>) =
            calls.into_iter().partition(|call| call.name == FIND_TOOLS);
        let catalog = self.calls.runs.context.catalog();
        let tools = tools_in_scope(&catalog, &self.calls.order.tools);
        let mut told = Vec::new();
        for call in &searches {
            let query = call.args.get("query").and_then(Value::as_str);
            let found = self.offer.find(&tools, query.unwrap_or_default());
            told.push(Message::Tool {
                call: call.id.clone(),
                name: call.name.clone(),
                text: data("Tools", &found),
            });
        }
        let is_only_search = others.is_empty() && !searches.is_empty();
        if !is_only_search {
            // What was found is offered with the next question.
            answer.calls = others;
            self.searches = 0;
            if let Some(searched) = self.searched.take() {
                add_use(&mut answer.used, &searched);
            }
            return Ok(false);
        }
        self.searches += 1;
        match &mut self.searched {
            Some(searched) => add_use(searched, &answer.used),
            None => self.searched = Some(answer.used.clone()),
        }
        if self.searches > MAX_SEARCHES {
            let message = format!("tools were looked for {MAX_SEARCHES} times in a row");
            return Err(CallReport::Failed(StepError::new(
                StepErrorCode::TooManyCalls,
                message,
            )));
        }
        self.messages.push(Message::Assistant {
            text: std::mem::take(&mut answer.text),
            calls: searches,
        });
        self.messages.extend(told);
        Ok(true)
    }

    /// Does what a turn says. Returns the text of the step if it is over.
    async fn follow(
        &mut self,
        turn: &AgentTurn,
        converse: bool,
    ) -> Result<Option<String>, CallReport> {
        let text = match &turn.text {
            Some(stored) => match self.calls.value(stored).await.map_err(CallReport::Failed)? {
                Value::String(text) => text,
                other => other.to_string(),
            },
            None => String::new(),
        };
        let mut wanted = Vec::with_capacity(turn.calls.len());
        for call in &turn.calls {
            let args = self
                .calls
                .value(&call.args)
                .await
                .map_err(CallReport::Failed)?;
            wanted.push(WantedCall {
                id: call.id.clone(),
                name: call.tool.clone(),
                args,
            });
        }
        self.messages.push(Message::Assistant {
            text: text.clone(),
            calls: wanted,
        });
        if turn.calls.is_empty() {
            return if converse {
                self.listen(text)
            } else {
                Ok(Some(text))
            };
        }
        // One after the other, in the order they were wanted: a later one may count on an earlier
        // one.
        for call in &turn.calls {
            if let Some(name) = &call.name {
                self.offer.open(&name.to_string());
            }
            let made = self.calls.make(call, self.calls.order.linger).await?;
            let told = match made {
                CallOutcome::Value(value) => data(&format!("Result of {}", call.tool), &value),
                CallOutcome::Failed(error) => failure(&error),
                CallOutcome::Refused(error) => refusal(&error),
            };
            let id = call.id.clone();
            let name = call.tool.clone();
            self.messages.push(Message::Tool {
                call: id,
                name,
                text: told,
            });
        }
        Ok(None)
    }

    /// Takes in what the person said to this, or asks them.
    fn listen(&mut self, text: String) -> Result<Option<String>, CallReport> {
        let Some(answered) = self.calls.order.answered.get(self.heard) else {
            return Err(CallReport::Asked(Box::new(question(&text))));
        };
        self.heard += 1;
        match answered.replies.first() {
            Some(Reply::Values(values)) => {
                let message = values
                    .get(MESSAGE)
                    .and_then(Value::as_str)
                    .unwrap_or_default();
                self.messages.push(Message::user(message));
                Ok(None)
            }
            // A person who has nothing more to say ends the conversation.
            Some(Reply::Decline) | None => Ok(Some(text)),
        }
    }
}

/// Finds the last words to the model: the task of a step, or what a person said.
fn latest_words(messages: &[Message]) -> String {
    let said = messages.iter().rev().find_map(|message| match message {
        Message::User { text } => Some(text.as_str()),
        Message::System { .. } | Message::Assistant { .. } | Message::Tool { .. } => None,
    });
    said.unwrap_or_default().to_owned()
}

fn add_use(used: &mut ModelUse, more: &ModelUse) {
    used.usage += more.usage;
    used.cost = match (used.cost, more.cost) {
        (Some(mut cost), Some(more)) => {
            cost += more;
            Some(cost)
        }
        (cost, more) => cost.or(more),
    };
}

/// The name of what a person says in a conversation.
const MESSAGE: &str = "message";

fn question(text: &str) -> Asked {
    let mut end = text.len().min(MAX_SHOWN);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let schema = json!({
        "type": "object",
        "required": [MESSAGE],
        "properties": {MESSAGE: {"type": "string"}},
    });
    let question = Question {
        key: MESSAGE.to_owned(),
        message: text[..end].to_owned(),
        schema,
        url: None,
    };
    Asked {
        questions: vec![question],
        state: None,
    }
}

/// Makes the report of a step whose model gave no answer.
pub(crate) fn model_failed(error: &ModelError) -> CallReport {
    let (code, retryable) = match error {
        ModelError::Cancelled => return CallReport::NotMade,
        ModelError::NotConfigured { .. } | ModelError::Unknown { .. } => {
            (StepErrorCode::NoModel, false)
        }
        ModelError::NoKey { .. } => (StepErrorCode::NoModelKey, false),
        ModelError::Refused { .. } => (StepErrorCode::ModelRefused, false),
        ModelError::Unavailable { .. } => (StepErrorCode::ModelUnavailable, true),
        ModelError::TimedOut { .. } => (StepErrorCode::ModelTimeout, true),
        ModelError::Unreadable { .. } => (StepErrorCode::ModelUnreadable, true),
    };
    CallReport::Failed(StepError::new(code, error.to_string()).retryable(retryable))
}
