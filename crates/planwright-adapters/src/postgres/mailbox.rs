//! Messages as rows.

use super::answers;
use super::commit::Value;
use super::fault::Stop;
use super::rows::digest;
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::sealing::{message_hash, open_message, open_refusal_bytes, seal_message};
use crate::vault::Cipher;
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_engine::port::{
    AppendError, BoxFuture, Mailbox, MailboxMessage, MessageId, RequestClaim, StoreError,
};
use tokio_postgres::Client;
use tokio_postgres::types::Type;

/// A message that is sent, perhaps for a request.
struct Sent {
    run: RunId,
    body: Vec<u8>,
    claim: Option<RequestClaim>,
}

async fn insert(
    client: &Client,
    cipher: &Cipher,
    sent: &Sent,
) -> Result<MessageId, Stop<StoreError>> {
    let run = sent.run.as_str();
    let hash = message_hash(run, &sent.body);
    if !cipher.is_sealed() {
        let sql =
            "INSERT INTO planwright.messages (run, body, hash) VALUES ($1, $2, $3) RETURNING id";
        let hash = &hash.as_bytes()[..];
        let values: [(Value<'_>, Type); 3] = [
            (&run, Type::TEXT),
            (&sent.body, Type::BYTEA),
            (&hash, Type::BYTEA),
        ];
        let row = client.query_typed_one(sql, &values).await?;
        return Ok(MessageId(row.get(0)));
    }
    // What is sealed is bound to its number, which has to be known before.
    let sql = "SELECT nextval(pg_get_serial_sequence('planwright.messages', 'id'))";
    let id: i64 = client.query_typed_one(sql, &[]).await?.get(0);
    let (body, hash) = seal_message(cipher, (id, run), &sent.body, hash)
        .map_err(|error| Stop::Refused(error.into()))?;
    let sql = "INSERT INTO planwright.messages (id, run, body, hash) OVERRIDING SYSTEM VALUE \
               VALUES ($1, $2, $3, $4)";
    let hash = &hash.as_bytes()[..];
    let values: [(Value<'_>, Type); 4] = [
        (&id, Type::INT8),
        (&run, Type::TEXT),
        (&body, Type::BYTEA),
        (&hash, Type::BYTEA),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(MessageId(id))
}

async fn insert_claimed(
    client: &Client,
    (cipher, sent): &(&Cipher, Sent),
) -> Result<MessageId, Stop<AppendError>> {
    if let Some(claim) = &sent.claim {
        let stream = StreamName::Run(sent.run.clone());
        answers::note_change(client, claim, &stream).await?;
    }
    insert(client, cipher, sent)
        .await
        .map_err(|stop| match stop {
            Stop::Database(error) => Stop::Database(error),
            Stop::Refused(error) => Stop::Refused(error.into()),
        })
}

impl Shared {
    async fn send(&self, sent: Sent) -> Result<MessageId, AppendError> {
        let sending = (&*self.cipher, sent);
        let message = self
            .transact(&sending, |client, sending| {
                Box::pin(insert_claimed(client, sending))
            })
            .await?;
        self.wakeups.announce(News::Mail);
        Ok(message)
    }

    /// The unanswered messages of one run, or of all.
    pub(super) async fn messages(
        &self,
        run: Option<&RunId>,
    ) -> Result<Vec<MailboxMessage>, StoreError> {
        let sql = "SELECT id, run, body, hash FROM planwright.messages \
                   WHERE NOT answered AND ($1::text IS NULL OR run = $1) ORDER BY id";
        let run = run.map(RunId::as_str);
        let rows = self.rows(sql, &[(&run, Type::TEXT)]).await?;
        let message = |row: &tokio_postgres::Row| {
            let id: i64 = row.get(0);
            let run: &str = row.get(1);
            let changed =
                || StoreError::Failed(format!("message {id} for run {run} was changed on disk"));
            let opened = open_message(&self.cipher, (id, run), row.get(2), digest(row.get(3))?);
            let (body, hash) = opened.map_err(|_| changed())?;
            if message_hash(run, &body) != hash {
                return Err(changed());
            }
            Ok(MailboxMessage {
                id: MessageId(id),
                run: run.parse().map_err(|_| changed())?,
                body,
            })
        };
        rows.iter().map(message).collect()
    }

    async fn answer(&self, message: MessageId) -> Result<Option<Result<(), String>>, StoreError> {
        let sql = "SELECT refusal FROM planwright.messages WHERE id = $1 AND answered";
        let row = self.row(sql, &[(&message.0, Type::INT8)]).await?;
        let Some(row) = row else { return Ok(None) };
        Ok(Some(match row.get::<_, Option<Vec<u8>>>(0) {
            None => Ok(()),
            Some(kept) => {
                let opened = open_refusal_bytes(&self.cipher, message.0, kept);
                let opened = opened.map_err(|error| {
                    StoreError::Failed(format!("the answer to message {}: {error}", message.0))
                })?;
                Err(super::rows::text(Some(&opened)))
            }
        }))
    }
}

impl Mailbox for PostgresStore {
    fn send<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
    ) -> BoxFuture<'a, Result<MessageId, StoreError>> {
        let sent = Sent {
            run: run.clone(),
            body,
            claim: None,
        };
        self.on(move |shared| async move {
            shared.send(sent).await.map_err(|error| match error {
                AppendError::Store(error) => error,
                error => StoreError::Failed(error.to_string()),
            })
        })
    }

    fn send_claimed<'a>(
        &'a self,
        run: &'a RunId,
        body: Vec<u8>,
        claim: RequestClaim,
    ) -> BoxFuture<'a, Result<MessageId, AppendError>> {
        let sent = Sent {
            run: run.clone(),
            body,
            claim: Some(claim),
        };
        self.on(move |shared| async move { shared.send(sent).await })
    }

    fn mail(&self) -> BoxFuture<'_, Result<Vec<MailboxMessage>, StoreError>> {
        self.on(|shared| async move { shared.messages(None).await })
    }

    fn messages<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<MailboxMessage>, StoreError>> {
        let run = run.clone();
        self.on(move |shared| async move { shared.messages(Some(&run)).await })
    }

    fn answer(
        &self,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<Result<(), String>>, StoreError>> {
        self.on(move |shared| async move { shared.answer(message).await })
    }
}
