//! `servers sign-in` and `servers sign-out`: a person signs in to a server over HTTP, in a browser on
//! this machine. The program opens no page by itself.

use super::find_server;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::{Access, App, CommandContext};
use crate::workspace::principal::{account, refuse_agents};
use crate::workspace::servers::{ServerReadiness, ServerTable};
use planwright_adapters::mcp::{
    KnownAs, OAuthSignIn, OAuthSignInError, ServerAccount, ServerSpec, Transport,
};
use planwright_core::secret::SecretName;
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
    let known_as = find_known_client(&app, (&server.name, url)).await?;
    let begun = OAuthSignIn::begin(&server.name, url, known_as).await;
    let begun = begun.map_err(|error| failed(&error))?;
    let address = begun.address().map_err(|error| failed(&error))?;
    let printer = context.printer;
    printer.talk("open this page in a browser on this machine if you trust it:");
    printer.talk(&line(&address));
    let account = account_at(spec);
    let finished = begun.finish(&tokens, &account).await;
    finished.map_err(|error| failed(&error))?;
    if printer.json {
        printer.document(&json!({ "name": server.name, "signedIn": true }))?;
    } else {
        printer.data(&format!("{}  signed in", line(&server.name)))?;
    }
    Ok(Exit::Done)
}

/// The account that is signed in to: that of this person, if each signs in by themselves.
fn account_at(spec: &ServerSpec) -> ServerAccount {
    match spec.personal_sign_in {
        true => ServerAccount::of_person(&spec.name, account()),
        false => ServerAccount::shared(&spec.name),
    }
}

/// What the server's table says about this program.
pub(crate) async fn find_known_client(
    app: &App,
    (server, url): (&str, &str),
) -> Result<Option<KnownAs>, Failure> {
    let config = &app.context.config;
    let known = |table: &ServerTable| table.client_id.clone();
    let Some(id) = config.server(server).find_map(known) else {
        return Ok(None);
    };
    if config
        .server(server)
        .all(|table| table.client_secret.is_none())
    {
        return Ok(Some(KnownAs { id, secret: None }));
    }
    // A file that came with a project must not choose where a secret of the user's is sent.
    let own = config.own_server(server).filter(|table| table.is_at(url));
    let named = own.and_then(|table| table.client_secret.as_deref());
    let name = named.and_then(SecretName::new).ok_or_else(|| {
        let words = "`client_secret` is the name of a secret, and stands beside `url` in your own planwright.toml";
        Failure::usage(words).hint("planwright explain servers")
    })?;
    let found = app.secrets.get(&name).await;
    let found = found
        .map_err(|error| Failure::usage(error.to_string()).hint("planwright secrets check"))?;
    let secret = Some(found.expose().to_owned());
    Ok(Some(KnownAs { id, secret }))
}

pub(crate) async fn sign_out(
    context: &CommandContext,
    args: &SignOutArgs,
) -> Result<Exit, Failure> {
    refuse_agents("sign out of servers")?;
    let app = context.open(Access::Write)?;
    // Both, if there are both: the server may have been set up otherwise before.
    let own = ServerAccount::of_person(&args.name, account());
    let mut was_in = false;
    for account in [own, ServerAccount::shared(&args.name)] {
        let forgotten = app.sign_ins().forget(&account).await;
        was_in |= forgotten.map_err(|reason| Failure::new(Exit::Store, reason))?;
    }
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
