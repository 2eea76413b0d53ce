//! `delete`: takes a plan out of every list. Its journal stays.

use crate::command::execution::resume::existing;
use crate::exit::{Exit, Failure};
use crate::terminal::approval_prompt::{Answer, ask};
use crate::terminal::printer::line;
use crate::workspace::app::{Setting, user};
use crate::workspace::plan_source::{load, parse_id};
use crate::workspace::projections::project;
use planwright_core::review::Refusal;
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[arg(value_name = "ID")]
    plan: String,
    /// Without being asked.
    #[arg(long, short = 'y')]
    yes: bool,
}

pub(crate) async fn run(setting: &Setting, args: &Args) -> Result<Exit, Failure> {
    let id = parse_id(&args.plan)?;
    let app = setting.open(existing(setting))?;
    let (review, _) = load(&app, &id).await?;
    if app.engine.status(&review).await?.is_executing() {
        return Err(Failure::from(Refusal::Executing).hint(format!("planwright cancel {id}")));
    }
    if !args.yes {
        if !app.printer().can_ask() {
            return Err(Failure::refused("nobody is there to be asked")
                .hint("repeat the command with --yes"));
        }
        let title = line(
            review
                .current()
                .document
                .title
                .as_deref()
                .unwrap_or_default(),
        );
        if ask(app.printer(), &format!("Delete {id} ({title})?"))? != Answer::Yes {
            return Err(Failure::refused("not deleted"));
        }
    }
    let review = app.engine.delete(&id, &user()).await?;
    project(&app, &review).await;
    if app.printer().json {
        app.printer()
            .document(&json!({ "id": id, "status": review.state().status() }))?;
    } else {
        app.printer().data(&format!("{id}  deleted"))?;
    }
    Ok(Exit::Done)
}
