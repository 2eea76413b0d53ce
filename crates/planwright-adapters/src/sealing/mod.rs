//! What each table keeps in place of what it is given, when the store is encrypted.
//!
//! Bodies, labels, keys, commands and refusals are sealed for their row. The chain's hashes are
//! taken over what is sealed, so they are masked: a hash of something that could be guessed would
//! confirm the guess. Names of streams, statuses, times and sizes stay as they are.
//!
//! Nothing in it knows a database: stores in files and in Postgres seal the same values for the same
//! places.

mod access;
mod answer;
mod entry;
mod label;
mod message;
mod note;
mod offer;
mod outbox;
mod worker;

pub(crate) use access::{
    assurance_word, check_pass_mark, check_passkey_mark, check_token_mark, pass_mark, passkey_mark,
    token_mark,
};
pub(crate) use answer::{mask_request, open_answer, seal_answer};
pub(crate) use entry::{KeptEntry, kept_key, mask_head, open_entry, seal_entry};
pub(crate) use label::LabelRow;
pub(crate) use message::{
    message_hash, open_message, open_refusal, open_refusal_bytes, seal_message, seal_refusal,
    seal_refusal_bytes,
};
pub(crate) use note::{
    open_note, open_shared_key, open_sign_in, seal_note, seal_shared_key, seal_sign_in,
};
pub(crate) use offer::{
    AnsweredAttempt, CallTalk, KeptOffer, OfferRow, kept_definition, kept_step, open_call_talk,
    open_offer_answer, seal_call_talk, seal_offer_answer,
};
pub(crate) use outbox::{open_delivery_error, open_reason, seal_delivery_error, seal_reason};
pub(crate) use worker::{open_worker_column, seal_worker_column};

use crate::vault::SealError;
use planwright_engine::port::StoreError;

impl From<SealError> for StoreError {
    fn from(error: SealError) -> Self {
        Self::Failed(error.to_string())
    }
}
