//! `store check`: that the store is whole, and that nothing lies around that should not.

use super::plain_files::PlainFiles;
use super::run_with_progress;
use crate::command::audit::verify::{Damage, Verification};
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::terminal::printer::{GREEN, RED, line};
use crate::workspace::app::{Access, App, CommandContext};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::sqlite::{RewriteStoreError, SqliteStore};
use serde::Serialize;
use std::sync::Arc;

/// What `store check --json` prints.
#[derive(Debug, Serialize)]
struct CheckedStore {
    ok: bool,
    encrypted: bool,
    streams: usize,
    entries: u64,
    artifacts: u64,
    findings: Vec<Damage>,
}

pub(crate) async fn run(context: &CommandContext) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let Some(store) = &app.sqlite else {
        return Err(Failure::usage("there is no store in this workspace"));
    };
    let mut found = Verification::default();
    found.check(&app, store, None).await?;
    for problem in store.odd_rows().await? {
        found.note("database", problem);
    }
    let artifacts = check_values(&app, store, &mut found).await?;
    if store.cipher().is_sealed() {
        check_leftovers(&app, store, &mut found).await?;
    }
    let Verification {
        streams,
        entries,
        findings,
        ..
    } = found;
    let ok = findings.is_empty();
    let encrypted = store.cipher().is_sealed();
    let checked = CheckedStore {
        ok,
        encrypted,
        streams,
        entries,
        artifacts,
        findings,
    };
    print_result(&app, &checked)?;
    if checked.ok {
        return Ok(Exit::Done);
    }
    Err(Failure::new(
        Exit::Store,
        format!("the store has {} finding(s)", checked.findings.len()),
    ))
}

/// Every large value holds what its name says.
async fn check_values(
    app: &App,
    store: &Arc<SqliteStore>,
    found: &mut Verification,
) -> Result<u64, Failure> {
    let values =
        FileArtifacts::with_cipher(&app.context.workspace.artifacts, Arc::clone(store.cipher()));
    let checked = run_with_progress(app.printer(), move |tell| {
        values.check(tell).map_err(RewriteStoreError::from)
    })
    .await?;
    for problem in checked.1 {
        found.note("artifacts", problem);
    }
    Ok(checked.0)
}

/// An encrypted store has nothing in plain text beside it.
async fn check_leftovers(
    app: &App,
    store: &SqliteStore,
    found: &mut Verification,
) -> Result<(), Failure> {
    if store.is_unfinished().await? {
        found.note(
            "store",
            "its encryption was interrupted: planwright store encrypt finishes it",
        );
    }
    for path in store.leftovers(&app.context.workspace.artifacts)? {
        let message = "it was left behind: planwright store encrypt removes it";
        found.note(path.display().to_string(), message);
    }
    match PlainFiles::find(&app.context.workspace) {
        Ok(plain) => {
            for path in plain.ours {
                let message = "it holds plain text: planwright store encrypt removes it";
                found.note(path.display().to_string(), message);
            }
        }
        Err(error) => found.note(".plans", error.to_string()),
    }
    Ok(())
}

fn print_result(app: &App, checked: &CheckedStore) -> Result<(), Failure> {
    let printer = app.printer();
    if printer.json {
        return printer.document(checked);
    }
    let CheckedStore {
        ok,
        encrypted,
        streams,
        entries,
        artifacts,
        findings,
    } = checked;
    for Damage { place, message } in findings {
        printer.data(&format!(
            "{} {}: {}",
            printer.out(RED, "✗"),
            line(place),
            line(message)
        ))?;
    }
    if *ok {
        let sign = printer.out(GREEN, "●");
        let kept = if *encrypted {
            "encrypted"
        } else {
            "not encrypted"
        };
        printer.data(&format!(
            "{sign} {}, {}, {}, {kept}: all is well",
            count_of(streams, "stream", "streams"),
            count_of(entries, "entry", "entries"),
            count_of(artifacts, "large value", "large values")
        ))?;
    }
    Ok(())
}
