//! The question to the reflector.

use super::data::limit_text;
use super::{StepStory, as_data};
use crate::model::{Message, OfferedTool};
use crate::planning::WorkspaceSnapshot;
use crate::run::Run;
use serde::Serialize;
use serde_json::json;

/// Bytes of all tools together.
const MAX_TOOLS: usize = 24 << 10;
/// Files that are named.
const MAX_FILES: usize = 100;

/// The material about a run that the reflector is given.
#[derive(Debug, Clone, Default)]
pub struct ReflectionRequest {
    /// What holds for every run.
    pub instructions: String,
    /// The tools that adjustments may call.
    pub tools: Vec<OfferedTool>,
    /// The earlier tries in the same work, oldest first.
    pub earlier: Vec<EarlierReflection>,
    /// The rest of the budget, in words.
    pub remaining: Vec<String>,
    /// The workspace as it is now.
    pub snapshot: WorkspaceSnapshot,
}

/// An earlier look at the same work.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EarlierReflection {
    /// Counted from 1, over all runs of the same work.
    pub cycle: u32,
    /// The state of the run then.
    pub assessment: String,
    /// The reasons of the model.
    pub reasoning: String,
    /// The changes that were made, one line each.
    pub adjustments: Vec<String>,
}

/// The conversation that asks how a run stands. Everything that others wrote is data in it.
pub fn reflection_messages(run: &Run, request: &ReflectionRequest) -> Vec<Message> {
    let document = run.plan().document();
    let (steps, left_out) = StepStory::of_run(run);
    let goal = document
        .goal
        .as_deref()
        .or(document.title.as_deref())
        .unwrap_or_default();
    let plan = json!({
        "goal": limit_text(goal),
        "title": limit_text(document.title.as_deref().unwrap_or_default()),
        "successCriteria": document.success_criteria.iter().take(50).map(|text| limit_text(text)).collect::<Vec<_>>(),
        "stepsLeftOut": left_out,
    });
    let (tools, tools_left_out) = fitting(&request.tools);
    let mut text = as_data("Tools", &tools);
    if tools_left_out > 0 {
        text.push_str(&format_left_out(tools_left_out));
    }
    text.push_str(&as_data("Plan", &plan));
    if !request.earlier.is_empty() {
        text.push_str(&as_data("Tried before", &request.earlier));
    }
    text.push_str(&as_data("What may still be spent", &request.remaining));
    let files = request.snapshot.names_for(goal, MAX_FILES);
    if !files.is_empty() {
        text.push_str(&as_data("Files of the workspace", &files));
    }
    text.push_str(&as_data("Steps", &steps));
    text.push_str("\nHow does it go on? Answer with the JSON object only.\n");
    vec![
        Message::system(request.instructions.clone()),
        Message::user(text),
    ]
}

fn format_left_out(count: usize) -> String {
    format!("({count} more tools are not shown.)\n")
}

/// The first tools that fit.
fn fitting(tools: &[OfferedTool]) -> (Vec<serde_json::Value>, usize) {
    let mut shown = Vec::new();
    let mut bytes = 0;
    for tool in tools {
        let told = json!({
            "name": limit_text(&tool.name),
            "description": limit_text(&tool.description).chars().take(300).collect::<String>(),
            "args": tool.schema.get("properties").unwrap_or(&serde_json::Value::Null),
            "required": tool.schema.get("required").unwrap_or(&serde_json::Value::Null),
        });
        bytes += told.to_string().len();
        if bytes > MAX_TOOLS {
            break;
        }
        shown.push(told);
    }
    let left_out = tools.len() - shown.len();
    (shown, left_out)
}
