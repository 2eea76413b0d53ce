//! `show`: a plan, where it stands, and its runs.

use crate::command::audit::log::tell_sealed;
use crate::command::execution::reflection::{criterion_lines, reflection_lines};
use crate::command::plan::create;
use crate::command::plan::show_run::print_run;
use crate::command::review::comments;
use crate::exit::{Exit, Failure};
use crate::terminal::briefing_screen::{print_lines, screen_options};
use crate::terminal::dag;
use crate::terminal::diff;
use crate::terminal::pending_calls::waiting_calls;
use crate::terminal::plan_status::{PlanStatusLine, load_status_line};
use crate::terminal::planner_progress::format_usage;
use crate::terminal::printer::{BOLD, block, line};
use crate::terminal::requested_run::requested_line;
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::maintenance::run_due_maintenance;
use crate::workspace::plan_source::load_plan_for_reading;
use crate::workspace::run_selector::find_run;
use crate::workspace::servers::Need;
use planwright_api::{ApprovalLine, ApprovalWord, RunLine};
use planwright_core::briefing::render_steps;
use planwright_core::journal::StreamName;
use planwright_core::plan::Finding;
use planwright_core::principal::Assurance;
use planwright_core::review::{Approval, Review};
use planwright_core::run::{CallFate, Run};
use planwright_core::time::Timestamp;
use planwright_engine::{Candidate, Reapproval};
use planwright_server::documents::{History, Reader, load_plan_details, load_run_lines};
use std::collections::BTreeSet;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan id, or enough of its beginning; a run id shows what that run sent and received.
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    run_due_maintenance(&app).await;
    if let Some(target) = find_run(&app, &args.plan).await? {
        print_run(&app, target).await?;
        return Ok(Exit::Done);
    }
    let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
    tell_sealed(&app, &StreamName::Plan(review.id().clone())).await?;
    if let Some(opened) = review.runs().last() {
        tell_sealed(&app, &StreamName::Run(opened.run.clone())).await?;
    }
    let status_line = load_status_line(&app, &review).await?;
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let candidate = app
        .engine
        .plans()
        .candidate(&review, &serde_json::Map::new())
        .await?;
    let runs = load_run_lines(&app.engine, &review).await?;
    let since = diff::load_changes_since_approval(&app, &review, &candidate).await?;
    if context.printer.json {
        let reader = Reader {
            principal: user(),
            assurance: Assurance::Terminal,
            refusal: None,
        };
        let details = load_plan_details(
            &app.engine,
            &review,
            &candidate,
            status_line.status.as_str(),
            &reader,
            History::Whole,
        )
        .await?;
        context.printer.document(&details)?;
    } else {
        print_details(&app, &review, &status_line, &candidate, &runs).await?;
        print_changes(&app, since.as_ref())?;
        for text in diff::lost_safeguard_lines(&review, since.as_ref()) {
            context.printer.data(&text)?;
        }
        if let Some(note) = &status_line.note {
            context.printer.hint(&note.sentence());
        }
    }
    Ok(Exit::Done)
}

/// A plan as `show` shows it.
pub(crate) async fn print_plan(app: &App, review: &Review) -> Result<(), Failure> {
    let status_line = load_status_line(app, review).await?;
    let candidate = app
        .engine
        .plans()
        .candidate(review, &serde_json::Map::new())
        .await?;
    let runs = load_run_lines(&app.engine, review).await?;
    print_details(app, review, &status_line, &candidate, &runs).await
}

async fn print_details(
    app: &App,
    review: &Review,
    status_line: &PlanStatusLine,
    candidate: &Candidate,
    runs: &[RunLine],
) -> Result<(), Failure> {
    let printer = app.printer();
    let document = &review.current().document;
    let title = document
        .title
        .as_deref()
        .map_or_else(|| review.id().to_string(), line);
    printer.data(&printer.out(BOLD, &title))?;
    printer.data(&format!(
        "{}  version {}  {}",
        review.id(),
        review.current().number,
        status_line.status
    ))?;
    // What was made from a goal alone often has it as its title too.
    if let Some(goal) = document
        .goal
        .as_ref()
        .filter(|goal| document.title.as_ref() != Some(*goal))
    {
        printer.data(&block(goal))?;
    }
    printer.data("")?;
    // The marks are those of the latest run, if it ran this version.
    let latest = review
        .runs()
        .last()
        .filter(|opened| opened.version == review.current().number);
    let run = match latest {
        Some(opened) => Some(app.engine.runs().load_run(&opened.run, review).await?.0),
        None => None,
    };
    printer.data(dag::render(&candidate.plan, run.as_ref()).trim_end())?;
    printer.data("")?;
    let policy = app.engine.policy();
    let briefings = app.engine.briefings();
    let briefing = briefings.brief(review, candidate, &user()).await;
    let options = screen_options(false, BTreeSet::new());
    print_lines(printer, &render_steps(&briefing, &options))?;
    printer.data("")?;
    for rejection in review.rejections() {
        let by = line(&rejection.by.to_string());
        printer.data(&format!(
            "rejected (version {}) by {by}: {}",
            rejection.version,
            line(&rejection.reason)
        ))?;
    }
    for asked in review.change_requests() {
        let by = line(&asked.by.to_string());
        let reason = line(&asked.reason);
        printer.data(&format!(
            "changes requested (version {}) by {by}: {reason}",
            asked.version
        ))?;
    }
    if let Some(comments) = comments::summarize_threads(review) {
        printer.data(&comments)?;
    }
    if let Some(requested) = requested_line(review, app.now()) {
        printer.data(&requested)?;
    }
    for approval in review.approvals() {
        printer.data(&approval_line(approval, app.now()))?;
    }
    if policy.approval.required() > 1 {
        let given = review.given_approvals(&candidate.digest, app.now()).len();
        printer.data(&format!(
            "approvals: {given} of {}",
            policy.approval.required()
        ))?;
    }
    if let Some(run) = &run {
        for text in reflection_lines(run)
            .into_iter()
            .chain(criterion_lines(run.reflection().criteria()))
        {
            printer.data(&text)?;
        }
    }
    if let Some(run) = run.as_ref().filter(|run| !run.state().is_terminal()) {
        for text in waiting_calls(app, run).await? {
            printer.data(&text)?;
        }
    }
    for text in run.iter().flat_map(agent_call_lines) {
        printer.data(&text)?;
    }
    for run in runs {
        let undoes = run
            .undoes
            .iter()
            .map(|original| format!("  undo of {original}"));
        let parent = run
            .parent
            .iter()
            .map(|parent| format!("  child of {parent}"));
        let belongs: String = undoes.chain(parent).collect();
        printer.data(&format!(
            "{}  version {}  {}  {}{belongs}",
            run.id, run.version, run.status, run.started_at
        ))?;
    }
    if let Some(how) = create::planning_line(review) {
        printer.data(&how)?;
    }
    print_model_costs(app, review).await?;
    printer.data(&format!("digest {}", candidate.digest))?;
    if candidate.findings.iter().any(Finding::is_error) {
        printer.findings(&candidate.findings);
    }
    Ok(())
}

/// The calls that executors of a run wanted, the latest of each step.
fn agent_call_lines(run: &Run) -> Vec<String> {
    const SHOWN: usize = 10;
    let mut lines = Vec::new();
    for ix in run.indices() {
        let turns = run
            .agent_work(ix)
            .map(planwright_core::run::AgentWork::turns)
            .unwrap_or_default();
        let calls: Vec<_> = turns.iter().flat_map(|turn| &turn.calls).collect();
        let left_out = calls.len().saturating_sub(SHOWN);
        for call in &calls[left_out..] {
            let fate = match &call.fate {
                CallFate::Run(child) => child.to_string(),
                CallFate::Refused(error) => format!("refused: {}", line(&error.message)),
            };
            lines.push(format!(
                "  {} wanted {}: {fate}",
                run.step_id(ix),
                line(&call.tool)
            ));
        }
        if left_out > 0 {
            lines.push(format!(
                "  {} wanted {left_out} more before",
                run.step_id(ix)
            ));
        }
    }
    lines
}

/// What models took for this plan, if that is more than writing its current version.
async fn print_model_costs(app: &App, review: &Review) -> Result<(), Failure> {
    let costs = app.engine.journals().model_costs(review).await?;
    let written = review
        .current()
        .planning
        .as_deref()
        .map(|planning| planning.used.len() as u64);
    let total = costs.total();
    if total.answers > written.unwrap_or_default() {
        let cost = (total.unpriced < total.answers).then_some(total.cost);
        app.printer().data(&format!(
            "models in all: {}",
            format_usage(total.usage, cost)
        ))?;
    }
    Ok(())
}

fn print_changes(app: &App, since: Option<&Reapproval>) -> Result<(), Failure> {
    let Some(since) = since else { return Ok(()) };
    let printer = app.printer();
    printer.data(&format!(
        "\n{}",
        printer.out(BOLD, &diff::changes_heading(since))
    ))?;
    diff::print_diff(printer, &since.diff)?;
    for text in diff::repeated_steps_line(since)
        .into_iter()
        .chain(diff::agreed_steps_line(since))
    {
        printer.data(&text)?;
    }
    Ok(())
}

/// Who agreed to what, on which terms, and what became of it.
fn approval_line(approval: &Approval, now: Timestamp) -> String {
    let ApprovalLine {
        state,
        late,
        expires_at,
        ..
    } = ApprovalLine::new(approval, now);
    let used: Vec<String> = approval.spent_by.iter().map(ToString::to_string).collect();
    let what = match state {
        ApprovalWord::Open if used.is_empty() => "not used".to_owned(),
        ApprovalWord::Open | ApprovalWord::Used => format!("used by {}", used.join(", ")),
        ApprovalWord::Expired => format!("expired at {}", expires_at.unwrap_or_default()),
        ApprovalWord::TakenBack => "taken back".to_owned(),
        ApprovalWord::Revoked => "revoked".to_owned(),
        ApprovalWord::Superseded => "superseded".to_owned(),
    };
    let by = line(&approval.by.to_string());
    let late: String = late
        .iter()
        .map(|(step, choice)| format!("; {step}: {}", line(choice)))
        .collect();
    format!(
        "approved (version {}) by {by}: {what}{late}",
        approval.version
    )
}
