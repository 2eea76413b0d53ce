//! A draft without a model: the saved template that seems to fit best, else the goal's own clauses,
//! each with the tool that seems to be meant. Good for a person to start from, and for nothing
//! else.

use crate::id::{PlanId, StepId};
use crate::plan::{Document, FromTemplate, Step, Think};
use crate::tool::{Keywords, KnownTool, score_relevance};
use serde_json::{Map, Value};
use std::cmp::Reverse;
use std::sync::Arc;

/// A template that a draft could be made from.
#[derive(Debug, Clone)]
pub struct SavedTemplate {
    /// Id of the template.
    pub id: PlanId,
    /// Version of the template.
    pub version: u32,
    /// Document of that version.
    pub document: Arc<Document>,
}

const MAX_CLAUSES: usize = 20;
const MAX_TITLE: usize = 100;
/// A tool is taken for a clause if it has its name or two of its words.
const LEAST_RELEVANCE: usize = 2;

/// The draft of a goal.
pub fn fallback_draft(
    goal: &str,
    templates: &[SavedTemplate],
    tools: &[Arc<KnownTool>],
) -> Document {
    let best = rank_templates(goal, templates.to_vec()).into_iter().next();
    let mut draft = match &best {
        Some(template) => draft_from_template(goal, template),
        None => Document {
            steps: steps_from_clauses(goal, tools),
            ..Document::default()
        },
    };
    draft.goal = Some(goal.to_owned());
    draft.planner_model = None;
    let first_line = goal.trim().lines().next().unwrap_or_default();
    draft.title = Some(first_line.chars().take(MAX_TITLE).collect());
    draft
}

/// The templates that have enough words in common with a goal, those with most of them first.
pub fn rank_templates(goal: &str, templates: Vec<SavedTemplate>) -> Vec<SavedTemplate> {
    let goal = Keywords::of(goal);
    let least = goal.len().clamp(1, 2);
    let mut found: Vec<(Reverse<usize>, SavedTemplate)> = templates
        .into_iter()
        .map(|template| (Reverse(words_in_common(&goal, &template)), template))
        .filter(|(Reverse(common), _)| *common >= least)
        .collect();
    found.sort_by(|(a, one), (b, other)| a.cmp(b).then_with(|| one.id.cmp(&other.id)));
    found.into_iter().map(|(_, template)| template).collect()
}

fn words_in_common(goal: &Keywords, template: &SavedTemplate) -> usize {
    let document = &template.document;
    let mut text = format!("{} ", template.id);
    for part in [&document.title, &document.goal].into_iter().flatten() {
        text = format!("{text} {part}");
    }
    goal.common(&Keywords::of(&text))
}

/// The template with the inputs that the goal names. If some are missing, it still asks for them.
fn draft_from_template(goal: &str, template: &SavedTemplate) -> Document {
    let given: Map<String, Value> = template
        .document
        .input_names()
        .filter_map(|name| Some((name.clone(), named_value(goal, name)?)))
        .collect();
    let mut draft = match template.document.variables_for(&given) {
        Ok(variables) => Document {
            inputs: None,
            ..template.document.with_variables(&variables)
        },
        Err(_) => Document::clone(&template.document),
    };
    draft.id = None;
    draft.context.template = Some(FromTemplate {
        id: template.id.clone(),
        version: template.version,
    });
    draft
}

/// The value in `name=value` or `name: "some value"`. JSON if it reads as JSON, else text.
fn named_value(goal: &str, name: &str) -> Option<Value> {
    let mut from = 0;
    while let Some(at) = goal[from..].find(name).map(|at| from + at) {
        let before = &goal[..at];
        let after = &goal[at + name.len()..];
        from = at + name.len().max(1);
        while !goal.is_char_boundary(from) {
            from += 1;
        }
        let begins_a_word = !before
            .chars()
            .next_back()
            .is_some_and(|c| c.is_alphanumeric() || c == '_');
        let Some(value) = after
            .trim_start()
            .strip_prefix(['=', ':'])
            .filter(|_| begins_a_word)
        else {
            continue;
        };
        let value = value.trim_start();
        let text = match value.chars().next()? {
            quote @ ('"' | '\'') => value[1..].split(quote).next()?,
            _ => value
                .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
                .next()?,
        };
        if !text.is_empty() {
            return Some(
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned())),
            );
        }
    }
    None
}

/// One step per clause, one after the other.
fn steps_from_clauses(goal: &str, tools: &[Arc<KnownTool>]) -> Vec<Step> {
    let id = |number: usize| -> StepId {
        format!("s{number}")
            .parse()
            .expect("a letter and digits are an id")
    };
    let step = |(clause, number): (String, usize)| {
        let mut step = Step {
            id: Some(id(number)),
            title: Some(clause.chars().take(MAX_TITLE).collect()),
            depends_on: if number > 1 {
                vec![id(number - 1)]
            } else {
                Vec::new()
            },
            ..Step::default()
        };
        match best_tool(&clause, tools) {
            Some(tool) => step.tool = Some(tool.name.to_string()),
            // The words of a goal are no template.
            None => {
                step.think = Some(Box::new(Think {
                    prompt: clause.replace("${", "$${"),
                    ..Think::default()
                }));
            }
        }
        step
    };
    split_clauses(goal)
        .into_iter()
        .zip(1_usize..)
        .map(step)
        .collect()
}

fn best_tool<'a>(clause: &str, tools: &'a [Arc<KnownTool>]) -> Option<&'a Arc<KnownTool>> {
    let words = Keywords::of(clause);
    let ranked = tools
        .iter()
        .map(|tool| (score_relevance(&words, &tool.definition), tool));
    // Of equals the first, in the order of names.
    let best = ranked.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    (best.0 >= LEAST_RELEVANCE).then_some(best.1)
}

/// `read the module, find usages; and then report` is three clauses.
fn split_clauses(goal: &str) -> Vec<String> {
    let text = format!(" {} ", goal.trim().trim_end_matches('.'));
    let text = [" and then ", " then ", ". ", ", ", "; ", "\n"]
        .iter()
        .fold(text, |text, separator| text.replace(separator, " \u{0} "));
    let word = |part: &str| {
        let part = part.trim().trim_start_matches([';', ',', '.']).trim();
        let part = ["and ", "finally ", "first ", "lastly "]
            .iter()
            .find_map(|word| part.strip_prefix(word))
            .unwrap_or(part);
        part.trim().to_owned()
    };
    text.split('\u{0}')
        .map(word)
        .filter(|part| !part.is_empty())
        .take(MAX_CLAUSES)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::{EffectClass, ToolDefinition};
    use serde_json::json;

    fn tool(name: &str, description: &str) -> Arc<KnownTool> {
        Arc::new(KnownTool::new(
            ToolDefinition::new("fs", name, description, json!({})),
            EffectClass::Safe,
        ))
    }

    #[test]
    fn a_goal_is_taken_apart_at_its_own_words() {
        assert_eq!(
            split_clauses("Read the auth module, then find all usages; and refactor them."),
            ["Read the auth module", "find all usages", "refactor them"]
        );
        assert_eq!(split_clauses(" , ;"), Vec::<String>::new());
    }

    #[test]
    fn each_clause_gets_the_tool_that_is_described_so_and_others_are_thought_about() {
        let tools = [
            tool("read_file", "Reads a file."),
            tool("search", "Finds usages of a word."),
        ];
        let draft = fallback_draft(
            "read the file, then find usages, then celebrate ${secret.X}",
            &[],
            &tools,
        );
        let named: Vec<Option<&str>> = draft
            .steps
            .iter()
            .map(|step| step.tool.as_deref())
            .collect();
        assert_eq!(named, [Some("fs.read_file"), Some("fs.search"), None]);
        assert_eq!(
            draft.steps[2].think.as_ref().unwrap().prompt,
            "celebrate $${secret.X}"
        );
        assert_eq!(draft.steps[1].depends_on, ["s1".parse().unwrap()]);
    }

    #[test]
    fn a_template_is_preferred_and_takes_only_inputs_that_are_named() {
        let document = json!({
            "title": "Summarise a module",
            "inputs": { "type": "object", "properties": { "path": { "type": "string" }, "depth": { "type": "integer" } },
                "required": ["path", "depth"] },
            "steps": [{ "id": "a", "tool": "read_file", "args": { "path": "${path}" } }],
        });
        let document = Document::from_json(document, &crate::plan::Bounds::default()).unwrap();
        let saved = SavedTemplate {
            id: "modules".parse().unwrap(),
            version: 3,
            document: Arc::new(document),
        };
        let whole = fallback_draft(
            "summarise the module path=src/auth.rs depth: 2",
            std::slice::from_ref(&saved),
            &[],
        );
        assert_eq!(
            whole.variables,
            json!({ "path": "src/auth.rs", "depth": 2 })
                .as_object()
                .unwrap()
                .clone()
        );
        assert!(whole.inputs.is_none() && whole.context.template.is_some());
        let partial = fallback_draft("summarise the module path=src/auth.rs", &[saved], &[]);
        assert!(partial.inputs.is_some());
    }
}
