//! `store copy`: from a file into a database, or back.

use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::principal::refuse_agents;
use crate::workspace::store_address::StoreAddress;
use planwright_adapters::store_copy::{CopiedStore, CopyStoreError, copy_store};
use serde_json::json;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store to copy: sqlite (of this workspace), sqlite:FILE, or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "STORE")]
    from: StoreAddress,
    /// The store to copy into: an empty one, or what an interrupted copy left.
    #[arg(long, value_name = "STORE")]
    to: StoreAddress,
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    // The approvals in a copy count as they did in the store that was copied.
    refuse_agents("copy a store")?;
    if args.from == args.to {
        return Err(Failure::usage("a store cannot be copied into itself"));
    }
    let from = context
        .open_side(&args.from, Access::Read)?
        .ok_or_else(|| Failure::usage(format!("there is no store {}", args.from)))?;
    if from.is_encrypted && args.to.is_database() {
        return Err(Failure::refused(
            "the store is encrypted, and a database would hold it in the clear",
        )
        .hint("planwright store decrypt decrypts it first, if that is what you want"));
    }
    let to = context
        .open_side(&args.to, Access::Write)?
        .ok_or_else(|| Failure::usage(format!("there is no store {}", args.to)))?;
    let copied = copy_store(from.side(), to.side()).await?;
    print_copied(context, args, &copied)
}

fn print_copied(
    context: &CommandContext,
    args: &Args,
    copied: &CopiedStore,
) -> Result<Exit, Failure> {
    let CopiedStore {
        streams,
        entries,
        values,
        tokens,
        passkeys,
    } = copied;
    if context.printer.json {
        context.printer.document(&json!({
            "from": args.from.to_string(), "to": args.to.to_string(), "streams": streams, "entries": entries,
            "values": values, "tokens": tokens, "passkeys": passkeys,
        }))?;
    } else {
        context.printer.data(&format!(
            "{}: {}, {}, {}, {}; every journal was read back and checked",
            args.to,
            count_of(*streams, "stream", "streams"),
            count_of(*entries, "entry", "entries"),
            count_of(*values, "large value", "large values"),
            count_of(*tokens, "token", "tokens"),
        ))?;
    }
    Ok(Exit::Done)
}

impl From<CopyStoreError> for Failure {
    fn from(error: CopyStoreError) -> Self {
        match error {
            CopyStoreError::OtherJournals => Self::from_error(Exit::Refused, &error)
                .hint("name an empty database, or a file that does not exist"),
            CopyStoreError::RunExecutes(_) | CopyStoreError::CommandWaits(_) => {
                Self::from_error(Exit::Refused, &error)
                    .hint("stop planwright serve and wait until all runs have ended or pause")
            }
            CopyStoreError::Grown(_) => Self::from_error(Exit::Refused, &error)
                .hint("stop everything that uses the store, then repeat the command: it continues"),
            CopyStoreError::Acquire(error) => error.into(),
            CopyStoreError::Append(error) => error.into(),
            CopyStoreError::Artifact(error) => error.into(),
            CopyStoreError::Store(error) => error.into(),
        }
    }
}
