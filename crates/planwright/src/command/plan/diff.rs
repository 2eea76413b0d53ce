//! `diff`: what differs between two versions of a plan, or a version and a file.

use crate::exit::{Exit, Failure};
use crate::terminal::diff;
use crate::terminal::editor::read_edited;
use crate::terminal::printer::BOLD;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_source::load_plan_for_reading;
use planwright_api::DiffResult;
use planwright_core::plan::PlanDiff;
use planwright_core::review::{Review, ReviewRefusal};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A plan id, or enough of its beginning.
    #[arg(value_name = "ID")]
    plan: String,
    /// The earlier version; default: the one that was last approved, else the one before the
    /// current.
    #[arg(value_name = "A")]
    from: Option<u32>,
    /// The later version; default: the current one.
    #[arg(value_name = "B", conflicts_with = "file")]
    to: Option<u32>,
    /// Compare with this file instead of a later version.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let (review, _) = load_plan_for_reading(&app, &args.plan).await?;
    let id = review.id().clone();
    let current = review.current().number;
    let result = match &args.file {
        Some(path) => {
            let from = args.from.unwrap_or(current);
            let earlier = app.engine.plans().load_version(&review, from).await?;
            let earlier = earlier.ok_or(ReviewRefusal::NoSuchVersion(from))?;
            let mut document = read_edited(path, &context.config.bounds())?.document;
            document.id.get_or_insert_with(|| id.clone());
            DiffResult::new(
                id,
                from,
                None,
                PlanDiff::between(&earlier.document, &document),
            )
        }
        None => {
            let to = args.to.unwrap_or(current);
            let from = args
                .from
                .unwrap_or_else(|| default_base_version(&review, to));
            let diff = app.engine.plans().diff(&review, from, to).await?;
            DiffResult::new(id, from, Some(to), diff)
        }
    };
    let printer = context.printer;
    if printer.json {
        printer.document(&result)?;
        return Ok(Exit::Done);
    }
    let other = result
        .to
        .map_or_else(|| "the file".to_owned(), |to| format!("version {to}"));
    printer.talk(&printer.err(
        BOLD,
        &format!("{}: version {} → {other}", result.id, result.from),
    ));
    diff::print_diff(printer, &result.diff)?;
    if result.diff.is_empty() {
        printer.talk("no difference");
    } else if !result.executable {
        printer.talk("only texts differ: the same calls are executed");
    }
    Ok(Exit::Done)
}

/// The version that was last agreed to before this one, else the one before it.
fn default_base_version(review: &Review, to: u32) -> u32 {
    let agreed = review
        .approvals()
        .iter()
        .rev()
        .filter(|approval| !approval.is_void());
    let agreed = agreed
        .map(|approval| approval.version)
        .find(|&version| version < to);
    agreed.unwrap_or_else(|| to.saturating_sub(1).max(1))
}
