//! A briefing as lines of text, for terminals, chats and protocols.

use super::effect::Effect;
use super::file_change::{DiffSign, FileChange};
use super::model::{ActionBriefing, Briefing, CallBriefing, LoopBriefing, StepBriefing};
use super::value_lines::{ValueWriter, escape_line};
use super::wrap::{BriefingLine, Lines, Tone, break_anywhere};
use crate::text::{reveal_around_words, reveal_hidden};
use serde_json::Value;
use std::collections::BTreeSet;

/// The options with which a briefing is rendered.
#[derive(Debug, Clone)]
pub struct RenderOptions {
    /// Columns of the screen.
    pub width: usize,
    /// True: long values are not cut.
    pub full: bool,
    /// Steps that were agreed to before and are as they were: they are named and not described.
    pub agreed: BTreeSet<String>,
}

impl Default for RenderOptions {
    fn default() -> Self {
        Self {
            width: 80,
            full: false,
            agreed: BTreeSet::new(),
        }
    }
}

/// Renders what an approval covers.
pub fn render_briefing(briefing: &Briefing, options: &RenderOptions) -> Vec<BriefingLine> {
    let mut renderer = Renderer {
        lines: Lines::new(options.width),
        options,
    };
    renderer.heading(briefing);
    renderer.steps(&briefing.steps, "");
    renderer.outputs(briefing);
    renderer.risks(briefing);
    renderer.lines.lines
}

/// Renders what the steps do, without the heading of the plan.
pub fn render_steps(briefing: &Briefing, options: &RenderOptions) -> Vec<BriefingLine> {
    let mut renderer = Renderer {
        lines: Lines::new(options.width),
        options,
    };
    renderer.counts(briefing);
    renderer.steps(&briefing.steps, "");
    renderer.outputs(briefing);
    renderer.risks(briefing);
    renderer.lines.lines
}

/// Renders one concrete call and what it does.
pub fn render_call(
    call: &CallBriefing,
    effect: &Effect,
    options: &RenderOptions,
) -> Vec<BriefingLine> {
    let mut renderer = Renderer {
        lines: Lines::new(options.width),
        options,
    };
    renderer.effect(effect, "  ");
    renderer.call(call, "  ");
    renderer.lines.lines
}

struct Renderer<'a> {
    lines: Lines,
    options: &'a RenderOptions,
}

impl Renderer<'_> {
    fn heading(&mut self, briefing: &Briefing) {
        let title = briefing.title.as_deref().unwrap_or(&briefing.plan);
        self.lines.add_wrapped(Tone::Strong, "", &quoted(title));
        let proposer = briefing.proposed_by.as_deref().map(safe_line);
        let proposer = proposer.map(|by| format!(", proposed by {by}"));
        let model = briefing.written_by_model.as_deref().map(safe_line);
        let model = model.map(|model| format!(", written by the model {model}"));
        let origin = format!(
            "{}, version {}{}{}",
            briefing.plan,
            briefing.version,
            proposer.unwrap_or_default(),
            model.unwrap_or_default()
        );
        self.lines.add_wrapped(Tone::Faint, "", &origin);
        if let Some(goal) = briefing
            .goal
            .as_ref()
            .filter(|goal| briefing.title.as_ref() != Some(*goal))
        {
            self.values(&[])
                .write("", "goal", &Value::String(goal.clone()), "");
        }
        if let Some(context) = &briefing.context {
            self.values(&[])
                .write("", "context (given to the executor)", context, "");
        }
        self.lines.blank();
        self.counts(briefing);
    }

    fn counts(&mut self, briefing: &Briefing) {
        let counts = briefing.counts.describe();
        let tone = if briefing.counts.changing > 0 {
            Tone::Warning
        } else {
            Tone::Plain
        };
        self.lines.add_wrapped(tone, "", &counts);
        if let Some(seconds) = briefing.call_timeout_seconds {
            let words = format!("a call may take {seconds} s, unless its step says otherwise");
            self.lines.add_wrapped(Tone::Faint, "", &words);
        }
    }

    fn steps(&mut self, steps: &[StepBriefing], indent: &str) {
        let (changing, quiet): (Vec<_>, Vec<_>) = steps
            .iter()
            .partition(|step| step.effect.kind.changes_something());
        for (heading, group) in [
            ("Changes something:", changing),
            ("Changes nothing:", quiet),
        ] {
            if group.is_empty() {
                continue;
            }
            self.lines.blank();
            self.lines.push(Tone::Strong, format!("{indent}{heading}"));
            for step in group {
                self.step(step, &format!("{indent}  "));
            }
        }
    }

    fn outputs(&mut self, briefing: &Briefing) {
        let Some(outputs) = &briefing.outputs else {
            return;
        };
        self.lines.blank();
        self.lines.push(Tone::Strong, "Gives back:".to_owned());
        for (name, value) in outputs {
            self.values(&[]).write("  ", &safe_line(name), value, "");
        }
    }

    fn risks(&mut self, briefing: &Briefing) {
        for risk in &briefing.risks {
            let words = format!("the author says: {}", quoted(risk));
            self.lines.add_wrapped(Tone::Faint, "", &words);
        }
    }

    fn step(&mut self, step: &StepBriefing, indent: &str) {
        let tool = match &step.action {
            ActionBriefing::Call(call) => safe_line(&call.tool),
            ActionBriefing::Think { .. } => "think".to_owned(),
            ActionBriefing::Agent { .. } => "agent".to_owned(),
            ActionBriefing::Input { .. } => "input".to_owned(),
            ActionBriefing::Plan { plan, .. } => format!("plan {}", safe_line(plan)),
            ActionBriefing::Nothing => "left out".to_owned(),
        };
        let title = step
            .title
            .as_deref()
            .map(|title| format!("  {}", quoted(title)));
        let head = format!("{}  {tool}{}", step.id, title.unwrap_or_default());
        if self.options.agreed.contains(&step.id) {
            self.lines
                .add_wrapped(Tone::Faint, indent, &format!("{head}  (approved before)"));
            return;
        }
        self.lines.add_wrapped(Tone::Strong, indent, &head);
        let below = format!("{indent}  ");
        if step.effect.kind.changes_something() || !matches!(step.action, ActionBriefing::Call(_)) {
            self.effect(&step.effect, &below);
        }
        self.action(step, &below);
        self.conditions(step, &below);
        self.steps_of_plan(step, &below);
    }

    fn steps_of_plan(&mut self, step: &StepBriefing, indent: &str) {
        if !step.steps.is_empty() {
            self.steps(&step.steps, indent);
        }
    }

    fn effect(&mut self, effect: &Effect, indent: &str) {
        let tone = if effect.kind.changes_something() {
            Tone::Warning
        } else {
            Tone::Faint
        };
        self.lines.add_wrapped(tone, indent, &effect.words);
    }

    fn action(&mut self, step: &StepBriefing, indent: &str) {
        match &step.action {
            ActionBriefing::Call(call) => match &step.for_each {
                Some(LoopBriefing { count: Some(_), .. }) => {}
                Some(LoopBriefing { count: None, .. }) | None => self.call(call, indent),
            },
            ActionBriefing::Think { prompt, model } => {
                self.model(model.as_deref(), indent);
                self.marked_text(indent, "prompt", prompt);
            }
            ActionBriefing::Agent {
                instruction,
                target,
                executor,
                model,
                tools,
                max_calls,
            } => {
                if executor.is_none() {
                    self.model(model.as_deref(), indent);
                }
                self.marked_text(indent, "instruction", instruction);
                if let Some(target) = target {
                    self.marked_text(indent, "target", target);
                }
                let calls = format!("at most {max_calls} calls, of these tools:");
                self.lines.add_wrapped(Tone::Plain, indent, &calls);
                for tool in tools {
                    let words = format!("{}: {}", safe_line(&tool.tool), tool.effect.words);
                    self.lines
                        .add_wrapped(Tone::Plain, &format!("{indent}  "), &words);
                }
            }
            ActionBriefing::Input { message, schema } => {
                if let Some(message) = message {
                    self.marked_text(indent, "asks", message);
                }
                self.values(&[]).write(indent, "for", schema, "");
            }
            ActionBriefing::Plan { inputs, late, .. } => {
                if inputs.as_object().is_some_and(|inputs| !inputs.is_empty()) {
                    self.values(late).write(indent, "inputs", inputs, "");
                }
            }
            ActionBriefing::Nothing => {}
        }
    }

    fn model(&mut self, model: Option<&str>, indent: &str) {
        let model = model.map_or_else(|| "the default model".to_owned(), safe_line);
        self.lines
            .add_wrapped(Tone::Plain, indent, &format!("model: {model}"));
    }

    fn call(&mut self, call: &CallBriefing, indent: &str) {
        if let Some(command) = &call.command {
            let shown = reveal_around_words(command);
            let prefix = format!("{indent}$ ");
            let room = self.lines.room(&prefix);
            for (number, line) in shown
                .lines()
                .flat_map(|line| break_anywhere(line, room))
                .enumerate()
            {
                let start = if number == 0 {
                    prefix.clone()
                } else {
                    format!("{indent}│ ")
                };
                self.lines.push(Tone::Warning, format!("{start}{line}"));
            }
        }
        let compared = call.file.as_ref().is_some_and(|file| !file.diff.is_empty());
        let Some(args) = call.args.as_object() else {
            self.values(&call.late)
                .write(indent, "arguments", &call.args, "");
            return;
        };
        for (name, value) in args {
            let is_shown = match name.as_str() {
                "command" | "args" | "env" | "cwd" => call.command.is_some(),
                "content" => compared,
                _ => false,
            };
            if !is_shown {
                let pointer = format!("/{}", crate::json::pointer_token(name));
                self.values(&call.late).write(indent, name, value, &pointer);
            }
        }
        if let Some(file) = &call.file {
            self.file(file, indent);
        }
    }

    fn file(&mut self, file: &FileChange, indent: &str) {
        if let Some(why) = &file.not_compared {
            self.lines.add_wrapped(
                Tone::Warning,
                indent,
                &format!("not compared with the existing file: {why}"),
            );
        }
        if file.exists == Some(true) && file.diff.is_empty() && file.not_compared.is_none() {
            self.lines
                .add_wrapped(Tone::Plain, indent, "the file has this content already");
        }
        let prefix = format!("{indent}│ ");
        let room = self.lines.room(&prefix).saturating_sub(2);
        let mut rows = Vec::new();
        for line in &file.diff {
            let (tone, sign) = match line.sign {
                DiffSign::Same => (Tone::Plain, "  "),
                DiffSign::Added => (Tone::Added, "+ "),
                DiffSign::Removed => (Tone::Removed, "- "),
                DiffSign::Gap => (Tone::Faint, "⋮"),
            };
            for part in break_anywhere(&reveal_hidden(&line.text), room) {
                rows.push((tone, format!("{sign}{part}")));
            }
        }
        let rows: Vec<(Tone, &str)> = rows
            .iter()
            .map(|(tone, row)| (*tone, row.as_str()))
            .collect();
        self.values(&[]).write_rows(indent, &prefix, &rows);
    }

    fn conditions(&mut self, step: &StepBriefing, indent: &str) {
        if let Some(loops) = &step.for_each {
            self.loops(loops, indent);
        }
        let mut say = |words: String| self.lines.add_wrapped(Tone::Faint, indent, &words);
        if let Some(when) = &step.when {
            say(format!("only when {}", safe_line(when)));
        }
        for constraint in &step.constraints {
            say(format!("only if {}", safe_line(constraint)));
        }
        if let Some(expect) = &step.expect {
            say(format!("fails unless {}", safe_line(expect)));
        }
        if !step.secrets.is_empty() {
            say(format!("is given the secret {}", step.secrets.join(", ")));
        }
        if step.gate {
            say("asks again right before it runs".to_owned());
        }
        let mut limits = Vec::new();
        if !step.after.is_empty() {
            limits.push(format!("after {}", step.after.join(", ")));
        }
        if step.retries > 0 {
            limits.push(format!("retried up to {} times", step.retries));
        }
        if let Some(seconds) = step.timeout_seconds {
            limits.push(format!("time limit {seconds} s"));
        }
        if !limits.is_empty() {
            say(limits.join("; "));
        }
        for warning in &step.warnings {
            say(format!("policy warns: {}", safe_line(warning)));
        }
        match &step.rule {
            Some(rule) => say(format!(
                "policy says {} ({}: {})",
                step.verdict,
                safe_line(rule),
                safe_line(&step.reason)
            )),
            None if step.verdict == "deny" => say(format!("denied: {}", safe_line(&step.reason))),
            None => {}
        }
        if let Some(undo) = &step.undo {
            say(format!("undo: {}", safe_line(&undo.tool)));
            self.call(undo, &format!("{indent}  "));
        }
    }

    fn loops(&mut self, loops: &LoopBriefing, indent: &str) {
        let Some(count) = loops.count else {
            let words = format!(
                "once for each element of {}; the number is not known yet",
                escape_line(&reveal_around_words(&loops.over))
            );
            self.lines.add_wrapped(Tone::Warning, indent, &words);
            return;
        };
        let times = if count == 1 {
            "once".to_owned()
        } else {
            format!("{count} times, once for each element")
        };
        self.lines.add_wrapped(Tone::Warning, indent, &times);
        for (index, item) in loops.items.iter().enumerate() {
            // The pointers are those of one element.
            self.values(&loops.late)
                .write(indent, &format!("[{index}]"), item, "");
        }
        if count > loops.items.len() {
            let rest = format!("{indent}… {} more elements", count - loops.items.len());
            self.lines.push(Tone::Warning, rest);
        }
    }

    /// A text of the plan that words of ours may have been put into.
    fn marked_text(&mut self, indent: &str, name: &str, text: &str) {
        let shown = reveal_around_words(text);
        self.values(&[]).write_text(indent, name, &shown);
    }

    fn values<'a>(&'a mut self, late: &'a [String]) -> ValueWriter<'a> {
        ValueWriter {
            lines: &mut self.lines,
            late,
            full: self.options.full,
        }
    }
}

/// The longest title that is shown whole: it is one line in a list.
const MAX_TITLE: usize = 200;

/// Words of the plan's author, marked as such.
fn quoted(text: &str) -> String {
    let shown = safe_line(text).replace(['“', '”'], "\"");
    let size = shown.chars().count();
    if size <= MAX_TITLE {
        return format!("“{shown}”");
    }
    let start: String = shown.chars().take(MAX_TITLE).collect();
    format!("“{start}…” ({size} characters)")
}

fn safe_line(text: &str) -> String {
    escape_line(&reveal_hidden(text)).into_owned()
}
