//! Prompts that a person picks in their client.

use rmcp::model::{GetPromptResult, Prompt, PromptArgument, PromptMessage, Role};
use serde_json::{Map, Value};

pub(crate) fn prompts() -> Vec<Prompt> {
    let argument = |name: &str, words: &str| {
        PromptArgument::new(name)
            .with_description(words)
            .with_required(true)
    };
    vec![
        Prompt::new(
            "plan",
            Some("Propose a plan for a goal, to be approved before anything runs"),
            Some(vec![argument("goal", "What is to be achieved")]),
        ),
        Prompt::new(
            "review",
            Some("Look at a plan with a person before they decide"),
            Some(vec![argument("planId", "The id of the plan")]),
        ),
    ]
}

/// Returns whether a prompt of ours has this name.
pub(crate) fn is_ours(name: &str) -> bool {
    matches!(name, "plan" | "review")
}

/// The prompt of this name, or why there is none.
pub(crate) fn get_prompt(
    name: &str,
    arguments: Option<&Map<String, Value>>,
) -> Result<GetPromptResult, String> {
    let given = |argument: &str| {
        let value = arguments.and_then(|arguments| arguments.get(argument));
        value
            .and_then(Value::as_str)
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| format!("the prompt `{name}` needs `{argument}`"))
    };
    let text = match name {
        "plan" => format!(
            "Propose a plan with plan_propose for this goal, and run nothing yet:\n\n{}\n\n\
             Use one step per tool call, with its tool and its arguments; ${{step.field}} stands for a \
             result of an earlier step. Say in `undo` how a step is taken back where that is possible. \
             Repair every finding. Then ask for approval with plan_approve.",
            given("goal")?
        ),
        "review" => format!(
            "Read the plan {} with plan_get. Tell me what each step sends where, what it changes, what \
             cannot be undone, and what you would ask its author. Decide nothing.",
            given("planId")?
        ),
        _ => return Err(format!("there is no prompt `{name}`")),
    };
    Ok(GetPromptResult::new(vec![PromptMessage::new_text(
        Role::User,
        text,
    )]))
}
