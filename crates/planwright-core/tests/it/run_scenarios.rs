//! Stories about runs, told in `tests/scenarios/*.txt`: what is said to a run, and everything that
//! follows.
//!
//! A story begins with a sentence and the plan: `step <id>` with `after <ids>`,
//! `safe|keyed|unsafe`, `retry <max>`, `on <code>`, `backoff <s>`, `timeout <s>`, `noncritical`, `optional`,
//! `gated`, `missing` (the tool is not there), `tool <name>`, `undo <tool>` and `call <letter>`
//! (steps with the same letter make the same call), `each <n>` (runs over so many elements),
//! `parallel <n>`, `skipped all|<element>` (its condition is false), `asks` (asks a person instead
//! of calling a tool); `limit <n>`, `budget <what> <n>`, `guards off`.
//!
//! Then lines with `>` say what happens, and the lines below what follows from it: `go`, `answer
//! <step>`, `fail <step> [retryable] <message>`, `refuse <step> <message>` (it had no effect),
//! `garble <step> <message>` (it was done, and its answer is of no use), `lose <step>`, `not-made <step>`, `late <step>`,
//! `start <step>`, `wait <ms>`, `ask <step>` (its tool asks), `give <step> <n>`, `decline <step>`,
//! `pause`, `resume`, `cancel`, `approve <step>`, `deny <step> <reason>`, `resolve <step>
//! happened|did-not-happen|run-again` (each of these also `… as agent`, approvals also `… version
//! <n>`), `crash`, `fork <step>`, `replay`, and `show`, which tells where everything stands; `park
//! <step>` and `look-again` are about runs of sub-plans, `undo <run>` and `undone <step> <run>`
//! about a run that is taken back. After each the run does what it can, as the engine would. The
//! texts below are written with UPDATE_DOCS=1 and read by a person.

use crate::run_files;
use crate::run_laws::check_journal;
use crate::run_world::{History, asked, person};
use planwright_core::digest::Digest;
use planwright_core::journal::{Cause, Entry};
use planwright_core::plan::{Bounds, Document, Input, OnFailure, Plan, Retry, Step, StepIx, Undo};
use planwright_core::principal::{Assurance, Principal, PrincipalKind};
use planwright_core::run::{
    CallEffect, CallReport, Command, Fork, Refusal, Reply, Resolution, RunEvent, RunReport, Shown,
    StepError, StepErrorCode, StepState, StoredValue, reusable_results,
};
use planwright_core::tool::{EffectClass, ToolName};
use serde_json::{Map, json};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

/// What a script says about a step beside the plan.
#[derive(Debug, Clone)]
struct Extra {
    class: EffectClass,
    missing: bool,
    call: String,
    /// What a false condition skips: the whole step, or one element.
    skipped: Option<String>,
}

/// A story being told.
#[derive(Debug)]
pub(crate) struct Story {
    /// The lines before the first `>`, as they were written.
    head: String,
    script: Vec<String>,
    pub(crate) document: Document,
    extras: BTreeMap<String, Extra>,
    guards: bool,
    on_paper: Option<History>,
}

impl Story {
    pub(crate) fn read(text: &str) -> Self {
        let mut story = Self {
            head: String::new(),
            script: Vec::new(),
            document: Document {
                id: Some("plan-story".parse().unwrap()),
                ..Document::default()
            },
            extras: BTreeMap::new(),
            guards: true,
            on_paper: None,
        };
        for line in text.lines() {
            if let Some(said) = line.strip_prefix("> ") {
                story.script.push(said.to_owned());
            } else if story.script.is_empty() {
                writeln!(story.head, "{line}").unwrap();
                story.set_up(line);
            }
        }
        story
    }

    fn set_up(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let limits = &mut self.document.limits;
        match words.as_slice() {
            ["step", id, options @ ..] => {
                let (step, extra) = read_step(id, options);
                self.document.steps.push(step);
                self.extras.insert((*id).to_owned(), extra);
            }
            ["limit", count] => limits.max_concurrency = count.parse().ok(),
            ["budget", "calls", count] => limits.budget.calls = count.parse().ok(),
            ["budget", "seconds", count] => limits.budget.seconds = count.parse().ok(),
            ["budget", "same-call", count] => limits.budget.same_call = count.parse().ok(),
            ["budget", "tool", tool, count] => {
                limits
                    .budget
                    .per_tool
                    .insert((*tool).to_owned(), count.parse().unwrap());
            }
            ["on-failure", "continue"] => limits.on_failure = Some(OnFailure::Continue),
            ["guards", "off"] => self.guards = false,
            [] => {}
            ["#", ..] => {}
            _ => panic!("this line of a plan means nothing: {line}"),
        }
    }

    fn plan(&self) -> Arc<Plan> {
        Arc::new(
            Plan::compile(self.document.clone(), &Bounds::default())
                .expect("the story's plan is sound"),
        )
    }

    fn history(&mut self) -> &mut History {
        self.on_paper.as_mut().expect("the story has begun")
    }

    /// Tells the story and returns it with everything that followed.
    pub(crate) fn tell(mut self) -> (String, History) {
        self.on_paper = Some(History::begin(&self.plan(), self.guards));
        let mut text = self.head.clone();
        for said in std::mem::take(&mut self.script) {
            writeln!(text, "> {said}").unwrap();
            let known = self.history().entries.len();
            let spoken = self.happen(&said);
            let history = self.history();
            let known = known.min(history.entries.len());
            for entry in &history.entries[if said.starts_with("fork") { 0 } else { known }..] {
                writeln!(text, "  {}", describe(entry)).unwrap();
            }
            for line in spoken.lines() {
                writeln!(text, "  {line}").unwrap();
            }
        }
        let history = self.on_paper.take().expect("the story has begun");
        check_journal(history.run.plan(), &history.entries);
        (text, history)
    }

    /// Does what the line says and everything that follows from it. Returns what is to be said
    /// beside the new entries.
    fn happen(&mut self, said: &str) -> String {
        let words: Vec<&str> = said.split_whitespace().collect();
        match words.as_slice() {
            ["show"] => return self.show(),
            ["replay"] => {
                let history = self.history();
                let again = history.fold(history.records.len());
                assert_eq!(again.run.steps_digest(), history.run.steps_digest());
                return format!("the same: {}", again.run.status().as_str());
            }
            ["wait", ms] => {
                let pause = Duration::from_millis(ms.parse().unwrap());
                self.history().advance(pause);
            }
            ["crash"] => {
                let history = self.history();
                *history = history.fold(history.records.len());
                history.give(&Command::Recover, Cause::Recovery).unwrap();
            }
            ["fork", step] => self.fork(step),
            _ => {
                if let Err(refusal) = self.give(&words) {
                    return format!("refused: {refusal}");
                }
            }
        }
        self.go();
        String::new()
    }

    fn give(&mut self, words: &[&str]) -> Result<(), Refusal> {
        let Some(command) = self.command(words) else {
            return Ok(());
        };
        let cause = if matches!(command, Command::Report { .. }) {
            Cause::Report
        } else {
            Cause::Command
        };
        self.history().give(&command, cause).map(|_| ())
    }

    fn command(&mut self, words: &[&str]) -> Option<Command> {
        let (words, by) = match words {
            [rest @ .., "as", "agent"] => (rest, Principal::agent("planner")),
            [rest @ .., "as", "rule"] => (rest, held_by()),
            _ => (words, person()),
        };
        let (words, shown) = match words {
            [rest @ .., "version", number] => (rest, Shown::Version(number.parse().unwrap())),
            _ => (words, Shown::Version(1)),
        };
        let assurance = Assurance::Terminal;
        Some(match words {
            ["go"] => return None,
            ["pause"] => Command::Pause { by },
            ["resume"] => Command::Resume { by },
            ["cancel"] => Command::Cancel { by },
            ["stall"] => Command::Stall {
                since: self.history().now,
            },
            ["queue", slots] => Command::Queue {
                slots: slots.parse().unwrap(),
            },
            ["end-isolation"] => Command::EndIsolation,
            ["give-up", reason @ ..] => Command::GiveUp {
                by,
                reason: reason.join(" "),
            },
            ["approve", step] => Command::Approve {
                step: (*step).to_owned(),
                by,
                assurance,
                shown,
            },
            ["deny", step, reason @ ..] => Command::Deny {
                step: (*step).to_owned(),
                by,
                shown,
                reason: reason.join(" "),
            },
            ["skip", step, reason @ ..] => Command::LeaveOut {
                step: (*step).to_owned(),
                by,
                reason: reason.join(" "),
            },
            ["resolve", step, what] => {
                let value = value_of(step);
                let resolution = match *what {
                    "happened" => Resolution::Happened { value },
                    "did-not-happen" => Resolution::DidNotHappen,
                    "run-again" => Resolution::RunAgain,
                    other => panic!("no scenario says {other}"),
                };
                Command::Resolve {
                    step: (*step).to_owned(),
                    by,
                    resolution,
                }
            }
            ["answer", step] => self.report(step, CallReport::Succeeded(value_of(step))),
            ["fail", step, "retryable", message @ ..] => {
                let error =
                    StepError::new(StepErrorCode::ToolError, message.join(" ")).retryable(true);
                self.report(step, CallReport::Failed(error))
            }
            ["fail", step, message @ ..] => self.report(
                step,
                CallReport::Failed(StepError::new(StepErrorCode::ToolError, message.join(" "))),
            ),
            ["refuse", step, message @ ..] => {
                let error = StepError::new(StepErrorCode::ToolError, message.join(" "));
                self.report(
                    step,
                    CallReport::Failed(error.with_effect(CallEffect::None)),
                )
            }
            ["garble", step, message @ ..] => {
                let error = StepError::new(StepErrorCode::OutputTooLarge, message.join(" "));
                self.report(
                    step,
                    CallReport::Failed(error.with_effect(CallEffect::Done)),
                )
            }
            ["lose", step] => self.report(
                step,
                CallReport::Lost {
                    reason: "the line broke".into(),
                },
            ),
            ["park", step] => self.report(
                step,
                CallReport::Parked {
                    run: "run_child".parse().unwrap(),
                },
            ),
            ["look-again"] => Command::ResumeChildren,
            ["undo", run] => Command::Undo {
                run: run.parse().unwrap(),
                digest: Digest::of_bytes(b"undo"),
                by,
                assurance,
            },
            ["undone", step, run] => Command::NoteUndone {
                step: self.find(step),
                run: run.parse().unwrap(),
            },
            ["not-made", step] => self.report(step, CallReport::NotMade),
            ["late", step] => {
                let step = self.find(step);
                Command::Report {
                    step,
                    attempt: 1,
                    answer: CallReport::Succeeded(value_of("late")),
                }
            }
            ["ask", step] => self.report(step, CallReport::Asked(Box::new(asked()))),
            ["give", step, number] => self.reply(step, by, values(number)),
            ["decline", step] => self.reply(step, by, Reply::Decline),
            ["start", step] => self.start(self.find(step)),
            _ => panic!("this line means nothing: {}", words.join(" ")),
        })
    }

    fn find(&self, step: &str) -> StepIx {
        let run = &self.on_paper.as_ref().expect("the story has begun").run;
        run.find(step)
            .unwrap_or_else(|| panic!("there is no step {step}"))
    }

    fn report(&mut self, step: &str, answer: CallReport) -> Command {
        let step = self.find(step);
        let attempt = self.history().run.step(step).tally().attempts;
        Command::Report {
            step,
            attempt,
            answer,
        }
    }

    fn written(&self, ix: StepIx) -> &Step {
        self.on_paper
            .as_ref()
            .expect("the story has begun")
            .run
            .definition(ix)
    }

    fn reply(&mut self, step: &str, by: Principal, reply: Reply) -> Command {
        let ix = self.find(step);
        let question = match self.history().run.step(ix) {
            StepState::AwaitingInput { asked, .. } => asked.digest(),
            _ => Digest::ZERO,
        };
        Command::GiveInput {
            step: step.to_owned(),
            by,
            question,
            replies: vec![reply],
        }
    }

    fn extra(&self, ix: StepIx) -> &Extra {
        &self.extras[self.written(ix).id.as_ref().unwrap().as_str()]
    }

    fn start(&self, step: StepIx) -> Command {
        let extra = self.extra(step);
        let run = &self.on_paper.as_ref().expect("the story has begun").run;
        if run.loops(step) {
            let Some(list) = &self.written(step).for_each else {
                panic!("it loops")
            };
            let count = list.as_array().map_or(0, Vec::len);
            return Command::OpenLoop {
                step,
                items: StoredValue::Inline(Arc::new(list.clone())),
                count,
            };
        }
        if run.definition(step).asks_person() {
            return Command::AskInput {
                step,
                message: Some("How many?".to_owned()),
            };
        }
        let tool = ToolName::try_from(self.written(step).tool.clone().unwrap()).unwrap();
        let call = Digest::of_bytes(extra.call.as_bytes());
        Command::Start {
            step,
            tool,
            class: extra.class,
            call,
            facts: None,
        }
    }

    /// What the engine does between two waits.
    fn go(&mut self) {
        self.history().give(&Command::Tick, Cause::Timer).unwrap();
        loop {
            self.close_loops();
            let history = self.history();
            let free = history.run.schedule().free_slots();
            let startable: Vec<StepIx> = history
                .run
                .schedule()
                .startable(history.now)
                .take(free)
                .collect();
            if startable.is_empty() {
                break;
            }
            let mut moved = false;
            for ix in startable {
                // What is to be called alone waits until nothing else is in flight.
                let run = &self.history().run;
                let alone = run.schedule().needs_isolation(ix).is_some();
                if alone && run.schedule().running().len() > 0 {
                    continue;
                }
                moved = true;
                if alone {
                    let isolate = Command::Isolate { step: ix };
                    self.history().give(&isolate, Cause::Schedule).unwrap();
                }
                let command = match self.extra(ix) {
                    Extra {
                        skipped: Some(only),
                        ..
                    } if self.is_skipped(ix, only) => Command::Skip {
                        step: ix,
                        reason: "when: it is false".into(),
                    },
                    Extra { missing: true, .. } if self.written(ix).optional => Command::Skip {
                        step: ix,
                        reason: "unknown tool".into(),
                    },
                    Extra { missing: true, .. } => Command::Fail {
                        step: ix,
                        error: StepError::new(StepErrorCode::ToolUnavailable, "unknown tool"),
                    },
                    _ => self.start(ix),
                };
                // A critical failure a moment ago is reason enough to refuse.
                let _given = self.history().give(&command, Cause::Schedule);
            }
            if !moved {
                break;
            }
        }
        self.history()
            .give(&Command::AskApprovals, Cause::Schedule)
            .unwrap();
        self.history()
            .give(&Command::Settle, Cause::Schedule)
            .unwrap();
    }

    fn close_loops(&mut self) {
        let closable: Vec<StepIx> = self.history().run.schedule().closable().collect();
        for step in closable {
            let run = &self.history().run;
            let value = |ix| match run.step(ix).value() {
                Some(StoredValue::Inline(value)) => (**value).clone(),
                _ => serde_json::Value::Null,
            };
            let list = run
                .open_loop(step)
                .unwrap()
                .instances()
                .map(value)
                .collect();
            let value = StoredValue::Inline(Arc::new(serde_json::Value::Array(list)));
            self.history()
                .give(&Command::CloseLoop { step, value }, Cause::Schedule)
                .unwrap();
        }
    }

    /// Whether the condition of the step, or of this element, is false.
    fn is_skipped(&self, ix: StepIx, only: &str) -> bool {
        let run = &self.on_paper.as_ref().expect("the story has begun").run;
        let fresh = run.step(ix).tally().attempts == 0;
        fresh && (only == "all" && run.instance(ix).is_none() || run.step_id(ix).as_str() == only)
    }

    fn fork(&mut self, from: &str) {
        let plan = self.plan();
        let first = self.find(from);
        let source = &self.history().run;
        let reused = reusable_results(source, &plan, &[first]);
        let started = RunEvent::RunStarted {
            plan: plan.id().clone(),
            version: 1,
            digest: Digest::of_bytes(b"shown"),
            variables: serde_json::Map::new(),
            max_concurrency: 4,
            guards: true,
            by: person(),
            forked_from: Some(Box::new(Fork {
                run: source.id().clone(),
                from: vec![from.parse().unwrap()],
            })),
            consent: None,
            undoes: None,
            parent: None,
            document: None,
            trace: None,
            reflection: None,
            call_timeout_ms: None,
            stepwise: false,
        };
        let mut fork = History::begin_with(&plan, "run_fork".parse().unwrap(), started);
        for result in reused {
            let step = plan.step_id(result.step).clone();
            fork.write(
                RunEvent::ResultReused {
                    step,
                    value: result.value,
                },
                Cause::Command,
            );
        }
        self.on_paper = Some(fork);
    }

    fn show(&mut self) -> String {
        let history = self.history();
        let report = RunReport::new(&history.run, history.now);
        let mut text = format!(
            "run {} after {} ms\n",
            report.status,
            report.duration.as_millis()
        );
        for step in report.steps {
            let error = step.error.map_or(String::new(), |error| {
                format!(" ({}) {}", error.code, error.message)
            });
            let calls = match step.attempts {
                0 => String::new(),
                1 => ", 1 call".to_owned(),
                calls => format!(", {calls} calls"),
            };
            writeln!(text, "{} {}{calls}{error}", step.id, step.status).unwrap();
            for item in step.items.into_iter().flatten() {
                let error = item.error.map_or(String::new(), |error| {
                    format!(" ({}) {}", error.code, error.message)
                });
                writeln!(text, "  [{}] {}{error}", item.index, item.status).unwrap();
            }
        }
        text
    }
}

fn read_step(id: &str, options: &[&str]) -> (Step, Extra) {
    let mut step = Step {
        id: Some(id.parse().unwrap()),
        tool: Some("w.tool".into()),
        ..Step::default()
    };
    let mut extra = Extra {
        class: EffectClass::Safe,
        missing: false,
        call: id.to_owned(),
        skipped: None,
    };
    let mut retry = Retry::default();
    let mut options = options.iter();
    while let Some(option) = options.next() {
        let mut next = || {
            *options
                .next()
                .unwrap_or_else(|| panic!("`{option}` of step {id} needs a value"))
        };
        match *option {
            "after" => step.depends_on = next().split(',').map(|id| id.parse().unwrap()).collect(),
            "safe" => extra.class = EffectClass::Safe,
            "keyed" => extra.class = EffectClass::Keyed,
            "unsafe" => extra.class = EffectClass::Unsafe,
            "retry" => retry.max = next().parse().unwrap(),
            "on" => retry.on.push(next().to_owned()),
            "backoff" => retry.backoff = next().parse().unwrap(),
            "timeout" => step.timeout_seconds = next().parse().ok(),
            "noncritical" => step.critical = Some(false),
            "optional" => step.optional = true,
            "gated" => step.approval_required = true,
            "missing" => extra.missing = true,
            "undo" => {
                step.undo = Some(Box::new(Undo {
                    tool: next().to_owned(),
                    args: serde_json::Map::new(),
                }));
            }
            "tool" => step.tool = Some(next().to_owned()),
            "call" => extra.call = next().to_owned(),
            "each" => {
                let count: usize = next().parse().unwrap();
                step.for_each = Some(json!((0..count).collect::<Vec<_>>()));
            }
            "parallel" => step.max_parallel = next().parse().ok(),
            "skipped" => extra.skipped = Some(next().to_owned()),
            "asks" => {
                let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
                (step.tool, step.input) = (
                    None,
                    Some(Box::new(Input {
                        message: None,
                        schema,
                    })),
                );
            }
            other => panic!("step {id} cannot be {other}"),
        }
    }
    step.retry = (retry.max > 0).then(|| Box::new(retry));
    (step, extra)
}

fn values(number: &str) -> Reply {
    let number = number
        .parse::<u32>()
        .map_or_else(|_| json!(number), |number| json!(number));
    Reply::Values(Map::from_iter([("n".to_owned(), number)]))
}

/// The rule that holds what came with a store from elsewhere.
fn held_by() -> Principal {
    Principal {
        kind: PrincipalKind::Policy,
        name: "adoption".to_owned(),
    }
}

fn value_of(step: &str) -> StoredValue {
    StoredValue::Inline(Arc::new(json!({"from": step})))
}

fn describe(entry: &Entry<RunEvent>) -> String {
    match &entry.event {
        RunEvent::RunStarted {
            forked_from: Some(fork),
            ..
        } => {
            format!("run started, forked from {}", fork.run)
        }
        RunEvent::RunStarted { .. } => "run started".into(),
        RunEvent::ResultReused { step, .. } => format!("{step}: result reused"),
        RunEvent::AttemptStarted { step, attempt, .. } => {
            format!("{step}: attempt {attempt} started")
        }
        RunEvent::AttemptSucceeded { step, attempt, .. } => {
            format!("{step}: attempt {attempt} succeeded")
        }
        RunEvent::AttemptFailed {
            step,
            attempt,
            error,
            retry_at,
        } => {
            let again = retry_at.map_or(String::new(), |at| {
                format!(", again in {} ms", at.since(entry.at).as_millis())
            });
            format!(
                "{step}: attempt {attempt} failed ({}: {}){again}",
                error.code, error.message
            )
        }
        RunEvent::AttemptInterrupted {
            step,
            attempt,
            reason,
        } => {
            format!("{step}: attempt {attempt} interrupted ({reason})")
        }
        RunEvent::AttemptCancelled { step, attempt } => {
            format!("{step}: attempt {attempt} cancelled")
        }
        RunEvent::OutcomeLost {
            step,
            attempt,
            reason,
        } => {
            format!("{step}: outcome of attempt {attempt} lost ({reason})")
        }
        RunEvent::OutcomeResolved {
            step,
            resolution,
            by,
        } => {
            let what = match resolution {
                Resolution::Happened { .. } => "it happened",
                Resolution::DidNotHappen => "it did not happen",
                Resolution::RunAgain => "run it again",
            };
            format!("{step}: {by} says: {what}")
        }
        RunEvent::ChildParked { step, run, .. } => format!("{step}: {run} waits for a person"),
        RunEvent::ChildResumed { step } => format!("{step}: its run is looked at again"),
        RunEvent::UndoOpened { run, by, .. } => format!("{by} ordered the undo {run}"),
        RunEvent::StepUndone { step, run } => format!("{step}: undone by {run}"),
        RunEvent::StepFailed { step, error } => {
            format!("{step}: failed ({}: {})", error.code, error.message)
        }
        RunEvent::RunStalled { since } => format!("run stalled since {since}"),
        RunEvent::StepIsolated { step } => format!("{step}: is called alone next"),
        RunEvent::IsolationEnded { step } => format!("{step}: is not alone any more"),
        RunEvent::RunQueued { slots } => format!("run waits for one of {slots} to end"),
        RunEvent::RunGivenUp { by, reason, .. } => format!("run given up by {by} ({reason})"),
        RunEvent::StepSkipped {
            step,
            reason,
            by: _,
        } => format!("{step}: skipped ({reason})"),
        RunEvent::ApprovalRequested { step, .. } => format!("{step}: approval requested"),
        RunEvent::ApprovalGranted { step, by, .. } => format!("{step}: approved by {by}"),
        RunEvent::ApprovalDenied { step, by, reason } => {
            format!("{step}: denied by {by} ({reason})")
        }
        RunEvent::LoopOpened { step, count, .. } => format!("{step}: runs over {count} elements"),
        RunEvent::LoopClosed { step, value } => {
            let StoredValue::Inline(list) = value else {
                panic!("stories have small values")
            };
            let values = list.as_array().into_iter().flatten();
            let from = values.map(|value| value["from"].as_str().unwrap_or("nothing").to_owned());
            format!(
                "{step}: closed with the values of {}",
                from.collect::<Vec<_>>().join(", ")
            )
        }
        RunEvent::InputRequested {
            step,
            attempt: None,
            ..
        } => format!("{step}: asks a person"),
        RunEvent::InputRequested {
            step,
            attempt: Some(attempt),
            held: true,
            ..
        } => {
            format!("{step}: attempt {attempt} asks a person and waits")
        }
        RunEvent::InputRequested {
            step,
            attempt: Some(attempt),
            ..
        } => {
            format!("{step}: attempt {attempt} asks a person")
        }
        RunEvent::InputGiven {
            step, by, replies, ..
        } => {
            let replies = serde_json::to_string(replies).unwrap();
            format!("{step}: {by} answers {replies}")
        }
        RunEvent::RunPaused { by } => format!("run paused by {by}"),
        RunEvent::RunResumed { by } => format!("run resumed by {by}"),
        RunEvent::CancelRequested { by } => format!("cancel requested by {by}"),
        RunEvent::RunCompleted { .. } => "run completed".into(),
        RunEvent::RunFailed { .. } => "run failed".into(),
        RunEvent::RunCancelled { .. } => "run cancelled".into(),
        RunEvent::ModelUsed { used, .. } => format!("{} was asked as {}", used.model, used.role),
        RunEvent::AgentTurn {
            step, turn, calls, ..
        } => {
            format!("{step}: turn {turn} wants {} calls", calls.len())
        }
        RunEvent::RunReflected {
            cycle, assessment, ..
        } => format!("cycle {cycle}: {assessment}"),
        RunEvent::RunAdjusted { version, .. } => {
            format!("run adjusted, goes on with version {version}")
        }
        RunEvent::CriteriaChecked { checks, .. } => format!("{} criteria checked", checks.len()),
    }
}

/// The stories there are. The table of states lies beside them.
pub(crate) fn stories() -> Vec<String> {
    let mut names = run_files::names("scenarios", "txt");
    names.retain(|name| name != "step_table");
    names
}

#[test]
fn every_story_goes_as_it_is_told() {
    let names = stories();
    assert!(names.len() >= 20, "only {} stories", names.len());
    for name in names {
        let path = format!("scenarios/{name}.txt");
        let (told, _) = Story::read(&run_files::read(&path)).tell();
        run_files::check(&path, &told);
    }
}
