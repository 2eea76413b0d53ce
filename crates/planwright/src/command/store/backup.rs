//! `store backup`.

use super::run_with_progress;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::{Access, CommandContext};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The directory to make. It must not be there yet.
    #[arg(value_name = "PATH")]
    to: PathBuf,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let app = context.open(Access::Read)?;
    let Some(store) = app.sqlite.as_ref().map(Arc::clone) else {
        return Err(Failure::usage("there is no store in this workspace"));
    };
    let artifacts = context.workspace.artifacts.clone();
    let to = args.to.clone();
    let now = app.now();
    let manifest = run_with_progress(context.printer, move |tell| {
        store.backup(&artifacts, &to, now, tell)
    })
    .await?;
    let bytes: u64 = manifest.files.iter().map(|file| file.bytes).sum();
    if context.printer.json {
        context.printer.document(&json!({
            "path": args.to, "createdAt": manifest.created_at, "encrypted": manifest.encrypted,
            "streams": manifest.streams, "entries": manifest.entries, "files": manifest.files.len(),
            "bytes": bytes,
        }))?;
    } else {
        context.printer.data(&format!(
            "{}: {} streams, {} entries, {} files, {} KiB",
            line(&args.to.display().to_string()),
            manifest.streams,
            manifest.entries,
            manifest.files.len(),
            bytes.div_ceil(1024)
        ))?;
    }
    Ok(Exit::Done)
}
