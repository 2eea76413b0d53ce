//! Requests that must not be done twice as rows, with their answers.

use super::commit::Value;
use super::fault::Stop;
use super::owners::Life;
use super::rows::{count, digest, stream_name};
use super::store::{PostgresStore, Shared};
use crate::sealing::{mask_request, open_answer, seal_answer};
use crate::vault::Cipher;
use planwright_core::digest::Digest;
use planwright_core::journal::StreamName;
use planwright_core::time::Timestamp;
use planwright_engine::port::{
    ANSWER_LIFE, Answers, AppendError, Asking, BoxFuture, Claim, OwnerId, RequestClaim, StoreError,
    says_more,
};
use tokio_postgres::types::Type;
use tokio_postgres::{Client, Error, Row};

/// Old answers are dropped a few at a time, so that no request pays for all of them.
const DROPPED_AT_ONCE: i64 = 100;

/// A request as its row has it.
struct Kept {
    request: Digest,
    owner: OwnerId,
    changed: Option<String>,
    answer: Option<Vec<u8>>,
}

const COLUMNS: &str =
    "SELECT request, owner, changed, answer FROM planwright.answers WHERE key = $1";

impl Kept {
    fn read(row: &Row) -> Result<Self, StoreError> {
        Ok(Self {
            request: digest(row.get(0))?,
            owner: OwnerId(row.get(1)),
            changed: row.get(2),
            answer: row.get(3),
        })
    }
}

async fn find_locked<E: From<StoreError>>(
    client: &Client,
    key: &Digest,
) -> Result<Option<Kept>, Stop<E>> {
    let sql = format!("{COLUMNS} FOR UPDATE");
    let key = &key.as_bytes()[..];
    let row = client.query_typed_opt(&sql, &[(&key, Type::BYTEA)]).await?;
    let kept = row.as_ref().map(Kept::read).transpose();
    kept.map_err(|error| Stop::Refused(error.into()))
}

/// A claim, and the owner that was found dead before.
struct Claiming<'a> {
    cipher: &'a Cipher,
    asking: Asking,
    now: Timestamp,
    dead: Option<OwnerId>,
}

/// The outcome of a claim.
enum Claimed {
    Decided(Claim),
    /// It is decided by whether this process is alive.
    By(OwnerId),
}

async fn claim(client: &Client, claiming: &Claiming<'_>) -> Result<Claimed, Stop<StoreError>> {
    let Claiming {
        cipher,
        asking,
        now,
        dead,
    } = claiming;
    let request = mask_request(cipher, &asking.key, asking.request);
    drop_old(client, &asking.key, *now).await?;
    let key = &asking.key.as_bytes()[..];
    match find_locked::<StoreError>(client, &asking.key).await? {
        Some(row) if row.request != request => {
            return Ok(Claimed::Decided(Claim::OtherRequest));
        }
        Some(Kept {
            answer: Some(answer),
            ..
        }) => {
            let opened = open_answer(cipher, &asking.key, answer);
            let opened = opened
                .map_err(|_| Stop::failed("an answer was changed in the database".to_owned()))?;
            return Ok(Claimed::Decided(Claim::Answered(opened)));
        }
        Some(row) if row.owner != asking.owner && dead.as_ref() != Some(&row.owner) => {
            return Ok(Claimed::By(row.owner));
        }
        Some(Kept {
            changed: Some(changed),
            ..
        }) => {
            let stream = stream_name(&changed).map_err(Stop::Refused)?;
            return Ok(Claimed::Decided(Claim::Changed(stream)));
        }
        Some(_) => {
            let sql = "UPDATE planwright.answers SET owner = $2, at = $3 WHERE key = $1";
            let values: [(Value<'_>, Type); 3] = [
                (&key, Type::BYTEA),
                (&asking.owner.0, Type::TEXT),
                (&now.as_millis(), Type::INT8),
            ];
            client.execute_typed(sql, &values).await?;
            return Ok(Claimed::Decided(Claim::Fresh));
        }
        None => {}
    }
    let principal = &asking.principal.as_bytes()[..];
    let limit = count(asking.limit);
    let sql = "SELECT count(*) FROM (SELECT 1 FROM planwright.answers WHERE principal = $1 LIMIT $2) AS kept";
    let values: [(Value<'_>, Type); 2] = [(&principal, Type::BYTEA), (&limit, Type::INT8)];
    let kept: i64 = client.query_typed_one(sql, &values).await?.get(0);
    if kept >= limit {
        return Ok(Claimed::Decided(Claim::TooMany));
    }
    let sql = "INSERT INTO planwright.answers (key, principal, request, owner, at) VALUES ($1, $2, $3, $4, $5)";
    let request = &request.as_bytes()[..];
    let values: [(Value<'_>, Type); 5] = [
        (&key, Type::BYTEA),
        (&principal, Type::BYTEA),
        (&request, Type::BYTEA),
        (&asking.owner.0, Type::TEXT),
        (&now.as_millis(), Type::INT8),
    ];
    client.execute_typed(sql, &values).await?;
    Ok(Claimed::Decided(Claim::Fresh))
}

/// Drops this request if it is older than a day, and some others.
async fn drop_old(client: &Client, key: &Digest, now: Timestamp) -> Result<(), Error> {
    let life = i64::try_from(ANSWER_LIFE.as_millis()).unwrap_or(i64::MAX);
    let oldest = now.as_millis().saturating_sub(life);
    let key = &key.as_bytes()[..];
    // Others may drop the same ones at this moment: those are left to them.
    let sql = "DELETE FROM planwright.answers WHERE key = $1 AND at <= $2 OR key IN (\
                 SELECT key FROM planwright.answers WHERE at <= $2 ORDER BY at LIMIT $3 FOR UPDATE SKIP LOCKED)";
    let values: [(Value<'_>, Type); 3] = [
        (&key, Type::BYTEA),
        (&oldest, Type::INT8),
        (&DROPPED_AT_ONCE, Type::INT8),
    ];
    client.execute_typed(sql, &values).await.map(drop)
}

/// Notes inside a transaction that a request changes this stream. Refused unless the process that writes has
/// claimed the request.
pub(super) async fn note_change(
    client: &Client,
    claim: &RequestClaim,
    stream: &StreamName,
) -> Result<(), Stop<AppendError>> {
    let row = find_locked::<AppendError>(client, &claim.key).await?;
    let Some(row) = row.filter(|row| row.owner == claim.owner && row.answer.is_none()) else {
        return Err(Stop::Refused(AppendError::Unclaimed));
    };
    let noted = row.changed.as_deref().map(stream_name).transpose();
    let noted = noted.map_err(|error| Stop::Refused(error.into()))?;
    if says_more(noted.as_ref(), stream) {
        let sql = "UPDATE planwright.answers SET changed = $2 WHERE key = $1";
        let key = &claim.key.as_bytes()[..];
        let stream = stream.to_string();
        let values: [(Value<'_>, Type); 2] = [(&key, Type::BYTEA), (&stream, Type::TEXT)];
        client.execute_typed(sql, &values).await?;
    }
    Ok(())
}

impl Shared {
    async fn claim(&self, asking: Asking, now: Timestamp) -> Result<Claim, StoreError> {
        self.owners.hold(self, &asking.owner).await?;
        let mut claiming = Claiming {
            cipher: &self.cipher,
            asking,
            now,
            dead: None,
        };
        loop {
            let claimed = self
                .transact(&claiming, |client, claiming| {
                    Box::pin(claim(client, claiming))
                })
                .await?;
            match claimed {
                Claimed::Decided(claim) => return Ok(claim),
                Claimed::By(owner) => match self.life(&owner).await? {
                    Life::Alive | Life::Missing => return Ok(Claim::InFlight),
                    Life::Dead => claiming.dead = Some(owner),
                },
            }
        }
    }

    async fn keep_answer(&self, claim: &RequestClaim, answer: &[u8]) -> Result<(), StoreError> {
        let sql = "UPDATE planwright.answers SET answer = $3 WHERE key = $1 AND owner = $2";
        let key = &claim.key.as_bytes()[..];
        let answer = seal_answer(&self.cipher, &claim.key, answer)?;
        let values: [(Value<'_>, Type); 3] = [
            (&key, Type::BYTEA),
            (&claim.owner.0, Type::TEXT),
            (&answer, Type::BYTEA),
        ];
        self.change(sql, &values).await.map(drop)
    }

    async fn release_claim(&self, claim: &RequestClaim) -> Result<bool, StoreError> {
        let sql = "DELETE FROM planwright.answers \
                   WHERE key = $1 AND owner = $2 AND changed IS NULL AND answer IS NULL";
        let key = &claim.key.as_bytes()[..];
        let values: [(Value<'_>, Type); 2] = [(&key, Type::BYTEA), (&claim.owner.0, Type::TEXT)];
        self.change(sql, &values).await?;
        Ok(self.row(COLUMNS, &values[..1]).await?.is_none())
    }
}

impl Answers for PostgresStore {
    fn claim<'a>(
        &'a self,
        asking: &'a Asking,
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Claim, StoreError>> {
        let asking = asking.clone();
        self.on(move |shared| async move { shared.claim(asking, now).await })
    }

    fn keep<'a>(
        &'a self,
        claim: &'a RequestClaim,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let claim = claim.clone();
        self.on(move |shared| async move { shared.keep_answer(&claim, &answer).await })
    }

    fn release<'a>(&'a self, claim: &'a RequestClaim) -> BoxFuture<'a, Result<bool, StoreError>> {
        let claim = claim.clone();
        self.on(move |shared| async move { shared.release_claim(&claim).await })
    }
}
