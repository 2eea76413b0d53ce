//! What is seen of a run while it goes on. Drawn on a terminal, written as lines elsewhere.

use crate::terminal::printer::{DIM, GREEN, Printer, RED, YELLOW, duration, line};
use crate::terminal::spinner::start_spinning;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use planwright_core::id::{RunId, StepId};
use planwright_core::journal::Entry;
use planwright_core::plan::Glyph;
use planwright_core::run::{AgentCall, CallFate, Look, Run, RunEvent, StepState, StoredValue};
use planwright_core::text::escape_invisible;
use planwright_engine::Observer;
use planwright_engine::port::{LogLevel, LoggedLine, Progress as CallProgress};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Shows the entries of a run as they become durable.
#[derive(Debug)]
pub(crate) enum RunProgress {
    Silent,
    Lines(Printer),
    LiveProgress(LiveProgress),
}

impl RunProgress {
    /// Live where it can be; with `--json` nothing is written to a stderr that is not watched.
    pub(crate) fn new(printer: Printer, steps: usize) -> Self {
        match (printer.is_live(), printer.json) {
            (true, _) => Self::LiveProgress(LiveProgress::new(printer, steps)),
            (false, true) => Self::Silent,
            (false, false) => Self::Lines(printer),
        }
    }

    /// Lines, wherever they are written; nothing with `--json`.
    pub(crate) fn lines(printer: Printer) -> Self {
        if printer.json {
            Self::Silent
        } else {
            Self::Lines(printer)
        }
    }

    /// Writes a line that what moves does not paint over.
    pub(crate) fn say(&self, printer: Printer, text: &str) {
        match self {
            Self::LiveProgress(live) => drop(live.screen.println(text)),
            Self::Silent | Self::Lines(_) => printer.talk(text),
        }
    }

    /// Takes everything that moves off the screen while a person is asked something.
    pub(crate) fn hide(&self) {
        if let Self::LiveProgress(live) = self {
            live.screen.set_draw_target(ProgressDrawTarget::hidden());
        }
    }

    /// Shows it again.
    pub(crate) fn show(&self) {
        if let Self::LiveProgress(live) = self {
            live.screen.set_draw_target(ProgressDrawTarget::stderr());
        }
    }

    /// Returns the steps whose end is on the screen.
    pub(crate) fn ended_steps(&self) -> BTreeSet<StepId> {
        match self {
            Self::LiveProgress(live) => live.lock_ended().clone(),
            Self::Silent | Self::Lines(_) => BTreeSet::new(),
        }
    }

    /// Takes everything that moves off the screen.
    pub(crate) fn finish(&self) {
        if let Self::LiveProgress(live) = self {
            live.clear();
        }
    }
}

impl Observer for RunProgress {
    fn entry(&self, run: &Run, entry: &Entry<RunEvent>) {
        match self {
            Self::Silent => {}
            Self::Lines(printer) => {
                if let Some(text) = describe_event(*printer, run, &entry.event) {
                    printer.talk(&text);
                }
            }
            Self::LiveProgress(live) => live.show_event(run, &entry.event),
        }
    }

    fn looking(&self, _: &Run, look: Look) {
        let text = match look {
            Look::Reflect => "asking a model to assess the run",
            Look::Replan => "asking a model to replan the remaining work",
            Look::Adjust => return,
        };
        match self {
            Self::Silent => {}
            Self::Lines(printer) => printer.talk(&format!("▸ {text}")),
            Self::LiveProgress(live) => live.show_wait(text.to_owned()),
        }
    }

    fn waits_for_store(&self, _: &RunId, reason: &str) {
        let text = format!("waiting, and trying again: {}", line(reason));
        match self {
            Self::Silent => {}
            Self::Lines(printer) => printer.talk(&format!("▸ {text}")),
            Self::LiveProgress(live) => live.show_wait(text),
        }
    }

    fn progress(&self, step: &StepId, progress: &CallProgress) {
        match self {
            Self::LiveProgress(live) => live.advance(step, progress),
            Self::Silent | Self::Lines(_) => {}
        }
    }

    fn log(&self, step: &StepId, said: &LoggedLine) {
        match self {
            Self::Silent => {}
            Self::Lines(printer) => printer.talk(&describe_log(*printer, step, said)),
            Self::LiveProgress(live) => {
                drop(live.screen.println(describe_log(live.printer, step, said)));
            }
        }
    }
}

/// A line that a server logged, marked as its own words.
fn describe_log(printer: Printer, step: &StepId, said: &LoggedLine) -> String {
    let level = match said.level {
        LogLevel::Debug | LogLevel::Info | LogLevel::Notice => String::new(),
        LogLevel::Warning
        | LogLevel::Error
        | LogLevel::Critical
        | LogLevel::Alert
        | LogLevel::Emergency => format!("{}: ", said.level.as_str()),
    };
    printer.err(DIM, &format!("  {step} │ {level}{}", line(&said.text)))
}

/// Returns how far a call is, in words. The numbers and the text are the tool's own.
fn format_progress(progress: &CallProgress) -> String {
    const SHOWN: usize = 60;
    let CallProgress {
        done,
        total: _,
        message,
    } = progress;
    let share = progress.percent().map(|share| format!("{share:.0}%"));
    let message: String = line(message.as_deref().unwrap_or_default())
        .chars()
        .take(SHOWN)
        .collect();
    let number = share.unwrap_or_else(|| done.to_string());
    if message.is_empty() {
        number
    } else {
        format!("{number} {message}")
    }
}

fn step_name(run: &Run, step: &StepId) -> String {
    let title = run
        .find(step.as_str())
        .and_then(|ix| run.definition(ix).title.as_deref());
    title.map_or_else(
        || step.to_string(),
        |title| format!("{step} {}", line(title)),
    )
}

/// A call that an executor wanted, and what was decided about it.
fn format_agent_call(printer: Printer, call: &AgentCall) -> String {
    const SHOWN: usize = 100;
    let args = match &call.args {
        StoredValue::Inline(args) => args.to_string(),
        StoredValue::Artifact(artifact) => format!("({} bytes of arguments)", artifact.bytes),
    };
    let args: String = escape_invisible(&args).chars().take(SHOWN).collect();
    let verdict = match &call.fate {
        CallFate::Run(run) if call.outside => {
            printer.err(YELLOW, &format!("outside the scope, {run}"))
        }
        // Whether it is made is for its own run to say: it may have to wait for a person.
        CallFate::Run(_) => printer.err(DIM, "wanted"),
        CallFate::Refused(error) => printer.err(RED, &format!("refused: {}", line(&error.message))),
    };
    format!("{} {args}  {verdict}", line(&call.tool))
}

fn sign(glyph: Glyph) -> String {
    glyph.as_char().to_string()
}

/// An entry in a line, if it is worth one.
fn describe_event(printer: Printer, run: &Run, event: &RunEvent) -> Option<String> {
    Some(match event {
        RunEvent::AttemptStarted {
            step,
            attempt,
            tool,
            ..
        } => {
            let again = if *attempt > 1 {
                format!(" (attempt {attempt})")
            } else {
                String::new()
            };
            format!(
                "▸ {} [{}]{again}",
                step_name(run, step),
                line(&tool.to_string())
            )
        }
        RunEvent::AttemptSucceeded { step, .. } => {
            let took = run.find(step.as_str()).map(|ix| run.step(ix));
            let took = match took {
                Some(StepState::Completed { took, .. }) => duration(*took),
                _ => String::new(),
            };
            format!(
                "{} {}  {}",
                printer.err(GREEN, &sign(Glyph::Completed)),
                step_name(run, step),
                printer.err(DIM, &took)
            )
        }
        RunEvent::AttemptFailed {
            step,
            error,
            retry_at,
            ..
        } => {
            let next = if retry_at.is_some() {
                ", will be retried"
            } else {
                ""
            };
            let text = format!("{}: {}", line(error.code.as_str()), line(&error.message));
            format!(
                "{} {}  {text}{next}",
                printer.err(RED, &sign(Glyph::Failed)),
                step_name(run, step)
            )
        }
        RunEvent::StepFailed { step, error } => {
            let text = format!("{}: {}", line(error.code.as_str()), line(&error.message));
            format!(
                "{} {}  {text}",
                printer.err(RED, &sign(Glyph::Failed)),
                step_name(run, step)
            )
        }
        RunEvent::AttemptInterrupted { step, .. } => {
            format!(
                "○ {}  interrupted, will be called again",
                step_name(run, step)
            )
        }
        RunEvent::OutcomeLost { step, reason, .. } => {
            let mark = printer.err(YELLOW, &sign(Glyph::OutcomeUnknown));
            format!(
                "{mark} {}  outcome unknown: {}",
                step_name(run, step),
                line(reason)
            )
        }
        RunEvent::ApprovalRequested { step, .. } => {
            format!(
                "{} {}  waiting for approval",
                printer.err(YELLOW, &sign(Glyph::AwaitingApproval)),
                step_name(run, step)
            )
        }
        RunEvent::ApprovalGranted { step, by, .. } => {
            format!(
                "{} {}  approved by {}",
                printer.err(GREEN, "✓"),
                step_name(run, step),
                line(&by.to_string())
            )
        }
        RunEvent::ApprovalDenied { step, by, reason } => {
            let mark = printer.err(RED, &sign(Glyph::Denied));
            format!(
                "{mark} {}  denied by {}: {}",
                step_name(run, step),
                line(&by.to_string()),
                line(reason)
            )
        }
        RunEvent::StepSkipped { step, reason, .. } => {
            format!(
                "{} {}  skipped: {}",
                &sign(Glyph::Skipped),
                step_name(run, step),
                line(reason)
            )
        }
        RunEvent::LoopOpened { step, count, .. } => {
            format!("▸ {}  {count} elements", step_name(run, step))
        }
        RunEvent::LoopClosed { step, .. } => {
            format!(
                "{} {}",
                printer.err(GREEN, &sign(Glyph::Completed)),
                step_name(run, step)
            )
        }
        RunEvent::InputRequested { step, asked, .. } => {
            let mark = printer.err(YELLOW, &sign(Glyph::AwaitingInput));
            let first = asked
                .questions
                .first()
                .map(|question| line(&question.message))
                .unwrap_or_default();
            format!(
                "{mark} {}  waiting for an answer: {first}",
                step_name(run, step)
            )
        }
        RunEvent::InputGiven { step, by, .. } => {
            format!(
                "{} {}  answered by {}",
                printer.err(GREEN, "✓"),
                step_name(run, step),
                line(&by.to_string())
            )
        }
        RunEvent::AttemptCancelled { step, .. } => {
            format!(
                "{} {}  stopped",
                &sign(Glyph::Cancelled),
                step_name(run, step)
            )
        }
        RunEvent::ChildParked {
            step, run: child, ..
        } => {
            format!(
                "{} {}  waiting: {child} needs a decision",
                printer.err(YELLOW, &sign(Glyph::AwaitingInput)),
                step_name(run, step)
            )
        }
        RunEvent::AgentTurn { step, calls, .. } => {
            if calls.is_empty() {
                return None;
            }
            let lines: Vec<String> = calls
                .iter()
                .map(|call| format!("  {step}: {}", format_agent_call(printer, call)))
                .collect();
            lines.join("\n")
        }
        RunEvent::RunStarted { .. }
        | RunEvent::ResultReused { .. }
        | RunEvent::OutcomeResolved { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed { .. }
        | RunEvent::RunStalled { .. }
        | RunEvent::RunQueued { .. }
        | RunEvent::StepIsolated { .. }
        | RunEvent::IsolationEnded { .. }
        | RunEvent::RunGivenUp { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::RunCompleted { .. }
        | RunEvent::RunFailed { .. }
        | RunEvent::RunCancelled { .. }
        | RunEvent::ChildResumed { .. }
        | RunEvent::ModelUsed { .. }
        | RunEvent::RunReflected { .. }
        | RunEvent::RunAdjusted { .. }
        | RunEvent::CriteriaChecked { .. }
        | RunEvent::UndoOpened { .. }
        | RunEvent::StepUndone { .. } => return None,
    })
}

/// One bar for the run and one line per running step, as many as fit.
#[derive(Debug)]
pub(crate) struct LiveProgress {
    printer: Printer,
    screen: MultiProgress,
    bar: ProgressBar,
    running: Mutex<BTreeMap<StepId, RunningStep>>,
    /// Steps whose end is on the screen.
    ended: Mutex<BTreeSet<StepId>>,
    /// The line that says what the run as a whole waits for.
    waiting: Mutex<Option<ProgressBar>>,
    /// Lines the terminal has room for.
    room: usize,
}

/// Returns how far a loop is.
fn loop_message(run: &Run, step: &StepId) -> String {
    let opened = run.find(step.as_str()).and_then(|ix| run.open_loop(ix));
    let (done, count) = opened.map_or((0, 0), |opened| (opened.done_count(), opened.count));
    format!("{}  {done} of {count}", step_name(run, step))
}

/// Moves the line of a loop on, or takes it away with the element that failed.
fn note_element(running: &mut BTreeMap<StepId, RunningStep>, run: &Run, event: &RunEvent) {
    let (RunEvent::AttemptSucceeded { step, .. }
    | RunEvent::AttemptFailed { step, .. }
    | RunEvent::StepFailed { step, .. }
    | RunEvent::StepSkipped { step, .. }
    | RunEvent::ApprovalDenied { step, .. }
    | RunEvent::InputGiven { step, .. }
    | RunEvent::OutcomeResolved { step, .. }) = event
    else {
        return;
    };
    let instance = run.find(step.as_str()).and_then(|ix| run.instance(ix));
    let Some(of) = instance.map(|instance| instance.step) else {
        return;
    };
    let id = run.step_id(of);
    if run.step(of).is_terminal() {
        if let Some(step) = running.remove(id) {
            step.spinner.finish_and_clear();
        }
    } else if let Some(step) = running.get(id) {
        step.spinner.set_message(loop_message(run, id));
    }
}

/// The line of a step, and what it says before how far the step is.
#[derive(Debug)]
struct RunningStep {
    spinner: ProgressBar,
    name: String,
}

/// Lines left for what the shell and the bar need.
const MARGIN: u16 = 4;

impl LiveProgress {
    fn new(printer: Printer, steps: usize) -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = screen.add(ProgressBar::new(steps as u64));
        let style = ProgressStyle::with_template("  {bar:30} {pos}/{len} steps  {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(100));
        let height =
            rustix::termios::tcgetwinsize(std::io::stderr()).map_or(24, |size| size.ws_row);
        let room = usize::from(height.saturating_sub(MARGIN).clamp(1, 40));
        Self {
            printer,
            screen,
            bar,
            running: Mutex::default(),
            waiting: Mutex::default(),
            ended: Mutex::default(),
            room,
        }
    }

    fn lock_ended(&self) -> MutexGuard<'_, BTreeSet<StepId>> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn show_wait(&self, text: String) {
        let spinner = self
            .screen
            .insert_before(&self.bar, ProgressBar::new_spinner());
        start_spinning(&spinner, &text);
        let before = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .replace(spinner);
        before.iter().for_each(ProgressBar::finish_and_clear);
    }

    /// Removes the line: the entry that follows shows that the wait is over.
    fn clear_wait(&self) {
        let before = self
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        before.iter().for_each(ProgressBar::finish_and_clear);
    }

    fn show_event(&self, run: &Run, event: &RunEvent) {
        self.clear_wait();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RunEvent::AttemptStarted { step, tool, .. } if running.len() < self.room => {
                let name = format!("{} [{}]", step_name(run, step), line(&tool.to_string()));
                running.insert(step.clone(), self.running_step(name));
            }
            RunEvent::AttemptSucceeded { step, .. }
            | RunEvent::AttemptFailed { step, .. }
            | RunEvent::AttemptInterrupted { step, .. }
            | RunEvent::AttemptCancelled { step, .. }
            | RunEvent::ChildParked { step, .. }
            | RunEvent::InputRequested { step, .. }
            | RunEvent::OutcomeLost { step, .. } => {
                if let Some(step) = running.remove(step) {
                    step.spinner.finish_and_clear();
                }
            }
            RunEvent::LoopOpened { step, .. } if running.len() < self.room => {
                running.insert(step.clone(), self.running_step(loop_message(run, step)));
            }
            RunEvent::LoopClosed { step, .. } => {
                if let Some(step) = running.remove(step) {
                    step.spinner.finish_and_clear();
                }
            }
            _ => {}
        }
        note_element(&mut running, run, event);
        drop(running);
        if let RunEvent::AttemptSucceeded { step, .. } = event {
            self.lock_ended().insert(step.clone());
        }
        let quiet = matches!(event, RunEvent::AttemptStarted { .. });
        if !quiet && let Some(text) = describe_event(self.printer, run, event) {
            // A line that cannot be drawn is not worth stopping for.
            drop(self.screen.println(text));
        }
        self.bar
            .set_position((run.plan().len() - run.schedule().open_steps()) as u64);
    }

    fn running_step(&self, name: String) -> RunningStep {
        let spinner = self
            .screen
            .insert_before(&self.bar, ProgressBar::new_spinner());
        start_spinning(&spinner, &name);
        RunningStep { spinner, name }
    }

    fn advance(&self, step: &StepId, progress: &CallProgress) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(RunningStep { spinner, name }) = running.get(step) {
            spinner.set_message(format!("{name}  {}", format_progress(progress)));
        }
    }

    fn clear(&self) {
        self.clear_wait();
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, step) in std::mem::take(&mut *running) {
            step.spinner.finish_and_clear();
        }
        self.bar.finish_and_clear();
    }
}
