//! `chat`: a conversation with a model over the tools, in which everything that changes something
//! is asked about.

use crate::chat::{ChatOptions, Session};
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::{Access, App, CommandContext};
use planwright_adapters::mcp::{ServerState, ServerStatus};
use std::collections::BTreeSet;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Offer the tools of this server only; may be repeated. All that are trusted when absent.
    #[arg(long = "server", value_name = "NAME")]
    servers: Vec<String>,
    /// Let the model make plans and run them, with the same consent as every plan.
    #[arg(long)]
    plan_tools: bool,
    /// The model that answers; the one for chats when absent.
    #[arg(long, value_name = "MODEL")]
    model: Option<String>,
    /// Continue an earlier conversation.
    #[arg(long, value_name = "ID")]
    resume: Option<String>,
    /// How often the model may be asked in one conversation.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// Offer no tools: only talk.
    #[arg(long, conflicts_with_all = ["servers", "plan_tools"])]
    no_tools: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let servers =
        (!args.servers.is_empty()).then(|| args.servers.iter().cloned().collect::<BTreeSet<_>>());
    if !args.no_tools {
        start_servers(&app, servers.as_ref()).await?;
    }
    let options = ChatOptions {
        servers,
        no_tools: args.no_tools,
        plan_tools: args.plan_tools,
        model: args.model.clone(),
        max_turns: args.max_turns,
        budget: context.config.chat_budget(),
        resume: args.resume.clone(),
    };
    let session = Box::pin(Session::open(app, options)).await?;
    Box::pin(session.run()).await
}

/// Starts the servers that were named, or every server that is ready. One that was named and cannot
/// be started stops the chat; of the others it is said.
async fn start_servers(app: &App, named: Option<&BTreeSet<String>>) -> Result<(), Failure> {
    let wanted: BTreeSet<String> = match named {
        None => app.roster.ready().map(|spec| spec.name.clone()).collect(),
        Some(named) => {
            let mut wanted = BTreeSet::new();
            for name in named
                .iter()
                .filter(|name| !matches!(name.as_str(), "local" | "demo"))
            {
                let Some(server) = app.roster.find(name) else {
                    return Err(
                        Failure::usage(format!("no file names a server `{}`", line(name)))
                            .hint("To list the servers: planwright servers list"),
                    );
                };
                if let Some((reason, hint)) = server.obstacle() {
                    return Err(Failure {
                        hint,
                        ..Failure::refused(reason)
                    });
                }
                wanted.insert(name.clone());
            }
            wanted
        }
    };
    for ServerStatus { name, state } in app.connect(&wanted).await? {
        let ServerState::Failed { reason, .. } = state else {
            continue;
        };
        let reason = format!("the server `{name}` could not be started: {reason}");
        match named {
            Some(_) => {
                return Err(Failure::new(Exit::RunFailed, reason)
                    .hint(format!("planwright servers check {name}")));
            }
            None => app.printer().warn(&reason),
        }
    }
    Ok(())
}
