//! What is seen of a run while it goes on. Drawn on a terminal, written as lines elsewhere.

use crate::printer::{DIM, GREEN, Printer, RED, YELLOW, duration, line};
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use planwright_core::id::StepId;
use planwright_core::journal::Entry;
use planwright_core::plan::Glyph;
use planwright_core::run::{Run, RunEvent, StepState};
use planwright_engine::Observer;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Shows the entries of a run as they become durable.
#[derive(Debug)]
pub(crate) enum Progress {
    Silent,
    Lines(Printer),
    Live(Live),
}

impl Progress {
    /// Live where it can be; with `--json` nothing is written to a stderr that is not watched.
    pub(crate) fn new(printer: Printer, steps: usize) -> Self {
        match (printer.is_live(), printer.json) {
            (true, _) => Self::Live(Live::new(printer, steps)),
            (false, true) => Self::Silent,
            (false, false) => Self::Lines(printer),
        }
    }

    /// Takes everything that moves off the screen.
    pub(crate) fn finish(&self) {
        if let Self::Live(live) = self {
            live.clear();
        }
    }
}

impl Observer for Progress {
    fn entry(&self, run: &Run, entry: &Entry<RunEvent>) {
        match self {
            Self::Silent => {}
            Self::Lines(printer) => {
                if let Some(text) = describe(*printer, run, &entry.event) {
                    printer.talk(&text);
                }
            }
            Self::Live(live) => live.note(run, &entry.event),
        }
    }
}

fn name(run: &Run, step: &StepId) -> String {
    let title = run.plan().find(step.as_str()).and_then(|ix| run.plan().step(ix).title.as_deref());
    title.map_or_else(|| step.to_string(), |title| format!("{step} {}", line(title)))
}

fn sign(glyph: Glyph) -> String {
    glyph.as_char().to_string()
}

/// An entry in a line, if it is worth one.
fn describe(printer: Printer, run: &Run, event: &RunEvent) -> Option<String> {
    Some(match event {
        RunEvent::AttemptStarted { step, attempt, tool, .. } => {
            let again = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
            format!("▸ {} [{}]{again}", name(run, step), line(&tool.to_string()))
        }
        RunEvent::AttemptSucceeded { step, .. } => {
            let took = run.plan().find(step.as_str()).map(|ix| run.step(ix));
            let took = match took {
                Some(StepState::Completed { took, .. }) => duration(*took),
                _ => String::new(),
            };
            format!(
                "{} {}  {}",
                printer.err(GREEN, &sign(Glyph::Completed)),
                name(run, step),
                printer.err(DIM, &took)
            )
        }
        RunEvent::AttemptFailed { step, error, retry_at, .. } => {
            let next = if retry_at.is_some() { ", to be tried again" } else { "" };
            let text = format!("{}: {}", line(&error.code), line(&error.message));
            format!("{} {}  {text}{next}", printer.err(RED, &sign(Glyph::Failed)), name(run, step))
        }
        RunEvent::StepFailed { step, error } => {
            let text = format!("{}: {}", line(&error.code), line(&error.message));
            format!("{} {}  {text}", printer.err(RED, &sign(Glyph::Failed)), name(run, step))
        }
        RunEvent::AttemptInterrupted { step, .. } => {
            format!("○ {}  interrupted, to be called again", name(run, step))
        }
        RunEvent::OutcomeLost { step, reason, .. } => {
            let mark = printer.err(YELLOW, &sign(Glyph::OutcomeUnknown));
            format!("{mark} {}  outcome unknown: {}", name(run, step), line(reason))
        }
        RunEvent::ApprovalRequested { step } => {
            format!(
                "{} {}  waits for approval",
                printer.err(YELLOW, &sign(Glyph::AwaitingApproval)),
                name(run, step)
            )
        }
        RunEvent::ApprovalGranted { step, by, .. } => {
            format!("{} {}  approved by {}", printer.err(GREEN, "✓"), name(run, step), line(&by.to_string()))
        }
        RunEvent::ApprovalDenied { step, by, reason } => {
            let mark = printer.err(RED, &sign(Glyph::Denied));
            format!("{mark} {}  denied by {}: {}", name(run, step), line(&by.to_string()), line(reason))
        }
        RunEvent::StepSkipped { step, reason } => {
            format!("{} {}  skipped: {}", &sign(Glyph::Skipped), name(run, step), line(reason))
        }
        RunEvent::AttemptCancelled { step, .. } => {
            format!("{} {}  stopped", &sign(Glyph::Cancelled), name(run, step))
        }
        RunEvent::ChildParked { step, run: child, .. } => {
            format!(
                "{} {}  waits: {child} needs a person",
                printer.err(YELLOW, &sign(Glyph::AwaitingInput)),
                name(run, step)
            )
        }
        RunEvent::RunStarted { .. }
        | RunEvent::ResultReused { .. }
        | RunEvent::OutcomeResolved { .. }
        | RunEvent::RunPaused { .. }
        | RunEvent::RunResumed { .. }
        | RunEvent::CancelRequested { .. }
        | RunEvent::RunCompleted { .. }
        | RunEvent::RunFailed { .. }
        | RunEvent::RunCancelled { .. }
        | RunEvent::ChildResumed { .. }
        | RunEvent::UndoOpened { .. }
        | RunEvent::StepUndone { .. } => return None,
    })
}

/// One bar for the run and one line per running step, as many as fit.
#[derive(Debug)]
pub(crate) struct Live {
    printer: Printer,
    screen: MultiProgress,
    bar: ProgressBar,
    running: Mutex<BTreeMap<StepId, ProgressBar>>,
    /// Lines the terminal has room for.
    room: usize,
}

/// Lines left for what the shell and the bar need.
const MARGIN: u16 = 4;

impl Live {
    fn new(printer: Printer, steps: usize) -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        let bar = screen.add(ProgressBar::new(steps as u64));
        let style = ProgressStyle::with_template("  {bar:30} {pos}/{len} steps  {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(Duration::from_millis(100));
        let height = rustix::termios::tcgetwinsize(std::io::stderr()).map_or(24, |size| size.ws_row);
        let room = usize::from(height.saturating_sub(MARGIN).clamp(1, 40));
        Self { printer, screen, bar, running: Mutex::default(), room }
    }

    fn note(&self, run: &Run, event: &RunEvent) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            RunEvent::AttemptStarted { step, tool, .. } if running.len() < self.room => {
                let spinner = self.screen.insert_before(&self.bar, ProgressBar::new_spinner());
                let style = ProgressStyle::with_template("{spinner} {msg}  {elapsed}");
                spinner.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
                spinner.set_message(format!("{} [{}]", name(run, step), line(&tool.to_string())));
                spinner.enable_steady_tick(Duration::from_millis(100));
                running.insert(step.clone(), spinner);
            }
            RunEvent::AttemptSucceeded { step, .. }
            | RunEvent::AttemptFailed { step, .. }
            | RunEvent::AttemptInterrupted { step, .. }
            | RunEvent::AttemptCancelled { step, .. }
            | RunEvent::ChildParked { step, .. }
            | RunEvent::OutcomeLost { step, .. } => {
                if let Some(spinner) = running.remove(step) {
                    spinner.finish_and_clear();
                }
            }
            _ => {}
        }
        drop(running);
        let quiet = matches!(event, RunEvent::AttemptStarted { .. });
        if !quiet && let Some(text) = describe(self.printer, run, event) {
            // A line that cannot be drawn is not worth stopping for.
            drop(self.screen.println(text));
        }
        self.bar.set_position((run.plan().len() - run.open_steps()) as u64);
    }

    fn clear(&self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        for (_, spinner) in std::mem::take(&mut *running) {
            spinner.finish_and_clear();
        }
        self.bar.finish_and_clear();
    }
}
