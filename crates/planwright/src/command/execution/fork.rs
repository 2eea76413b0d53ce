//! `fork`: a new run that takes over the results of another one, up to the steps that run again.

use crate::command::execution::execute::{execute, refuse_while_executing};
use crate::command::execution::order::{Begin, Order, RunFlags};
use crate::command::execution::resume::existing;
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{Question, consent};
use crate::terminal::printer::line;
use crate::workspace::app::Setting;
use crate::workspace::plan_source::{load, parse_id, pick_run};
use crate::workspace::servers::Need;

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

pub(crate) async fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = setting.open(existing(setting))?;
    let (review, _) = load(&app, &id).await?;
    let source = pick_run(&review, args.run.as_deref())?;
    let variables = args.flags.variables.read()?;
    if args.flags.dry_run {
        return Err(
            Failure::usage("a fork cannot be tried on paper").hint(format!(
                "planwright run {id} --dry-run shows what the whole plan would do"
            )),
        );
    }
    refuse_while_executing(&app, &review).await?;
    app.start_servers(&review.current().document, Need::Use)
        .await?;
    let candidate = app.engine.runnable(&review, &variables).await?;
    let mut from = Vec::new();
    for step in &args.from {
        // Of the version that would run, which need not be the one that ran.
        let found = candidate
            .plan
            .find(step)
            .map(|ix| candidate.plan.step_id(ix).clone());
        let unknown = || Failure::usage(format!("plan `{id}` has no step `{}`", line(step)));
        from.push(found.ok_or_else(unknown)?);
    }
    let typed = args.flags.variables.as_typed();
    let late = args.flags.late.read()?;
    let question = Question {
        review: &review,
        candidate: &candidate,
        yes: args.flags.yes,
        late,
        typed,
    };
    let approval = consent(&app, &question).await?;
    let begin = Begin::Fork {
        plan: id,
        source,
        from,
    };
    let order = Order {
        begin,
        approval,
        variables,
        steps: candidate.plan.len(),
    };
    // A large plan need not be in memory twice while it runs.
    drop((review, candidate));
    execute(&app, order, &args.flags).await
}
