//! `comments`: what was said about a plan, thread by thread.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, Printer, block, line};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use planwright_api::{ThreadLine, ThreadWord};
use planwright_core::review::Review;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan id, or enough of its beginning.
    #[arg(value_name = "ID")]
    plan: String,
    /// Only threads in which something is left to discuss.
    #[arg(long)]
    open: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
    let mut threads = ThreadLine::all(&review);
    threads.retain(|thread| !args.open || thread.state == ThreadWord::Open);
    if context.printer.json {
        context.printer.document(&threads)?;
        return Ok(Exit::Done);
    }
    print_threads(context.printer, &threads)?;
    if threads.is_empty() {
        context.printer.talk("no comments");
    }
    Ok(Exit::Done)
}

/// A line for `show`, if there is something to say.
pub(crate) fn summarize_threads(review: &Review) -> Option<String> {
    let open = review.open_threads().count();
    let all = review.threads().len();
    let id = review.id();
    let threads = if all == 1 { "thread" } else { "threads" };
    (all > 0).then(|| format!("{all} {threads} of comments, {open} open: planwright comments {id}"))
}

fn print_threads(printer: Printer, threads: &[ThreadLine]) -> Result<(), Failure> {
    for thread in threads {
        let on = thread
            .step
            .as_deref()
            .map_or_else(|| "the plan".to_owned(), |step| format!("step `{step}`"));
        let outdated = if thread.outdated {
            ", which is gone"
        } else {
            ""
        };
        let heading = format!("{}  {}  on {on}{outdated}", thread.id, thread.state);
        printer.data(&printer.out(BOLD, &heading))?;
        for comment in &thread.comments {
            let by = format!(
                "  {}  {}  version {}  {}",
                comment.id,
                line(&comment.by),
                comment.version,
                comment.at
            );
            printer.data(&printer.out(DIM, &by))?;
            for text in block(&comment.text).lines() {
                printer.data(&format!("    {text}"))?;
            }
        }
    }
    Ok(())
}
