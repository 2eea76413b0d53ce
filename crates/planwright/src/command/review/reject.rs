//! `reject`: says no to a plan, or to one step of its run, and why.

use crate::command::review::approve::{
    ShownFlags, report_decision, step_version_and_digest, step_words,
};
use crate::exit::{Exit, Failure};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::projections::update_plan_files;
use crate::workspace::run_selector::select_step;
use crate::workspace::servers::Need;
use planwright_core::review::{Review, ReviewStage};
use planwright_core::status::StepStatus;
use planwright_engine::RunCommand;
use serde_json::{Map, json};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    #[command(flatten)]
    shown: ShownFlags,
    /// Reject this step of the run, instead of the plan; `step/step` for a step of a sub-plan.
    #[arg(long)]
    step: Option<String>,
    /// What has to change. It is kept with the plan.
    #[arg(long, value_name = "TEXT")]
    reason: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    if args.reason.trim().is_empty() {
        return Err(Failure::usage(
            "--reason must not be empty: the author needs to know what to change",
        ));
    }
    let app = context.open_existing()?;
    match &args.step {
        Some(step) => reject_step(&app, step, args).await?,
        None => {
            let (review, _) = load_plan(&app, &parse_id(&args.plan)?).await?;
            reject_plan(&app, &review, args).await?;
        }
    }
    Ok(Exit::Done)
}

async fn reject_plan(app: &App, review: &Review, args: &Args) -> Result<(), Failure> {
    let id = review.id();
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let digest = app
        .engine
        .plans()
        .candidate(review, &Map::new())
        .await?
        .digest;
    let shown = args
        .shown
        .read("reject", id.as_str(), (review.current().number, digest))?;
    let review = app
        .engine
        .plans()
        .reject(id, shown, &user(), &args.reason)
        .await?;
    update_plan_files(app, &review).await;
    let version = review.current().number;
    let status = review.state().status();
    if app.printer().json {
        return app.printer().document(
            &json!({ "id": id, "version": version, "status": status, "digest": digest }),
        );
    }
    app.printer()
        .data(&format!("{id}  version {version}  {status}"))?;
    app.printer().hint(&match review.stage() {
        Some(ReviewStage::NeedsReview) => {
            "it was rejected three times: a person has to review it".to_owned()
        }
        _ => format!("edit the plan (planwright edit {id}) or import a new version"),
    });
    Ok(())
}

async fn reject_step(app: &App, step: &str, args: &Args) -> Result<(), Failure> {
    let target = select_step(app, &args.plan, step).await?;
    let shown = args.shown.read(
        "reject",
        &step_words(&args.plan, step),
        step_version_and_digest(&target),
    )?;
    let command = RunCommand::Deny {
        step: target.step.clone(),
        by: user(),
        shown: shown.into(),
        reason: args.reason.clone(),
    };
    app.engine.runs().command(target.run.id(), command).await?;
    report_decision(app, &target, StepStatus::Denied.as_str()).await
}
