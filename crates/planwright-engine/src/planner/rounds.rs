//! Asking a planner until its plan is valid, or the rounds are over.

use super::error::{CreateError, FailedPlanning};
use super::options::{PlannerEvent, PlannerOptions};
use crate::planner::create::Planner;
use crate::port::{ModelAnswer, ModelError, ModelRequest, TextSink};
use planwright_core::model::{Message, ModelRole};
use planwright_core::plan::{Document, Finding};
use planwright_core::planning::{
    AnswerFault, PlanOrigin, Prompt, PromptBudget, read_answer, repair_messages,
};
use planwright_core::review::PlanningRecord;

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
    Fault { text: String, fault: AnswerFault },
}

impl Planner {
    /// The valid plan, and what it took to get it.
    pub(super) async fn write_plan(
        &self,
        request: Request<'_>,
    ) -> Result<(Document, PlanningRecord), CreateError> {
        let options = request.options;
        let rounds = options.rounds.min(PlannerOptions::MAX_ROUNDS) + 1;
        let mut failed = FailedPlanning::default();
        let mut messages = request.prompt.messages.clone();
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
            let asked = self.ask_planner(&request, &messages, &cancelled).await;
            failed.planning.rounds = round;
            let heard = match asked {
                Ok(answer) => {
                    failed.planning.used.push(answer.used.clone());
                    options.told.tell(PlannerEvent::Answered {
                        used: answer.used.clone(),
                    });
                    self.read(&request, answer).await?
                }
                Err(ModelError::Cancelled) => {
                    return Err(CreateError::Cancelled(Box::new(failed.planning)));
                }
                Err(ModelError::Unreadable { message, .. }) => Heard::Fault {
                    text: String::new(),
                    fault: AnswerFault::NoPlan(message),
                },
                Err(cause) => return Err(failed_by(failed, cause)),
            };
            match heard {
                Heard::Plan(document) => return Ok((*document, failed.planning)),
                Heard::Fault { text, fault } => {
                    let faults = fault.describe();
                    options.told.tell(PlannerEvent::SentBack {
                        round,
                        faults: faults.clone(),
                    });
                    failed.rounds.push(faults);
                    let original = &request.prompt.messages;
                    let prompts = &self.context.settings.prompts;
                    messages =
                        repair_messages(original, &text, &fault, request.budget.repair, prompts)?;
                }
            }
        }
        Err(CreateError::Failed(Box::new(failed)))
    }

    async fn ask_planner(
        &self,
        request: &Request<'_>,
        messages: &[Message],
        cancelled: &tokio_util::sync::CancellationToken,
    ) -> Result<ModelAnswer, ModelError> {
        let mut asked = ModelRequest::new(ModelRole::Planner, messages.to_vec());
        asked.model.clone_from(&request.options.model);
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
        let fault = match read {
            Ok(document) => match (request.complete)(document) {
                Ok(document) => match self.check_written(document, request.max_steps).await? {
                    Ok(document) => return Ok(Heard::Plan(Box::new(document))),
                    Err(fault) => fault,
                },
                Err(findings) => AnswerFault::Findings(findings),
            },
            Err(no_plan) => match no_plan.into_finding() {
                Ok(finding) => AnswerFault::Findings(vec![finding]),
                Err(no_plan) => AnswerFault::NoPlan(no_plan.to_string()),
            },
        };
        Ok(Heard::Fault {
            text: answer.text,
            fault,
        })
    }
}

fn failed_by(failed: FailedPlanning, cause: ModelError) -> CreateError {
    CreateError::Failed(Box::new(FailedPlanning {
        cause: Some(cause),
        ..failed
    }))
}
