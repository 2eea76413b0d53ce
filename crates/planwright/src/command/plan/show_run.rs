//! One run: what each step was sent, what came back, and how long it took.

use crate::command::execution::report::next_commands;
use crate::exit::Failure;
use crate::terminal::dag;
use crate::terminal::printer::{BOLD, duration, line};
use crate::workspace::app::App;
use crate::workspace::run_selector::RunTarget;
use planwright_api::RunResult;
use planwright_core::text::reveal_hidden;
use planwright_server::documents::{add_step_logs, read_run_result};
use serde_json::Value;
use std::time::Duration;

/// The most characters of a value on one line.
const MAX_VALUE: usize = 300;
/// The latest lines of a server's log that are shown of a step. `--json` has more.
const MAX_LOG_LINES: usize = 5;

/// Prints a run as data.
pub(crate) async fn print_run(app: &App, target: RunTarget) -> Result<(), Failure> {
    let printer = app.printer();
    let RunTarget { review, run } = target;
    let (run, _) = app.engine.runs().load_run(&run, &review).await?;
    let mut result = read_run_result(&run, &**app.artifacts(), app.now()).await?;
    let sent = app
        .engine
        .journals()
        .sent_calls(run.id(), review, <RunResult>::MAX_ARGS)
        .await?;
    result.add_calls(sent.arguments, &sent.histories);
    add_step_logs(&mut result, run.id(), &**app.engine.step_logs()).await;
    if printer.json {
        return printer.document(&result);
    }
    let took = duration(Duration::from_millis(result.duration_ms));
    let heading = format!(
        "{}  {}  version {}  {took}",
        run.id(),
        result.status,
        result.version
    );
    printer.data(&printer.out(BOLD, &heading))?;
    for (step, ix) in result.steps.iter().zip(run.plan().indices()) {
        let sign = dag::glyph(run.step(ix)).as_char();
        let mut row = format!("{sign} {}  {}  {}", step.id, line(&step.tool), step.status);
        if step.attempts > 0 {
            let took = duration(Duration::from_millis(step.duration_ms));
            let tries = if step.attempts > 1 {
                format!(", {} attempts", step.attempts)
            } else {
                String::new()
            };
            row = format!("{row}  {took}{tries}");
        }
        printer.data(&row)?;
        if let Some(args) = &step.args {
            printer.data(&format!("    sent    {}", short_value(args)))?;
        }
        if let Some(value) = &step.value {
            printer.data(&format!("    result  {}", short_value(value)))?;
        }
        if let Some(error) = &step.error {
            let message = line(&error.message);
            printer.data(&format!("    error   {}: {message}", line(&error.code)))?;
        }
        let earlier = step.log.len().saturating_sub(MAX_LOG_LINES);
        for logged in &step.log[earlier..] {
            let message = line(&logged.message);
            printer.data(&format!("    log     {}: {message}", logged.level))?;
        }
    }
    for hint in next_commands(app, &run).await? {
        printer.hint(&hint);
    }
    Ok(())
}

/// A value on one line, cut with its size.
fn short_value(value: &Value) -> String {
    let text = value.to_string();
    let shown = reveal_hidden(&text);
    let size = shown.chars().count();
    if size <= MAX_VALUE {
        return shown.into_owned();
    }
    let start: String = shown.chars().take(MAX_VALUE).collect();
    format!("{start}… ({size} characters)")
}
