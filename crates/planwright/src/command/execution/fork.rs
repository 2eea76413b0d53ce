//! `fork`: a new run that takes over the results of another one, up to the steps that run again.

use crate::command::execution::execute::execute_run;
use crate::command::execution::order::{ExecutionKind, ExecutionOrder, RunFlags};
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{ApprovalQuestion, Approved, obtain_approval};
use crate::terminal::printer::line;
use crate::workspace::app::{App, CommandContext};
use crate::workspace::plan_source::{load_plan, parse_id, pick_run};
use crate::workspace::servers::Need;
use planwright_core::id::RunId;
use planwright_core::review::Review;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// The run whose results are reused; default: the latest.
    #[arg(long)]
    run: Option<String>,
    /// The first steps that run again, with everything after them.
    #[arg(long, required = true, value_name = "STEP", num_args = 1..)]
    from: Vec<String>,
    #[command(flatten)]
    flags: RunFlags,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &id).await?;
    let source = pick_run(&review, args.run.as_deref())?;
    let variables = args.flags.variables.read()?;
    let order = ForkOrder {
        source,
        from: args.from.clone(),
        variables,
    };
    fork_run(&app, review, order, &args.flags).await
}

/// What a fork takes over, and what runs again.
pub(super) struct ForkOrder {
    pub(super) source: RunId,
    /// Steps of the version that would run, which need not be the one that ran. None: what the
    /// source has not done.
    pub(super) from: Vec<String>,
    pub(super) variables: Map<String, Value>,
}

/// Runs the plan with the results of an earlier run, if it is approved.
pub(super) async fn fork_run(
    app: &App,
    review: Review,
    order: ForkOrder,
    flags: &RunFlags,
) -> Result<Exit, Failure> {
    let id = review.id().clone();
    let ForkOrder {
        source,
        from,
        variables,
    } = order;
    if flags.dry_run {
        return Err(
            Failure::usage("a run that has started has no dry run").hint(format!(
                "To see what the whole plan would do: planwright run {id} --dry-run"
            )),
        );
    }
    app.engine.runs().check_startable(&review).await?;
    app.start_servers(&review.current().document, Need::Use)
        .await?;
    let runs = app.engine.runs();
    let candidate = runs.check_runnable(&review, &variables).await?;
    let mut again = Vec::new();
    for step in &from {
        let found = candidate
            .plan
            .find(step)
            .map(|ix| candidate.plan.step_id(ix).clone());
        let unknown = || Failure::usage(format!("plan `{id}` has no step `{}`", line(step)));
        again.push(found.ok_or_else(unknown)?);
    }
    let question = ApprovalQuestion {
        review: &review,
        candidate: &candidate,
        yes: flags.yes,
        late: flags.late.read()?,
        typed: flags.variables.as_typed(),
        can_edit: false,
    };
    let (approval, late) = match obtain_approval(app, &question).await? {
        Approved::Now(given) => {
            let late = given.late.clone();
            (Some(given), late)
        }
        Approved::Before { late } => (None, late),
        Approved::AfterEdit => (None, BTreeMap::new()),
    };
    let kind = ExecutionKind::Fork {
        plan: id,
        source,
        from: again,
    };
    let order = ExecutionOrder {
        kind,
        approval,
        late,
        variables,
        steps: candidate.plan.len(),
    };
    // A large plan need not be in memory twice while it runs.
    drop((review, candidate));
    execute_run(app, order, flags).await
}
