//! How long it takes to make a planner's prompt, without asking a model: choosing among the tools,
//! writing them down, and the schema of the answer. The limit is writing the same bytes as JSON.

use anyhow::{Result, ensure};
use planwright_core::planning::{
    PlannerFacts, PlannerTask, Prompt, PromptBudget, PromptRequest, Prompts, build_prompt,
};
use planwright_core::tool::{Annotations, Catalog, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Value, json};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As many as an operator with a dozen large servers has.
pub(crate) const TOOLS: usize = 500;
const ROUNDS: usize = 51;
const GOAL: &str =
    "read the auth module, find all usages, then refactor it and open a pull request";

/// Times at the median, and what was written.
pub(crate) struct Prompting {
    pub(crate) prompt: Duration,
    pub(crate) bytes_alone: Duration,
    pub(crate) bytes: usize,
}

pub(crate) fn measure() -> Result<Prompting> {
    let tools: Vec<Arc<KnownTool>> = catalog().iter().cloned().collect();
    ensure!(tools.len() == TOOLS, "there are {} tools", tools.len());
    let prompts = Prompts::default();
    let facts = PlannerFacts::default();
    let mut prompting = Vec::new();
    let mut writing = Vec::new();
    let mut bytes = 0;
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let prompt = build_prompt(&request(&tools, &facts), &prompts)?;
        prompting.push(started.elapsed());
        let started = Instant::now();
        bytes = black_box(written(&prompt)?);
        writing.push(started.elapsed());
    }
    Ok(Prompting {
        prompt: median(prompting),
        bytes_alone: median(writing),
        bytes,
    })
}

fn request<'a>(tools: &'a [Arc<KnownTool>], facts: &'a PlannerFacts) -> PromptRequest<'a> {
    PromptRequest {
        goal: GOAL,
        tools,
        snapshot: None,
        facts,
        context: &[],
        task: PlannerTask::Create,
        max_steps: 20,
        budget: PromptBudget::default(),
    }
}

/// What a request to a model has in it, as it is sent.
fn written(prompt: &Prompt) -> Result<usize> {
    let messages = serde_json::to_vec(&prompt.messages)?;
    let schema = serde_json::to_vec(&prompt.schema)?;
    Ok(messages.len() + schema.len())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Twenty servers with tools of the usual size: a paragraph about each, and a handful of arguments.
fn catalog() -> Catalog {
    const VERBS: [&str; 25] = [
        "read", "write", "list", "search", "create", "delete", "update", "move", "copy", "merge",
        "open", "close", "find", "get", "set", "send", "fetch", "push", "pull", "review",
        "comment", "assign", "label", "export", "import",
    ];
    const NOUNS: [&str; 20] = [
        "file", "issue", "branch", "usage", "module", "message", "page", "table", "row", "image",
        "event", "ticket", "user", "team", "release", "commit", "secret", "queue", "report",
        "invoice",
    ];
    let tool = |number: usize| {
        let noun = NOUNS[number / VERBS.len()];
        let verb = VERBS[number % VERBS.len()];
        let description = format!(
            "{verb} one or more of the {noun}s of a workspace. Takes the {noun} by its path or its number and returns \
             it as structured content, with everything that refers to it. Use this instead of guessing what a {noun} \
             contains; it fails with a clear message when there is no such {noun}."
        );
        let annotations = if verb == "read" {
            Annotations::read_only()
        } else {
            Annotations::default()
        };
        let name = format!("{verb}_{noun}");
        let definition = ToolDefinition::new(noun, &name, &description, arguments(noun));
        KnownTool::new(
            definition.with_annotations(annotations),
            EffectClass::Unsafe,
        )
    };
    Catalog::new((0..TOOLS).map(tool))
}

fn arguments(noun: &str) -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": { "type": "string", "description": format!("Where the {noun} lies, from the workspace's root.") },
            "number": { "type": "integer", "minimum": 1 },
            "limit": { "type": "integer", "minimum": 1, "maximum": 1000, "default": 100 },
            "state": { "type": "string", "enum": ["open", "closed", "all"] },
            "labels": { "type": "array", "items": { "type": "string" }, "description": "Only those with all of these." },
            "filter": {
                "type": "object",
                "properties": { "since": { "type": "string", "format": "date-time" }, "author": { "type": "string" } },
            },
        },
        "required": ["path"],
    })
}
