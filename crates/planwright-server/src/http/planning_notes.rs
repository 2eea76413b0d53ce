//! Plans that are written in the background, as the other services of the store see them: how far they are, and the wish that
//! one is not written any more.

use super::planning_jobs::{TakenJob, Told, is_running, unknown};
use super::problem::HttpResult;
use super::state::Http;
use planwright_api::PlanningJob;
use planwright_core::digest::Digest;
use planwright_core::principal::Principal;
use planwright_engine::port::{NoteKind, ServiceNote, StoreError};
use serde::{Deserialize, Serialize};
use std::sync::{Arc, Weak};
use std::time::Duration;

/// An order whose service says nothing for this long is over.
const RUNNING_LIFE: Duration = Duration::from_secs(30);
const REFRESH: Duration = Duration::from_secs(10);

/// The time one that is over can still be looked at.
const ENDED_LIFE: Duration = Duration::from_hours(1);

/// Others are told at most this often, and look at most this often.
const PAUSE: Duration = Duration::from_millis(500);

/// How often a service looks whether others cancelled an order.
const LOOK: Duration = Duration::from_secs(1);

/// More orders than are remembered anywhere.
const MAX: usize = 10_000;

/// An order, with the one who gave it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct JobNote {
    pub(super) by: Principal,
    pub(super) job: PlanningJob,
}

fn key(id: &str) -> Digest {
    Digest::of_bytes(id.as_bytes())
}

impl Http {
    /// Lets the other services know about an order until it is over, and hears from them that it is cancelled. When
    /// this returns, they know that it was taken.
    pub(super) async fn share_planning(&self, taken: &TakenJob, by: &Principal) {
        if !self.service.notes.are_shared() {
            return;
        }
        self.write_job(&taken.id, by, &taken.told).await;
        let http = self.clone();
        let id = taken.id.clone();
        let by = by.clone();
        let told = Arc::clone(&taken.told);
        let cancel = taken.cancel.clone();
        tokio::spawn(async move {
            let mut changes = told.changes();
            let cancelled = http.wait_until_cancelled(&id);
            tokio::pin!(cancelled);
            while told.is_running() {
                let change = async {
                    // What comes together is told together. The channel lives as long as `told`.
                    drop(changes.changed().await);
                    tokio::time::sleep(PAUSE).await;
                };
                tokio::select! {
                    () = change => {}
                    () = tokio::time::sleep(REFRESH) => {}
                    () = &mut cancelled, if !cancel.is_cancelled() => cancel.cancel(),
                }
                http.write_job(&id, &by, &told).await;
            }
            http.write_job(&id, &by, &told).await;
        });
    }

    async fn write_job(&self, id: &str, by: &Principal, told: &Told) {
        let job = told.document();
        let life = match is_running(&job) {
            true => RUNNING_LIFE,
            false => ENDED_LIFE,
        };
        let by = by.clone();
        let text = serde_json::to_string(&JobNote { by, job }).unwrap_or_default();
        let redactor = self.service.engine.redaction().redactor();
        let now = self.service.engine.now();
        let note = ServiceNote {
            kind: NoteKind::PlanningJob,
            key: key(id),
            value: redactor.text(&text).into_owned().into_bytes(),
            expires_at: now.plus(life),
        };
        if let Err(error) = self.service.notes.put_note(&note, MAX, now).await {
            tracing::warn!(order = id, %error, "other services do not know how far a plan is");
        }
    }

    async fn wait_until_cancelled(&self, id: &str) {
        let notes = &self.service.notes;
        let key = key(id);
        loop {
            tokio::time::sleep(LOOK).await;
            let now = self.service.engine.now();
            let taken = notes.take_note(NoteKind::PlanningCancel, &key, now);
            if let Ok(Some(_)) = taken.await {
                return;
            }
        }
    }

    async fn read_job(&self, id: &str) -> Result<Option<JobNote>, StoreError> {
        let now = self.service.engine.now();
        let notes = &self.service.notes;
        let found = notes
            .find_note(NoteKind::PlanningJob, &key(id), now)
            .await?;
        Ok(found.and_then(|value| serde_json::from_slice(&value).ok()))
    }

    /// Finds an order that another service has taken.
    pub(super) async fn find_job_elsewhere(&self, id: &str) -> HttpResult<JobNote> {
        self.read_job(id).await?.ok_or_else(|| unknown(id))
    }

    /// Asks the service that has taken an order to cancel it.
    pub(super) async fn cancel_job_elsewhere(&self, id: &str) -> Result<(), StoreError> {
        let now = self.service.engine.now();
        let note = ServiceNote {
            kind: NoteKind::PlanningCancel,
            key: key(id),
            value: Vec::new(),
            expires_at: now.plus(RUNNING_LIFE),
        };
        self.service.notes.put_note(&note, MAX, now).await.map(drop)
    }

    /// Follows an order of another service for as long as what is returned is held.
    pub(super) fn follow_job_elsewhere(&self, id: &str, found: JobNote) -> Arc<Told> {
        let told = Arc::new(Told::of(found.job));
        let follower = self.clone();
        let id = id.to_owned();
        let followed = Arc::downgrade(&told);
        tokio::spawn(async move { follower.copy_job(&id, followed).await });
        told
    }

    async fn copy_job(&self, id: &str, followed: Weak<Told>) {
        loop {
            tokio::time::sleep(PAUSE).await;
            let Some(told) = followed.upgrade().filter(|told| told.is_running()) else {
                return;
            };
            match self.read_job(id).await {
                Ok(Some(found)) => told.replace(found.job),
                // Its service has died with it.
                Ok(None) => told.end(Err(unknown(id)), false),
                Err(error) => tracing::debug!(%error, "an order cannot be read"),
            }
        }
    }
}
