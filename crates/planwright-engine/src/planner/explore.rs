//! Looking before planning: a planner may call tools that only read, in a session of its own that is
//! judged by policy and journaled like that of any client.

use super::create::Planner;
use super::looking::{LookError, Looking};
use super::options::{PlannerEvent, PlannerOptions, PlannerSink};
use crate::port::offer_tool;
use planwright_core::model::{Message, OfferedTool, WantedCall};
use planwright_core::planning::{
    Explored, MAX_LOOKS, PlanningLook, bound_result, choose_for_looking, invite_to_look,
    is_for_looking, write_seen,
};
use planwright_core::policy::Verdict;
use planwright_core::principal::Principal;
use planwright_core::tool::KnownTool;
use std::sync::Arc;

/// What a planner does before it answers.
pub(super) struct Exploration {
    told: PlannerSink,
    tools: Vec<Arc<KnownTool>>,
    looking: Box<dyn Looking>,
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
        let start_looking = self.start_looking?;
        if !options.explore || small {
            return None;
        }
        let tools = self.offered_tools(&options.servers);
        let allowed = |tool: &Arc<KnownTool>| {
            is_for_looking(tool) && self.judge_unknown(tool, true) == Verdict::Allow
        };
        let tools = choose_for_looking(tools.into_iter().filter(allowed).collect(), goal);
        if tools.is_empty() {
            return None;
        }
        let servers = tools.iter().map(|tool| tool.name.server.clone()).collect();
        Some(Exploration {
            told: options.told.clone(),
            looking: start_looking(&self.context, owner.clone(), servers),
            tools,
            looks: Vec::new(),
        })
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
        self.tools.iter().map(|tool| offer_tool(tool)).collect()
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
    ) -> Result<Vec<Message>, LookError> {
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

    async fn call(&mut self, call: &WantedCall) -> Result<String, LookError> {
        let known = self
            .tools
            .iter()
            .any(|tool| tool.name.to_string() == call.name);
        if !known {
            return Ok(format!("Not called: `{}` is not offered here.", call.name));
        }
        self.looking.call(call).await
    }

    /// Ends it, and says what was looked at.
    pub(super) async fn close(self) -> Option<Explored> {
        let calls = u32::try_from(self.looks.len()).unwrap_or(u32::MAX);
        let session = self.looking.close().await?;
        Some(Explored { session, calls })
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
