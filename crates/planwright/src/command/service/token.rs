//! `token`: who may use the service.

use crate::command::review::revoke;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, line};
use crate::workspace::app::{Access, App, Setting, user};
use clap::ValueEnum;
use planwright_adapters::sqlite::SqliteStore;
use planwright_api::TokenLine;
use planwright_core::policy::{Role, Span};
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_engine::Sweep;
use planwright_engine::access::{self, Grant, GrantError, Minted};
use planwright_engine::crash;
use planwright_engine::port::{Token, TokenId, Tokens as _};
use planwright_server::documents::{new_token, token_line};
use serde_json::json;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum Command {
    /// Make a token. It is printed once, on stdout, and kept only as a hash.
    Create(CreateArgs),
    /// List the tokens, never what they are.
    List,
    /// Take a token back: it opens nothing from this moment on, and what was approved with it and
    /// not used is void.
    Revoke {
        #[arg(value_name = "ID")]
        id: String,
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
    kind: Kind,
    /// The name under which the bearer appears in the journal.
    #[arg(long)]
    name: String,
    /// How long it opens the door: 45s, 30m, 12h, 30d. Default: until it is revoked.
    #[arg(long, value_name = "TIME")]
    expires: Option<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Kind {
    Person,
    Agent,
    Service,
}

impl Kind {
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

impl From<GrantError> for Failure {
    fn from(error: GrantError) -> Self {
        match error {
            GrantError::Refused(_) => Self::caused(Exit::Refused, &error),
            GrantError::NoSuchToken(_) => Self::caused(Exit::Usage, &error)
                .hint("planwright token list shows the tokens there are"),
            GrantError::Invalid(_) => Self::caused(Exit::Refused, &error)
                .hint("planwright token create makes a new one for the same name"),
            GrantError::TooMany | GrantError::Random(_) => Self::caused(Exit::Store, &error),
            GrantError::Store(error) => error.into(),
        }
    }
}

pub(crate) async fn run(setting: &Setting, command: &Command) -> Result<Exit, Failure> {
    match command {
        Command::Create(args) => create(setting, args).await,
        Command::List => list(setting).await,
        Command::Revoke { id } => revoke(setting, &TokenId(id.clone())).await,
        Command::Rotate { id } => rotate(setting, &TokenId(id.clone())).await,
    }
}

async fn create(setting: &Setting, args: &CreateArgs) -> Result<Exit, Failure> {
    let app = setting.open(Access::Write)?;
    let grant = Grant {
        to: args.kind.principal(&args.name),
        role: args.role,
        lifetime: args.expires.map(Span::as_duration),
    };
    let roles = &app.engine.policy().roles;
    let minted = access::create(store(&app)?, roles, &user(), &grant, app.now()).await?;
    tell(&app, &minted)
}

async fn rotate(setting: &Setting, id: &TokenId) -> Result<Exit, Failure> {
    let app = setting.open(Access::Write)?;
    let roles = &app.engine.policy().roles;
    let minted = access::rotate(store(&app)?, roles, &user(), id, app.now()).await?;
    tell(&app, &minted)
}

/// The only moment at which the token can be seen.
fn tell(app: &App, minted: &Minted) -> Result<Exit, Failure> {
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
            "{} lets {} in as {role}, {until}",
            id.0,
            line(&principal.to_string())
        ));
        printer.hint("it is not shown again: keep it where only its bearer can read it");
    }
    Ok(Exit::Done)
}

async fn list(setting: &Setting) -> Result<Exit, Failure> {
    let app = setting.open(Access::Read)?;
    let tokens = match &app.sqlite {
        Some(store) => store.list().await?,
        None => Vec::new(),
    };
    let (printer, now) = (app.printer(), app.now());
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

async fn revoke(setting: &Setting, id: &TokenId) -> Result<Exit, Failure> {
    let app = setting.open(Access::Write)?;
    let (roles, tokens) = (&app.engine.policy().roles, store(&app)?);
    let of = access::find(tokens, id).await?.principal;
    let revoked = access::revoke(tokens, roles, &user(), id, app.now()).await?;
    crash::point("token: revoked");
    // Also for a token that was revoked before: whoever died in between is not left half done.
    let swept = revoke::sweep(&app, &Sweep::of(of, user()))
        .await
        .map_err(|failure| Failure {
            message: format!(
                "the token is revoked, but what it approved is not: {}",
                failure.message
            ),
            hint: Some(format!(
                "planwright token revoke {} again goes on with it",
                id.0
            )),
            ..failure
        })?;
    let printer = app.printer();
    if printer.json {
        let (plans, runs) = revoke::documents(&swept);
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
    revoke::tell(&app, &swept);
    Ok(Exit::Done)
}

fn store(app: &App) -> Result<&SqliteStore, Failure> {
    let store = app.sqlite.as_deref();
    store.ok_or_else(|| Failure::new(Exit::Store, "there is no store in this workspace"))
}
