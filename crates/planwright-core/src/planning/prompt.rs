//! The prompt of a planner. What every plan has in common comes first and the goal last: servers
//! remember what a prompt begins with.

use super::budget::{PromptBudget, estimate_tokens};
use super::catalog::{CatalogBudget, ToolOffer, offer_tools};
use super::facts::PlannerFacts;
use super::merge::{StepFate, StepOutcome, slots_after, slots_among};
use super::prompts::{
    CREATE, FillPromptError, PLANNER, PLANNER_SMALL, Prompts, REGENERATE, REPLAN,
};
use super::quote::{fence_text, quote_text};
use super::remarks;
use super::schema::{SchemaDetail, StepSlot, StepsSchemaRequest, steps_schema};
use super::snapshot::WorkspaceSnapshot;
use crate::id::StepId;
use crate::model::{AnswerSchema, Message};
use crate::plan::{Document, Plan};
use crate::review::Review;
use crate::tool::KnownTool;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A text that the caller wants the planner to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextText {
    /// Name of the text, such as a file name.
    pub name: String,
    /// The text itself.
    pub text: String,
}

/// The parts of a prompt.
#[derive(Debug, Clone)]
pub struct PromptRequest<'a> {
    /// Goal of the plan.
    pub goal: &'a str,
    /// The tools that may be used, in a stable order.
    pub tools: &'a [Arc<KnownTool>],
    /// The workspace, if the planner is told about it.
    pub snapshot: Option<&'a WorkspaceSnapshot>,
    /// More facts that every plan may need.
    pub facts: &'a PlannerFacts,
    /// Texts the caller gives.
    pub context: &'a [ContextText],
    /// The work to do.
    pub task: PlannerTask<'a>,
    /// Most steps of the plan.
    pub max_steps: usize,
    /// Sizes of the parts.
    pub budget: PromptBudget,
}

/// The work the planner is asked for.
#[derive(Debug, Clone)]
pub enum PlannerTask<'a> {
    /// A plan.
    Create,
    /// The next version of a plan: all of it, or these steps.
    Regenerate {
        /// The review, for what people said.
        review: &'a Review,
        /// The current version.
        plan: &'a Plan,
        /// The steps to write again; all if empty.
        steps: &'a [StepId],
        /// A wish for this version.
        feedback: Option<&'a str>,
    },
    /// The rest of a plan whose run failed.
    Replan {
        /// The plan whose run failed.
        document: &'a Document,
        /// The outcomes of its steps.
        outcomes: &'a [StepOutcome],
    },
}

/// A complete request to a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    /// Messages for the model.
    pub messages: Vec<Message>,
    /// Schema of the answer.
    pub schema: AnswerSchema,
    /// Detail of that schema.
    pub shape: SchemaDetail,
    /// Tools that did not fit into the budget.
    pub left_out: usize,
}

impl Prompt {
    /// About how many tokens are sent: the messages, and the schema of the answer.
    pub fn tokens(&self) -> usize {
        let text = |message: &Message| match message {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => {
                estimate_tokens(text)
            }
            Message::Assistant { text, .. } => estimate_tokens(text),
        };
        let messages: usize = self.messages.iter().map(text).sum();
        messages + estimate_tokens(&self.schema.schema.to_string())
    }
}

const MAX_NAME: usize = 200;
const MAX_VALUE: usize = 600;
/// The longest list of steps a schema is made for.
const MAX_STEPS: usize = 50;

/// Makes the prompt. It is the same for the same request, and no part is larger than its budget.
pub fn build_prompt(
    request: &PromptRequest<'_>,
    prompts: &Prompts,
) -> Result<Prompt, FillPromptError> {
    let ToolOffer {
        tools,
        text,
        left_out,
    } = offer_tools(
        request.tools,
        &request.facts.asks,
        request.goal,
        CatalogBudget {
            detailed: request.budget.detailed,
            all: request.budget.catalog,
        },
    );
    let (slots, all) = request.slots();
    let (schema, shape) = steps_schema(&StepsSchemaRequest {
        tools: &tools,
        slots: &slots,
        all,
        max_bytes: request.budget.schema_bytes,
        small: request.budget.small,
    });
    let most = slots.len().to_string();
    let planner = match request.budget.small {
        true => &PLANNER_SMALL,
        false => &PLANNER,
    };
    let system =
        prompts.fill_prompt(planner, &[("tools", text.trim_end()), ("maxSteps", &most)])?;
    let user = request.user_message(&slots, prompts)?;
    let messages = vec![
        Message::system(system.trim_end()),
        Message::user(user.trim_end()),
    ];
    Ok(Prompt {
        messages,
        schema,
        shape,
        left_out,
    })
}

impl PromptRequest<'_> {
    /// The places to be filled, and whether all of them have to be.
    fn slots(&self) -> (Vec<StepSlot>, bool) {
        let count = self.max_steps.clamp(1, MAX_STEPS);
        match &self.task {
            PlannerTask::Regenerate { plan, steps, .. } if !steps.is_empty() => {
                (slots_among(plan, steps), true)
            }
            PlannerTask::Create | PlannerTask::Regenerate { .. } => {
                (StepSlot::numbered(count), false)
            }
            PlannerTask::Replan { document, outcomes } => {
                (slots_after(document, &kept_steps(outcomes), count), false)
            }
        }
    }

    /// The facts that every plan may need.
    fn facts_section(&self) -> String {
        if self.budget.small {
            return String::new();
        }
        let root = self.snapshot.and_then(|found| found.root.as_deref());
        self.facts.write_section(root)
    }

    fn user_message(
        &self,
        slots: &[StepSlot],
        prompts: &Prompts,
    ) -> Result<String, FillPromptError> {
        let servers = self
            .snapshot
            .filter(|_| !self.budget.small)
            .map(|found| found.write_servers(self.budget.snapshot / 3))
            .unwrap_or_default();
        let left = self
            .budget
            .snapshot
            .saturating_sub(estimate_tokens(&servers) + 1);
        let workspace = self
            .snapshot
            .map(|found| found.write_section(left, self.goal))
            .unwrap_or_default();
        let workspace = format!("{}{workspace}{servers}", self.facts_section());
        let context = self.context_section();
        let goal = fence_text(self.goal, usize::MAX);
        let mut values: Vec<(&str, &str)> = vec![
            ("workspace", &workspace),
            ("context", &context),
            ("goal", &goal),
        ];
        match &self.task {
            PlannerTask::Create => prompts.fill_prompt(&CREATE, &values),
            PlannerTask::Regenerate {
                review,
                plan,
                steps,
                feedback,
            } => {
                let document = self.document_section(plan.document());
                let remarks = remarks::write_section(review, *feedback, self.budget.remarks);
                let task = regenerate_task(steps, slots);
                values.extend([
                    ("plan", &*document),
                    ("remarks", &*remarks),
                    ("task", &*task),
                ]);
                prompts.fill_prompt(&REGENERATE, &values)
            }
            PlannerTask::Replan { document, outcomes } => {
                let progress = self.progress_section(outcomes);
                let document = self.document_section(document);
                let task = replan_task(slots);
                values.extend([
                    ("plan", &*document),
                    ("progress", &*progress),
                    ("task", &*task),
                ]);
                prompts.fill_prompt(&REPLAN, &values)
            }
        }
    }

    /// The texts that were given, each within what the ones before it left.
    fn context_section(&self) -> String {
        let mut section = String::new();
        for given in self.context {
            let left = self
                .budget
                .context
                .saturating_sub(estimate_tokens(&section) + 40)
                * 4;
            let text: String = cut_to_bytes(&given.text, left).to_owned();
            if text.is_empty() {
                continue;
            }
            let heading = if section.is_empty() {
                "## Context\n\n"
            } else {
                ""
            };
            let name = quote_text(&given.name, MAX_NAME.min(left));
            section = format!(
                "{section}{heading}{name}:\n{}\n\n",
                fence_text(&text, usize::MAX)
            );
        }
        section
    }

    /// The plan, as JSON in a fence.
    fn document_section(&self, document: &Document) -> String {
        let text = serde_json::to_string(document).unwrap_or_default();
        fence_text(cut_to_bytes(&text, self.budget.plan * 4), usize::MAX)
    }

    fn progress_section(&self, outcomes: &[StepOutcome]) -> String {
        let mut text = String::new();
        for StepOutcome { step, outcome } in outcomes {
            let line = match outcome {
                StepFate::Kept { status, value } => {
                    let value = value
                        .as_ref()
                        .map(|value| quote_text(&value.to_string(), MAX_VALUE));
                    let value = value.map(|value| format!(": {value}")).unwrap_or_default();
                    format!("- {step} is {status} and stays as it is{value}\n")
                }
                StepFate::Open { status, error } => {
                    let error = error
                        .as_ref()
                        .map(|error| format!(": {}", quote_text(error, MAX_VALUE)));
                    format!("- {step} is {status}{}\n", error.unwrap_or_default())
                }
            };
            if estimate_tokens(&text) + estimate_tokens(&line) <= self.budget.plan {
                text.push_str(&line);
            }
        }
        text.trim_end().to_owned()
    }
}

/// The steps that have run and stay.
pub fn kept_steps(outcomes: &[StepOutcome]) -> BTreeSet<StepId> {
    let kept = outcomes
        .iter()
        .filter(|outcome| matches!(outcome.outcome, StepFate::Kept { .. }));
    kept.map(|outcome| outcome.step.clone()).collect()
}

fn regenerate_task(steps: &[StepId], slots: &[StepSlot]) -> String {
    if steps.is_empty() {
        return "Write the whole plan again, better, with what people said in mind. Keep what nobody objects to."
            .to_owned();
    }
    let names: Vec<&str> = slots.iter().map(|slot| slot.id.as_str()).collect();
    format!(
        "Write only these steps again, under their own names and in this order: {}. All other steps stay as they are; \
         leave them out of the answer.",
        names.join(", ")
    )
}

fn replan_task(slots: &[StepSlot]) -> String {
    let first = slots.first().map_or("s1", |slot| slot.id.as_str());
    format!(
        "Write the steps that are still needed to reach the goal, in another way than the one that failed. Steps that stay \
         as they are are not repeated: leave them out, and use their results where they help. Name the new steps from \
         {first} on."
    )
}

/// The text up to so many bytes.
fn cut_to_bytes(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
