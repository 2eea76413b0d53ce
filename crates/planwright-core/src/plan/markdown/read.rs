//! Reads a plan file: frontmatter and sections, back into a document.

use super::blocks::{BlockKind, Blocks, Fence, Item};
use super::fence::read_fence;
use super::frontmatter::Frontmatter;
use super::section;
use super::sections::{Section, refuse, sections, unexpected_line};
use super::step::read_step;
use super::stored::read_stored;
use super::text::read_prose;
use crate::plan::{Bounds, Document, ReadPlanError, SourceLocation};
use serde_json::{Map, Value, json};

/// A document, and what a person should know about how it was read.
#[derive(Debug)]
pub(super) struct Reading {
    pub(super) document: Document,
    pub(super) notices: Vec<String>,
}

/// Reads the sections of a plan.
pub(super) fn read_plan(
    frontmatter: Frontmatter,
    blocks: &Blocks<'_>,
    bounds: &Bounds,
) -> Result<Reading, ReadPlanError> {
    let mut file = PlanFile {
        blocks,
        plan: Map::new(),
        places: Vec::new(),
        notices: Vec::new(),
        in_order: Vec::new(),
    };
    let Frontmatter {
        id,
        title,
        planner_model,
        tools_required,
        executor_model,
        ..
    } = frontmatter;
    let texts = [
        ("id", id),
        ("title", title),
        ("plannerModel", planner_model),
        ("executorModel", executor_model),
    ];
    for (key, value) in texts {
        if let Some(value) = value {
            file.put(key, value.into(), 2)?;
        }
    }
    if let Some(tools) = tools_required.filter(|tools| !tools.is_empty()) {
        file.put("toolsRequired", json!(tools), 2)?;
    }
    for section in &sections(blocks) {
        file.section(section)?;
    }
    file.plan.entry("steps").or_insert_with(|| json!([]));
    let plan = Value::Object(std::mem::take(&mut file.plan));
    // The file itself says which of its steps wait for the one before.
    let (mut document, _) =
        Document::from_unordered_json(plan, bounds).map_err(|error| file.locate(error))?;
    for index in &file.in_order {
        document.wait_for_the_one_before(*index);
    }
    Ok(Reading {
        document,
        notices: file.notices,
    })
}

struct PlanFile<'a> {
    blocks: &'a Blocks<'a>,
    plan: Map<String, Value>,
    /// The lines in which what a JSON pointer names is written.
    places: Vec<(String, usize)>,
    notices: Vec<String>,
    /// Steps without a block: each waits for the one before it.
    in_order: Vec<usize>,
}

impl PlanFile<'_> {
    fn put(&mut self, key: &str, value: Value, line: usize) -> Result<(), ReadPlanError> {
        if self.plan.contains_key(key) {
            return Err(refuse(
                line,
                format!("the plan's `{key}` is given twice"),
                "leave one of them out",
            ));
        }
        self.places.push((format!("/{key}"), line));
        self.plan.insert(key.to_owned(), value);
        Ok(())
    }

    fn put_context(&mut self, key: &str, value: Value, line: usize) -> Result<(), ReadPlanError> {
        let pointer = format!("/context/{key}");
        let context = self.plan.entry("context").or_insert_with(|| json!({}));
        let Value::Object(context) = context else {
            return Err(refuse(
                line,
                "the `context` in the settings is not an object",
                "write `{…}`",
            ));
        };
        match (context.get_mut(key), value) {
            (Some(Value::Object(known)), Value::Object(more)) if key == "stored" => {
                known.extend(more);
            }
            (Some(_), _) => {
                return Err(refuse(
                    line,
                    format!("the plan's `{pointer}` is given twice"),
                    "leave one of them out",
                ));
            }
            (None, value) => {
                context.insert(key.to_owned(), value);
            }
        }
        self.places.push((pointer, line));
        Ok(())
    }

    fn edited(&mut self, name: &str) {
        self.notices.push(format!(
            "`{name}` was edited: an exact text below it no longer fits and was left out"
        ));
    }

    fn section(&mut self, section: &Section<'_>) -> Result<(), ReadPlanError> {
        let line = section.line;
        match (section.level, section.name.as_str()) {
            (_, "") => match section.blocks.first() {
                None => Ok(()),
                Some(block) => {
                    let line = self.blocks.line(block.range.start);
                    Err(unexpected_line(
                        line,
                        "put it below a heading such as `## Goal`",
                    ))
                }
            },
            (1, title) => self.title(title, section),
            (_, section::GOAL) => {
                let goal = self.prose(section)?;
                self.put("goal", goal.into(), line)
            }
            (_, section::STEPS) => {
                let steps = self.steps(section)?;
                self.put("steps", steps.into(), line)
            }
            (_, section::SETTINGS) => self.settings(section),
            (_, section::SUCCESS_CRITERIA) => self.list(section, "successCriteria"),
            (_, section::RISKS) => self.list(section, "risks"),
            (_, section::CONTEXT) if section.is_empty() => Ok(()),
            (_, section::CONTEXT | section::NOTES) => {
                let notes = self.prose(section)?;
                self.put_context("notes", notes.into(), line)
            }
            (_, section::TOOL_OUTPUTS) => match section.json(self.blocks)? {
                Some((outputs, line)) => self.put_context("toolOutputs", outputs, line),
                None => Ok(()),
            },
            (_, section::ARTIFACTS) => self.artifacts(section),
            // What was decided is the journal's to say.
            (_, section::REJECTIONS) => Ok(()),
            (_, unknown) => {
                let known =
                    "Goal, Steps, Settings, Success Criteria, Context, Risks and Rejections";
                let hint = format!(
                    "the sections of a plan are {known}; write `\\##` if it belongs to the text above"
                );
                Err(refuse(
                    line,
                    format!("the section `{unknown}` is unknown"),
                    hint,
                ))
            }
        }
    }

    fn title(&mut self, title: &str, section: &Section<'_>) -> Result<(), ReadPlanError> {
        if let Some(block) = section.blocks.first() {
            let line = self.blocks.line(block.range.start);
            return Err(unexpected_line(
                line,
                "put it below a heading such as `## Goal`",
            ));
        }
        if self.plan.get("title").is_some_and(|known| known == title) {
            return Ok(());
        }
        self.put("title", title.into(), section.line)
    }

    fn prose(&mut self, section: &Section<'_>) -> Result<String, ReadPlanError> {
        let prose = section.prose(self.blocks)?;
        if prose.edited {
            self.edited(&section.name);
        }
        Ok(prose.value)
    }

    fn list(&mut self, section: &Section<'_>, key: &str) -> Result<(), ReadPlanError> {
        let list = section.list(self.blocks, |_| false)?;
        if list.edited {
            self.edited(&section.name);
        }
        self.put(key, json!(list.value), section.line)
    }

    fn artifacts(&mut self, section: &Section<'_>) -> Result<(), ReadPlanError> {
        let mut stored = Map::new();
        let list = section.list(self.blocks, |raw| match read_stored(raw) {
            Some((name, artifact)) => stored.insert(name, json!(artifact)).is_none(),
            None => false,
        })?;
        if list.edited {
            self.edited(&section.name);
        }
        if !stored.is_empty() {
            self.put_context("stored", stored.into(), section.line)?;
        }
        self.put_context("artifacts", json!(list.value), section.line)
    }

    fn settings(&mut self, section: &Section<'_>) -> Result<(), ReadPlanError> {
        match section.json(self.blocks)? {
            Some((Value::Object(settings), line)) => {
                for (key, value) in settings {
                    self.put(&key, value, line)?;
                }
                Ok(())
            }
            Some((_, line)) => Err(refuse(
                line,
                "the settings are not a JSON object",
                "write `{…}`",
            )),
            None => Ok(()),
        }
    }

    fn steps(&mut self, section: &Section<'_>) -> Result<Vec<Value>, ReadPlanError> {
        let mut found: Vec<(&Item, Option<&Fence>)> = Vec::new();
        for block in section.blocks {
            let line = self.blocks.line(block.range.start);
            match &block.kind {
                BlockKind::List(items) => {
                    found.extend(items.iter().map(|item| (item, item.fences.first())));
                }
                // A block that is not indented far enough still belongs to the step above it.
                BlockKind::Fence(fence) => match found.last_mut() {
                    Some((_, block @ None)) => *block = Some(fence),
                    _ => {
                        return Err(unexpected_line(
                            line,
                            "a block of JSON stands below its step, one for each",
                        ));
                    }
                },
                BlockKind::Heading(..) | BlockKind::Html | BlockKind::Text => {
                    return Err(unexpected_line(
                        line,
                        "a step is an item of a list: `1. What to do (tool)`",
                    ));
                }
            }
        }
        let mut steps = Vec::with_capacity(found.len());
        for (item, fence) in found {
            let line = self.blocks.line(item.start);
            self.places.push((format!("/steps/{}", steps.len()), line));
            if let Some(step) = self.step(item, fence, steps.len())? {
                steps.push(step);
            } else {
                self.places.pop();
            }
        }
        Ok(steps)
    }

    /// The step, or nothing if it is done already.
    fn step(
        &mut self,
        item: &Item,
        fence: Option<&Fence>,
        index: usize,
    ) -> Result<Option<Value>, ReadPlanError> {
        let line = self.blocks.line(item.start);
        if let Some(second) = item.fences.get(1) {
            return Err(unexpected_line(
                self.blocks.line(second.start),
                "a step has one block of JSON",
            ));
        }
        let Some(fence) = fence else {
            if item.done == Some(true) {
                self.notices
                    .push(format!("line {line}: the step is done, so it was left out"));
                return Ok(None);
            }
            self.in_order.push(index);
            let mut step = read_step(&item.text, None).value;
            add_details(&mut step, item, self.blocks);
            return Ok(Some(step.into()));
        };
        let at = self.blocks.line(fence.start);
        if let Some(below) = item
            .children
            .first()
            .map(|child| child.start)
            .or_else(|| item.rest.first().map(|rest| rest.0))
        {
            let hint = "a step with a block has no other text below its line";
            return Err(unexpected_line(self.blocks.line(below), hint));
        }
        if item.done == Some(true) {
            return Err(refuse(
                line,
                "a step with a block cannot be marked as done",
                "remove the step, or its mark",
            ));
        }
        let Value::Object(block) = read_fence(fence, at)? else {
            return Err(refuse(
                at,
                "the block of a step is not a JSON object",
                "write `{…}`",
            ));
        };
        let read = read_step(&item.text, Some(block));
        for key in read.contradicted {
            self.notices.push(format!(
                "line {line}: the line and the `{key}` in its block differ; the line was taken"
            ));
        }
        Ok(Some(read.value.into()))
    }

    /// Turns a place in the JSON into the line it was written in.
    fn locate(&self, error: ReadPlanError) -> ReadPlanError {
        let SourceLocation::Pointer(pointer) = &error.place else {
            return error;
        };
        let is_within = |(place, _): &&(String, usize)| {
            pointer
                .strip_prefix(place.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        let nearest = self
            .places
            .iter()
            .filter(is_within)
            .max_by_key(|(place, _)| place.len());
        let Some((_, line)) = nearest else {
            return ReadPlanError {
                place: SourceLocation::Text { line: 1, column: 1 },
                ..error
            };
        };
        let message = format!("{} ({pointer})", error.message);
        let hint = || "`planwright schema` describes what can stand there".to_owned();
        let suggestion = Some(error.suggestion.unwrap_or_else(hint));
        ReadPlanError {
            code: error.code,
            place: SourceLocation::Text {
                line: *line,
                column: 1,
            },
            message,
            suggestion,
        }
    }
}

/// Adds the text below an instruction to it.
pub(super) fn add_details(step: &mut Map<String, Value>, item: &Item, blocks: &Blocks<'_>) {
    let mut parts: Vec<usize> = item.rest.iter().map(|(start, _)| *start).collect();
    parts.extend(item.children.first().map(|child| child.start));
    let Some(first) = parts.into_iter().min() else {
        return;
    };
    let details = read_prose(&blocks.source[first..item.end.max(first)]);
    let lines: Vec<&str> = details.lines().map(str::trim).collect();
    if let Some(Value::String(instruction)) = step
        .get_mut("agent")
        .and_then(|agent| agent.get_mut("instruction"))
    {
        instruction.push('\n');
        instruction.push_str(lines.join("\n").trim());
    }
}
