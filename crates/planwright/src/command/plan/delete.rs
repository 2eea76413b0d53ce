//! `delete`: takes a plan out of every list. Its journal stays.

use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{YesNo, ask_yes_no};
use crate::terminal::printer::line;
use crate::workspace::app::{CommandContext, user};
use crate::workspace::plan_source::{load_plan, parse_id};
use crate::workspace::principal::confirmation_hint;
use crate::workspace::projections::update_plan_files;
use planwright_core::review::ReviewRefusal;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// Do not ask for confirmation.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = context.open_existing()?;
    let (review, _) = load_plan(&app, &id).await?;
    if app.engine.plans().status(&review).await?.is_executing() {
        return Err(Failure::from(ReviewRefusal::Executing).hint(format!("planwright cancel {id}")));
    }
    if !args.yes {
        if !app.printer().can_ask() {
            return Err(Failure::refused("there is no terminal to ask at")
                .hint(confirmation_hint("repeat the command with --yes")));
        }
        let title = line(
            review
                .current()
                .document
                .title
                .as_deref()
                .unwrap_or_default(),
        );
        if ask_yes_no(app.printer(), &format!("Delete {id} ({title})?"))? != YesNo::Yes {
            return Err(Failure::refused("not deleted"));
        }
    }
    let review = app.engine.plans().delete(&id, &user()).await?;
    update_plan_files(&app, &review).await;
    if app.printer().json {
        app.printer()
            .document(&json!({ "id": id, "status": review.state().status() }))?;
    } else {
        app.printer().data(&format!("{id}  deleted"))?;
    }
    Ok(Exit::Done)
}
