//! Reads what the pages show.

use super::model::{Chosen, DecisionPage, InboxRow, LogPage, PlanRow, RunPage, StepRow, WaitKind};
use crate::command::execution::execute::load_run;
use crate::command::start::inbox::{Awaited, load_inbox};
use crate::exit::Failure;
use crate::terminal::dag;
use crate::terminal::diff;
use crate::terminal::pending_calls::call_lines;
use crate::terminal::plan_status::load_status_line;
use crate::terminal::printer::duration;
use crate::workspace::app::{App, user};
use crate::workspace::plan_source::load_plan;
use crate::workspace::servers::Need;
use planwright_api::{RunResult, StepResult};
use planwright_core::briefing::{BriefingLine, RenderOptions, Tone, render_briefing, wrap_text};
use planwright_core::event::PlanEvents;
use planwright_core::id::{PlanId, RunId};
use planwright_core::plan::StepIx;
use planwright_core::policy::LateChoice;
use planwright_core::principal::PrincipalKind;
use planwright_core::run::{Run, Shown, StepState};
use planwright_core::status::{CachedStatus, PlanStatus};
use planwright_core::text::reveal_hidden;
use planwright_engine::ShownPlan;
use planwright_engine::chat::is_listed;
use planwright_engine::port::{FeedOf, Position, is_last_feed_page};
use planwright_server::documents::read_run_result;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Plans on the page of plans. Others are found with `planwright list`.
const MAX_PLANS: usize = 200;
/// Characters of a value among the details of a step.
const MAX_VALUE: usize = 4_000;
/// Lines of the log that are kept on its page.
const MAX_LOG: usize = 5_000;
/// Records read at a time.
const PAGE: usize = 500;

/// What waits for the person.
pub(super) async fn load_inbox_rows(app: &App) -> Result<Vec<InboxRow>, Failure> {
    let awaited = load_inbox(app).await?;
    Ok(awaited.into_iter().filter_map(inbox_row).collect())
}

fn inbox_row(awaited: Awaited) -> Option<InboxRow> {
    let (kind, word) = match awaited.kind {
        "plan" => (WaitKind::Plan, "Approve"),
        "step" => (WaitKind::Call, "Approve"),
        "input" => (WaitKind::Question, "Answer"),
        _ => (WaitKind::Outcome, "Decide"),
    };
    Some(InboxRow {
        word,
        plan: awaited.plan_id.parse().ok()?,
        run: awaited.run_id.and_then(|run| run.parse().ok()),
        step: awaited.step,
        kind,
        title: awaited.title,
        since: awaited.since,
    })
}

/// The plans that changed last.
pub(super) async fn load_plan_rows(app: &App) -> Result<Vec<PlanRow>, Failure> {
    let mut rows = Vec::new();
    for info in app.engine.journals().plans().await? {
        let status = &info.status.status;
        if matches!(status, CachedStatus::Archived | CachedStatus::Deleted) {
            continue;
        }
        // One damaged plan does not hide the others; `verify` names it.
        let Ok((review, _)) = app.engine.plans().load_review(&info.status.plan).await else {
            continue;
        };
        let document = &review.current().document;
        if !is_listed(document, None, false) {
            continue;
        }
        let status = load_status_line(app, &review).await?.status;
        rows.push(PlanRow {
            id: review.id().clone(),
            title: document.heading().unwrap_or_default(),
            status: status.to_string(),
            steps: review.current().steps,
            run: review.runs().last().map(|opened| opened.run.clone()),
        });
        if rows.len() == MAX_PLANS {
            break;
        }
    }
    Ok(rows)
}

/// A plan as it is shown, with what deciding on it needs.
#[derive(Debug)]
pub(super) struct LoadedPlan {
    pub(super) page: DecisionPage,
    pub(super) shown: ShownPlan,
    pub(super) late: BTreeMap<String, LateChoice>,
}

/// Loads a plan for review, with its tools as they were last seen: a decision is bound to them, and a
/// run to what its servers have then.
pub(super) async fn load_plan_page(
    app: &App,
    plan: &PlanId,
    width: usize,
) -> Result<LoadedPlan, Failure> {
    let (review, head) = load_plan(app, plan).await?;
    app.start_servers(&review.current().document, Need::Look)
        .await?;
    let plans = app.engine.plans();
    let candidate = plans.candidate(&review, &serde_json::Map::new()).await?;
    let judged = plans.judge(&candidate.plan);
    let since = diff::load_changes_since_approval(app, &review, &candidate).await?;
    let briefings = app.engine.briefings();
    let briefing = briefings.brief(&review, &candidate, &user()).await;
    let options = RenderOptions {
        width,
        full: true,
        agreed: BTreeSet::new(),
    };
    let mut lines = render_briefing(&briefing, &options);
    for text in diff::lost_safeguard_lines(&review, since.as_ref()) {
        lines.extend(wrapped(Tone::Warning, &text, width));
    }
    for finding in &candidate.findings {
        let text = format!("{}: {}", finding.code, finding.message);
        lines.extend(wrapped(Tone::Warning, &text, width));
    }
    for thread in review.open_threads() {
        for comment in thread.comments() {
            let text = format!("comment by {}: {}", comment.by, comment.text);
            lines.extend(wrapped(Tone::Faint, &text, width));
        }
    }
    let late = plans.careful_choices(&candidate);
    for (step, choice) in &late {
        let text = format!("step {step}: {}", choice.consequence());
        lines.extend(wrapped(Tone::Plain, &text, width));
    }
    let status = plans.status(&review).await?;
    let obstacle = obstacle(status);
    let page = DecisionPage {
        plan: plan.clone(),
        step: None,
        heading: format!("{plan} version {} {status}", review.current().number),
        lines,
        digest: candidate.digest.to_string(),
        obstacle,
        has_late_values: late.values().any(|choice| *choice != LateChoice::Ask),
        is_approved: status == PlanStatus::Approved,
        scroll: 0,
        seen: 0,
    };
    let shown = ShownPlan {
        review,
        head,
        candidate,
        judged,
    };
    Ok(LoadedPlan { page, shown, late })
}

fn obstacle(status: PlanStatus) -> Option<String> {
    if user().kind != PrincipalKind::Person {
        return Some("only a person decides, and this shell is a coding agent's".to_owned());
    }
    let is_open = matches!(
        status,
        PlanStatus::Draft | PlanStatus::Proposed | PlanStatus::NeedsReview
    );
    (!is_open).then(|| format!("it is {status}: nothing waits for a decision"))
}

/// A text in lines of this width, made visible.
fn wrapped(tone: Tone, text: &str, width: usize) -> Vec<BriefingLine> {
    wrap_text(tone, &reveal_hidden(text), width)
}

/// One call that waits for a person.
pub(super) async fn load_step_page(
    app: &App,
    run: &RunId,
    step: &str,
    width: usize,
) -> Result<(DecisionPage, Shown), Failure> {
    let run = load_run(app, run).await?;
    let waiting = run
        .schedule()
        .waiting()
        .find(|&ix| run.step_id(ix).as_str() == step);
    let state = waiting.map(|ix| (ix, run.step(ix)));
    let Some((ix, StepState::AwaitingApproval { call, .. })) = state else {
        return Err(Failure::refused(format!("step `{step}` waits for nothing")));
    };
    let (texts, digest) = match call {
        Some(asked) => (call_lines(app, step, asked).await?, asked.digest),
        None => {
            let args = app.engine.journals().known_arguments(&run, ix).await;
            let definition = run.definition(ix);
            let mut texts = vec![format!(
                "step {step} {} asks before it runs",
                definition.action_label()
            )];
            let args = args.unwrap_or_else(|| serde_json::json!(definition.args));
            let written = serde_json::to_string_pretty(&args).unwrap_or_default();
            texts.extend(written.lines().map(|line| format!("  {line}")));
            (texts, run.start().digest)
        }
    };
    let lines = texts.iter().flat_map(|text| {
        let tone = if text.starts_with(' ') {
            Tone::Plain
        } else {
            Tone::Strong
        };
        wrapped(tone, text, width)
    });
    let page = DecisionPage {
        plan: run.plan().id().clone(),
        step: Some((run.id().clone(), step.to_owned())),
        heading: format!("{} step {step}", run.plan().id()),
        lines: lines.collect(),
        digest: digest.to_string(),
        obstacle: (user().kind != PrincipalKind::Person)
            .then(|| "only a person decides, and this shell is a coding agent's".to_owned()),
        has_late_values: false,
        is_approved: false,
        scroll: 0,
        seen: 0,
    };
    Ok((page, Shown::Digest(digest)))
}

/// A run with its steps.
pub(super) async fn load_run_page(
    app: &App,
    plan: &PlanId,
    run: &RunId,
) -> Result<RunPage, Failure> {
    let (review, _) = load_plan(app, plan).await?;
    let (run, _) = app.engine.runs().load_run(run, &review).await?;
    let mut result = read_run_result(&run, &**app.artifacts(), app.now()).await?;
    let sent = app
        .engine
        .journals()
        .sent_calls(run.id(), review, <RunResult>::MAX_ARGS)
        .await?;
    let began = run.start().at;
    let bar = |ix: StepIx| {
        let history = sent.histories.get(run.step_id(ix))?;
        let started = history.started_at?;
        let ended = history.ended_at.unwrap_or_else(|| app.now());
        Some((millis(started.since(began)), millis(ended.since(started))))
    };
    let bars: Vec<Option<(u64, u64)>> = run.plan().indices().map(bar).collect();
    result.add_calls(sent.arguments, &sent.histories);
    let mut steps = Chosen::default();
    let rows = result.steps.iter().zip(run.plan().indices()).zip(bars);
    let rows = rows.map(|((step, ix), bar)| step_row(&run, step, ix, bar));
    steps.set_rows(rows.collect());
    let took = duration(Duration::from_millis(result.duration_ms));
    Ok(RunPage {
        plan: plan.clone(),
        run: run.id().clone(),
        heading: format!("{plan}  {}  {took}", run.id()),
        status: result.status,
        is_over: run.state().is_terminal(),
        done: run.schedule().completed_steps(),
        duration_ms: result.duration_ms,
        steps,
        details_scroll: 0,
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn step_row(run: &Run, step: &StepResult, ix: StepIx, bar: Option<(u64, u64)>) -> StepRow {
    let waits = match run.step(ix) {
        StepState::AwaitingApproval { .. } => Some(WaitKind::Call),
        StepState::AwaitingInput { .. } => Some(WaitKind::Question),
        StepState::OutcomeUnknown { .. } => Some(WaitKind::Outcome),
        _ => None,
    };
    let mut details = Vec::new();
    if step.attempts > 0 {
        let took = duration(Duration::from_millis(step.duration_ms));
        details.push(format!("attempts {}  {took}", step.attempts));
    }
    if let Some(args) = &step.args {
        details.push(format!("sent    {}", cut(&args.to_string())));
    }
    if let Some(error) = &step.error {
        details.push(format!("error   {}: {}", error.code, cut(&error.message)));
    }
    if let Some(value) = &step.value {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        details.push(format!("result  {}", cut(&text)));
    }
    match waits {
        Some(WaitKind::Call) => details.push("Enter shows the call and asks".to_owned()),
        Some(WaitKind::Question) => details.push("Enter answers the question".to_owned()),
        Some(WaitKind::Outcome) => {
            details.push("It may have happened: Enter says what is known".to_owned());
        }
        Some(WaitKind::Plan) | None => {}
    }
    StepRow {
        id: step.id.clone(),
        title: step.title.clone(),
        tool: step.tool.clone(),
        sign: dag::glyph(run.step(ix)).as_char(),
        status: step.status.clone(),
        bar,
        waits,
        details,
    }
}

fn cut(text: &str) -> String {
    let shown = reveal_hidden(text);
    let size = shown.chars().count();
    if size <= MAX_VALUE {
        return shown.into_owned();
    }
    let start: String = shown.chars().take(MAX_VALUE).collect();
    format!("{start}… ({size} characters)")
}

/// The events of a plan.
pub(super) async fn load_log_page(app: &App, plan: &PlanId) -> Result<LogPage, Failure> {
    let journals = app.engine.journals();
    let mut events = PlanEvents::new(plan.clone(), *app.engine.bounds());
    let of = FeedOf::Plan(plan.clone());
    let mut after = Position(0);
    let mut lines = Vec::new();
    loop {
        let page = journals.feed(&of, after, PAGE).await?;
        for placed in &page {
            journals.complete_fold(&mut events, placed).await?;
            after = placed.position;
            // What cannot be read is named by `verify`; the rest of the log is worth seeing.
            let Ok(told) = events.push(&placed.stream, &placed.record) else {
                continue;
            };
            for event in told {
                let name = event.event.as_str();
                let at = event.occurred_at;
                lines.push(format!(
                    "{:>5}  {at}  {name:22}  {}",
                    event.seq, event.summary
                ));
            }
        }
        if lines.len() > MAX_LOG {
            lines.drain(..lines.len() - MAX_LOG);
        }
        if is_last_feed_page(&page, PAGE) {
            break;
        }
    }
    Ok(LogPage {
        plan: plan.clone(),
        lines,
        back: 0,
    })
}
