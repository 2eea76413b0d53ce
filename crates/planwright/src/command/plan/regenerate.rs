//! `regenerate`: a plan, or some of its steps, written again by a model. The result is the next
//! version.

use crate::command::plan::edit::report_stored_version;
use crate::exit::{Exit, Failure};
use crate::terminal::diff;
use crate::terminal::planner_progress::{
    PlannerFlags, PlanningDisplay, format_planning, run_until_interrupted,
};
use crate::workspace::app::{CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use planwright_engine::RegenerateOrder;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "The planner is given open comments, rejections and requested changes. Steps that are not asked \
                        about stay exactly as they are. A plan that lists its tools is written again with those only."
)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// The steps that are written again; default: the whole plan.
    #[arg(long, value_name = "STEP,STEP", value_delimiter = ',')]
    steps: Vec<String>,
    /// What should be different. It is kept with the version.
    #[arg(long, value_name = "TEXT")]
    feedback: Option<String>,
    /// Plan with tools outside the plan's `toolsRequired` too. Those that are used are added to it.
    #[arg(long)]
    any_tool: bool,
    #[command(flatten)]
    planner: PlannerFlags,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    args.planner.check_model(context)?;
    let app = context.open_existing()?;
    let (before, _) = load_plan(&app, &id).await?;
    args.planner.start_servers(&app).await?;
    let mut order = RegenerateOrder {
        by: user(),
        steps: args
            .steps
            .iter()
            .map(|step| step.trim().to_owned())
            .collect(),
        feedback: args.feedback.clone().filter(|text| !text.trim().is_empty()),
        any_tool: args.any_tool,
        options: args.planner.options()?,
    };
    let watching = PlanningDisplay::begin(app.printer(), &mut order.options);
    let done = run_until_interrupted(
        order.options.cancelled.clone(),
        app.engine.planner().regenerate(&id, order),
    )
    .await;
    drop(watching);
    let done = done?;
    if !app.printer().json {
        diff::talk_diff(app.printer(), &done.diff);
    }
    app.printer().findings(&done.findings);
    report_stored_version(&app, &before, &done.review, done.diff).await?;
    app.printer().talk(&format_planning(&done.planning));
    Ok(Exit::Done)
}
