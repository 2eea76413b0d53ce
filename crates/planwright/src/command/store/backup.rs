//! `store backup`.

use super::run_with_progress;
use crate::command::audit::verify::Verification;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{Printer, line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_adapters::sqlite::SqliteStore;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to make. It must not be there yet.
    #[arg(value_name = "PATH")]
    to: PathBuf,
    /// Copy a damaged store too. The backup names the damage, and a store restored from it is
    /// damaged in the same way.
    #[arg(long)]
    with_damage: bool,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let Some(store) = app.sqlite.as_ref().map(Arc::clone) else {
        return Err(Failure::usage("there is no store in this workspace"));
    };
    let damage = find_damage(&app, &store).await?;
    if !damage.is_empty() && !args.with_damage {
        return Err(refuse_damage(&app, &damage));
    }
    let artifacts = context.workspace.artifacts.clone();
    let to = args.to.clone();
    let now = app.now();
    let manifest = run_with_progress(context.printer, move |tell| {
        if damage.is_empty() {
            store.backup(&artifacts, &to, now, tell)
        } else {
            store.backup_damaged(&artifacts, &to, (now, &damage), tell)
        }
    })
    .await?;
    warn_of_damage(context.printer, &manifest.damage);
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    if context.printer.json {
        context.printer.document(&json!({
            "path": args.to, "createdAt": manifest.created_at, "encrypted": manifest.encrypted,
            "streams": manifest.streams, "entries": manifest.entries, "files": manifest.files.len(),
            "bytes": bytes, "damage": manifest.damage,
        }))?;
    } else {
        context.printer.data(&format!(
            "{}: {}, {}, {}, {} KiB",
            line(&args.to.display().to_string()),
            count_of(manifest.streams, "stream", "streams"),
            count_of(manifest.entries, "entry", "entries"),
            count_of(manifest.files.len(), "file", "files"),
            bytes.div_ceil(1024)
        ))?;
    }
    Ok(Exit::Done)
}

/// Findings that are printed one by one.
const SHOWN: usize = 20;

/// Looks for everything that `verify` and `store check` would find lost or changed.
async fn find_damage(app: &App, store: &SqliteStore) -> Result<Vec<String>, Failure> {
    let mut found = Verification::default();
    found.check(app, store, None).await?;
    match store.odd_rows().await {
        Ok(problems) => {
            for problem in problems {
                found.note("database", problem);
            }
        }
        Err(error) => found.note("database", error.to_string()),
    }
    let findings = found.findings.into_iter();
    Ok(findings
        .map(|damage| format!("{}: {}", damage.place, damage.message))
        .collect())
}

/// A copy that looks whole would hide the loss from everybody who restores it.
fn refuse_damage(app: &App, damage: &[String]) -> Failure {
    warn_of_damage(app.printer(), damage);
    let count = damage.len();
    Failure::new(
        Exit::Store,
        format!("the store is damaged: {count} finding(s); no backup was made"),
    )
    .hint("--with-damage copies it all the same: the backup names the damage, and the store restored from it does too")
}

pub(super) fn warn_of_damage(printer: Printer, damage: &[String]) {
    for problem in damage.iter().take(SHOWN) {
        printer.warn(&format!("damaged: {}", line(problem)));
    }
    if let Some(more) = damage.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        printer.warn(&format!(
            "and {more} more. To list all of them: planwright verify"
        ));
    }
}
