//! The prompt of a planner. What every plan has in common comes first and the goal last: servers
//! remember what a prompt begins with.

use super::budget::{PromptBudget, tokens};
use super::catalog::{Offer, offer};
use super::merge::{Outcome, StepOutcome, positions_after, positions_among};
use super::prompts::{CREATE, FillPromptError, PLANNER, Prompts, REGENERATE, REPLAN};
use super::quote::{fenced, quoted};
use super::remarks;
use super::schema::{Position, Shape, StepsSchema, steps_schema};
use super::snapshot::Snapshot;
use crate::id::StepId;
use crate::model::{AnswerSchema, Message};
use crate::plan::{Document, Plan};
use crate::review::Review;
use crate::tool::KnownTool;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A text that whoever asks for a plan wants the planner to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextText {
    pub name: String,
    pub text: String,
}

/// What a prompt is made of.
#[derive(Debug, Clone)]
pub struct PromptRequest<'a> {
    pub goal: &'a str,
    /// The tools that may be used, in a stable order.
    pub tools: &'a [Arc<KnownTool>],
    pub snapshot: Option<&'a Snapshot>,
    pub context: &'a [ContextText],
    pub task: Task<'a>,
    pub max_steps: usize,
    pub budget: PromptBudget,
}

/// What the planner is to write.
#[derive(Debug, Clone)]
pub enum Task<'a> {
    /// A plan.
    Create,
    /// The next version of a plan: all of it, or these steps.
    Regenerate {
        review: &'a Review,
        plan: &'a Plan,
        steps: &'a [StepId],
        feedback: Option<&'a str>,
    },
    /// The rest of a plan whose run failed.
    Replan {
        document: &'a Document,
        outcomes: &'a [StepOutcome],
    },
}

/// What a model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    pub messages: Vec<Message>,
    pub schema: AnswerSchema,
    pub shape: Shape,
    /// Tools that did not fit into the budget.
    pub left_out: usize,
}

impl Prompt {
    /// About how many tokens the messages have.
    pub fn tokens(&self) -> usize {
        let text = |message: &Message| match message {
            Message::System { text } | Message::User { text } | Message::Tool { text, .. } => {
                tokens(text)
            }
            Message::Assistant { text, .. } => tokens(text),
        };
        self.messages.iter().map(text).sum()
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
    let Offer {
        tools,
        text,
        left_out,
    } = offer(request.tools, request.goal, request.budget.catalog);
    let (positions, all) = request.positions();
    let (schema, shape) = steps_schema(&StepsSchema {
        tools: &tools,
        positions: &positions,
        all,
        max_bytes: request.budget.schema_bytes,
        small: request.budget.small,
    });
    let most = positions.len().to_string();
    let system = prompts.fill(&PLANNER, &[("tools", text.trim_end()), ("maxSteps", &most)])?;
    let user = request.user(&positions, prompts)?;
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
    fn positions(&self) -> (Vec<Position>, bool) {
        let count = self.max_steps.clamp(1, MAX_STEPS);
        match &self.task {
            Task::Regenerate { plan, steps, .. } if !steps.is_empty() => {
                (positions_among(plan, steps), true)
            }
            Task::Create | Task::Regenerate { .. } => (Position::numbered(count), false),
            Task::Replan { document, outcomes } => (
                positions_after(document, &kept_steps(outcomes), count),
                false,
            ),
        }
    }

    fn user(&self, positions: &[Position], prompts: &Prompts) -> Result<String, FillPromptError> {
        let workspace = self
            .snapshot
            .map(|found| found.section(self.budget.snapshot))
            .unwrap_or_default();
        let context = self.context();
        let goal = fenced(self.goal, usize::MAX);
        let mut values: Vec<(&str, &str)> = vec![
            ("workspace", &workspace),
            ("context", &context),
            ("goal", &goal),
        ];
        match &self.task {
            Task::Create => prompts.fill(&CREATE, &values),
            Task::Regenerate {
                review,
                plan,
                steps,
                feedback,
            } => {
                let document = self.document(plan.document());
                let remarks = remarks::section(review, *feedback, self.budget.remarks);
                let task = regenerate_task(steps, positions);
                values.extend([
                    ("plan", &*document),
                    ("remarks", &*remarks),
                    ("task", &*task),
                ]);
                prompts.fill(&REGENERATE, &values)
            }
            Task::Replan { document, outcomes } => {
                let progress = self.progress(outcomes);
                let document = self.document(document);
                let task = replan_task(positions);
                values.extend([
                    ("plan", &*document),
                    ("progress", &*progress),
                    ("task", &*task),
                ]);
                prompts.fill(&REPLAN, &values)
            }
        }
    }

    /// The texts that were given, each within what the ones before it left.
    fn context(&self) -> String {
        let mut section = String::new();
        for given in self.context {
            let left = self.budget.context.saturating_sub(tokens(&section) + 40) * 4;
            let text: String = cut(&given.text, left).to_owned();
            if text.is_empty() {
                continue;
            }
            let heading = if section.is_empty() {
                "## Context\n\n"
            } else {
                ""
            };
            let name = quoted(&given.name, MAX_NAME.min(left));
            section = format!(
                "{section}{heading}{name}:\n{}\n\n",
                fenced(&text, usize::MAX)
            );
        }
        section
    }

    /// The plan, as JSON in a fence.
    fn document(&self, document: &Document) -> String {
        let text = serde_json::to_string(document).unwrap_or_default();
        fenced(cut(&text, self.budget.plan * 4), usize::MAX)
    }

    fn progress(&self, outcomes: &[StepOutcome]) -> String {
        let mut text = String::new();
        for StepOutcome { step, outcome } in outcomes {
            let line = match outcome {
                Outcome::Kept { status, value } => {
                    let value = value
                        .as_ref()
                        .map(|value| quoted(&value.to_string(), MAX_VALUE));
                    let value = value.map(|value| format!(": {value}")).unwrap_or_default();
                    format!("- {step} is {status} and stays as it is{value}\n")
                }
                Outcome::Open { status, error } => {
                    let error = error
                        .as_ref()
                        .map(|error| format!(": {}", quoted(error, MAX_VALUE)));
                    format!("- {step} is {status}{}\n", error.unwrap_or_default())
                }
            };
            if tokens(&text) + tokens(&line) <= self.budget.plan {
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
        .filter(|outcome| matches!(outcome.outcome, Outcome::Kept { .. }));
    kept.map(|outcome| outcome.step.clone()).collect()
}

fn regenerate_task(steps: &[StepId], positions: &[Position]) -> String {
    if steps.is_empty() {
        return "Write the whole plan again, better, with what people said in mind. Keep what nobody objects to."
            .to_owned();
    }
    let names: Vec<&str> = positions
        .iter()
        .map(|position| position.id.as_str())
        .collect();
    format!(
        "Write only these steps again, under their own names and in this order: {}. All other steps stay as they are; \
         leave them out of the answer.",
        names.join(", ")
    )
}

fn replan_task(positions: &[Position]) -> String {
    let first = positions
        .first()
        .map_or("s1", |position| position.id.as_str());
    format!(
        "Write the steps that are still needed to reach the goal, in another way than the one that failed. Steps that stay \
         as they are are not repeated: leave them out, and use their results where they help. Name the new steps from \
         {first} on."
    )
}

/// The text up to so many bytes.
fn cut(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
