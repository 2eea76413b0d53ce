//! `servers sign-in` and `servers sign-out`: a person signs in to a server over HTTP, in a browser on
//! this machine. The program opens no page by itself.

use super::find_server;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::principal::refuse_agents;
use crate::workspace::servers::ServerReadiness;
use planwright_adapters::mcp::{OAuthSignIn, OAuthSignInError, Transport};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct SignInArgs {
    /// The server, as its file names it.
    name: String,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SignOutArgs {
    /// The server, as its file names it.
    name: String,
}

pub(crate) async fn sign_in(context: &CommandContext, args: &SignInArgs) -> Result<Exit, Failure> {
    refuse_agents("sign in to servers")?;
    let roster = context.roster();
    let server = find_server(&roster, &args.name)?;
    let ServerReadiness::Ready(spec) = server.readiness() else {
        let (reason, hint) = server.obstacle().unwrap_or_default();
        return Err(Failure {
            hint,
            ..Failure::refused(reason)
        });
    };
    let Transport::Http { url, .. } = &spec.transport else {
        return Err(Failure::usage(
            "it is a program on this machine: nothing is signed in to",
        ));
    };
    let app = context.open(Access::Write)?;
    let tokens = app.sign_ins();
    let client_id = context
        .config
        .server(&server.name)
        .find_map(|table| table.client_id.as_deref());
    let begun = OAuthSignIn::begin(&server.name, url, client_id).await;
    let begun = begun.map_err(|error| failed(&error))?;
    let address = begun.address().map_err(|error| failed(&error))?;
    let printer = context.printer;
    printer.talk("open this page in a browser on this machine if you trust it:");
    printer.talk(&line(&address));
    begun
        .finish(&tokens)
        .await
        .map_err(|error| failed(&error))?;
    if printer.json {
        printer.document(&json!({ "name": server.name, "signedIn": true }))?;
    } else {
        printer.data(&format!("{}  signed in", line(&server.name)))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn sign_out(context: &CommandContext, args: &SignOutArgs) -> Result<Exit, Failure> {
    refuse_agents("sign out of servers")?;
    let app = context.open(Access::Write)?;
    let forgotten = app.sign_ins().forget(&args.name);
    let was_in = forgotten.map_err(|reason| Failure::new(Exit::Store, reason))?;
    let words = if was_in {
        "signed out"
    } else {
        "was not signed in"
    };
    let printer = context.printer;
    if printer.json {
        printer
            .document(&json!({ "name": args.name, "signedIn": false, "wasSignedIn": was_in }))?;
    } else {
        printer.data(&format!("{}  {words}", line(&args.name)))?;
    }
    Ok(Exit::Done)
}

fn failed(error: &OAuthSignInError) -> Failure {
    Failure::new(Exit::RunFailed, line(&error.to_string()))
}
