//! `comment`: says something about a plan or a step, answers, and settles threads.

use crate::exit::{Exit, Failure};
use crate::workspace::app::{App, CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use planwright_api::ThreadLine;
use planwright_core::id::PlanId;
use planwright_core::review::Review;
use planwright_engine::NewComment;
use std::io::Read as _;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// What you have to say; `-` reads it from stdin.
    #[arg(value_name = "TEXT", required_unless_present_any = ["resolve", "reopen"])]
    text: Option<String>,
    /// The step it is about, instead of the whole plan.
    #[arg(long, value_name = "STEP", conflicts_with = "reply_to")]
    step: Option<String>,
    /// The comment that this one answers.
    #[arg(long, value_name = "COMMENT")]
    reply_to: Option<String>,
    /// Resolve the thread of this comment.
    #[arg(long, value_name = "COMMENT", conflicts_with_all = ["text", "step", "reply_to", "reopen"])]
    resolve: Option<String>,
    /// Reopen the thread of this comment.
    #[arg(long, value_name = "COMMENT", conflicts_with_all = ["text", "step", "reply_to"])]
    reopen: Option<String>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let text = args.text.as_deref().map(read_comment_text).transpose()?;
    let app = context.open_existing()?;
    load_plan(&app, &id).await?;
    let (comment, review) = match (&args.resolve, &args.reopen, text) {
        (Some(comment), _, _) => (
            comment.clone(),
            app.engine
                .plans()
                .resolve_comment(&id, comment, &user())
                .await?,
        ),
        (None, Some(comment), _) => (
            comment.clone(),
            app.engine
                .plans()
                .reopen_comment(&id, comment, &user())
                .await?,
        ),
        (None, None, text) => {
            let new = NewComment {
                on: args.step.clone(),
                reply_to: args.reply_to.clone(),
                text: text.unwrap_or_default(),
            };
            let (comment, review) = app.engine.plans().comment(&id, new, &user()).await?;
            (comment.to_string(), review)
        }
    };
    print_thread(&app, &id, &comment, &review)
}

fn print_thread(app: &App, id: &PlanId, comment: &str, review: &Review) -> Result<Exit, Failure> {
    let Some(thread) = review.thread_of(comment) else {
        return Err(Failure::usage(format!("there is no comment `{comment}`")));
    };
    if app.printer().json {
        app.printer()
            .document(&ThreadLine::new(thread, &review.current().document))?;
    } else {
        let state = if thread.is_open() { "open" } else { "resolved" };
        app.printer().data(&format!("{id}  {comment}  {state}"))?;
    }
    Ok(Exit::Done)
}

/// The text itself, or what is on stdin. One byte more than allowed is enough to know that it is
/// too much.
fn read_comment_text(text: &str) -> Result<String, Failure> {
    if text != "-" {
        return Ok(text.to_owned());
    }
    let mut read = Vec::new();
    let limit = Review::MAX_COMMENT_BYTES as u64 + 1;
    std::io::stdin()
        .take(limit)
        .read_to_end(&mut read)
        .map_err(|error| Failure::usage(format!("stdin cannot be read: {error}")))?;
    String::from_utf8(read).map_err(|_| Failure::usage("the comment is not UTF-8 text"))
}
