//! Corrects the cached statuses of plans where an earlier release wrote others.

use crate::journal::load::{LoadError, load_review};
use crate::journal::writer::JournalWriter;
use crate::maintenance::Maintenance;
use crate::port::{Append, AppendError, LeaseRule, StreamInfo};
use planwright_core::status::CachedStatus;
use std::sync::atomic::Ordering;

/// Words that are written in one commit.
const AT_ONCE: usize = 200;

impl Maintenance {
    /// Corrects the statuses of plans whose run had begun. They used to be cached as `proposed`, like
    /// those that wait for a person, and would be read by every search for these. They are looked
    /// through once: each later write to a plan keeps its word right.
    pub(super) async fn backfill_statuses(&self) -> Result<(), LoadError> {
        if self
            .context
            .active
            .statuses_corrected
            .load(Ordering::Relaxed)
        {
            return Ok(());
        }
        let mut appends = Vec::new();
        let mut done = true;
        for info in self
            .context
            .ports
            .store
            .plans_with_runs(CachedStatus::Proposed)
            .await?
        {
            match self.corrected(info).await {
                Ok(append) => appends.extend(append),
                Err(error) => tracing::warn!(%error, "where a plan stands could not be looked up"),
            }
            if appends.len() >= AT_ONCE {
                done &= self.write_statuses(std::mem::take(&mut appends)).await?;
            }
        }
        done &= self.write_statuses(appends).await?;
        self.context
            .active
            .statuses_corrected
            .store(done, Ordering::Relaxed);
        Ok(())
    }

    /// The append that makes a plan's word right; none if it is.
    async fn corrected(&self, info: StreamInfo) -> Result<Option<Append>, LoadError> {
        let StreamInfo { stream, status, .. } = info;
        let (review, head) = load_review(&*self.context.ports.store, &status.plan).await?;
        if review.cached_status() == status.status {
            return Ok(None);
        }
        let mut journal = JournalWriter::new(&self.context.redaction, stream, head, 0);
        let (append, _) = journal.take_labelled(&review, &status.label, LeaseRule::None);
        Ok(Some(append))
    }

    /// Returns whether they could be written. If another process wrote to one of the plans
    /// meanwhile, all are left for the next time.
    async fn write_statuses(&self, appends: Vec<Append>) -> Result<bool, LoadError> {
        match self.context.ports.store.append(appends).await {
            Ok(()) => Ok(true),
            Err(AppendError::Store(error)) => Err(error.into()),
            Err(error) => {
                tracing::debug!(%error, "the cached statuses of some plans are corrected later");
                Ok(false)
            }
        }
    }
}
