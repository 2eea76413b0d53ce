//! `token`: who may use the service.

use crate::command::review::revoke;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, line};
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::store_address::WholeStore;
use clap::ValueEnum;
use planwright_api::TokenLine;
use planwright_core::policy::{Role, TimeSpan};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_engine::Sweep;
use planwright_engine::access::{self, Grant, Minted};
use planwright_engine::crash;
use planwright_engine::passes::{self, INVITATION_LIFE, Invitation};
use planwright_engine::passkeys::forget_passkeys;
use planwright_engine::port::{Passkeys, Token, TokenId, Tokens};
use planwright_server::documents::{new_token, token_line};
use serde_json::json;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token. It is printed once, on stdout, and kept only as a hash.
    Create(CreateArgs),
    /// List the tokens, never what they are.
    List,
    /// Revoke a token: it is refused from now on, and its unused approvals become void.
    Revoke {
        #[arg(value_name = "ID")]
        id: String,
    },
    /// Invite a person: a link that signs in once, in a browser, to the service of this workspace.
    Invite(InviteArgs),
    /// Show the passkeys of a person, or forget them all when a device was lost.
    Passkeys {
        /// The name of the person.
        #[arg(value_name = "NAME")]
        name: String,
        /// Forget them, and end the person's sessions: they register one again after they signed in.
        #[arg(long)]
        forget: bool,
    },
    /// End the sessions of a person, and their invitations that were not used.
    SignOut {
        /// The name of the person.
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Replace a token by a fresh one for the same person or program. The old one is revoked.
    Rotate {
        #[arg(value_name = "ID")]
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct CreateArgs {
    /// What its bearer may do: viewer, author, operator, approver or admin.
    #[arg(long)]
    role: Role,
    /// Who its bearer is. Only a person can be an approver, and an agent cannot be an admin.
    #[arg(long, value_enum)]
    kind: TokenKind,
    /// The name under which the bearer appears in the journal.
    #[arg(long)]
    name: String,
    /// How long it is valid: 45s, 30m, 12h, 30d. Default: until it is revoked.
    #[arg(long, value_name = "TIME")]
    expires: Option<TimeSpan>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct InviteArgs {
    /// What the person may do: viewer, author, operator, approver or admin.
    #[arg(long)]
    role: Role,
    /// The name under which the person appears in the journal.
    #[arg(long)]
    name: String,
    /// How long the link is good: 30m, 12h, 7d, at most 30d. Default: 24 hours.
    #[arg(long, value_name = "TIME")]
    expires: Option<TimeSpan>,
    /// Where people reach the service.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:7526")]
    url: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum TokenKind {
    Person,
    Agent,
    Service,
}

impl TokenKind {
    fn principal(self, name: &str) -> Principal {
        let kind = match self {
            Self::Person => PrincipalKind::Person,
            Self::Agent => PrincipalKind::Agent,
            Self::Service => PrincipalKind::Service,
        };
        Principal {
            kind,
            name: name.to_owned(),
        }
    }
}

pub(crate) async fn run(context: &CommandContext, command: &TokenCommand) -> Result<Exit, Failure> {
    match command {
        TokenCommand::Create(args) => create_token(context, args).await,
        TokenCommand::List => list_tokens(context).await,
        TokenCommand::Revoke { id } => revoke_token(context, &TokenId(id.clone())).await,
        TokenCommand::Invite(args) => invite_person(context, args).await,
        TokenCommand::Passkeys { name, forget } => passkeys_of(context, name, *forget).await,
        TokenCommand::SignOut { name } => sign_out(context, name).await,
        TokenCommand::Rotate { id } => rotate_token(context, &TokenId(id.clone())).await,
    }
}

async fn create_token(context: &CommandContext, args: &CreateArgs) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let grant = Grant {
        to: args.kind.principal(&args.name),
        role: args.role,
        lifetime: args.expires.map(TimeSpan::as_duration),
    };
    let roles = &app.engine.policy().roles;
    let minted = access::create(token_store(&app)?, roles, &user(), &grant, app.now()).await?;
    print_token(&app, &minted)
}

async fn invite_person(context: &CommandContext, args: &InviteArgs) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let invitation = Invitation {
        name: args.name.clone(),
        role: args.role,
        lifetime: args.expires.map_or(INVITATION_LIFE, TimeSpan::as_duration),
    };
    let roles = &app.engine.policy().roles;
    let store = token_store(&app)?;
    let invited = passes::invite(store, (roles, &user()), &invitation, app.now()).await?;
    let url = args.url.trim_end_matches('/');
    let link = format!("{url}/#sign-in={}", invited.text.expose());
    let printer = app.printer();
    let expires_at = invited.pass.expires_at;
    if printer.json {
        printer.document(&json!({ "link": link, "expiresAt": expires_at }))?;
        return Ok(Exit::Done);
    }
    printer.data(&link)?;
    printer.talk(&format!(
        "signs {} in once, with role {}, until {expires_at}",
        line(&args.name),
        args.role
    ));
    printer.hint("who has the link is that person: send it over a channel you trust");
    Ok(Exit::Done)
}

async fn passkeys_of(context: &CommandContext, name: &str, forget: bool) -> Result<Exit, Failure> {
    let access = if forget { Access::Write } else { Access::Read };
    let app = context.open(access)?;
    let store = token_store(&app)?;
    let of = Principal::person(name);
    let all = Passkeys::list(store, &of).await?;
    let printer = app.printer();
    let mut ended = 0;
    if forget {
        let giver = (&app.engine.policy().roles, &user());
        forget_passkeys(store, giver, &of).await?;
        ended = passes::sign_out_everywhere(store, giver, &of).await?;
    }
    if printer.json {
        let lines: Vec<_> = all
            .iter()
            .map(|passkey| {
                json!({ "label": passkey.label, "createdAt": passkey.created_at, "usedAt": passkey.used_at })
            })
            .collect();
        printer.document(
            &json!({ "name": name, "passkeys": lines, "forgotten": forget, "ended": ended }),
        )?;
        return Ok(Exit::Done);
    }
    for passkey in &all {
        let used = passkey
            .used_at
            .map_or_else(|| "never used".to_owned(), |at| format!("used {at}"));
        let state = if forget { "  forgotten" } else { "" };
        printer.data(&format!(
            "{}  since {}, {used}{state}",
            line(&passkey.label),
            passkey.created_at
        ))?;
    }
    if all.is_empty() {
        printer.talk(&format!("{} has no passkeys", line(name)));
    }
    Ok(Exit::Done)
}

async fn sign_out(context: &CommandContext, name: &str) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let roles = &app.engine.policy().roles;
    let of = Principal::person(name);
    let ended = passes::sign_out_everywhere(token_store(&app)?, (roles, &user()), &of).await?;
    let printer = app.printer();
    if printer.json {
        printer.document(&json!({ "name": name, "ended": ended }))?;
    } else {
        printer.data(&format!("{}  {ended} ended", line(name)))?;
    }
    Ok(Exit::Done)
}

async fn rotate_token(context: &CommandContext, id: &TokenId) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let roles = &app.engine.policy().roles;
    let minted = access::rotate(token_store(&app)?, roles, &user(), id, app.now()).await?;
    print_token(&app, &minted)
}

/// The only moment at which the token can be seen.
fn print_token(app: &App, minted: &Minted) -> Result<Exit, Failure> {
    let printer = app.printer();
    let Token {
        id,
        principal,
        role,
        expires_at,
        ..
    } = &minted.token;
    if printer.json {
        printer.document(&new_token(minted))?;
    } else {
        printer.data(minted.text.expose())?;
        let until = expires_at.map_or_else(
            || "until it is revoked".to_owned(),
            |at| format!("until {at}"),
        );
        printer.talk(&format!(
            "{} is a token for {} with role {role}, {until}",
            id.0,
            line(&principal.to_string())
        ));
        printer.hint("it is shown only once: store it safely");
    }
    Ok(Exit::Done)
}

async fn list_tokens(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let tokens = match &app.whole {
        Some(store) => Tokens::list(&**store).await?,
        None => Vec::new(),
    };
    let printer = app.printer();
    let now = app.now();
    if printer.json {
        let lines: Vec<TokenLine> = tokens.iter().map(|token| token_line(token, now)).collect();
        printer.document(&lines)?;
        return Ok(Exit::Done);
    }
    if tokens.is_empty() {
        printer.talk("no tokens yet");
        printer.hint("planwright token create --role viewer --kind person --name NAME");
    }
    for token in &tokens {
        let standing = match (token.revoked_at, token.expires_at) {
            (Some(at), _) => printer.out(DIM, &format!("revoked {at}")),
            (None, Some(at)) if !token.is_valid(now) => printer.out(DIM, &format!("expired {at}")),
            (None, Some(at)) => format!("until {at}"),
            (None, None) => "until it is revoked".to_owned(),
        };
        let id = printer.out(BOLD, &token.id.0);
        let whose = line(&token.principal.to_string());
        printer.data(&format!(
            "{id}  {:8}  {whose}  {standing}",
            token.role.as_str()
        ))?;
    }
    Ok(Exit::Done)
}

async fn revoke_token(context: &CommandContext, id: &TokenId) -> Result<Exit, Failure> {
    let app = context.open(Access::Write)?;
    let roles = &app.engine.policy().roles;
    let tokens = token_store(&app)?;
    let of = access::find(tokens, id).await?.principal;
    let revoked = access::revoke(tokens, roles, &user(), id, app.now()).await?;
    crash::point("token: revoked");
    // Also for a token that was revoked before: the process may have died between the two steps.
    let swept = revoke::sweep_approvals(&app, &Sweep::of(of, user()))
        .await
        .map_err(|failure| Failure {
            message: format!(
                "the token is revoked, but what it approved is not: {}",
                failure.message
            ),
            hint: Some(format!("repeat planwright token revoke {}", id.0)),
            ..failure
        })?;
    let printer = app.printer();
    if printer.json {
        let (plans, runs) = revoke::sweep_documents(&swept);
        printer.document(&json!({
            "id": id.0, "revoked": revoked, "approvalsRevoked": plans, "runsExecuting": runs,
        }))?;
        return Ok(Exit::Done);
    }
    let word = if revoked {
        "revoked"
    } else {
        "was not valid any more"
    };
    printer.data(&format!("{}  {word}", line(&id.0)))?;
    revoke::print_sweep(&app, &swept);
    Ok(Exit::Done)
}

fn token_store(app: &App) -> Result<&dyn WholeStore, Failure> {
    let store = app.whole.as_deref();
    store.ok_or_else(|| Failure::new(Exit::Store, "there is no store in this workspace"))
}
