//! Runs as people name them: by their id, as the latest run of a plan, or as the work of a step of
//! another run.

use crate::exit::Failure;
use crate::terminal::printer::line;
use crate::workspace::app::App;
use crate::workspace::plan_source::{load_plan, load_plan_for_reading, parse_id, pick_run};
use planwright_core::id::{RunId, split_instance};
use planwright_core::journal::StreamName;
use planwright_core::review::Review;
use planwright_core::run::Run;
use planwright_core::text::nearest_names;

/// A run, and the plan it belongs to.
#[derive(Debug)]
pub(crate) struct RunTarget {
    pub(crate) review: Review,
    pub(crate) run: RunId,
}

/// A step of a run.
#[derive(Debug)]
pub(crate) struct StepTarget {
    pub(crate) review: Review,
    pub(crate) run: Run,
    pub(crate) step: String,
}

/// The run with exactly this id, if there is one.
pub(crate) async fn find_run(app: &App, text: &str) -> Result<Option<RunTarget>, Failure> {
    let Ok(run) = text.parse::<RunId>() else {
        return Ok(None);
    };
    if app
        .engine
        .journals()
        .info(&StreamName::Run(run.clone()))
        .await?
        .is_none()
    {
        return Ok(None);
    }
    let plan = app.engine.journals().plan_of_run(&run).await?;
    let (review, _) = app.engine.plans().load_review(&plan).await?;
    Ok(Some(RunTarget { review, run }))
}

/// The run that was named, or the latest run of the plan that was named.
pub(crate) async fn select_run(app: &App, text: &str) -> Result<RunTarget, Failure> {
    if let Some(target) = find_run(app, text).await? {
        return Ok(target);
    }
    let (review, _) = load_plan(app, &parse_id(text)?).await?;
    let run = pick_run(&review, None)?;
    Ok(RunTarget { review, run })
}

/// As [`select_run`], for reading: the beginning of a plan's id is enough, and one of its runs may
/// be named beside it.
pub(crate) async fn select_run_for_reading(
    app: &App,
    text: &str,
    run: Option<&str>,
) -> Result<RunTarget, Failure> {
    if run.is_none()
        && let Some(target) = find_run(app, text).await?
    {
        return Ok(target);
    }
    let (review, _) = load_plan_for_reading(app, text).await?;
    if let Some(named) = run
        && let Some(target) = find_run(app, named)
            .await?
            .filter(|target| target.review.id() == review.id())
    {
        return Ok(target);
    }
    let run = pick_run(&review, run)?;
    Ok(RunTarget { review, run })
}

/// The step that was named. `parent-step/child-step` is a step of the run that `parent-step` is
/// doing.
pub(crate) async fn select_step(app: &App, text: &str, step: &str) -> Result<StepTarget, Failure> {
    let RunTarget { mut review, run } = select_run(app, text).await?;
    let (mut run, _) = app.engine.runs().load_run(&run, &review).await?;
    let mut step = step;
    while let Some((parent, rest)) = step.split_once('/') {
        check_step_known(&run, parent)?;
        let child = run.find(parent).and_then(|ix| run.child_runs(ix).latest());
        let target = match child {
            Some(child) => find_run(app, child.as_str()).await?,
            None => None,
        };
        let Some(target) = target else {
            return Err(Failure::refused(format!(
                "step `{}` has not started its sub-plan",
                line(parent)
            )));
        };
        (run, _) = app
            .engine
            .runs()
            .load_run(&target.run, &target.review)
            .await?;
        (review, step) = (target.review, rest);
    }
    check_step_known(&run, step)?;
    Ok(StepTarget {
        review,
        run,
        step: step.to_owned(),
    })
}

/// Checked here, because the process that executes the run answers in words only.
fn check_step_known(run: &Run, step: &str) -> Result<(), Failure> {
    // One element of a step that runs once per element is named by its number.
    let named = split_instance(step).map_or(step, |(step, _)| step);
    if run.plan().find(named).is_some() {
        return Ok(());
    }
    let ids = run
        .plan()
        .indices()
        .map(|ix| run.plan().step_id(ix).to_string());
    let failure = Failure::usage(format!(
        "plan `{}` has no step `{}`",
        run.plan().id(),
        line(step)
    ));
    Err(match nearest_names(step, ids).as_slice() {
        [] => failure,
        near => failure.hint(format!("did you mean {}?", near.join(" or "))),
    })
}

/// The name under which the commands that move a run on find it.
pub(crate) fn selector_of(run: &Run) -> String {
    let start = run.start();
    if start.parent.is_some() || start.undoes.is_some() {
        run.id().to_string()
    } else {
        run.plan().id().to_string()
    }
}

/// The command that goes on with a run that no process executes: of the run it belongs to, if it
/// belongs to one.
pub(crate) async fn resume_command(app: &App, mut run: Run) -> Result<Option<String>, Failure> {
    while let Some(parent) = run.start().parent.clone() {
        let Some(target) = find_run(app, parent.run.as_str()).await? else {
            return Ok(None);
        };
        (run, _) = app
            .engine
            .runs()
            .load_run(&target.run, &target.review)
            .await?;
    }
    if run.state().is_terminal() || app.engine.runs().is_executed(run.id()).await? {
        return Ok(None);
    }
    Ok(Some(match &run.start().undoes {
        Some(original) => format!("To continue it: planwright undo {original}"),
        None => format!("To continue it: planwright resume {}", run.plan().id()),
    }))
}
