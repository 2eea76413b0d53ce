//! `watch`: what happens to a plan, as it happens, also in other processes.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{DIM, GREEN, Printer, RED, YELLOW, line};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use planwright_core::event::{EventName, PlanEvent, PlanEvents};
use planwright_core::status::StepStatus;
use planwright_engine::port::{FeedOf, Position, is_last_feed_page};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The plan.
    #[arg(value_name = "ID")]
    plan: String,
    /// Leave out the events up to this number.
    #[arg(long, value_name = "NUMBER", default_value_t = 0)]
    after: u64,
    /// Keep following when the run has ended.
    #[arg(long, short)]
    follow: bool,
}

/// Records read at a time.
const PAGE: usize = 500;
/// The longest wait between two looks, in case a change goes unnoticed.
const PATIENCE: Duration = Duration::from_secs(1);

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
    let plan = review.id().clone();
    let journals = app.engine.journals();
    let mut changes = journals.changes();
    let mut events = PlanEvents::new(plan.clone(), *app.engine.bounds());
    let of = FeedOf::Plan(plan);
    let mut after = Position(0);
    loop {
        changes.mark_unchanged();
        let page = journals.feed(&of, after, PAGE).await?;
        for placed in &page {
            journals.complete_fold(&mut events, placed).await?;
            let told = events
                .push(&placed.stream, &placed.record)
                .map_err(|error| {
                    Failure::new(
                        Exit::Store,
                        format!("the journal of {} cannot be read: {error}", placed.stream),
                    )
                    .hint("To see everything that is damaged: planwright verify")
                })?;
            after = placed.position;
            for event in told.iter().filter(|event| event.seq > args.after) {
                print_event(context.printer, event)?;
            }
        }
        if !is_last_feed_page(&page, PAGE) {
            continue;
        }
        if events.is_over() && !args.follow {
            return Ok(Exit::Done);
        }
        // Woken or not: the next look decides.
        drop(tokio::time::timeout(PATIENCE, changes.changed()).await);
    }
}

fn print_event(printer: Printer, event: &PlanEvent) -> Result<(), Failure> {
    if printer.json {
        let text = serde_json::to_string(event);
        return printer.data(&text.map_err(|error| Failure::new(Exit::Store, error.to_string()))?);
    }
    let at = printer.out(DIM, &event.occurred_at.to_string());
    let style = match (event.event, event.state()) {
        (EventName::RunFailed, _)
        | (
            _,
            Some(
                StepStatus::Failed
                | StepStatus::Denied
                | StepStatus::Blocked
                | StepStatus::OutcomeUnknown,
            ),
        ) => RED,
        (EventName::RunCompleted, _) if event.error.is_some() => RED,
        (EventName::RunCompleted, _) | (_, Some(StepStatus::Completed)) => GREEN,
        (
            _,
            Some(StepStatus::AwaitingApproval | StepStatus::AwaitingInput | StepStatus::RetryDue),
        ) => YELLOW,
        _ => DIM,
    };
    let name = event
        .state()
        .map_or(event.event.as_str(), StepStatus::as_str);
    let name = printer.out(style, &format!("{name:22}"));
    printer.data(&format!(
        "{:>5}  {at}  {name}  {}",
        event.seq,
        line(&event.summary)
    ))
}
