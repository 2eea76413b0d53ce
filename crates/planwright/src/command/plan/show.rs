//! `show`: a plan, where it stands, and its runs.

use crate::command::execution::reflection::{criteria, looked_at};
use crate::command::plan::create;
use crate::command::review::comments;
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{Agreed, constraints, risks, verdicts};
use crate::terminal::dag;
use crate::terminal::diff;
use crate::terminal::pending_calls::waiting_calls;
use crate::terminal::plan_status::{Standing, standing};
use crate::terminal::planner_progress::spent;
use crate::terminal::printer::{BOLD, YELLOW, block, line};
use crate::workspace::app::{Access, App, Setting};
use crate::workspace::maintenance::tend;
use crate::workspace::plan_source::load_for_reading;
use crate::workspace::servers::Need;
use planwright_api::{ApprovalLine, RunLine};
use planwright_core::plan::Finding;
use planwright_core::review::{Approval, Review};
use planwright_core::run::{CallFate, Run};
use planwright_core::time::Timestamp;
use planwright_engine::{Candidate, Reapproval};
use planwright_server::documents::{load_plan_details, load_run_lines};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan id, or enough of its beginning.
    #[arg(value_name = "ID")]
    plan: String,
}

pub(crate) async fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let app = setting.open(Access::Read)?;
    tend(&app).await;
    let (review, _) = load_for_reading(&app, &args.plan).await?;
    let standing = standing(&app, &review).await?;
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let candidate = app
        .engine
        .candidate(&review, &serde_json::Map::new())
        .await?;
    let runs = load_run_lines(&app.engine, &review).await?;
    let since = diff::since_agreed(&app, &review, &candidate).await?;
    if setting.printer.json {
        let details = load_plan_details(&app.engine, &review, &candidate, &standing.word).await?;
        setting.printer.document(&details)?;
    } else {
        show(&app, &review, &standing, &candidate, &runs).await?;
        show_changes(&app, since.as_ref())?;
        if let Some(note) = &standing.note {
            setting.printer.hint(note);
        }
    }
    Ok(Exit::Done)
}

/// A plan as `show` shows it.
pub(crate) async fn print(app: &App, review: &Review) -> Result<(), Failure> {
    let standing = standing(app, review).await?;
    let candidate = app
        .engine
        .candidate(review, &serde_json::Map::new())
        .await?;
    let runs = load_run_lines(&app.engine, review).await?;
    show(app, review, &standing, &candidate, &runs).await
}

async fn show(
    app: &App,
    review: &Review,
    standing: &Standing,
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
        standing.word
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
        Some(opened) => Some(app.engine.load_run(&opened.run, review).await?.0),
        None => None,
    };
    printer.data(dag::render(&candidate.plan, run.as_ref()).trim_end())?;
    printer.data("")?;
    let judged = app.engine.judge(&candidate.plan);
    let policy = app.engine.policy();
    // Whoever looks at a plan sees all of it, also what was agreed to before.
    let agreed = Agreed::new();
    let risks = risks(
        (&candidate.plan, &agreed),
        &app.engine.catalog(),
        &judged,
        policy,
    );
    for risk in risks.into_iter().chain(verdicts(&judged, &agreed)) {
        printer.data(&format!("{} {risk}", printer.out(YELLOW, "!")))?;
    }
    for constraint in constraints(&candidate.plan) {
        printer.data(&format!("  {constraint}"))?;
    }
    for rejection in review.rejections() {
        let by = line(&rejection.by.to_string());
        printer.data(&format!(
            "rejected (version {}) by {by}: {}",
            rejection.version,
            line(&rejection.reason)
        ))?;
    }
    for asked in review.change_requests() {
        let (by, reason) = (line(&asked.by.to_string()), line(&asked.reason));
        printer.data(&format!(
            "changes asked for (version {}) by {by}: {reason}",
            asked.version
        ))?;
    }
    if let Some(comments) = comments::summary(review) {
        printer.data(&comments)?;
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
        for text in looked_at(run).into_iter().chain(criteria(run.criteria())) {
            printer.data(&text)?;
        }
    }
    if let Some(run) = run.as_ref().filter(|run| !run.state().is_terminal()) {
        for text in waiting_calls(app, run).await? {
            printer.data(&text)?;
        }
    }
    for text in run.iter().flat_map(wanted_calls) {
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
            .map(|parent| format!("  part of {parent}"));
        let belongs: String = undoes.chain(parent).collect();
        printer.data(&format!(
            "{}  version {}  {}  {}{belongs}",
            run.id, run.version, run.status, run.started_at
        ))?;
    }
    if let Some(how) = create::how(review) {
        printer.data(&how)?;
    }
    show_costs(app, review).await?;
    printer.data(&format!("digest {}", candidate.digest))?;
    if candidate.findings.iter().any(Finding::is_error) {
        printer.findings(&candidate.findings);
    }
    Ok(())
}

/// The calls that executors of a run wanted, the latest of each step.
fn wanted_calls(run: &Run) -> Vec<String> {
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
async fn show_costs(app: &App, review: &Review) -> Result<(), Failure> {
    let costs = app.engine.model_costs(review).await?;
    let written = review
        .current()
        .planning
        .as_deref()
        .map(|planning| planning.used.len() as u64);
    let total = costs.total();
    if total.answers > written.unwrap_or_default() {
        let cost = (total.unpriced < total.answers).then_some(total.cost);
        app.printer()
            .data(&format!("models in all: {}", spent(total.usage, cost)))?;
    }
    Ok(())
}

fn show_changes(app: &App, since: Option<&Reapproval>) -> Result<(), Failure> {
    let Some(since) = since else { return Ok(()) };
    let printer = app.printer();
    printer.data(&format!("\n{}", printer.out(BOLD, &diff::heading(since))))?;
    diff::print(printer, &since.diff)?;
    for text in diff::again(since).into_iter().chain(diff::agreed(since)) {
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
        "open" if used.is_empty() => "not used".to_owned(),
        "open" | "used" => format!("used by {}", used.join(", ")),
        "expired" => format!("expired at {}", expires_at.unwrap_or_default()),
        other => other.replace('_', " "),
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
