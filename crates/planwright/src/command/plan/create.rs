//! `create`: a plan for a goal, written by a model.

use crate::command::plan::show;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::plan_status::load_status_line;
use crate::terminal::planner_progress::{
    PlannerFlags, PlanningDisplay, format_planning, run_until_interrupted,
};
use crate::terminal::printer::{BOLD, block};
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::projections::update_plan_files;
use planwright_api::{CreateResult, PlanningLine, PromptResult};
use planwright_core::model::Message;
use planwright_core::plan::Finding;
use planwright_core::planning::Prompt;
use planwright_core::review::ReviewStage;
use planwright_engine::{CreateOrder, WrittenPlan};
use serde_json::Map;
use std::io::Read as _;

#[derive(Debug, clap::Args)]
#[command(after_help = "The plan is validated and proposed. Nothing runs before it is approved.")]
pub(crate) struct Args {
    /// The goal, in your own words; `-` for stdin.
    goal: String,
    #[command(flatten)]
    planner: PlannerFlags,
    /// Keep the plan as a draft, to be proposed later.
    #[arg(long)]
    draft: bool,
    /// Print the prompt, and ask no model.
    #[arg(long, conflicts_with_all = ["draft", "fallback"])]
    dry_run: bool,
    /// Ask no model: make a draft from the best matching template, or from the words of the goal.
    #[arg(long, conflicts_with = "draft")]
    fallback: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let goal = args.read_goal()?;
    if !args.dry_run && !args.fallback {
        args.planner.check_model(context)?;
    }
    let app = context.open(if args.dry_run {
        Access::Read
    } else {
        Access::Write
    })?;
    args.planner.start_servers(&app).await?;
    let mut order = CreateOrder::new(goal, user());
    order.draft = args.draft;
    order.options = args.planner.options()?;
    if args.dry_run {
        let prompt = app.engine.planner().planner_prompt(&order).await?;
        return show_prompt(&app, &prompt);
    }
    let created = if args.fallback {
        app.engine.planner().create_fallback(order).await?
    } else {
        let watching = PlanningDisplay::begin(app.printer(), &mut order.options);
        let created = run_until_interrupted(
            order.options.cancelled.clone(),
            app.engine.planner().create(order),
        )
        .await;
        drop(watching);
        created?
    };
    update_plan_files(&app, &created.review).await;
    print_created_plan(&app, &created).await?;
    Ok(Exit::Done)
}

impl Args {
    fn read_goal(&self) -> Result<String, Failure> {
        if self.goal != "-" {
            return Ok(self.goal.clone());
        }
        // A character has at most four bytes.
        let most = CreateOrder::MAX_GOAL as u64 * 4 + 1;
        let mut goal = String::new();
        let read = std::io::stdin().lock().take(most).read_to_string(&mut goal);
        read.map_err(|error| Failure::usage(format!("cannot read the goal from stdin: {error}")))?;
        Ok(goal)
    }
}

/// Shows the plan as `show` does, what it took, and what can be done with it.
async fn print_created_plan(app: &App, created: &WrittenPlan) -> Result<(), Failure> {
    let printer = app.printer();
    let review = &created.review;
    let id = review.id();
    let current = review.current();
    let candidate = app.engine.plans().candidate(review, &Map::new()).await?;
    let status = load_status_line(app, review).await?.status;
    if printer.json {
        return printer.document(&CreateResult {
            id,
            version: current.number,
            status: status.as_str(),
            digest: candidate.digest,
            plan: &current.document,
            findings: &created.findings,
            planning: PlanningLine::from(&created.planning),
        });
    }
    show::print_plan(app, review).await?;
    // Where there are errors, everything was shown with the plan.
    if !created.findings.iter().any(Finding::is_error) {
        printer.findings(&created.findings);
    }
    if created.planning.fallback {
        printer.hint(&format!(
            "To complete it: planwright edit {id}; to submit it for review: planwright propose {id}"
        ));
    } else if review.stage() == Some(ReviewStage::Draft) {
        printer.hint(&format!("To submit it for review: planwright propose {id}"));
    } else {
        printer.hint(&format!(
            "To see its calls: planwright run {id} --dry-run; to review, approve and run it: planwright run {id}; \
             to have it written again: planwright regenerate {id} --feedback TEXT"
        ));
    }
    Ok(())
}

fn show_prompt(app: &App, prompt: &Prompt) -> Result<Exit, Failure> {
    let printer = app.printer();
    let result = PromptResult::from(prompt);
    if printer.json {
        printer.document(&result)?;
        return Ok(Exit::Done);
    }
    for message in &prompt.messages {
        let (role, text) = match message {
            Message::System { text } => ("system", text),
            Message::User { text } => ("user", text),
            Message::Assistant { text, .. } => ("assistant", text),
            Message::Tool { text, .. } => ("tool", text),
        };
        printer.data(&format!(
            "{}\n{}\n",
            printer.out(BOLD, &format!("--- {role}")),
            block(text)
        ))?;
    }
    printer.data(&printer.out(
        BOLD,
        &format!("--- schema of the answer ({})", result.shape),
    ))?;
    printer.data(&block(&format!("{:#}", result.schema)))?;
    printer.talk(&format!(
        "about {} tokens; no model was asked",
        result.tokens
    ));
    if result.tools_left_out > 0 {
        printer.warn(&format!(
            "{} left out, for want of room",
            count_of(result.tools_left_out, "tool is", "tools are")
        ));
        printer.hint("--server NAME plans with the tools of one server");
    }
    Ok(Exit::Done)
}

/// What it took to write the current version, if a model or a rule of thumb wrote it.
pub(crate) fn planning_line(review: &planwright_core::review::Review) -> Option<String> {
    review.current().planning.as_deref().map(format_planning)
}
