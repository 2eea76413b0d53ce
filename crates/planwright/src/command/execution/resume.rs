//! `resume`: goes on with a run: with the same one while it has not ended, and after a failure with
//! a fork of it that keeps its results.

use crate::command::execution::execute::execute_run;
use crate::command::execution::fork::{ForkOrder, fork_run};
use crate::command::execution::order::{ExecutionKind, ExecutionOrder, RunFlags};
use crate::command::execution::reflection::{AdjustmentDecision, confirm_adjustment};
use crate::command::execution::report::{ended_unfinished, print_run_report};
use crate::exit::{Exit, Failure};
use crate::workspace::app::{App, CommandContext};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::run_selector::{RunTarget, find_run};
use crate::workspace::servers::Need;
use planwright_core::id::RunId;
use planwright_core::review::Review;
use planwright_core::run::{Run, RunState};
use planwright_engine::StartRunError;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The plan whose latest run is resumed, or a run. After a failed or cancelled run a new one keeps
    /// its results and runs the rest.
    #[arg(value_name = "ID")]
    plan: String,
    #[command(flatten)]
    flags: RunFlags,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open_existing()?;
    if let Some(RunTarget { review, run }) = find_run(&app, &args.plan).await? {
        return resume_run(&app, &review, run, &args.flags).await;
    }
    let id = parse_id(&args.plan)?;
    let (review, _) = load_plan(&app, &id).await?;
    let given = args.flags.variables.read()?;
    let Some(opened) = review.runs().last() else {
        return Err(StartRunError::NothingToResume(id).into());
    };
    if args.flags.dry_run {
        return Err(
            Failure::usage("a run that has started has no dry run").hint(format!(
                "To see what the whole plan would do: planwright run {id} --dry-run"
            )),
        );
    }
    if !given.is_empty() {
        let (run, _) = app.engine.runs().load_run(&opened.run, &review).await?;
        let current = &run.plan().document().variables;
        if let Some((name, _)) = given
            .iter()
            .find(|(name, value)| current.get(*name) != Some(*value))
        {
            return Err(Failure::refused(format!(
                "the run started with another value of `{name}`, which is the approved one"
            ))
            .hint(format!(
                "planwright cancel {id}, then planwright run {id}{}",
                args.flags.variables.as_typed()
            )));
        }
    }
    if args.flags.max_concurrency.is_some() {
        app.printer()
            .warn("a resumed run keeps the concurrency it started with");
    }
    if let Some(run) = app.engine.runs().adjusted_run(&review).await? {
        return continue_adjusted(&app, &review, run, &args.flags).await;
    }
    let (ended, _) = app.engine.runs().load_run(&opened.run, &review).await?;
    if ended_unfinished(&ended) {
        return continue_failed(&app, review, ended, given, &args.flags).await;
    }
    drop(ended);
    let plans = app.engine.plans();
    let version = plans.load_version(&review, opened.version).await?;
    let steps = version.as_ref().map_or(0, |version| version.steps);
    let version = version.unwrap_or_else(|| review.current().clone());
    app.start_servers(&version.document, Need::Use).await?;
    let late = args.flags.late.read()?;
    let late = match late.is_empty() {
        true => BTreeMap::new(),
        false => {
            let (run, _) = app.engine.runs().load_run(&opened.run, &review).await?;
            late.choices_for(&app.engine.plans().judge(run.plan()))
        }
    };
    execute_run(
        &app,
        ExecutionOrder {
            kind: ExecutionKind::Resume(id),
            approval: None,
            late,
            variables: given,
            steps,
        },
        &args.flags,
    )
    .await
}

/// Runs what a run left undone, as a fork of it: what completed is not done again.
async fn continue_failed(
    app: &App,
    review: Review,
    run: Run,
    given: Map<String, Value>,
    flags: &RunFlags,
) -> Result<Exit, Failure> {
    let mut variables = run.start().variables.clone();
    variables.extend(given);
    let order = ForkOrder {
        source: run.id().clone(),
        from: Vec::new(),
        variables,
    };
    app.printer().talk(&format!(
        "run {} is {}: a new run keeps its results and does the rest",
        run.id(),
        run.status()
    ));
    drop(run);
    Box::pin(fork_run(app, review, order, flags)).await
}

/// Continues the work of an adjusted run, if the change is approved.
async fn continue_adjusted(
    app: &App,
    review: &Review,
    id: RunId,
    flags: &RunFlags,
) -> Result<Exit, Failure> {
    let (run, _) = app.engine.runs().load_run(&id, review).await?;
    match confirm_adjustment(app, &run, &flags.reflection, &flags.late).await? {
        AdjustmentDecision::Continue {
            approval,
            late,
            steps,
        } => {
            let kind = ExecutionKind::ContinueAdjusted {
                plan: review.id().clone(),
                run: id,
            };
            let variables = run.start().variables.clone();
            drop(run);
            execute_run(
                app,
                ExecutionOrder {
                    kind,
                    approval,
                    late,
                    variables,
                    steps,
                },
                flags,
            )
            .await
        }
        AdjustmentDecision::Wait => {
            print_run_report(app, &run, &BTreeSet::new()).await?;
            Ok(Exit::Waits)
        }
    }
}

/// Goes on with exactly this run.
async fn resume_run(
    app: &App,
    review: &Review,
    id: RunId,
    flags: &RunFlags,
) -> Result<Exit, Failure> {
    let (run, _) = app.engine.runs().load_run(&id, review).await?;
    if let RunState::Adjusted { .. } = run.state() {
        drop(run);
        return continue_adjusted(app, review, id, flags).await;
    }
    // A run of another run's step ends with it, and what was taken back is not made again.
    let is_own = run.start().parent.is_none() && run.start().undoes.is_none();
    if ended_unfinished(&run) && is_own {
        let given = flags.variables.read()?;
        return continue_failed(app, review.clone(), run, given, flags).await;
    }
    let steps = run.plan().len();
    let judged = app.engine.plans().judge(run.plan());
    let late = flags.late.read()?.choices_for(&judged);
    let kind = ExecutionKind::ResumeRun {
        plan: review.id().clone(),
        run: id,
    };
    let order = ExecutionOrder {
        kind,
        approval: None,
        late,
        variables: serde_json::Map::new(),
        steps,
    };
    drop(run);
    execute_run(app, order, flags).await
}
