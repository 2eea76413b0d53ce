//! The report of a run, and the commands that move it on.

use crate::command::execution::execute::load_run;
use crate::command::execution::reflection::{criterion_lines, reflection_lines};
use crate::exit::Failure;
use crate::terminal::dag;
use crate::terminal::pending_calls::waiting_calls;
use crate::terminal::plan_status::status_style;
use crate::terminal::printer::{BOLD, DIM, GREEN, RED, YELLOW, block, duration, line};
use crate::workspace::app::App;
use crate::workspace::run_selector::{resume_command, selector_of};
use crate::workspace::variables::quote_word;
use planwright_core::id::StepId;
use planwright_core::json::tell_value;
use planwright_core::plan::StepIx;
use planwright_core::run::{Run, RunReport, RunState, StepState, StoredValue};
use planwright_core::status::{RunStatus, StepStatus};
use planwright_core::text::reveal_hidden;
use planwright_engine::read_outputs;
use planwright_server::documents::read_run_result;
use std::collections::BTreeSet;

/// Prints the outcome of the run and the next commands. Steps whose end is on the screen already get
/// no second line.
pub(crate) async fn print_run_report(
    app: &App,
    run: &Run,
    shown: &BTreeSet<StepId>,
) -> Result<(), Failure> {
    if app.printer().json {
        let result = read_run_result(run, &**app.artifacts(), app.now()).await?;
        app.printer().document(&result)?;
    } else {
        print_summary(app, run, shown)?;
        print_results(app, run).await?;
        if !run.state().is_terminal() {
            for text in waiting_calls(app, run).await? {
                app.printer().data(&text)?;
            }
        }
    }
    for hint in next_commands(app, run).await? {
        app.printer().hint(&hint);
    }
    Ok(())
}

/// Longer plans are summarized without a line per step.
const MAX_ROWS: usize = 200;

fn print_summary(app: &App, run: &Run, shown: &BTreeSet<StepId>) -> Result<(), Failure> {
    let printer = app.printer();
    let report = RunReport::new(run, app.now());
    if report.steps.len() <= MAX_ROWS {
        for (step, ix) in report.steps.iter().zip(run.plan().indices()) {
            if step.status == StepStatus::Completed && shown.contains(&step.id) {
                continue;
            }
            let style = match step.status {
                StepStatus::Completed => GREEN,
                StepStatus::Failed | StepStatus::Denied => RED,
                StepStatus::OutcomeUnknown
                | StepStatus::AwaitingApproval
                | StepStatus::AwaitingInput
                | StepStatus::AwaitingPlan => YELLOW,
                _ => DIM,
            };
            let sign = printer.out(style, &dag::glyph(run.step(ix)).as_char().to_string());
            let title = line(step.title.as_deref().unwrap_or_default());
            let mut row = format!(
                "{sign} {}. {title} [{}]  {}",
                step.id,
                line(&step.tool),
                step.status
            );
            if step.attempts > 0 {
                row = format!("{row}  {}", printer.out(DIM, &duration(step.duration)));
            }
            if let Some(items) = &step.items {
                let done = items
                    .iter()
                    .filter(|item| {
                        matches!(item.status, StepStatus::Completed | StepStatus::Skipped)
                    })
                    .count();
                row = format!("{row}  {done} of {} elements", items.len());
            }
            if let Some(error) = &step.error {
                row = format!(
                    "{row}  {}: {}",
                    line(error.code.as_str()),
                    line(&error.message)
                );
            }
            printer.data(&row)?;
        }
    }
    for text in reflection_lines(run)
        .into_iter()
        .chain(criterion_lines(run.reflection().criteria()))
    {
        printer.data(&text)?;
    }
    let word = report.status.as_str();
    let word = printer.out(status_style(word), word);
    let done = format!(
        "{} of {} steps in {}",
        run.schedule().completed_steps(),
        report.steps.len(),
        duration(report.duration)
    );
    printer.data(&format!(
        "{} {word}: {done} ({})",
        printer.out(BOLD, report.plan.as_str()),
        report.run
    ))
}

/// The most characters of a result that are printed at the end of a run.
const MAX_RESULT: usize = 400;
/// The most bytes of outputs that are read to be printed.
const MAX_OUTPUTS: usize = 4 << 20;

/// Prints what the run came to, cut: its outputs, or else the values of the last steps, which no
/// other step uses.
async fn print_results(app: &App, run: &Run) -> Result<(), Failure> {
    const SHOWN: usize = 3;
    if let Some(outputs) = read_outputs(run, &**app.artifacts(), MAX_OUTPUTS).await? {
        for (name, value) in &outputs.values {
            print_result(app, &line(name), &tell_value(value))?;
        }
        for problem in &outputs.problems {
            app.printer().warn(&problem.to_string());
        }
        return Ok(());
    }
    let plan = run.plan();
    let used: BTreeSet<StepIx> = plan
        .indices()
        .flat_map(|ix| plan.graph().dependencies(ix).to_vec())
        .collect();
    let last = plan.indices().filter(|ix| !used.contains(ix)).take(SHOWN);
    for ix in last {
        let Some(stored) = run.step(ix).value() else {
            continue;
        };
        let text = match stored {
            StoredValue::Inline(value) if value.is_null() => continue,
            StoredValue::Inline(value) => tell_value(value),
            StoredValue::Artifact(artifact) => {
                format!("({} bytes: planwright show {})", artifact.bytes, run.id())
            }
        };
        print_result(app, plan.step_id(ix).as_str(), &text)?;
    }
    Ok(())
}

fn print_result(app: &App, name: &str, text: &str) -> Result<(), Failure> {
    // What a tool returned must not steer the terminal.
    let text = block(&reveal_hidden(text.trim_end()));
    let shown: String = text.chars().take(MAX_RESULT).collect();
    let cut = if shown.len() < text.len() { " …" } else { "" };
    let printer = app.printer();
    let name = printer.out(BOLD, name);
    printer.data(&format!("{name}: {shown}{cut}"))
}

/// Returns the exact commands that continue a run.
pub(crate) async fn next_commands(app: &App, run: &Run) -> Result<Vec<String>, Failure> {
    let mut hints = Vec::new();
    if let RunState::Adjusted { .. } = run.state() {
        return adjustment_commands(app, run).await;
    }
    if run.state().is_terminal() {
        let is_own = run.start().parent.is_none() && run.start().undoes.is_none();
        if is_own && ended_unfinished(run) {
            let plan = run.plan().id();
            hints.push(format!(
                "To run the remaining steps with the results so far: planwright resume {plan}"
            ));
        }
        return Ok(hints);
    }
    add_answer_commands(app, run, &mut hints).await?;
    hints.extend(resume_command(app, run.clone()).await?);
    Ok(hints)
}

/// Returns whether a run is over, and some of its steps have still to be done.
pub(super) fn ended_unfinished(run: &Run) -> bool {
    match run.status() {
        RunStatus::Failed | RunStatus::Cancelled | RunStatus::CompletedWithFailures => true,
        RunStatus::Executing
        | RunStatus::Waiting
        | RunStatus::Paused
        | RunStatus::Stalled
        | RunStatus::Completed
        | RunStatus::Adjusted => false,
    }
}

/// Returns the commands that continue an adjusted run; none once it was continued.
async fn adjustment_commands(app: &App, run: &Run) -> Result<Vec<String>, Failure> {
    let Some(continuation) = app.engine.runs().continuation(run.id()).await? else {
        return Ok(Vec::new());
    };
    let plan = run.plan().id();
    let digest = continuation.candidate.digest;
    Ok(vec![
        format!("To approve the change: planwright approve {plan} --digest {digest}"),
        format!("Then continue: planwright resume {plan}"),
    ])
}

/// Adds the commands that answer a waiting run or its child runs.
async fn add_answer_commands(app: &App, run: &Run, hints: &mut Vec<String>) -> Result<(), Failure> {
    const SHOWN: usize = 5;
    let plan = selector_of(run);
    for ix in run.schedule().waiting().take(SHOWN) {
        let id = quote_word(run.step_id(ix).as_str());
        match run.step(ix) {
            StepState::AwaitingApproval { call, .. } => {
                let digest = call.as_ref().map_or_else(|| run.start().digest, |asked| asked.digest);
                hints.push(format!("planwright approve {plan} --step {id} --digest {digest}"));
            }
            StepState::OutcomeUnknown { .. } => hints
                .push(format!("planwright resolve {plan} {id} --happened | --did-not-happen | --run-again")),
            StepState::AwaitingPlan { run: child, .. } if hints.len() < SHOWN => {
                let child = load_run(app, child).await?;
                Box::pin(add_answer_commands(app, &child, hints)).await?;
            }
            state if state.question().is_some() => hints.push(format!(
                "planwright input {plan} {id} --set NAME=VALUE | --value JSON | --decline (planwright input {plan} shows the question)"
            )),
            _ => {}
        }
    }
    Ok(())
}
