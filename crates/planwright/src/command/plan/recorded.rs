//! `plan from-session`: plans of what was done without one.

use super::import::propose_document;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::plan_source::{check_storable, parse_id};
use planwright_core::plan::document_of_calls;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session, as `planwright list --label session` lists it.
    session: String,
    /// The id of the plan; that of the session with `-plan` when absent.
    #[arg(long)]
    id: Option<String>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let Args { session, id } = args;
    let session = parse_id(session)?;
    let id = match id {
        Some(id) => parse_id(id)?,
        None => parse_id(&format!("{session}-plan"))?,
    };
    let app = context.open(Access::Write)?;
    let read = app.engine.sessions().recorded_calls(&session).await;
    let calls = read.map_err(|error| {
        Failure::usage(error.to_string())
            .hint("To list the sessions: planwright list --label session")
    })?;
    if calls.is_empty() {
        return Err(Failure::usage(format!("no call of {session} succeeded"))
            .hint(format!("To see what was wanted: planwright log {session}")));
    }
    let title = format!("What was done in {session}");
    let document = document_of_calls(id, &title, &calls);
    check_storable(context, session.as_str(), &document)?;
    propose_document(&app, document).await
}
