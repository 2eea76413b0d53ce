//! Asking a planner until its plan is valid, or the rounds are over.

use super::error::{CreateError, FailedPlanning};
use super::explore::Exploration;
use super::options::{PlannerEvent, PlannerOptions};
use crate::planner::create::Planner;
use crate::port::{ModelAnswer, ModelError, ModelRequest, TextSink};
use planwright_core::model::{Message, ModelRole, OfferedTool};
use planwright_core::plan::{Document, Finding};
use planwright_core::planning::{
    AnswerFault, Explored, PlanOrigin, Prompt, PromptBudget, ReadAnswerError,
    describe_failed_tools, read_answer, repair_messages,
};
use planwright_core::review::PlanningRecord;
use tokio_util::sync::CancellationToken;

/// The longest answer of a small model: what has no end by then has none.
const SMALL_ANSWER: u32 = 1_200;

/// What a planner is asked, and how its answer becomes the document that is wanted.
pub(super) struct Request<'a> {
    pub(super) goal: &'a str,
    pub(super) prompt: Prompt,
    pub(super) budget: PromptBudget,
    pub(super) max_steps: usize,
    pub(super) options: &'a PlannerOptions,
    /// What the answer means: a plan, or parts of one.
    pub(super) complete: &'a (dyn Fn(Document) -> Result<Document, Vec<Finding>> + Send + Sync),
}

/// One answer, read.
enum Heard {
    Plan(Box<Document>),
    Fault {
        text: String,
        fault: AnswerFault,
        /// What the model should know about the tools that it called wrongly.
        tools: String,
    },
}

/// What is said between a planner and the one who asks it.
struct Conversation {
    /// The request as it stands, with what was seen.
    request: Vec<Message>,
    messages: Vec<Message>,
    exploration: Option<Exploration>,
}

impl Conversation {
    fn new(request: &Request<'_>, exploration: Option<Exploration>) -> Self {
        let messages = &request.prompt.messages;
        Self {
            request: messages.clone(),
            messages: match exploration {
                Some(_) => Exploration::invite(messages),
                None => messages.clone(),
            },
            exploration,
        }
    }

    /// The tools that the model may call now.
    fn offered_tools(&self) -> Vec<OfferedTool> {
        let exploration = self.exploration.as_ref();
        exploration
            .map(Exploration::offered_tools)
            .unwrap_or_default()
    }

    /// Makes the calls of an answer.
    async fn look(&mut self, answer: ModelAnswer) {
        let Some(exploration) = &mut self.exploration else {
            return;
        };
        self.messages.push(Message::Assistant {
            text: answer.text,
            calls: answer.calls.clone(),
        });
        match exploration.look(answer.calls).await {
            Ok(results) if exploration.may_look() => self.messages.extend(results),
            Ok(_) => self.stop_looking(),
            Err(error) => {
                // The plan can be written without.
                tracing::warn!(%error, "the planner cannot look around");
                self.stop_looking();
            }
        }
    }

    /// Goes on without calls: what was seen becomes part of the request, since providers refuse a
    /// conversation that has calls in it and no tools beside it.
    fn stop_looking(&mut self) {
        let Some(exploration) = &mut self.exploration else {
            return;
        };
        if exploration.give_up() {
            self.request = exploration.recall(&self.request);
        }
        self.messages.clone_from(&self.request);
    }

    async fn close(&mut self) -> Option<Explored> {
        self.exploration.take()?.close().await
    }
}

impl Planner {
    /// The valid plan, and what it took to get it.
    pub(super) async fn write_plan(
        &self,
        request: Request<'_>,
        exploration: Option<Exploration>,
    ) -> Result<(Document, PlanningRecord), CreateError> {
        let mut talk = Conversation::new(&request, exploration);
        let written = self.write_in_rounds(&request, &mut talk).await;
        let explored = talk.close().await;
        let (document, mut planning) = written?;
        planning.explored = explored;
        Ok((document, planning))
    }

    async fn write_in_rounds(
        &self,
        request: &Request<'_>,
        talk: &mut Conversation,
    ) -> Result<(Document, PlanningRecord), CreateError> {
        let options = request.options;
        let rounds = options.rounds.min(PlannerOptions::MAX_ROUNDS) + 1;
        let mut failed = FailedPlanning::default();
        let resolved = self
            .context
            .ports
            .model
            .resolve(ModelRole::Planner, options.model.as_deref());
        let model = match resolved {
            Ok(info) => info.name,
            Err(cause) => return Err(failed_by(failed, cause)),
        };
        failed.planning.model = Some(model.clone());
        // A caller that drops this future wants no answer any more.
        let cancelled = options.cancelled.child_token();
        let _stop = cancelled.clone().drop_guard();
        for round in 1..=rounds {
            options.told.tell(PlannerEvent::Asked {
                round,
                of: rounds,
                model: model.clone(),
            });
            failed.planning.rounds = round;
            let answered = self
                .hear(request, talk, &mut failed.planning, &cancelled)
                .await;
            let heard = match answered {
                Ok(answer) => self.read(request, answer).await?,
                Err(ModelError::Cancelled) => {
                    return Err(CreateError::Cancelled(Box::new(failed.planning)));
                }
                Err(ModelError::Unreadable { message, .. }) => Heard::Fault {
                    text: String::new(),
                    fault: AnswerFault::NoPlan(message),
                    tools: String::new(),
                },
                Err(cause) => return Err(failed_by(failed, cause)),
            };
            match heard {
                Heard::Plan(document) => return Ok((*document, failed.planning)),
                Heard::Fault { text, fault, tools } => {
                    let faults = fault.describe();
                    options.told.tell(PlannerEvent::SentBack {
                        round,
                        faults: faults.clone(),
                    });
                    failed.rounds.push(faults);
                    if let AnswerFault::Refused(_) = fault {
                        break;
                    }
                    talk.stop_looking();
                    let prompts = &self.context.settings.prompts;
                    let budget = request.budget.repair;
                    talk.messages =
                        repair_messages(&talk.request, &text, &fault, &tools, budget, prompts)?;
                }
            }
        }
        Err(CreateError::Failed(Box::new(failed)))
    }

    /// Asks until the model answers instead of looking around.
    async fn hear(
        &self,
        request: &Request<'_>,
        talk: &mut Conversation,
        planning: &mut PlanningRecord,
        cancelled: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        loop {
            let tools = talk.offered_tools();
            let may_look = !tools.is_empty();
            let answer = match self.ask_planner(request, talk, tools, cancelled).await {
                // Not every model can call tools, and providers say so in one of these ways.
                Err(ModelError::Refused {
                    status: 400 | 404 | 422 | 501,
                    ..
                }) if may_look => {
                    talk.stop_looking();
                    continue;
                }
                answer => answer?,
            };
            planning.used.push(answer.used.clone());
            request.options.told.tell(PlannerEvent::Answered {
                used: answer.used.clone(),
            });
            if !may_look || answer.calls.is_empty() {
                return Ok(answer);
            }
            tokio::select! {
                biased;
                () = cancelled.cancelled() => return Err(ModelError::Cancelled),
                () = talk.look(answer) => {}
            }
        }
    }

    async fn ask_planner(
        &self,
        request: &Request<'_>,
        talk: &Conversation,
        tools: Vec<OfferedTool>,
        cancelled: &CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        let mut asked = ModelRequest::new(ModelRole::Planner, talk.messages.clone());
        asked.model.clone_from(&request.options.model);
        asked.tools = tools;
        asked.schema = Some(request.prompt.schema.clone());
        asked.max_tokens = request.budget.small.then_some(SMALL_ANSWER);
        let told = request.options.told.clone();
        asked.told =
            TextSink::new(move |piece| told.tell(PlannerEvent::Heard { bytes: piece.len() }));
        asked.cancelled = cancelled.clone();
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(ModelError::Cancelled),
            answer = self.context.ports.model.ask(asked) => answer,
        }
    }

    async fn read(&self, request: &Request<'_>, answer: ModelAnswer) -> Result<Heard, CreateError> {
        let adoption = PlanOrigin {
            goal: request.goal,
            model: &answer.used.model,
        };
        let read = read_answer(&answer.text, answer.cut, adoption);
        let mut tools = String::new();
        let fault = match read {
            Ok(document) => match (request.complete)(document) {
                Ok(document) => {
                    let written = document.clone();
                    match self.check_written(document, request.max_steps).await? {
                        Ok(document) => return Ok(Heard::Plan(Box::new(document))),
                        Err(fault) => {
                            let catalog = self.context.catalog();
                            tools = describe_failed_tools(fault.findings(), &written, &catalog);
                            fault
                        }
                    }
                }
                Err(findings) => AnswerFault::Findings(findings),
            },
            Err(no_plan) => match no_plan.into_finding() {
                Ok(finding) => AnswerFault::Findings(vec![finding]),
                Err(refused @ ReadAnswerError::Refused(_)) => {
                    AnswerFault::Refused(refused.to_string())
                }
                Err(no_plan) => AnswerFault::NoPlan(no_plan.to_string()),
            },
        };
        Ok(Heard::Fault {
            text: answer.text,
            fault,
            tools,
        })
    }
}

fn failed_by(failed: FailedPlanning, cause: ModelError) -> CreateError {
    CreateError::Failed(Box::new(FailedPlanning {
        cause: Some(cause),
        ..failed
    }))
}
