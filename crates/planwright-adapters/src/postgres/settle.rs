//! The outcome of an append whose statement was its own commit, and whose answer did not come.
//!
//! Such a statement has no mark that could be looked for, and it needs none. It may reach the server late, so that it is not
//! enough to look: the same append is made by the writers. If that works, the statement finds another head from then on. If
//! it is refused, the reason stays: heads and epochs only grow, keys stay taken, what is sealed stays so. Then the statement
//! was committed if its records are there, and cannot be committed any more if they are not.

use super::commit::{Doubt, LOOKUP_PATIENCE, Patience, Value};
use super::fault::Stop;
use super::rows::number;
use super::single_append::PlainAppend;
use super::store::{PostgresStore, Shared};
use crate::sealing::mask_head;
use planwright_core::journal::{Head, StreamName};
use planwright_engine::port::{Append, AppendError, StoreError};
use std::sync::Arc;
use tokio_postgres::Client;
use tokio_postgres::types::Type;

impl PostgresStore {
    /// Finds out whether an append was committed, or commits it.
    pub(super) async fn settle_append(
        &self,
        appends: Vec<Append>,
        doubt: Doubt,
    ) -> Result<(), AppendError> {
        let Some(plain) = PlainAppend::of(&appends) else {
            return self.append_with_others(appends).await;
        };
        let stream = plain.stream().clone();
        let head = plain.last_head();
        let pool = &self.shared().pool;
        match doubt {
            Doubt::Unconfirmed => pool.suspect_server(),
            Doubt::Broken => pool.forget_idle(),
        }
        let mut patience = Patience::new(LOOKUP_PATIENCE);
        loop {
            let decided = self.append_with_others(appends.clone()).await;
            let error = match decided {
                Ok(()) => return Ok(()),
                Err(AppendError::Store(error)) if !matches!(error, StoreError::Sealed { .. }) => {
                    error
                }
                Err(refusal) => match self.has_records(stream.clone(), head).await {
                    Ok(true) => {
                        tracing::info!("a commit was interrupted; it had been made");
                        return Ok(());
                    }
                    Ok(false) => return Err(refusal),
                    Err(error) => error,
                },
            };
            if !patience.wait().await {
                return Err(StoreError::Lost(format!(
                    "it is not known whether a commit was made: {error}"
                ))
                .into());
            }
        }
    }

    /// Returns whether a journal has the record that ends at `head`. That is a commit of its own: a server that was cut off
    /// from its standby shows what no other server will ever have.
    async fn has_records(&self, stream: StreamName, head: Head) -> Result<bool, StoreError> {
        self.on(move |shared: Arc<Shared>| async move {
            let name = stream.to_string();
            let kept = mask_head(&shared.cipher, &name, head);
            shared
                .transact(&(name, kept), |client, (name, kept)| {
                    Box::pin(has_entry(client, name, *kept))
                })
                .await
        })
        .await
    }
}

async fn has_entry(client: &Client, name: &str, kept: Head) -> Result<bool, Stop<StoreError>> {
    let sql = "SELECT EXISTS (SELECT 1 FROM planwright.entries \
               WHERE stream = (SELECT id FROM planwright.streams WHERE name = $1) AND seq = $2 AND hash = $3)";
    let values: [(Value<'_>, Type); 3] = [
        (&name, Type::TEXT),
        (&number(kept.seq), Type::INT8),
        (&&kept.hash.as_bytes()[..], Type::BYTEA),
    ];
    Ok(client.query_typed_one(sql, &values).await?.get(0))
}
