//! Messages as rows.

use super::answers;
use super::commit::Value;
use super::fault::Stop;
use super::rows::digest;
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use planwright_core::digest::Digest;
use planwright_core::id::RunId;
use planwright_core::journal::StreamName;
use planwright_engine::port::{
    AppendError, BoxFuture, Mailbox, MailboxMessage, MessageId, RequestClaim, StoreError,
};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error};

/// A message that is sent, perhaps for a request.
struct Sent {
    run: RunId,
    body: Vec<u8>,
    claim: Option<RequestClaim>,
}

/// Hashes all of a message: a command must not change on disk unnoticed.
fn message_hash(run: &str, body: &[u8]) -> Digest {
    Digest::of_parts(&[run.as_bytes(), body])
}

async fn insert(client: &Client, sent: &Sent) -> Result<MessageId, Error> {
    let sql = "INSERT INTO planwright.messages (run, body, hash) VALUES ($1, $2, $3) RETURNING id";
    let hash = message_hash(sent.run.as_str(), &sent.body);
    let hash = &hash.as_bytes()[..];
    let values: [(Value<'_>, Type); 3] = [
        (&sent.run.as_str(), Type::TEXT),
        (&sent.body, Type::BYTEA),
        (&hash, Type::BYTEA),
    ];
    Ok(MessageId(
        client.query_typed_one(sql, &values).await?.get(0),
    ))
}

async fn insert_claimed(client: &Client, sent: &Sent) -> Result<MessageId, Stop<AppendError>> {
    if let Some(claim) = &sent.claim {
        let stream = StreamName::Run(sent.run.clone());
        answers::note_change(client, claim, &stream).await?;
    }
    Ok(insert(client, sent).await?)
}

impl Shared {
    async fn send(&self, sent: Sent) -> Result<MessageId, AppendError> {
        let message = self
            .transact(&sent, |client, sent| Box::pin(insert_claimed(client, sent)))
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
            let body: Vec<u8> = row.get(2);
            let changed =
                || StoreError::Failed(format!("message {id} for run {run} was changed on disk"));
            if message_hash(run, &body) != digest(row.get(3))? {
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
        Ok(row.map(|row| match row.get::<_, Option<&[u8]>>(0) {
            None => Ok(()),
            Some(refusal) => Err(super::rows::text(Some(refusal))),
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
