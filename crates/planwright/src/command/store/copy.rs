//! `store copy`: from a file into a database, or back.

use crate::config::passphrase::ask;
use crate::exit::{Exit, Failure};
use crate::terminal::counts::count_of;
use crate::workspace::app::{Access, CommandContext};
use crate::workspace::principal::refuse_agents;
use crate::workspace::store_address::StoreAddress;
use planwright_adapters::store_copy::{CopiedStore, CopyStoreError, copy_store};
use planwright_adapters::vault::Passphrase;
use serde_json::json;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The store to copy: sqlite (of this workspace), sqlite:FILE, or postgres://USER@HOST/DATABASE.
    #[arg(long, value_name = "STORE")]
    from: StoreAddress,
    /// The store to copy into: an empty one, or what an interrupted copy left.
    #[arg(long, value_name = "STORE")]
    to: StoreAddress,
    /// A file with the passphrase of the store that is copied into, readable by its owner only. Default: that of the store
    /// that is copied, if it is encrypted.
    #[arg(long, value_name = "PATH", conflicts_with = "to_passphrase_fd")]
    to_passphrase_file: Option<PathBuf>,
    /// The number of an open descriptor to read that passphrase from.
    #[arg(long, value_name = "N")]
    to_passphrase_fd: Option<u32>,
}

impl Args {
    /// The passphrase of the store that is copied into, if it is named.
    fn to_passphrase(&self) -> Result<Option<Passphrase>, Failure> {
        Ok(match (self.to_passphrase_fd, &self.to_passphrase_file) {
            (Some(number), _) => Some(Passphrase::from_descriptor(number)?),
            (None, Some(path)) => Some(Passphrase::from_file(path)?),
            (None, None) => None,
        })
    }
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    // The approvals in a copy count as they did in the store that was copied.
    refuse_agents("copy a store")?;
    if args.from == args.to {
        return Err(Failure::usage("a store cannot be copied into itself"));
    }
    let no_store = |address: &StoreAddress| Failure::usage(format!("there is no store {address}"));
    let mut passphrase = context.unlock.read_passphrase(context)?;
    if passphrase.is_none() && context.is_side_encrypted(&args.from)? {
        passphrase = Some(ask(
            context.printer,
            &format!("Passphrase of {}:", args.from),
        )?);
    }
    let opened = |address, access, passphrase| {
        let unlock = context.unlock.with_passphrase(passphrase);
        let context = context.clone().with_unlock(unlock);
        context.open_side(address, access)
    };
    let from = opened(&args.from, Access::Read, passphrase.clone())?;
    let from = from.ok_or_else(|| no_store(&args.from))?;
    // What was encrypted stays encrypted: a new store gets the passphrase of the one that is copied.
    let to_passphrase = match args.to_passphrase()? {
        None if from.is_encrypted => passphrase,
        named => named,
    };
    let to = match opened(&args.to, Access::Write, to_passphrase) {
        Err(failure) if from.is_encrypted && failure.code() == Some("store_not_encrypted") => {
            return Err(plain_target(args));
        }
        opened => opened?.ok_or_else(|| no_store(&args.to))?,
    };
    if from.is_encrypted && !to.is_encrypted {
        return Err(plain_target(args));
    }
    let copied = copy_store(from.side(), to.side()).await?;
    print_copied(context, args, &copied)
}

/// What was encrypted is not written in plain text.
fn plain_target(args: &Args) -> Failure {
    let encrypt = match &args.to {
        StoreAddress::Database(location) => format!("planwright store encrypt --store {location}"),
        StoreAddress::Workspace | StoreAddress::File(_) => {
            "planwright store encrypt in its workspace".to_owned()
        }
    };
    Failure::refused(format!(
        "the store is encrypted, and {} would hold it in the clear",
        args.to
    ))
    .hint(format!(
        "{encrypt} encrypts it first; or name an empty one, which is made encrypted"
    ))
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
