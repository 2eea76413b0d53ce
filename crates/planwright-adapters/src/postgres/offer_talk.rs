//! What workers and the owners of runs say to each other while a call goes on: how far it is, and what its tool asks a person.
//!
//! News are in a table without a log: their commits wait for no disk, and no process is woken for them. A question and its replies
//! are columns of the offer, and durable.

use super::commit::Value;
use super::offers::{IS_CLAIM, KeyColumns, read_state, state_columns, step_column};
use super::rows::{NOW, number, unsigned};
use super::store::Shared;
use super::wakeups::News;
use crate::sealing::{AnsweredAttempt, CallTalk, open_call_talk, seal_call_talk};
use crate::vault::{Cipher, OpenSealedError, SealError};
use planwright_engine::port::{
    CallNews, ClaimError, OfferClaim, OfferKey, OfferLook, OfferQuestion, OfferReport, StoreError,
};
use std::borrow::Cow;
use tokio_postgres::Row;
use tokio_postgres::types::Type;

/// Seals what is said of an attempt for its row.
pub(super) fn seal_talk(
    cipher: &Cipher,
    (talk, key, number): (CallTalk, &OfferKey, i64),
    text: &[u8],
) -> Result<Vec<u8>, SealError> {
    let step = step_column(cipher, key);
    let attempt: AnsweredAttempt<'_> = (key.run.as_str(), &step, i64::from(key.attempt));
    seal_call_talk(cipher, (talk, attempt, number), text).map(Cow::into_owned)
}

pub(super) fn open_talk(
    cipher: &Cipher,
    (talk, key, number): (CallTalk, &OfferKey, i64),
    kept: Vec<u8>,
) -> Result<Vec<u8>, OpenSealedError> {
    let step = step_column(cipher, key);
    let attempt: AnsweredAttempt<'_> = (key.run.as_str(), &step, i64::from(key.attempt));
    open_call_talk(cipher, (talk, attempt, number), kept)
}

/// The columns of a claim, for [`IS_CLAIM`].
pub(super) struct ClaimColumns {
    run: String,
    step: String,
    attempt: i64,
}

impl ClaimColumns {
    pub(super) fn of(cipher: &Cipher, claim: &OfferClaim) -> Self {
        Self {
            run: claim.key.run.to_string(),
            step: step_column(cipher, &claim.key),
            attempt: i64::from(claim.key.attempt),
        }
    }

    pub(super) fn values<'a>(&'a self, claim: &'a OfferClaim) -> Vec<(Value<'a>, Type)> {
        vec![
            (&self.run, Type::TEXT),
            (&self.step, Type::TEXT),
            (&self.attempt, Type::INT8),
            (&claim.worker.0, Type::TEXT),
            (&claim.number, Type::INT8),
        ]
    }
}

impl Shared {
    pub(super) async fn look_at_offers(
        &self,
        looks: &[OfferLook],
    ) -> Result<Vec<OfferReport>, StoreError> {
        let columns = KeyColumns::of(&self.cipher, looks.iter().map(|look| &look.key));
        let heard: Vec<i64> = looks.iter().map(|look| number(look.heard)).collect();
        let states = state_columns();
        let sql = format!(
            "SELECT l.number, {states}, CASE WHEN o.replies IS NULL THEN o.question END, o.asked, n.number, n.told \
             FROM planwright.offers AS o \
             JOIN unnest($1::text[], $2::text[], $3::bigint[], $4::bigint[]) WITH ORDINALITY \
             AS l (run, step, attempt, heard, number) \
             ON o.run = l.run AND o.step = l.step AND o.attempt = l.attempt \
             LEFT JOIN planwright.call_news AS n \
             ON n.run = o.run AND n.step = o.step AND n.attempt = o.attempt AND n.number > l.heard"
        );
        let mut values = columns.values().to_vec();
        values.push((&heard, Type::INT8_ARRAY));
        let rows = self.kept_rows(&sql, &values).await?;
        let mut reports = Vec::with_capacity(rows.len());
        for row in &rows {
            let place = usize::try_from(row.get::<_, i64>(0) - 1).unwrap_or(usize::MAX);
            let look = looks.get(place).ok_or_else(|| unreadable("no key"))?;
            reports.push(OfferReport {
                key: look.key.clone(),
                state: read_state(&self.cipher, row, 1)?,
                question: self.read_question(&look.key, row, 8)?,
                news: self.read_news(&look.key, row, 10)?,
            });
        }
        Ok(reports)
    }

    fn read_question(
        &self,
        key: &OfferKey,
        row: &Row,
        first: usize,
    ) -> Result<Option<OfferQuestion>, StoreError> {
        let (number, asked): (Option<i64>, Option<Vec<u8>>) = (row.get(first), row.get(first + 1));
        let (Some(number), Some(asked)) = (number, asked) else {
            return Ok(None);
        };
        let asked = open_talk(&self.cipher, (CallTalk::Asked, key, number), asked);
        Ok(Some(OfferQuestion {
            number: u32::try_from(number).map_err(|_| unreadable("no number of a question"))?,
            asked: asked.map_err(|error| damaged(key, &error))?,
        }))
    }

    fn read_news(
        &self,
        key: &OfferKey,
        row: &Row,
        first: usize,
    ) -> Result<Option<CallNews>, StoreError> {
        let (number, told): (Option<i64>, Option<Vec<u8>>) = (row.get(first), row.get(first + 1));
        let (Some(number), Some(told)) = (number, told) else {
            return Ok(None);
        };
        let told = open_talk(&self.cipher, (CallTalk::News, key, number), told);
        Ok(Some(CallNews {
            number: unsigned(number),
            told: told.map_err(|error| damaged(key, &error))?,
        }))
    }

    pub(super) async fn tell_news(
        &self,
        claim: &OfferClaim,
        news: &CallNews,
    ) -> Result<(), StoreError> {
        // It may be made twice, and earlier news do not replace later ones.
        let sql = format!(
            "INSERT INTO planwright.call_news AS n (run, step, attempt, number, told) \
             SELECT $1, $2, $3, $6, $7 FROM planwright.offers AS o WHERE {IS_CLAIM} AND o.claimed_until > {NOW} \
             ON CONFLICT (run, step, attempt) DO UPDATE \
             SET number = excluded.number, told = excluded.told, at = clock_timestamp() WHERE n.number < excluded.number"
        );
        let place = number(news.number);
        let told = seal_talk(
            &self.cipher,
            (CallTalk::News, &claim.key, place),
            &news.told,
        )?;
        let columns = ClaimColumns::of(&self.cipher, claim);
        let mut values = columns.values(claim);
        values.push((&place, Type::INT8));
        values.push((&told, Type::BYTEA));
        self.rows(&sql, &values).await.map(drop)
    }

    pub(super) async fn ask_owner(
        &self,
        claim: &OfferClaim,
        question: &OfferQuestion,
    ) -> Result<(), ClaimError> {
        // Asked again because the answer of the database was lost, it keeps the replies that are there.
        let sql = format!(
            "UPDATE planwright.offers AS o SET question = $6, asked = $7, \
             replies = CASE WHEN o.question = $6 THEN o.replies END \
             WHERE {IS_CLAIM} AND o.claimed_until > {NOW} RETURNING 1"
        );
        let place = i64::from(question.number);
        let asked = seal_talk(
            &self.cipher,
            (CallTalk::Asked, &claim.key, place),
            &question.asked,
        );
        let asked = asked.map_err(StoreError::from)?;
        let columns = ClaimColumns::of(&self.cipher, claim);
        let mut values = columns.values(claim);
        values.push((&place, Type::INT8));
        values.push((&asked, Type::BYTEA));
        if self.change_quietly(&sql, &values).await?.is_empty() {
            return Err(ClaimError::Over(claim.key.clone()));
        }
        self.wakeups.announce(News::Answer);
        Ok(())
    }

    pub(super) async fn reply_to_offer(
        &self,
        key: &OfferKey,
        question: u32,
        replies: &[u8],
    ) -> Result<(), StoreError> {
        let sql = "UPDATE planwright.offers AS o SET replies = $5 WHERE o.run = $1 AND o.step = $2 AND o.attempt = $3 \
                   AND o.question = $4 AND o.replies IS NULL RETURNING 1";
        let place = i64::from(question);
        let replies = seal_talk(&self.cipher, (CallTalk::Replies, key, place), replies)?;
        let (run, step) = (key.run.to_string(), step_column(&self.cipher, key));
        let attempt = i64::from(key.attempt);
        let values: [(Value<'_>, Type); 5] = [
            (&run, Type::TEXT),
            (&step, Type::TEXT),
            (&attempt, Type::INT8),
            (&place, Type::INT8),
            (&replies, Type::BYTEA),
        ];
        if !self.change_quietly(sql, &values).await?.is_empty() {
            self.wakeups.announce(News::Answer);
        }
        Ok(())
    }

    pub(super) async fn find_replies(
        &self,
        claim: &OfferClaim,
        question: u32,
    ) -> Result<Option<Vec<u8>>, ClaimError> {
        let sql = format!(
            "SELECT CASE WHEN o.question = $6 THEN o.replies END FROM planwright.offers AS o \
             WHERE {IS_CLAIM} AND o.claimed_until > {NOW}"
        );
        let place = i64::from(question);
        let columns = ClaimColumns::of(&self.cipher, claim);
        let mut values = columns.values(claim);
        values.push((&place, Type::INT8));
        let Some(row) = self.row(&sql, &values).await? else {
            return Err(ClaimError::Over(claim.key.clone()));
        };
        let kept: Option<Vec<u8>> = row.get(0);
        let opened =
            kept.map(|kept| open_talk(&self.cipher, (CallTalk::Replies, &claim.key, place), kept));
        let opened = opened.transpose();
        Ok(opened.map_err(|error| damaged(&claim.key, &error))?)
    }
}

fn unreadable(what: &str) -> StoreError {
    StoreError::Failed(format!("an offer in the database has {what}"))
}

fn damaged(key: &OfferKey, error: &OpenSealedError) -> StoreError {
    StoreError::Failed(format!(
        "what is said of an offer of run {}: {error}",
        key.run
    ))
}
