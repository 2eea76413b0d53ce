//! `check`: whether the success criteria of a plan hold after it ran.

use crate::command::execution::reflection::criterion_lines;
use crate::exit::{Exit, Failure};
use crate::terminal::spinner::Spinner;
use crate::workspace::app::{App, CommandContext};
use crate::workspace::run_selector::{RunTarget, select_run};
use planwright_api::CriteriaResult;
use planwright_core::id::RunId;
use planwright_core::run::Run;
use planwright_engine::CheckCriteriaError;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan whose latest run is meant, or a run.
    #[arg(value_name = "ID|RUN")]
    plan: String,
    /// The run; default: the latest.
    #[arg(long)]
    run: Option<String>,
    /// The model that is asked; default: the reflector's.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    let RunTarget { run, .. } = select_run(&app, args.run.as_deref().unwrap_or(&args.plan)).await?;
    let checked = check_criteria(&app, &run, args.model.as_deref()).await?;
    let printer = app.printer();
    if printer.json {
        printer.document(&CriteriaResult::new(&checked))?;
    } else {
        for text in criterion_lines(checked.reflection().criteria()) {
            printer.data(&text)?;
        }
    }
    Ok(criteria_exit(&checked))
}

/// Holds the criteria against a run, and records the outcome.
pub(crate) async fn check_criteria(
    app: &App,
    run: &RunId,
    model: Option<&str>,
) -> Result<Run, Failure> {
    let _spinner = Spinner::begin(app.printer(), "asking a model whether the criteria hold");
    app.engine
        .runs()
        .check_criteria(run, model)
        .await
        .map_err(|error| match error {
            // The run has ended and the criteria were judged: an outcome that could not be
            // recorded is a failure of the store to scripts.
            CheckCriteriaError::Append(error) => Failure::from_error(Exit::Store, &error),
            error => Failure::from_classified(&error),
        })
}

/// Returns the exit of a check: only criteria that hold are a success, unknown ones are not.
pub(crate) fn criteria_exit(run: &Run) -> Exit {
    let all_hold = run
        .reflection()
        .criteria()
        .iter()
        .all(|check| check.holds == Some(true));
    if all_hold {
        Exit::Done
    } else {
        Exit::RunFailed
    }
}
