//! `webhooks`: who is told, what still waits, and trying again.

use crate::exit::{Exit, Failure};
use crate::terminal::printer::{BOLD, DIM, GREEN, RED, YELLOW, line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_adapters::webhook::{Format, HttpWebhook};
use planwright_core::text::nearest_names;
use planwright_engine::port::{DeliveryState, Outbox};
use planwright_engine::webhooks::Webhook;
use planwright_engine::webhooks::{About, Courier, Notice};
use planwright_server::http::OperatorWebhook;
use serde::Serialize;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: WebhooksCommand,
}

#[derive(Debug, clap::Subcommand)]
enum WebhooksCommand {
    /// The endpoints of planwright.toml, and what they are still to be told.
    List,
    /// Send a signed notice of the kind `webhook.test`, once, and say what came of it.
    Test {
        /// The name of the endpoint.
        name: String,
    },
    /// Send everything that waits or was given up now, and use a disabled endpoint again.
    Retry {
        /// The name of the endpoint.
        name: String,
    },
}

/// One endpoint, for people and programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WebhookLine {
    name: String,
    /// Without its query, which may hold a key.
    url: String,
    events: Vec<String>,
    format: &'static str,
    waiting: u64,
    dead: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    disabled: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_error: Option<String>,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    match &args.command {
        WebhooksCommand::List => list_webhooks(&context.open(Access::Read)?).await,
        WebhooksCommand::Test { name } => test_webhook(&context.open(Access::Read)?, name).await,
        WebhooksCommand::Retry { name } => retry_webhook(&context.open(Access::Write)?, name).await,
    }
}

async fn list_webhooks(app: &App) -> Result<Exit, Failure> {
    let mut listed = Vec::new();
    for webhook in app.webhooks()? {
        listed.push(describe_webhook(app, &webhook).await?);
    }
    let printer = app.printer();
    if printer.json {
        printer.document(&listed)?;
        return Ok(Exit::Done);
    }
    if listed.is_empty() {
        printer.talk("no webhooks: configure them as [[webhooks]] in planwright.toml");
    }
    for one in listed {
        let state = match (&one.disabled, one.dead, one.waiting) {
            (Some(reason), ..) => printer.out(RED, &format!("disabled: {}", line(reason))),
            (None, 0, 0) => printer.out(GREEN, "up to date"),
            (None, dead, waiting) => {
                printer.out(YELLOW, &format!("{waiting} waiting, {dead} given up"))
            }
        };
        let events = if one.events.is_empty() {
            "*".to_owned()
        } else {
            one.events.join(", ")
        };
        let name = printer.out(BOLD, &format!("{:16}", line(&one.name)));
        printer.data(&format!(
            "{name}  {state}  {}  {}",
            line(&one.url),
            printer.out(DIM, &line(&events))
        ))?;
        if let Some(error) = one.last_error {
            printer.data(&format!("{:16}  {}", "", line(&error)))?;
        }
    }
    Ok(Exit::Done)
}

impl From<WebhookLine> for OperatorWebhook {
    fn from(line: WebhookLine) -> Self {
        Self {
            name: line.name,
            url: line.url,
            events: line.events,
            waiting: line.waiting,
            dead: line.dead,
            disabled: line.disabled,
            last_error: line.last_error,
        }
    }
}

pub(super) async fn describe_webhook(
    app: &App,
    webhook: &HttpWebhook,
) -> Result<WebhookLine, Failure> {
    let options = webhook.options();
    let name = options.name.as_str();
    let mut waiting = 0;
    let mut dead = 0;
    let mut disabled = None;
    let mut last_error = None;
    if let Some(outbox) = app.outbox() {
        waiting = outbox.count(name, DeliveryState::Waiting).await?;
        dead = outbox.count(name, DeliveryState::Dead).await?;
        disabled = outbox
            .standing(name)
            .await?
            .and_then(|standing| standing.disabled);
        last_error = last_error_of(&*outbox, name).await?;
    }
    Ok(WebhookLine {
        name: name.to_owned(),
        url: webhook.shown_url(),
        events: options.events.clone(),
        format: match options.format {
            Format::Standard => "standard",
            Format::CloudEvents => "cloudevents",
        },
        waiting,
        dead,
        disabled,
        last_error,
    })
}

async fn last_error_of(outbox: &dyn Outbox, name: &str) -> Result<Option<String>, Failure> {
    for state in [DeliveryState::Waiting, DeliveryState::Dead] {
        let first = outbox.list(name, state, 1).await?;
        if let Some(error) = first.into_iter().find_map(|delivery| delivery.last_error) {
            return Ok(Some(error));
        }
    }
    Ok(None)
}

async fn test_webhook(app: &App, name: &str) -> Result<Exit, Failure> {
    let webhook = find_webhook(app, name)?;
    let entropy = app.engine.entropy();
    let notice = Notice {
        id: format!("msg_test_{entropy:016x}"),
        kind: "webhook.test",
        at: app.now(),
        about: About::default(),
    };
    let sent = webhook.send(&notice).await;
    match sent {
        Ok(()) => {
            print_result(
                app,
                &serde_json::json!({ "delivered": true, "id": notice.id }),
                "delivered",
            )?;
            Ok(Exit::Done)
        }
        Err(error) => Err(Failure::new(
            Exit::RunFailed,
            format!("the webhook `{name}` did not accept the test: {error}"),
        )),
    }
}

async fn retry_webhook(app: &App, name: &str) -> Result<Exit, Failure> {
    let webhook = find_webhook(app, name)?;
    let Some(outbox) = app.outbox() else {
        return Ok(Exit::Done);
    };
    let due = outbox.revive(name, app.now()).await?;
    let endpoint: Arc<dyn Webhook> = webhook;
    let mut courier = Courier::new(app.engine.clone(), Arc::clone(&outbox), endpoint);
    courier.carry(&CancellationToken::new()).await?;
    let waiting = outbox.count(name, DeliveryState::Waiting).await?;
    let text = format!("{due} were due, {waiting} wait");
    print_result(
        app,
        &serde_json::json!({ "due": due, "waiting": waiting }),
        &text,
    )?;
    if let Some(error) = last_error_of(&*outbox, name).await? {
        app.printer().warn(&error);
    }
    Ok(if waiting == 0 {
        Exit::Done
    } else {
        Exit::RunFailed
    })
}

fn print_result(app: &App, document: &serde_json::Value, text: &str) -> Result<(), Failure> {
    if app.printer().json {
        app.printer().document(document)
    } else {
        app.printer().data(text)
    }
}

fn find_webhook(app: &App, name: &str) -> Result<Arc<HttpWebhook>, Failure> {
    let webhooks = app.webhooks()?;
    let names = webhooks.iter().map(|webhook| webhook.name().to_owned());
    let hint = match nearest_names(name, names).first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`planwright webhooks list` shows them".to_owned(),
    };
    let found = webhooks
        .iter()
        .find(|webhook| webhook.name() == name)
        .cloned();
    found.ok_or_else(|| {
        Failure::usage(format!("there is no webhook `{name}` in planwright.toml")).hint(hint)
    })
}
