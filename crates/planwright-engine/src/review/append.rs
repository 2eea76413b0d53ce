//! Writing to the journals of plans.

use crate::journal::load::LoadError;
use crate::journal::writer::{JournalWriter, WriteError};
use crate::port::{Append, Brought, LeaseRule};
use crate::redaction::entry_text::has_typed_text;
use crate::redaction::learning::learn_secrets;
use crate::review::plans::Plans;
use crate::review::plans::ReviewError;
use planwright_core::id::PlanId;
use planwright_core::journal::{Cause, Entry, Head, StreamName};
use planwright_core::plan::Document;
use planwright_core::principal::Principal;
use planwright_core::review::{Review, ReviewCommand, ReviewEvent, ReviewRefusal};
use planwright_core::run::Corrupt;
use planwright_core::time::Timestamp;
use std::sync::Arc;

/// Events, and the instant in which they were decided. They are dated then.
pub(crate) type Decided = (Timestamp, Vec<ReviewEvent>);

impl Plans {
    /// Decides a command about a plan and makes what follows durable. Returns the review after it.
    pub(crate) async fn write_review(
        &self,
        review: Review,
        head: Head,
        command: &ReviewCommand,
    ) -> Result<Review, ReviewError> {
        let now = self.context.ports.clock.now();
        let events = review.decide(command, now)?;
        self.append_review(review, head, (now, events)).await
    }

    /// Makes events durable. Returns the review after them.
    pub(crate) async fn append_review(
        &self,
        review: Review,
        head: Head,
        decided: Decided,
    ) -> Result<Review, ReviewError> {
        for by in decided.1.iter().filter_map(ReviewEvent::brought_by) {
            self.check_stored_bytes(by).await?;
        }
        let (append, review) = self.review_append(review, head, decided).await?;
        if !append.records.is_empty() {
            self.context.ports.store.append(vec![append]).await?;
        }
        Ok(review)
    }

    /// Builds the append that makes events durable, and the review after it.
    pub(crate) async fn review_append(
        &self,
        mut review: Review,
        head: Head,
        (at, events): Decided,
    ) -> Result<(Append, Review), ReviewError> {
        if events.iter().any(has_typed_text) {
            self.learn_secrets_of_plan(&review, &events).await;
        }
        let mut journal = self.plan_writer(review.id(), head);
        let before = Arc::clone(&review.current().document);
        journal
            .record(&mut review, events, Cause::Command, at)
            .map_err(|corrupt| damaged_plan(review.id(), &corrupt))?;
        let (mut append, entries) = journal.take_append(&review, LeaseRule::None);
        append.brought = count_brought(Some(&before), &entries, &append);
        Ok((append, review))
    }

    /// Makes the first entry of a plan durable.
    pub(crate) async fn open_review(
        &self,
        id: &PlanId,
        at: Timestamp,
        first: ReviewEvent,
    ) -> Result<Review, ReviewError> {
        if let Some(by) = first.brought_by() {
            self.check_stored_bytes(by).await?;
        }
        let mut journal = self.plan_writer(id, Head::EMPTY);
        let review = journal
            .open(first, at, |entry| Review::open(id.clone(), entry))
            .map_err(|corrupt| damaged_plan(id, &corrupt))?;
        let (mut append, entries) = journal.take_append(&review, LeaseRule::None);
        append.brought = count_brought(None, &entries, &append);
        self.context.ports.store.append(vec![append]).await?;
        Ok(review)
    }

    /// Refuses a principal who has brought as much into the store as one may. Requests that are under
    /// way at the same moment may each bring their own on top.
    pub(crate) async fn check_stored_bytes(&self, by: &Principal) -> Result<(), ReviewError> {
        let limit = self.context.settings.stored_bytes;
        let brought = self.context.ports.store.brought_bytes(by).await;
        if brought.map_err(LoadError::from)? < limit {
            return Ok(());
        }
        let by = by.clone();
        Err(ReviewError::StoredTooMuch { by, limit })
    }

    /// A writer for the journal of a plan that ends at `head`. Plans have no owner and no epoch.
    pub(crate) fn plan_writer(&self, id: &PlanId, head: Head) -> JournalWriter<ReviewEvent> {
        JournalWriter::new(
            &self.context.redaction,
            StreamName::Plan(id.clone()),
            head,
            0,
        )
    }

    /// Learns what the text of `events` may repeat: the secrets of the plan as it ever was, also one that
    /// was dropped since, and as it becomes.
    async fn learn_secrets_of_plan(&self, review: &Review, events: &[ReviewEvent]) {
        let mut names = review.secret_names().clone();
        for event in events {
            if let ReviewEvent::PlanProposed { document, .. } = event {
                names.extend(document.secret_names());
            }
        }
        learn_secrets(&*self.context.ports.secrets, &self.context.redaction, names).await;
    }
}

/// Counts what principals bring in with an append, whose records are these entries.
fn count_brought(
    before: Option<&Document>,
    entries: &[Entry<ReviewEvent>],
    append: &Append,
) -> Vec<Brought> {
    let mut brought = Vec::new();
    for (entry, record) in entries.iter().zip(&append.records) {
        if let Some(by) = entry.event.brought_by() {
            let parts = entry.event.new_part_bytes(before);
            brought.push(Brought {
                by: by.clone(),
                bytes: record.body.len() as u64 + parts,
            });
        }
    }
    brought
}

/// A journal that cannot say what was decided.
pub(crate) fn damaged_plan(id: &PlanId, corrupt: &Corrupt) -> LoadError {
    LoadError::Damaged {
        stream: StreamName::Plan(id.clone()),
        reason: corrupt.to_string(),
    }
}

/// Says which plan's journal could not be written.
pub(crate) fn write_error(
    id: &PlanId,
) -> impl FnOnce(WriteError<ReviewRefusal>) -> ReviewError + '_ {
    move |error| match error {
        WriteError::Refused(refusal) => refusal.into(),
        WriteError::Corrupt(corrupt) => damaged_plan(id, &corrupt).into(),
    }
}
