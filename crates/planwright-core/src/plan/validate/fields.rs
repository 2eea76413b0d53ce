//! Checks of single fields: one action per step, numbers in range, texts of bounded length.

use crate::plan::finding::Findings;
use crate::plan::{Bounds, Code, Document, Finding, Limits, Retry, Step};

/// No time in a plan is longer than this: about ten years.
const MAX_SECONDS: f64 = 315_360_000.0;

pub(crate) fn check_fields(document: &Document, bounds: &Bounds, findings: &mut Findings) {
    check_texts(document, bounds, findings);
    check_limits(&document.limits, findings);
    if let Some(seconds) = document.estimated_duration {
        Numbers {
            findings,
            step: None,
        }
        .seconds("/estimatedDuration", seconds);
    }
    for (index, step) in document.steps.iter().enumerate() {
        let at = format!("/steps/{index}");
        check_action(step, &at, findings);
        check_numbers(step, &at, findings);
        check_step_texts(step, &at, bounds, findings);
    }
}

fn check_action(step: &Step, at: &str, findings: &mut Findings) {
    let present: Vec<&str> = [
        ("tool", step.tool.is_some()),
        ("think", step.think.is_some()),
        ("agent", step.agent.is_some()),
        ("input", step.input.is_some()),
        ("plan", step.plan.is_some()),
    ]
    .into_iter()
    .filter_map(|(name, present)| present.then_some(name))
    .collect();
    let finding = match present[..] {
        ["tool"]
            if step
                .tool
                .as_deref()
                .is_some_and(|name| name.trim().is_empty()) =>
        {
            Finding::new(
                Code::NoAction,
                format!("{at}/tool"),
                "the name of the tool is empty",
            )
        }
        [] if !step.args.is_empty() => Finding::new(
            Code::NoAction,
            at,
            "the step has `args` but no `tool` to give them to",
        ),
        [] => Finding::new(Code::NoAction, at, "the step has no action").suggest(Some(
            "add `tool`, `think`, `agent`, `input` or `plan`".to_owned(),
        )),
        [only] if only != "tool" && !step.args.is_empty() => Finding::new(
            Code::SeveralActions,
            at,
            format!("the step has `{only}`, and `args` that only a tool takes"),
        ),
        [_] => return,
        _ => {
            let message = format!("the step has several actions: {}", present.join(", "));
            Finding::new(Code::SeveralActions, at, message)
                .suggest(Some("make them steps of their own".to_owned()))
        }
    };
    findings.add(finding.of_step(step.id.as_ref()));
}

struct Numbers<'a> {
    findings: &'a mut Findings,
    step: Option<&'a Step>,
}

impl Numbers<'_> {
    fn refuse(&mut self, pointer: &str, message: String) {
        let id = self.step.and_then(|step| step.id.as_ref());
        self.findings
            .add(Finding::new(Code::BadNumber, pointer, message).of_step(id));
    }

    fn seconds(&mut self, pointer: &str, seconds: f64) {
        if !(0.0..=MAX_SECONDS).contains(&seconds) {
            self.refuse(
                pointer,
                format!("a time is 0 to {MAX_SECONDS} seconds, not {seconds}"),
            );
        }
    }

    fn between(&mut self, pointer: &str, value: f64, low: f64, high: f64) {
        if !(low..=high).contains(&value) {
            self.refuse(
                pointer,
                format!("the number must be from {low} to {high}, not {value}"),
            );
        }
    }

    fn at_least_one(&mut self, pointer: &str, value: Option<u32>) {
        if value == Some(0) {
            self.refuse(pointer, "the number must be at least 1".to_owned());
        }
    }
}

fn check_numbers(step: &Step, at: &str, findings: &mut Findings) {
    let mut numbers = Numbers {
        findings,
        step: Some(step),
    };
    if let Some(seconds) = step.timeout_seconds {
        let pointer = format!("{at}/timeoutSeconds");
        numbers.seconds(&pointer, seconds);
        if seconds == 0.0 {
            numbers.refuse(
                &pointer,
                "a timeout of 0 seconds lets nothing finish".to_owned(),
            );
        }
    }
    numbers.at_least_one(&format!("{at}/maxParallel"), step.max_parallel);
    if let Some(agent) = &step.agent {
        numbers.at_least_one(&format!("{at}/agent/maxTurns"), agent.max_turns);
    }
    if let Some(retry) = &step.retry {
        let Retry {
            max,
            backoff,
            factor,
            jitter,
            on: _,
        } = &**retry;
        numbers.between(&format!("{at}/retry/max"), f64::from(*max), 0.0, 1_000.0);
        numbers.seconds(&format!("{at}/retry/backoff"), *backoff);
        numbers.between(&format!("{at}/retry/factor"), *factor, 0.0, 1_000.0);
        numbers.between(&format!("{at}/retry/jitter"), *jitter, 0.0, 1.0);
    }
}

fn check_limits(limits: &Limits, findings: &mut Findings) {
    let mut numbers = Numbers {
        findings,
        step: None,
    };
    numbers.at_least_one("/limits/maxConcurrency", limits.max_concurrency);
    if let Some(seconds) = limits.budget.seconds {
        numbers.seconds("/limits/budget/seconds", seconds);
    }
}

struct Texts<'a> {
    bounds: &'a Bounds,
    findings: &'a mut Findings,
    step: Option<&'a Step>,
}

impl Texts<'_> {
    fn check<'t>(
        &mut self,
        pointer: impl Fn() -> String,
        texts: impl IntoIterator<Item = &'t str>,
    ) {
        for text in texts
            .into_iter()
            .filter(|text| text.len() > self.bounds.max_text)
        {
            let message = format!(
                "the text has {} bytes, at most {} are kept",
                text.len(),
                self.bounds.max_text
            );
            let id = self.step.and_then(|step| step.id.as_ref());
            self.findings
                .add(Finding::new(Code::TooLarge, pointer(), message).of_step(id));
        }
    }
}

fn check_texts(document: &Document, bounds: &Bounds, findings: &mut Findings) {
    let mut texts = Texts {
        bounds,
        findings,
        step: None,
    };
    texts.check(|| "/title".into(), document.title.as_deref());
    texts.check(|| "/goal".into(), document.goal.as_deref());
    texts.check(|| "/plannerModel".into(), document.planner_model.as_deref());
    texts.check(
        || "/executorModel".into(),
        document.executor_model.as_deref(),
    );
    texts.check(
        || "/successCriteria".into(),
        document.success_criteria.iter().map(String::as_str),
    );
    texts.check(
        || "/risks".into(),
        document.risks.iter().map(String::as_str),
    );
    texts.check(
        || "/toolsRequired".into(),
        document.tools_required.iter().map(String::as_str),
    );
    texts.check(
        || "/context/notes".into(),
        document.context.notes.as_deref(),
    );
    texts.check(
        || "/context/artifacts".into(),
        document.context.artifacts.iter().map(String::as_str),
    );
}

fn check_step_texts(step: &Step, at: &str, bounds: &Bounds, findings: &mut Findings) {
    let mut texts = Texts {
        bounds,
        findings,
        step: Some(step),
    };
    texts.check(|| format!("{at}/title"), step.title.as_deref());
    texts.check(|| format!("{at}/tool"), step.tool.as_deref());
    texts.check(|| format!("{at}/result"), step.result.as_deref());
    texts.check(|| format!("{at}/capability"), step.capability.as_deref());
    texts.check(
        || format!("{at}/capabilityLabel"),
        step.capability_label.as_deref(),
    );
    texts.check(
        || format!("{at}/labels"),
        step.labels.iter().map(String::as_str),
    );
    texts.check(
        || format!("{at}/think/prompt"),
        step.think.as_deref().map(|think| &*think.prompt),
    );
    texts.check(
        || format!("{at}/agent/instruction"),
        step.agent.as_deref().map(|agent| &*agent.instruction),
    );
    texts.check(
        || format!("{at}/agent/target"),
        step.agent
            .as_deref()
            .and_then(|agent| agent.target.as_deref()),
    );
    texts.check(
        || format!("{at}/input/message"),
        step.input
            .as_deref()
            .and_then(|input| input.message.as_deref()),
    );
    texts.check(
        || format!("{at}/undo/tool"),
        step.undo.as_deref().map(|undo| &*undo.tool),
    );
}
