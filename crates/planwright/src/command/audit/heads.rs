//! Where all journals stand, as a signed file that is kept elsewhere: a store that was rolled back or
//! written anew since does not fit it any more.

use super::receipt::{read_signed, refuse_foreign, signing_key};
use super::verify::Verification;
use crate::exit::{Exit, Failure};
use crate::terminal::printer::line;
use crate::workspace::app::App;
use crate::workspace::store_address::WholeStore;
use planwright_adapters::files::atomic_write;
use planwright_adapters::signing::{PublicKey, open_envelope, seal_envelope};
use planwright_api::ReceiptHead;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use planwright_engine::with_causes;
use serde::{Deserialize, Serialize};
use std::path::Path;

const PAYLOAD_TYPE: &str = "application/vnd.planwright.heads+json";
const FORMAT: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ExportedHeads {
    /// `heads`.
    planwright: String,
    format: u32,
    at: Timestamp,
    heads: Vec<ReceiptHead>,
}

/// Writes where every journal stands. Returns how many there are.
pub(super) async fn export_heads(
    app: &App,
    store: &dyn WholeStore,
    streams: Vec<StreamName>,
    to: &Path,
) -> Result<usize, Failure> {
    refuse_foreign(app)?;
    let key = signing_key(&app.context)?;
    let mut heads = Vec::new();
    for stream in streams {
        let head = store.head(&stream).await?;
        heads.push(ReceiptHead {
            stream: stream.to_string(),
            seq: head.seq,
            hash: head.hash,
        });
    }
    let count = heads.len();
    let exported = ExportedHeads {
        planwright: "heads".to_owned(),
        format: FORMAT,
        at: app.now(),
        heads,
    };
    let payload = serde_json::to_vec(&exported)
        .map_err(|error| Failure::new(Exit::Store, error.to_string()))?;
    let text = seal_envelope(&key, PAYLOAD_TYPE, &payload);
    atomic_write(to, format!("{text}\n").as_bytes())
        .map_err(|error| Failure::new(Exit::Store, with_causes(&error)))?;
    Ok(count)
}

/// Compares the store with heads that were exported. Returns when that was.
pub(super) async fn check_against(
    verification: &mut Verification,
    app: &App,
    (file, wanted): (&Path, Option<&PublicKey>),
) -> Result<Timestamp, Failure> {
    let name = line(&file.display().to_string());
    let text = read_signed(file)?;
    let wanted = match wanted {
        Some(wanted) => *wanted,
        // A file that any key could have signed proves nothing.
        None => signing_key(&app.context)?.public(),
    };
    let opened = open_envelope(&text, PAYLOAD_TYPE, Some(&wanted));
    let (payload, _) = opened.map_err(|error| {
        Failure::new(Exit::Store, format!("{name}: {error}"))
            .hint("--key names the public key that must have signed it; default: yours")
    })?;
    let exported: ExportedHeads = serde_json::from_slice(&payload)
        .map_err(|error| Failure::new(Exit::Store, format!("{name}: {error}")))?;
    if exported.format != FORMAT {
        let found = exported.format;
        return Err(Failure::usage(format!(
            "{name}: format {found} is not known here"
        )));
    }
    for head in &exported.heads {
        check_head(verification, app, head).await;
    }
    Ok(exported.at)
}

async fn check_head(verification: &mut Verification, app: &App, head: &ReceiptHead) {
    let ReceiptHead { stream, seq, hash } = head;
    if *seq == 0 {
        return;
    }
    let Ok(named) = stream.parse::<StreamName>() else {
        verification.note(
            stream.clone(),
            "it is named in the exported heads and cannot be a stream",
        );
        return;
    };
    let read = match (&app.sqlite, &app.whole) {
        (Some(sqlite), _) => sqlite.read_remains(&named, seq - 1, 1).await,
        (None, Some(store)) => store.read(&named, seq - 1, 1).await,
        (None, None) => Ok(Vec::new()),
    };
    match read {
        Ok(page) => match page.first() {
            Some(record) if record.seq == *seq && record.hash == *hash => {}
            Some(_) => verification.note(
                stream.clone(),
                format!("entry {seq} is not the one of the exported heads: it was written anew"),
            ),
            None => verification.note(
                stream.clone(),
                format!(
                    "entry {seq} of the exported heads is gone: it was rolled back, or removed"
                ),
            ),
        },
        Err(error) => verification.note(stream.clone(), with_causes(&error)),
    }
}
