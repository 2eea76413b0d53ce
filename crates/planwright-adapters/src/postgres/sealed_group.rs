//! The values of a group of appends as columns have them, in an encrypted store and in a plain one.
//!
//! They are sealed before anything is sent: the commit is sent with the statements, so that nothing may fail between them.

use super::decision::Known;
use super::offers::{OfferColumns, seal_offer};
use crate::sealing::{KeptEntry, LabelRow, seal_entry, seal_refusal_bytes};
use crate::vault::{Cipher, SealError};
use planwright_core::time::Timestamp;
use planwright_engine::port::StreamStatus;
use std::borrow::Cow;

/// What a group writes, in the orders of [`Known::begun`], [`Known::changed`], the entries, [`Known::answered`] and
/// [`Known::offered`].
pub(super) struct SealedGroup<'a> {
    pub(super) begun_labels: Vec<Option<Cow<'a, [u8]>>>,
    pub(super) changed_labels: Vec<Cow<'a, [u8]>>,
    pub(super) entries: Vec<KeptEntry<'a>>,
    pub(super) refusals: Vec<Option<Cow<'a, [u8]>>>,
    pub(super) offers: Vec<OfferColumns>,
}

impl<'a> SealedGroup<'a> {
    pub(super) fn of(cipher: &Cipher, known: &'a Known<'_>) -> Result<Self, SealError> {
        let begun_labels = known.begun().map(|(name, begun, status)| {
            let times = (begun.created_at, begun.updated_at);
            status
                .map(|status| seal_label(cipher, (name, times), status))
                .transpose()
        });
        let changed_labels = known.changed().map(|changed| {
            let times = (changed.created_at, changed.updated_at);
            seal_label(cipher, (changed.name, times), changed.status)
        });
        let entries = known
            .entries
            .iter()
            .map(|(name, record)| seal_entry(cipher, name, record));
        let refusals = known.answered().map(|(message, answer)| {
            let refusal = answer.as_ref().err();
            refusal
                .map(|refusal| seal_refusal_bytes(cipher, message, refusal))
                .transpose()
        });
        let offers = known.offered().map(|offer| seal_offer(cipher, offer));
        Ok(Self {
            begun_labels: begun_labels.collect::<Result<_, _>>()?,
            changed_labels: changed_labels.collect::<Result<_, _>>()?,
            entries: entries.collect::<Result<_, _>>()?,
            refusals: refusals.collect::<Result<_, _>>()?,
            offers: offers.collect::<Result<_, _>>()?,
        })
    }
}

/// Seals the label of a status for the row of its stream.
pub(super) fn seal_label<'a>(
    cipher: &Cipher,
    (stream, (created_at, updated_at)): (&str, (Timestamp, Timestamp)),
    status: &'a StreamStatus,
) -> Result<Cow<'a, [u8]>, SealError> {
    let row = LabelRow {
        stream,
        plan: status.plan.as_str(),
        status: status.status.as_str(),
        created_at: created_at.as_millis(),
        updated_at: updated_at.as_millis(),
    };
    row.seal_bytes(cipher, &status.label)
}
