//! Offers to workers as rows. Every change of one is a single statement on its row, so that a claim, an answer and the end
//! of an attempt are decided one after the other.

use super::appending::millis;
use super::commit::{Alone, Value};
use super::decision::Known;
use super::kept_statements::KeepingClient;
use super::offer_talk::ClaimColumns;
use super::rows::{NOW, digest};
use super::store::{PostgresStore, Shared};
use super::wakeups::News;
use crate::sealing::{
    AnsweredAttempt, KeptOffer, OfferRow, kept_definition, kept_step, open_offer_answer,
    seal_offer_answer,
};
use crate::vault::{Cipher, OpenSealedError, SealError};
use planwright_core::digest::Digest;
use planwright_core::id::{RunId, StepId};
use planwright_core::tool::{EffectClass, ToolName};
use planwright_engine::port::{
    BoxFuture, CallNews, ClaimError, ClaimStanding, ClaimedOffer, ListedWorker, OfferChange,
    OfferClaim, OfferKey, OfferLook, OfferQuestion, OfferReport, OfferState, Offers, OwnerId,
    StepOffer, StoreError, WaitingOffers, WantedOffers, WorkerRecord,
};
use std::borrow::Cow;
use std::time::Duration;
use tokio::sync::watch;
use tokio_postgres::types::Type;
use tokio_postgres::{Error, Row};

/// The columns of an offer, in the order in which [`read_offer`] expects them.
pub(super) const OFFER: &str = "o.run, o.step, o.attempt, o.capability, o.idempotency_key, o.tool, o.definition, o.class, o.call";

/// The columns of its state, in the order in which [`read_state`] expects them.
pub(super) fn state_columns() -> String {
    format!(
        "o.state, o.claimed_by, coalesce(o.claimed_until <= {NOW}, true), o.answer, o.run, o.step, o.attempt"
    )
}

fn unreadable(what: &str) -> StoreError {
    StoreError::Failed(format!("an offer in the database has {what}"))
}

/// The step as journals have it: the element of a loop is a step too.
fn parse_step(step: String) -> Result<StepId, StoreError> {
    serde_json::from_value(step.into()).map_err(|_| unreadable("no step"))
}

/// Reads [`OFFER`].
pub(super) fn read_offer(cipher: &Cipher, row: &Row) -> Result<StepOffer, StoreError> {
    let word: &str = row.get(7);
    let class = EffectClass::ALL
        .into_iter()
        .find(|known| known.as_str() == word);
    let (run, attempt): (&str, i64) = (row.get(0), row.get(2));
    let kept = if cipher.is_sealed() {
        let bound = OfferRow {
            run,
            step: row.get(1),
            attempt,
            capability: row.get(3),
            class: word,
        };
        bound
            .open(cipher, row.get(8))
            .map_err(|error| StoreError::Failed(format!("an offer of run {run}: {error}")))?
    } else {
        KeptOffer {
            step: row.get(1),
            idempotency_key: row.get(4),
            tool: row.get(5),
            definition: digest(row.get(6))?,
            call: row.get(8),
        }
    };
    Ok(StepOffer {
        key: OfferKey {
            run: run.parse().map_err(|_| unreadable("no run"))?,
            step: parse_step(kept.step)?,
            attempt: u32::try_from(attempt).map_err(|_| unreadable("no attempt"))?,
        },
        capability: row.get(3),
        idempotency_key: kept.idempotency_key,
        tool: ToolName::try_from(kept.tool).map_err(|_| unreadable("no tool"))?,
        definition: kept.definition,
        class: class.ok_or_else(|| unreadable("no effect class"))?,
        call: kept.call,
    })
}

pub(super) fn read_state(
    cipher: &Cipher,
    row: &Row,
    first: usize,
) -> Result<OfferState, StoreError> {
    Ok(match row.get::<_, &str>(first) {
        "offered" => OfferState::Offered,
        "claimed" => OfferState::Claimed {
            by: OwnerId(row.get::<_, Option<String>>(first + 1).unwrap_or_default()),
            is_over: row.get(first + 2),
        },
        "answered" => {
            let kept: Option<Vec<u8>> = row.get(first + 3);
            let attempt: AnsweredAttempt<'_> =
                (row.get(first + 4), row.get(first + 5), row.get(first + 6));
            let answer = open_offer_answer(cipher, attempt, kept.unwrap_or_default());
            OfferState::Answered(answer.map_err(|error| {
                StoreError::Failed(format!(
                    "the answer to an offer of run {}: {error}",
                    attempt.0
                ))
            })?)
        }
        "withdrawn" => OfferState::Withdrawn,
        "lost" => OfferState::Lost,
        _ => return Err(unreadable("a state that this program does not know")),
    })
}

/// Reads the answer of a row that begins with the columns of [`OFFER`].
pub(super) fn read_kept_answer(
    cipher: &Cipher,
    row: &Row,
    column: usize,
) -> Result<Option<Vec<u8>>, OpenSealedError> {
    let attempt: AnsweredAttempt<'_> = (row.get(0), row.get(1), row.get(2));
    row.get::<_, Option<Vec<u8>>>(column)
        .map(|kept| open_offer_answer(cipher, attempt, kept))
        .transpose()
}

/// Seals an answer for the row of its offer.
pub(super) fn seal_kept_answer(
    cipher: &Cipher,
    key: &OfferKey,
    answer: &[u8],
) -> Result<Vec<u8>, SealError> {
    let step = step_column(cipher, key);
    let attempt: AnsweredAttempt<'_> = (key.run.as_str(), &step, i64::from(key.attempt));
    seal_offer_answer(cipher, attempt, answer).map(Cow::into_owned)
}

/// The columns of an offer that are sealed, or stand for something that is.
pub(super) struct OfferColumns {
    pub(super) step: String,
    pub(super) idempotency_key: String,
    pub(super) tool: String,
    pub(super) definition: Digest,
    pub(super) call: Vec<u8>,
}

/// Seals an offer for its row.
pub(super) fn seal_offer(cipher: &Cipher, offer: &StepOffer) -> Result<OfferColumns, SealError> {
    let step = offer.key.step.to_string();
    if !cipher.is_sealed() {
        return Ok(OfferColumns {
            step,
            idempotency_key: offer.idempotency_key.clone(),
            tool: offer.tool.to_string(),
            definition: offer.definition,
            call: offer.call.clone(),
        });
    }
    let run = offer.key.run.as_str();
    let kept_as = kept_step(cipher, run, &step).into_owned();
    let bound = OfferRow {
        run,
        step: &kept_as,
        attempt: i64::from(offer.key.attempt),
        capability: &offer.capability,
        class: offer.class.as_str(),
    };
    let whole = KeptOffer {
        step,
        idempotency_key: offer.idempotency_key.clone(),
        tool: offer.tool.to_string(),
        definition: offer.definition,
        call: offer.call.clone(),
    };
    let call = bound.seal(cipher, &whole)?;
    Ok(OfferColumns {
        step: kept_as,
        idempotency_key: String::new(),
        tool: String::new(),
        definition: kept_definition(cipher, &offer.definition),
        call,
    })
}

/// Writes the offers that appends make.
pub(super) async fn make_offers(
    client: KeepingClient<'_>,
    known: &Known<'_>,
    sealed: &[OfferColumns],
) -> Result<(), Error> {
    let made: Vec<&StepOffer> = known.offered().collect();
    if made.is_empty() {
        return Ok(());
    }
    let runs: Vec<&str> = made.iter().map(|offer| offer.key.run.as_str()).collect();
    let attempts: Vec<i64> = made
        .iter()
        .map(|offer| i64::from(offer.key.attempt))
        .collect();
    let capabilities: Vec<&str> = made.iter().map(|offer| offer.capability.as_str()).collect();
    let classes: Vec<&str> = made.iter().map(|offer| offer.class.as_str()).collect();
    let column = |read: fn(&OfferColumns) -> &str| sealed.iter().map(read).collect::<Vec<&str>>();
    let steps = column(|offer| &offer.step);
    let keys = column(|offer| &offer.idempotency_key);
    let tools = column(|offer| &offer.tool);
    let definitions: Vec<&[u8]> = sealed
        .iter()
        .map(|offer| &offer.definition.as_bytes()[..])
        .collect();
    let calls: Vec<&[u8]> = sealed.iter().map(|offer| offer.call.as_slice()).collect();
    let sql = format!(
        "INSERT INTO planwright.offers (run, step, attempt, capability, idempotency_key, tool, definition, class, call, offered_at) \
         SELECT n.*, {NOW} FROM unnest($1::text[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], \
         $7::bytea[], $8::text[], $9::bytea[]) AS n"
    );
    let values: [(Value<'_>, Type); 9] = [
        (&runs, Type::TEXT_ARRAY),
        (&steps, Type::TEXT_ARRAY),
        (&attempts, Type::INT8_ARRAY),
        (&capabilities, Type::TEXT_ARRAY),
        (&keys, Type::TEXT_ARRAY),
        (&tools, Type::TEXT_ARRAY),
        (&definitions, Type::BYTEA_ARRAY),
        (&classes, Type::TEXT_ARRAY),
        (&calls, Type::BYTEA_ARRAY),
    ];
    client.execute(&sql, &values).await.map(drop)
}

/// Removes the offers whose attempts are over.
pub(super) async fn end_offers(
    client: KeepingClient<'_>,
    cipher: &Cipher,
    known: &Known<'_>,
) -> Result<(), Error> {
    let ended = known.offers.iter().filter_map(|change| match change {
        OfferChange::Make(_) => None,
        OfferChange::End(key) => Some(key),
    });
    let columns = KeyColumns::of(cipher, ended);
    if columns.runs.is_empty() {
        return Ok(());
    }
    let sql = "DELETE FROM planwright.offers AS o USING unnest($1::text[], $2::text[], $3::bigint[]) AS n (run, step, attempt) \
               WHERE o.run = n.run AND o.step = n.step AND o.attempt = n.attempt";
    client.execute(sql, &columns.values()).await.map(drop)
}

/// The step of a key as the table has it.
pub(super) fn step_column(cipher: &Cipher, key: &OfferKey) -> String {
    kept_step(cipher, key.run.as_str(), &key.step.to_string()).into_owned()
}

/// Keys as columns.
pub(super) struct KeyColumns {
    runs: Vec<String>,
    steps: Vec<String>,
    attempts: Vec<i64>,
}

impl KeyColumns {
    pub(super) fn of<'a>(cipher: &Cipher, keys: impl Iterator<Item = &'a OfferKey>) -> Self {
        let mut columns = Self {
            runs: Vec::new(),
            steps: Vec::new(),
            attempts: Vec::new(),
        };
        for key in keys {
            columns.runs.push(key.run.to_string());
            columns.steps.push(step_column(cipher, key));
            columns.attempts.push(i64::from(key.attempt));
        }
        columns
    }

    pub(super) fn values(&self) -> [(Value<'_>, Type); 3] {
        [
            (&self.runs, Type::TEXT_ARRAY),
            (&self.steps, Type::TEXT_ARRAY),
            (&self.attempts, Type::INT8_ARRAY),
        ]
    }
}

/// Finds the row of one offer; parameters that follow begin with `$4`.
const IS_OFFER: &str = "o.run = $1 AND o.step = $2 AND o.attempt = $3";
/// As [`IS_OFFER`], for a claim that is not over; parameters that follow begin with `$6`.
pub(super) const IS_CLAIM: &str = "o.run = $1 AND o.step = $2 AND o.attempt = $3 AND o.state = 'claimed' AND o.claimed_by = $4 AND o.claim = $5";

/// Claims the oldest offer that fits and that `only` allows.
fn claim_statement(only: &str) -> String {
    format!(
        "WITH next AS (SELECT id FROM planwright.offers WHERE state = 'offered' AND capability = ANY($1) \
         AND definition = ANY($2) {only}ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) \
         UPDATE planwright.offers AS o SET state = 'claimed', claimed_by = $3, claim = $5, \
         claimed_until = {NOW} + $4 FROM next WHERE o.id = next.id RETURNING {OFFER}"
    )
}

/// Changes the row of a claim that is not over as `what` says.
fn change_of_claim(what: &str) -> String {
    format!(
        "UPDATE planwright.offers AS o SET {what} WHERE {IS_CLAIM} AND o.claimed_until > {NOW} RETURNING o.unwanted"
    )
}

/// Tells the claims of one worker apart.
fn draw_claim_number() -> Result<i64, StoreError> {
    let mut number = [0; 8];
    getrandom::fill(&mut number)
        .map_err(|error| StoreError::Failed(format!("there is no randomness: {error}")))?;
    Ok(i64::from_le_bytes(number) & i64::MAX)
}

impl Shared {
    async fn offers_of(&self, run: &RunId) -> Result<Vec<(StepOffer, OfferState)>, StoreError> {
        let states = state_columns();
        let sql = format!(
            "SELECT {OFFER}, {states} FROM planwright.offers AS o WHERE o.run = $1 ORDER BY o.id"
        );
        let rows = self.rows(&sql, &[(&run.as_str(), Type::TEXT)]).await?;
        rows.iter()
            .map(|row| {
                Ok((
                    read_offer(&self.cipher, row)?,
                    read_state(&self.cipher, row, 9)?,
                ))
            })
            .collect()
    }

    async fn offer_states(
        &self,
        keys: &[OfferKey],
    ) -> Result<Vec<(OfferKey, OfferState)>, StoreError> {
        let columns = KeyColumns::of(&self.cipher, keys.iter());
        let states = state_columns();
        let sql = format!(
            "SELECT n.number, {states} FROM planwright.offers AS o \
             JOIN unnest($1::text[], $2::text[], $3::bigint[]) WITH ORDINALITY AS n (run, step, attempt, number) \
             ON o.run = n.run AND o.step = n.step AND o.attempt = n.attempt"
        );
        let rows = self.rows(&sql, &columns.values()).await?;
        let read = |row: &Row| {
            let number = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
            let key = keys.get(number).ok_or_else(|| unreadable("no key"))?;
            Ok((key.clone(), read_state(&self.cipher, row, 1)?))
        };
        rows.iter().map(read).collect()
    }

    async fn claim_offer(&self, wanted: &WantedOffers) -> Result<Option<ClaimedOffer>, StoreError> {
        let kept_as: Vec<Digest> = wanted
            .definitions
            .iter()
            .map(|definition| kept_definition(&self.cipher, definition))
            .collect();
        let definitions: Vec<&[u8]> = kept_as
            .iter()
            .map(|definition| &definition.as_bytes()[..])
            .collect();
        let ttl = millis(wanted.ttl);
        // Drawn here, so that the claim can be found if the answer of the database is lost.
        let number = draw_claim_number()?;
        let mut values: Vec<(Value<'_>, Type)> = vec![
            (&wanted.capabilities, Type::TEXT_ARRAY),
            (&definitions, Type::BYTEA_ARRAY),
            (&wanted.worker.0, Type::TEXT),
            (&ttl, Type::INT8),
            (&number, Type::INT8),
        ];
        let only = wanted.only.as_ref().map(|key| {
            let run = key.run.to_string();
            (run, step_column(&self.cipher, key), i64::from(key.attempt))
        });
        let sql = match &only {
            None => claim_statement(""),
            Some((run, step, attempt)) => {
                values.push((run, Type::TEXT));
                values.push((step, Type::TEXT));
                values.push((attempt, Type::INT8));
                claim_statement("AND run = $6 AND step = $7 AND attempt = $8 ")
            }
        };
        // No process is told of a claim: an owner looks for dead workers by itself, and the answer is told.
        let rows = match self
            .transactions
            .run_alone(&self.pool, &sql, &values)
            .await?
        {
            Alone::Done(rows) => rows,
            Alone::Unheard => {
                let sql = format!(
                    "SELECT {OFFER} FROM planwright.offers AS o \
                     WHERE o.state = 'claimed' AND o.claimed_by = $1 AND o.claim = $2"
                );
                let values: [(Value<'_>, Type); 2] =
                    [(&wanted.worker.0, Type::TEXT), (&number, Type::INT8)];
                self.rows(&sql, &values).await?
            }
        };
        let Some(row) = rows.first() else {
            return Ok(None);
        };
        let offer = read_offer(&self.cipher, row)?;
        let claim = OfferClaim {
            key: offer.key.clone(),
            worker: wanted.worker.clone(),
            number,
        };
        Ok(Some(ClaimedOffer { offer, claim }))
    }

    /// Makes one statement in a transaction, and tells those who wait for what becomes of offers.
    async fn change_offer(
        &self,
        sql: &str,
        values: &[(Value<'_>, Type)],
    ) -> Result<Vec<Row>, StoreError> {
        let rows = self.change_quietly(sql, values).await?;
        if !rows.is_empty() {
            self.wakeups.announce(News::Answer);
        }
        Ok(rows)
    }

    /// Changes the row of a claim, unless the claim is over, and sends these news. `what` may use `$6`.
    async fn change_claim(
        &self,
        claim: &OfferClaim,
        what: &str,
        value: Option<(Value<'_>, Type)>,
        news: News,
    ) -> Result<(), ClaimError> {
        let columns = ClaimColumns::of(&self.cipher, claim);
        let mut values = columns.values(claim);
        values.extend(value);
        let sql = change_of_claim(what);
        let changed = self.transactions.run_alone(&self.pool, &sql, &values).await;
        match changed? {
            Alone::Done(rows) if rows.is_empty() => Err(ClaimError::Over(claim.key.clone())),
            Alone::Done(_) | Alone::Unheard => {
                self.wakeups.announce(news);
                Ok(())
            }
        }
    }

    async fn renew_offer_claim(
        &self,
        claim: &OfferClaim,
        ttl: Duration,
    ) -> Result<ClaimStanding, ClaimError> {
        let ttl = millis(ttl);
        let columns = ClaimColumns::of(&self.cipher, claim);
        let mut values = columns.values(claim);
        values.push((&ttl, Type::INT8));
        let sql = change_of_claim(&format!("claimed_until = {NOW} + $6"));
        // It may be made twice: the later end counts.
        let rows = self.kept_rows(&sql, &values).await?;
        let row = rows
            .first()
            .ok_or_else(|| ClaimError::Over(claim.key.clone()))?;
        Ok(match row.get(0) {
            true => ClaimStanding::Unwanted,
            false => ClaimStanding::Held,
        })
    }

    /// Changes the row of an offer as `what` says, and returns its state then.
    async fn change_state(
        &self,
        key: &OfferKey,
        what: &str,
        value: Option<(Value<'_>, Type)>,
    ) -> Result<Option<OfferState>, StoreError> {
        let states = state_columns();
        let sql =
            format!("UPDATE planwright.offers AS o SET {what} WHERE {IS_OFFER} RETURNING {states}");
        let run = key.run.to_string();
        let step = step_column(&self.cipher, key);
        let attempt = i64::from(key.attempt);
        let mut values: Vec<(Value<'_>, Type)> = vec![
            (&run, Type::TEXT),
            (&step, Type::TEXT),
            (&attempt, Type::INT8),
        ];
        values.extend(value);
        let rows = self.change_offer(&sql, &values).await?;
        rows.first()
            .map(|row| read_state(&self.cipher, row, 0))
            .transpose()
    }

    async fn waiting_offers(&self) -> Result<Vec<WaitingOffers>, StoreError> {
        let sql = format!(
            "SELECT o.capability, count(*), {NOW} - min(o.offered_at) FROM planwright.offers AS o \
             WHERE o.state = 'offered' GROUP BY o.capability ORDER BY o.capability"
        );
        let rows = self.rows(&sql, &[]).await?;
        let waiting = rows.iter().map(|row| WaitingOffers {
            capability: row.get(0),
            count: super::rows::unsigned(row.get(1)),
            oldest: Duration::from_millis(super::rows::unsigned(row.get(2))),
        });
        Ok(waiting.collect())
    }
}

impl Offers for PostgresStore {
    fn offers<'a>(
        &'a self,
        run: &'a RunId,
    ) -> BoxFuture<'a, Result<Vec<(StepOffer, OfferState)>, StoreError>> {
        let run = run.clone();
        self.on(move |shared| async move { shared.offers_of(&run).await })
    }

    fn offer_states(
        &self,
        keys: Vec<OfferKey>,
    ) -> BoxFuture<'_, Result<Vec<(OfferKey, OfferState)>, StoreError>> {
        self.on(move |shared| async move { shared.offer_states(&keys).await })
    }

    fn claim_offer(
        &self,
        wanted: WantedOffers,
    ) -> BoxFuture<'_, Result<Option<ClaimedOffer>, StoreError>> {
        self.on(move |shared| async move { shared.claim_offer(&wanted).await })
    }

    fn renew_claim<'a>(
        &'a self,
        claim: &'a OfferClaim,
        ttl: Duration,
    ) -> BoxFuture<'a, Result<ClaimStanding, ClaimError>> {
        let claim = claim.clone();
        self.on(move |shared| async move { shared.renew_offer_claim(&claim, ttl).await })
    }

    fn return_offer<'a>(&'a self, claim: &'a OfferClaim) -> BoxFuture<'a, Result<(), ClaimError>> {
        let claim = claim.clone();
        self.on(move |shared| async move {
            let what = "state = CASE WHEN o.unwanted THEN 'withdrawn' ELSE 'offered' END, \
                        claimed_by = NULL, claim = NULL, claimed_until = NULL";
            shared.change_claim(&claim, what, None, News::Offer).await
        })
    }

    fn answer_offer<'a>(
        &'a self,
        claim: &'a OfferClaim,
        answer: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), ClaimError>> {
        let claim = claim.clone();
        self.on(move |shared| async move {
            let what = "state = 'answered', answer = $6";
            let answer = seal_kept_answer(&shared.cipher, &claim.key, &answer);
            let answer = answer.map_err(StoreError::from)?;
            let value: (Value<'_>, Type) = (&answer, Type::BYTEA);
            shared
                .change_claim(&claim, what, Some(value), News::Answer)
                .await
        })
    }

    fn withdraw_offer<'a>(
        &'a self,
        key: &'a OfferKey,
    ) -> BoxFuture<'a, Result<Option<OfferState>, StoreError>> {
        let key = key.clone();
        self.on(move |shared| async move {
            let what = "unwanted = true, state = CASE o.state WHEN 'offered' THEN 'withdrawn' ELSE o.state END";
            shared.change_state(&key, what, None).await
        })
    }

    fn lose_offer<'a>(
        &'a self,
        key: &'a OfferKey,
        by: &'a OwnerId,
    ) -> BoxFuture<'a, Result<Option<OfferState>, StoreError>> {
        let key = key.clone();
        let by = by.clone();
        self.on(move |shared| async move {
            let what = "state = CASE WHEN o.state = 'claimed' AND o.claimed_by = $4 THEN 'lost' ELSE o.state END";
            shared.change_state(&key, what, Some((&by.0, Type::TEXT))).await
        })
    }

    fn look_at_offers(
        &self,
        looks: Vec<OfferLook>,
    ) -> BoxFuture<'_, Result<Vec<OfferReport>, StoreError>> {
        self.on(move |shared| async move { shared.look_at_offers(&looks).await })
    }

    fn tell_news<'a>(
        &'a self,
        claim: &'a OfferClaim,
        news: CallNews,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let claim = claim.clone();
        self.on(move |shared| async move { shared.tell_news(&claim, &news).await })
    }

    fn ask_owner<'a>(
        &'a self,
        claim: &'a OfferClaim,
        question: OfferQuestion,
    ) -> BoxFuture<'a, Result<(), ClaimError>> {
        let claim = claim.clone();
        self.on(move |shared| async move { shared.ask_owner(&claim, &question).await })
    }

    fn reply_to_offer<'a>(
        &'a self,
        key: &'a OfferKey,
        number: u32,
        replies: Vec<u8>,
    ) -> BoxFuture<'a, Result<(), StoreError>> {
        let key = key.clone();
        self.on(move |shared| async move { shared.reply_to_offer(&key, number, &replies).await })
    }

    fn find_replies<'a>(
        &'a self,
        claim: &'a OfferClaim,
        number: u32,
    ) -> BoxFuture<'a, Result<Option<Vec<u8>>, ClaimError>> {
        let claim = claim.clone();
        self.on(move |shared| async move { shared.find_replies(&claim, number).await })
    }

    fn offer_news(&self) -> watch::Receiver<u64> {
        self.start_listening();
        self.shared().wakeups.offers()
    }

    fn answer_news(&self) -> watch::Receiver<u64> {
        self.start_listening();
        self.shared().wakeups.answers()
    }

    fn register_worker(&self, record: WorkerRecord) -> BoxFuture<'_, Result<(), StoreError>> {
        self.on(move |shared| async move { shared.register_worker(&record).await })
    }

    fn drain_worker<'a>(&'a self, id: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>> {
        let id = id.clone();
        self.on(move |shared| async move { shared.drain_worker(&id).await })
    }

    fn remove_worker<'a>(&'a self, id: &'a OwnerId) -> BoxFuture<'a, Result<(), StoreError>> {
        let id = id.clone();
        self.on(move |shared| async move { shared.remove_worker(&id).await })
    }

    fn workers(&self) -> BoxFuture<'_, Result<Vec<ListedWorker>, StoreError>> {
        self.on(|shared| async move { shared.workers().await })
    }

    fn workers_version(&self) -> BoxFuture<'_, Result<String, StoreError>> {
        self.on(|shared| async move { shared.workers_version().await })
    }

    fn waiting_offers(&self) -> BoxFuture<'_, Result<Vec<WaitingOffers>, StoreError>> {
        self.on(|shared| async move { shared.waiting_offers().await })
    }
}
