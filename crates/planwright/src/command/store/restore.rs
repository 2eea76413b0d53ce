//! `store restore`.

use super::backup::warn_of_damage;
use super::{open_options, run_with_progress};
use crate::command::review::revoke;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::line;
use crate::workspace::app::{Access, App, CommandContext, Workspace, user};
use crate::workspace::principal::refuse_agents;
use planwright_adapters::sqlite::{Restore, Restored, read_manifest, restore};
use planwright_core::status::RunStatus;
use planwright_engine::memory::SystemClock;
use planwright_engine::port::Clock as _;
use planwright_engine::{CommandError, RunCommand, Sweep, Swept};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory that `store backup` made.
    #[arg(value_name = "PATH")]
    from: PathBuf,
    /// Another workspace to restore into; default: this one.
    #[arg(long, value_name = "DIR")]
    into: Option<PathBuf>,
    /// Replace the store that is there. What was recorded since the backup is lost.
    #[arg(long)]
    replace: bool,
    /// Keep the tokens of the backup valid, including those revoked since.
    #[arg(long)]
    keep_tokens: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    // A second copy of a store is a second copy of its approvals.
    refuse_agents("restore a store")?;
    let context = target_context(context, args)?;
    let manifest = read_manifest(&args.from)?;
    let passphrase = match context.unlock.read_passphrase(&context)? {
        Some(passphrase) => Some(passphrase),
        None if manifest.encrypted => Some(context.unlock.existing(&context)?),
        None => None,
    };
    let what = Restore {
        from: args.from.clone(),
        to: open_options(&context, passphrase)?,
        artifacts: context.workspace.artifacts.clone(),
        replace: args.replace,
        keep_tokens: args.keep_tokens,
        now: SystemClock::default().now(),
    };
    let restored = run_with_progress(context.printer, move |tell| restore(&what, tell)).await?;
    let app = context.open(Access::Read)?;
    // A backup of another user is theirs until it is adopted, and nothing in it goes on before.
    let is_foreign = app
        .sqlite
        .as_ref()
        .is_some_and(|store| store.foreign().is_some());
    let paused = match is_foreign {
        true => Vec::new(),
        false => pause_runs(&app).await?,
    };
    let swept = match args.keep_tokens || is_foreign {
        true => Swept::default(),
        false => revoke::sweep_approvals(&app, &Sweep::after_restore()).await?,
    };
    print_restored(&app, &restored, &paused, &swept)?;
    Ok(Exit::Done)
}

/// The workspace it is restored into.
fn target_context(context: &CommandContext, args: &Args) -> Result<CommandContext, Failure> {
    let Some(into) = &args.into else {
        return Ok(context.clone());
    };
    let workspace = Workspace::inside(into)?;
    Ok(CommandContext {
        workspace,
        ..context.clone()
    })
}

/// Pauses the runs that executed when the backup was made. They may have continued after it, so a
/// person checks them first.
async fn pause_runs(app: &App) -> Result<Vec<String>, Failure> {
    let mut paused = Vec::new();
    for plan in app.engine.journals().plans().await? {
        for run in app.engine.journals().runs(&plan.status.plan).await? {
            let planwright_core::journal::StreamName::Run(id) = &run.stream else {
                continue;
            };
            if !matches!(
                run.status.status.run_status(),
                // A word of a newer version may mean anything: it is paused too.
                None | Some(RunStatus::Executing | RunStatus::Waiting)
            ) {
                continue;
            }
            match app
                .engine
                .runs()
                .command(id, RunCommand::Pause { by: user() })
                .await
            {
                Ok(_) => paused.push(id.to_string()),
                // It is paused or waits for a person, so it does not continue by itself.
                Err(CommandError::Refused(_)) => {}
                Err(error) => app
                    .printer()
                    .warn(&format!("{id} could not be paused: {error}")),
            }
        }
    }
    Ok(paused)
}

fn print_restored(
    app: &App,
    restored: &Restored,
    paused: &[String],
    swept: &Swept,
) -> Result<(), Failure> {
    let printer = app.printer();
    let Restored {
        manifest,
        tokens_revoked,
        commands_refused,
    } = restored;
    // It is not hidden by the copying: the person who restores is told, and verify says it too.
    warn_of_damage(printer, &manifest.damage);
    if printer.json {
        return printer.document(&json!({
            "store": app.context.workspace.database, "createdAt": manifest.created_at,
            "encrypted": manifest.encrypted, "streams": manifest.streams, "entries": manifest.entries,
            "runsPaused": paused, "tokensRevoked": tokens_revoked, "commandsRefused": commands_refused,
            "approvalsRevoked": revoke::sweep_documents(swept).0, "damage": manifest.damage,
        }));
    }
    printer.data(&format!(
        "restored to {}: {}, {}",
        manifest.created_at,
        count_of(manifest.streams, "stream", "streams"),
        count_of(manifest.entries, "entry", "entries")
    ))?;
    if !paused.is_empty() {
        printer.talk(&format!(
            "paused, because they may have continued after the backup: {}",
            line(&paused.join(", "))
        ));
        printer.hint("check what they did, then planwright resume RUN or planwright cancel RUN");
    }
    if *tokens_revoked > 0 {
        printer.talk(&format!(
            "{} revoked. To create new ones: planwright token create",
            count_of(tokens_revoked, "token was", "tokens were")
        ));
    }
    let plans: Vec<String> = swept
        .plans
        .iter()
        .map(|review| review.id().to_string())
        .collect();
    if !plans.is_empty() {
        printer.talk(&format!(
            "approved with a revoked token, approve again: {}",
            plans.join(", ")
        ));
    }
    Ok(())
}
