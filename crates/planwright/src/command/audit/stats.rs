//! `stats`: what happened over all plans and runs, as figures.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{BOLD, Printer, duration, line};
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::maintenance::run_due_maintenance;
use crate::workspace::servers::Need;
use planwright_api::StatsResult;
use planwright_core::plan::Document;
use planwright_core::policy::TimeSpan;
use planwright_core::time::Timestamp;
use planwright_server::documents::load_dispatch_stats;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only what happened in this time: 30d, 12h.
    #[arg(long, value_name = "SPAN")]
    since: Option<TimeSpan>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    run_due_maintenance(&app).await;
    let since = args.since.map(|span| {
        let back = i64::try_from(span.as_duration().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(app.now().as_millis().saturating_sub(back))
    });
    let mut figures = app.engine.journals().stats(since).await?;
    if !figures.gaps.is_empty() {
        // A server that was not started yet may have a tool that seems to be missing.
        start_servers_of(&app, figures.gaps.keys()).await?;
        figures = app.engine.journals().stats(since).await?;
    }
    let mut result = StatsResult::new(&figures, since.map(|since| since.to_string()));
    result.dispatch = load_dispatch_stats(&app.engine.workers()).await;
    if context.printer.json {
        context.printer.document(&result)?;
    } else {
        print_stats(context.printer, &result)?;
    }
    Ok(Exit::Done)
}

async fn start_servers_of(app: &App, tools: impl Iterator<Item = &String>) -> Result<(), Failure> {
    let wanted = Document {
        tools_required: tools.cloned().collect(),
        ..Document::default()
    };
    app.start_servers(&wanted, Need::Look).await
}

fn print_stats(printer: Printer, stats: &StatsResult) -> Result<(), Failure> {
    let heading = |text: &str| printer.data(&printer.out(BOLD, text));
    heading("Plans")?;
    print_counts(printer, &stats.plans)?;
    heading("Runs")?;
    print_counts(printer, &stats.runs)?;
    let approvals = &stats.approvals;
    heading("Approvals")?;
    printer.data(&format!(
        "  {} by people, {} by policy, {} of steps: {} per plan",
        approvals.approvals, approvals.by_policy, approvals.step_approvals, approvals.per_plan
    ))?;
    if let (Some(half), Some(most)) = (
        approvals.time_to_approval_p50_ms,
        approvals.time_to_approval_p95_ms,
    ) {
        printer.data(&format!(
            "  time to approval: p50 {}, p95 {}",
            format_millis(half),
            format_millis(most)
        ))?;
    }
    printer.data(&format!(
        "  {} (at most {} of one plan), {}, {} denied, {} expired, {}",
        count_of(approvals.rejections, "rejection", "rejections"),
        approvals.most_rejections,
        count_of(
            approvals.change_requests,
            "request for changes",
            "requests for changes"
        ),
        count_of(approvals.step_denials, "step", "steps"),
        approvals.expired,
        count_of(approvals.comments, "comment", "comments")
    ))?;
    if stats.reflections > 0 {
        heading("Reflections")?;
        printer.data(&format!(
            "  {} at runs, {}",
            count_of(stats.reflections, "look", "looks"),
            count_of(stats.adjustments, "adjustment", "adjustments")
        ))?;
    }
    if stats.refused_calls + stats.let_through_calls > 0 {
        heading("Calls of agents")?;
        printer.data(&format!(
            "  {} refused, {} that the gateway would have refused",
            stats.refused_calls, stats.let_through_calls
        ))?;
    }
    heading("Tools")?;
    for tool in &stats.tools {
        printer.data(&format!(
            "  {:32} {:>7} calls  p50 {:>9}  p95 {:>9}  {:.1}% failed",
            line(&tool.tool),
            tool.calls,
            format_millis(tool.p50_ms),
            format_millis(tool.p95_ms),
            tool.failure_rate * 100.0
        ))?;
    }
    print_models(printer, stats)?;
    print_dispatch(printer, stats)?;
    let prediction = &stats.prediction;
    if prediction.runs > 0 {
        heading("Duration of completed runs")?;
        printer.data(&format!(
            "  {}: predicted {}, took {}, off by {} on average",
            count_of(prediction.runs, "run", "runs"),
            format_millis(prediction.mean_predicted_ms),
            format_millis(prediction.mean_actual_ms),
            format_millis(prediction.mean_off_ms)
        ))?;
    }
    if !stats.tool_gaps.is_empty() {
        heading("Tools that are asked for and not there")?;
        for gap in &stats.tool_gaps {
            let plans = count_of(gap.plans, "plan", "plans");
            printer.data(&format!("  {:32} {plans}", line(&gap.tool)))?;
        }
    }
    if stats.unreadable > 0 {
        printer.warn(&format!(
            "{} not counted, because they cannot be read",
            count_of(stats.unreadable, "plan is", "plans are")
        ));
        printer.hint("To see what is wrong with them: planwright verify");
    }
    Ok(())
}

fn print_models(printer: Printer, stats: &StatsResult) -> Result<(), Failure> {
    if stats.models.is_empty() {
        return Ok(());
    }
    printer.data(&printer.out(BOLD, "Models"))?;
    for model in &stats.models {
        let unpriced = if model.unpriced > 0 {
            format!("  {} without a price", model.unpriced)
        } else {
            String::new()
        };
        printer.data(&format!(
            "  {:32} {:>7} answers  {:>9} tokens in  {:>9} out  ${:.6}{unpriced}",
            line(&model.model),
            model.answers,
            model.input_tokens,
            model.output_tokens,
            model.cost_usd
        ))?;
    }
    printer.data(&format!("  together ${:.6}", stats.model_cost_usd))
}

fn print_dispatch(printer: Printer, stats: &StatsResult) -> Result<(), Failure> {
    let Some(dispatch) = &stats.dispatch else {
        return Ok(());
    };
    printer.data(&printer.out(BOLD, "Workers"))?;
    let counts = &dispatch.workers;
    printer.data(&format!(
        "  {} working, {} idle, {} draining",
        counts.working, counts.idle, counts.draining
    ))?;
    for waiting in &dispatch.waiting {
        printer.data(&format!(
            "  {:32} {} waiting, the first for {}",
            line(&waiting.capability),
            count_of(waiting.steps, "step", "steps"),
            duration(Duration::from_secs(waiting.oldest_seconds))
        ))?;
    }
    for queue in dispatch.queues.iter().flatten() {
        let redelivered = queue
            .redelivered
            .map(|count| format!(", {count} delivered again"));
        printer.data(&format!(
            "  {:32} {} at the broker, {} given up{}",
            line(&queue.capability),
            count_of(queue.waiting, "notice", "notices"),
            queue.dead,
            redelivered.unwrap_or_default()
        ))?;
    }
    if let Some(problem) = &dispatch.problem {
        printer.warn(problem);
    }
    Ok(())
}

fn print_counts(printer: Printer, counts: &BTreeMap<String, u64>) -> Result<(), Failure> {
    let words: Vec<String> = counts
        .iter()
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    printer.data(&format!(
        "  {}",
        if words.is_empty() {
            "none".to_owned()
        } else {
            words.join(", ")
        }
    ))
}

fn format_millis(millis: u64) -> String {
    duration(Duration::from_millis(millis))
}
