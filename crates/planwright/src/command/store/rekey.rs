//! `store rekey`: another passphrase, or another key under it.

use super::{open_options, run_with_progress};
use crate::config::passphrase::ask_new;
use crate::exit::{Exit, Failure};
use crate::workspace::app::CommandContext;
use planwright_adapters::sqlite::{IdleStore, Protection};
use planwright_adapters::vault::{Passphrase, StretchCost};
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Encrypt everything again with a new key. Needed if the old key may be known to others.
    #[arg(long)]
    pub(super) data_key: bool,
    /// A file with the new passphrase, readable by its owner only.
    #[arg(long, value_name = "PATH", conflicts_with = "new_passphrase_fd")]
    new_passphrase_file: Option<PathBuf>,
    /// The number of an open descriptor to read the new passphrase from.
    #[arg(long, value_name = "N")]
    new_passphrase_fd: Option<u32>,
}

impl Args {
    pub(super) fn new_passphrase(&self, context: &CommandContext) -> Result<Passphrase, Failure> {
        let new = match (self.new_passphrase_fd, &self.new_passphrase_file) {
            (Some(number), _) => Passphrase::from_descriptor(number)?,
            (None, Some(path)) => Passphrase::from_file(path)?,
            (None, None) => ask_new(context.printer)?,
        };
        new.check_strength()?;
        Ok(new)
    }

    pub(super) fn print_result(
        &self,
        context: &CommandContext,
        store: &str,
    ) -> Result<Exit, Failure> {
        let what = if self.data_key {
            "passphrase and key"
        } else {
            "passphrase"
        };
        if context.printer.json {
            context
                .printer
                .document(&json!({ "store": store, "changed": what }))?;
        } else {
            context.printer.data(&format!("{what} changed"))?;
            context
                .printer
                .hint("backups made before still open with the old passphrase");
        }
        Ok(Exit::Done)
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    let old = context.unlock.existing(context)?;
    // Opened before the new passphrase is asked for: the old one may be wrong.
    let idle = IdleStore::open(open_options(context, Some(old.clone()))?)?;
    let new = args.new_passphrase(context)?;
    if args.data_key {
        let artifacts = context.workspace.artifacts.clone();
        let protection = Protection::Sealed {
            passphrase: new,
            cost: StretchCost::DEFAULT,
        };
        run_with_progress(context.printer, move |tell| {
            let (idle, _) = idle.rewrite(&protection, &artifacts, tell)?;
            idle.finish(&artifacts)
        })
        .await?;
    } else {
        idle.relock(&old, &new, StretchCost::DEFAULT)?;
    }
    let store = context.workspace.database.display().to_string();
    args.print_result(context, &store)
}
