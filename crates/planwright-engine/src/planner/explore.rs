//! Looking before planning: a planner may call tools that only read, in a session of its own that is
//! judged by policy and journaled like that of any client.

use super::create::Planner;
use super::options::{PlannerEvent, PlannerOptions, PlannerSink};
use crate::agent::messages::{failure, offer_tool, refusal};
use crate::port::ProgressSink;
use crate::session::{
    CallEvent, ClientAnswer, OpenSessionError, Session, SessionTerms, Sessions, WantedByClient,
};
use planwright_core::json::tell_value;
use planwright_core::model::{Message, OfferedTool, WantedCall};
use planwright_core::plan::Budget;
use planwright_core::planning::{
    Explored, MAX_LOOKS, PlanningLook, bound_result, choose_for_looking, invite_to_look,
    is_for_looking, write_seen,
};
use planwright_core::policy::{Mode, Verdict};
use planwright_core::principal::Principal;
use planwright_core::tool::KnownTool;
use std::collections::BTreeSet;
use std::sync::Arc;

/// The name under which a planner's calls are journaled.
const CLIENT: &str = "planner";

/// What a planner does before it answers.
pub(super) struct Exploration {
    planner: Planner,
    told: PlannerSink,
    owner: Principal,
    tools: Vec<Arc<KnownTool>>,
    session: Option<Session>,
    looks: Vec<PlanningLook>,
}

impl Planner {
    /// Makes ready to look around for this goal; `None` if there is nothing to look with.
    pub(super) fn exploration(
        &self,
        goal: &str,
        owner: &Principal,
        options: &PlannerOptions,
    ) -> Option<Exploration> {
        let small = self.prompt_budget(options.model.as_deref()).small;
        if !options.explore || small {
            return None;
        }
        let tools = self.offered_tools(&options.servers);
        let allowed = |tool: &Arc<KnownTool>| {
            is_for_looking(tool) && self.judge_unknown(tool, true) == Verdict::Allow
        };
        let tools = choose_for_looking(tools.into_iter().filter(allowed).collect(), goal);
        Some(Exploration {
            planner: self.clone(),
            told: options.told.clone(),
            owner: owner.clone(),
            tools,
            session: None,
            looks: Vec::new(),
        })
        .filter(|exploration| !exploration.tools.is_empty())
    }
}

impl Exploration {
    /// Returns whether another call may be made.
    pub(super) fn may_look(&self) -> bool {
        self.looks.len() < MAX_LOOKS && !self.tools.is_empty()
    }

    /// Gives up looking around, as with a model that cannot call tools. Returns whether it had not
    /// given up before.
    pub(super) fn give_up(&mut self) -> bool {
        let had = !self.tools.is_empty();
        self.tools.clear();
        had
    }

    /// The tools as a model is offered them.
    pub(super) fn offered_tools(&self) -> Vec<OfferedTool> {
        self.tools.iter().map(offer_tool).collect()
    }

    /// The request with the invitation to look around.
    pub(super) fn invite(messages: &[Message]) -> Vec<Message> {
        extend_request(messages, &invite_to_look())
    }

    /// The request with what was seen, for rounds in which nothing can be called.
    pub(super) fn recall(&self, messages: &[Message]) -> Vec<Message> {
        extend_request(messages, &write_seen(&self.looks))
    }

    /// Makes the calls of one turn, and returns what the model is told of them.
    pub(super) async fn look(
        &mut self,
        wanted: Vec<WantedCall>,
    ) -> Result<Vec<Message>, OpenSessionError> {
        let mut messages = Vec::with_capacity(wanted.len());
        for call in wanted {
            let told = match self.may_look() {
                true => self.call(&call).await?,
                false => {
                    "Not called: you have looked often enough. Answer with the plan.".to_owned()
                }
            };
            self.told.tell(PlannerEvent::Looked {
                tool: call.name.clone(),
                args: call.args.clone(),
            });
            self.looks.push(PlanningLook {
                tool: call.name.clone(),
                args: call.args,
                told: told.clone(),
            });
            messages.push(Message::Tool {
                call: call.id,
                name: call.name,
                text: bound_result(&told),
            });
        }
        Ok(messages)
    }

    async fn call(&mut self, call: &WantedCall) -> Result<String, OpenSessionError> {
        let known = self
            .tools
            .iter()
            .any(|tool| tool.name.to_string() == call.name);
        if !known {
            return Ok(format!("Not called: `{}` is not offered here.", call.name));
        }
        let session = match &self.session {
            Some(session) => session,
            None => {
                let opened = self.open().await?;
                self.session.insert(opened)
            }
        };
        let wanted = WantedByClient {
            tool: call.name.clone(),
            args: call.args.clone(),
            attended: false,
            progress: ProgressSink::default(),
            client: None,
        };
        let open = match session.call(wanted).await {
            Ok(open) => open,
            Err(error) => return Ok(refusal(&error)),
        };
        Ok(match open.advance().await {
            CallEvent::Asks(_) => "Not called: a person would have to be asked.".to_owned(),
            CallEvent::Ended(ClientAnswer {
                outcome: Ok(value), ..
            }) => tell_value(&value),
            CallEvent::Ended(ClientAnswer {
                outcome: Err(error),
                ..
            }) => failure(&error),
        })
    }

    async fn open(&self) -> Result<Session, OpenSessionError> {
        let servers: BTreeSet<String> = self
            .tools
            .iter()
            .map(|tool| tool.name.server.clone())
            .collect();
        let terms = SessionTerms {
            client: CLIENT.to_owned(),
            agent: Principal::agent(CLIENT),
            mode: Mode::Enforce,
            owner: self.owner.clone(),
            budget: Budget {
                calls: Some(MAX_LOOKS as u64),
                ..Budget::default()
            },
            servers,
        };
        Sessions::new(&self.planner.context).open(terms).await
    }

    /// Ends it, and says what was looked at.
    pub(super) async fn close(self) -> Option<Explored> {
        let session = self.session?;
        let explored = Explored {
            session: session.plan().clone(),
            calls: u32::try_from(self.looks.len()).unwrap_or(u32::MAX),
        };
        session.close().await;
        Some(explored)
    }
}

/// Adds to what the user says, before everything else: the goal stays the last thing.
fn extend_request(messages: &[Message], words: &str) -> Vec<Message> {
    let mut extended = messages.to_vec();
    if let Some(Message::User { text }) = extended.last_mut() {
        text.insert_str(0, words);
    }
    extended
}
