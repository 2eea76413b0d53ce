//! `run`: a plan from the store or a file, with consent.

use crate::command::execution::execute::execute_run;
use crate::command::execution::order::{ExecutionKind, ExecutionOrder, RunFlags};
use crate::command::plan::edit::edit_plan;
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{ApprovalQuestion, Approved, obtain_approval};
use crate::terminal::briefing_screen::{print_lines, screen_options};
use crate::terminal::printer::{YELLOW, line};
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::plan_file::PlanFile;
use crate::workspace::plan_source::{self, PlanSource};
use crate::workspace::servers::Need;
use planwright_api::{DryRunStep, RunResult, dry_run_result};
use planwright_core::briefing::render_briefing;
use planwright_core::principal::PrincipalKind;
use planwright_core::review::Review;
use planwright_engine::Candidate;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan id, a file, or `-` for stdin. A file is imported first.
    #[arg(value_name = "ID|FILE")]
    plan: String,
    #[command(flatten)]
    pub(crate) flags: RunFlags,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let source = PlanSource::parse(&args.plan)?;
    let variables = args.flags.variables.read()?;
    if args.flags.dry_run {
        // It writes nothing, not even the plan it was given.
        return preview_run(&context.open(Access::Read)?, &source, &variables).await;
    }
    let (app, review) = match &source {
        PlanSource::Id(id) => {
            let app = context.open_existing()?;
            let (review, _) = plan_source::load_plan(&app, id).await?;
            (app, review)
        }
        PlanSource::File(_) | PlanSource::Stdin => import_plan(context, &source).await?,
    };
    let mut review = review;
    // A person is asked about the tools as they were last seen: their servers start with the yes. What
    // is answered without a person is about the tools as they are.
    let is_person = user().kind == PrincipalKind::Person;
    let is_asked = !args.flags.yes && app.printer().can_ask() && is_person;
    let mut need = match is_asked {
        true => Need::Decide,
        false => Need::Use,
    };
    let (candidate, approval, late) = loop {
        app.engine.runs().check_startable(&review).await?;
        let document = Arc::clone(&review.current().document);
        app.start_servers(&document, need).await?;
        let runs = app.engine.runs();
        let checked = runs.check_runnable(&review, &variables).await;
        // What keeps the plan from running is told only if it is so now.
        let denies = |found: &Candidate| app.engine.plans().judge(&found.plan).denial().is_some();
        if need == Need::Decide && checked.as_ref().map_or(true, denies) {
            need = Need::Use;
            if app.start_remembered(&document).await? {
                continue;
            }
        }
        let candidate = checked?;
        let question = ApprovalQuestion {
            review: &review,
            candidate: &candidate,
            yes: args.flags.yes,
            late: args.flags.late.read()?,
            typed: args.flags.variables.as_typed(),
            can_edit: true,
        };
        let (approval, late) = match obtain_approval(&app, &question).await? {
            Approved::Before { late } => (None, late),
            Approved::Now(given) => {
                let late = given.late.clone();
                (Some(given), late)
            }
            Approved::AfterEdit => {
                review = edit_plan(&app, &review).await?;
                continue;
            }
        };
        if need == Need::Use || !app.start_remembered(&document).await? {
            break (candidate, approval, late);
        }
        need = Need::Use;
        let now = runs.check_runnable(&review, &variables).await?;
        if now.digest == candidate.digest {
            break (candidate, approval, late);
        }
        app.printer()
            .warn("the tools are not what they were when they were last seen: look again");
    };
    let kind = ExecutionKind::Start(review.id().clone());
    let order = ExecutionOrder {
        kind,
        approval,
        late,
        variables,
        steps: candidate.plan.len(),
    };
    // A large plan need not be in memory twice while it runs.
    drop((review, candidate));
    execute_run(&app, order, &args.flags).await
}

/// Stores the plan of a file. Errors of structure stop here; the rest is said when it is about to
/// run.
async fn import_plan(
    context: &CommandContext,
    source: &PlanSource,
) -> Result<(App, Review), Failure> {
    let file = PlanFile::read(source, None, &context.config.bounds())?;
    if !context.has_store() {
        plan_source::check_storable(context, &file.name, &file.document)?;
    }
    let app = context.open(Access::Write)?;
    file.print_notices(app.printer());
    let (review, _) = file.store(&app).await?;
    Ok((app, review))
}

async fn preview_run(
    app: &App,
    source: &PlanSource,
    variables: &Map<String, Value>,
) -> Result<Exit, Failure> {
    let (candidate, version) = match source {
        PlanSource::Id(id) => {
            let (review, _) = plan_source::load_plan(app, id).await?;
            app.start_servers(&review.current().document, Need::Use)
                .await?;
            (
                app.engine.plans().candidate(&review, variables).await?,
                review.current().number,
            )
        }
        PlanSource::File(_) | PlanSource::Stdin => {
            let mut document = plan_source::read_document(source, &app.context.config.bounds())?;
            document.number_steps();
            document.identify();
            let version = version_when_stored(app, &document).await?;
            document.variables.extend(variables.clone());
            app.start_servers(&document, Need::Use).await?;
            (app.engine.plans().compile(document).await?, version)
        }
    };
    let previewed = app.engine.trials().preview_run(&candidate)?;
    let result = dry_run_result(&candidate.plan, version, &previewed);
    if app.printer().json {
        app.printer().document(&result)?;
    } else {
        print_dry_run(app, &candidate, &result).await?;
    }
    Ok(Exit::Done)
}

/// The version the document would be stored as.
async fn version_when_stored(
    app: &App,
    document: &planwright_core::plan::Document,
) -> Result<u32, Failure> {
    let Some(id) = &document.id else { return Ok(1) };
    match app.engine.plans().load_review(id).await {
        Ok((review, _)) if *review.current().document == *document => Ok(review.current().number),
        Ok((review, _)) => Ok(review.current().number + 1),
        Err(planwright_engine::LoadError::NoSuchPlan(_)) => Ok(1),
        Err(error) => Err(error.into()),
    }
}

/// Prints the same briefing that an approver sees, and what consent and the guards would say.
async fn print_dry_run(
    app: &App,
    candidate: &Candidate,
    result: &RunResult<DryRunStep>,
) -> Result<(), Failure> {
    let printer = app.printer();
    let briefings = app.engine.briefings();
    let briefing = briefings
        .brief_candidate(candidate, result.version, None, &user())
        .await;
    let options = screen_options(false, BTreeSet::new());
    print_lines(printer, &render_briefing(&briefing, &options))?;
    printer.data("")?;
    for step in result.steps.iter().filter(|step| step.verdict != "allow") {
        let verdict = printer.out(YELLOW, &step.verdict);
        let reason = line(&step.reason);
        printer.data(&format!("step {}: {verdict} ({reason})", step.step.id))?;
    }
    let path = result
        .critical_path
        .as_deref()
        .unwrap_or_default()
        .join(" → ");
    printer.data(&format!("critical path: {path}"))?;
    printer.data(&format!("digest: {}", result.digest))?;
    printer.talk("dry run: nothing was called");
    Ok(())
}
