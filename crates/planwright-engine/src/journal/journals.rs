//! The facade for reading: streams, their cached statuses, the feed, and large values.
//!
//! It writes nothing. Every change to a journal goes through the facade of the thing it changes.

use crate::context::Context;
use crate::journal::feed::end_of_feed;
use crate::journal::load::{
    LoadError, load_review, load_version, plan_of_run, read_beginning, read_entries,
};
use crate::journal::recent::load_recent_review;
use crate::journal::stored_value::read_value;
use crate::port::{
    ArtifactError, ArtifactRef, FeedOf, Placed, Position, StoreError, StreamCounts, StreamInfo,
};
use planwright_core::event::PlanEvents;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::{Entry, Head, Journaled, Record, StreamName};
use planwright_core::plan::Document;
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::run::StoredValue;
use planwright_core::status::CachedStatus;
use planwright_core::time::Timestamp;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::watch;

/// Reads journals, their feed, and the values that are kept beside them.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// // Nothing was proposed, so there is no stream, and the feed ends where it begins.
/// assert!(engine.journals().plans().await?.is_empty());
/// assert_eq!(engine.journals().end_of_feed().await?.0, 0);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Journals {
    pub(super) context: Arc<Context>,
}

impl Journals {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    /// Folds a plan's review, and says where its journal ends.
    pub async fn load_review(&self, id: &PlanId) -> Result<(Review, Head), LoadError> {
        load_review(&*self.context.ports.store, id).await
    }

    /// Reads the plan a run belongs to from the first entry of the run.
    pub async fn plan_of_run(&self, id: &RunId) -> Result<PlanId, LoadError> {
        plan_of_run(&*self.context.ports.store, id).await
    }

    /// Reads who began a run from the first entry of the run.
    pub async fn starter_of_run(&self, id: &RunId) -> Result<Principal, LoadError> {
        let (_, by) = read_beginning(&*self.context.ports.store, id).await?;
        Ok(by)
    }

    /// Reads a whole stream in pages, checking the chain, and hands each entry to `each`.
    pub async fn read_entries<E: Journaled>(
        &self,
        stream: &StreamName,
        each: impl FnMut(&Record, Entry<E>) -> Result<(), LoadError>,
    ) -> Result<Head, LoadError> {
        read_entries(&*self.context.ports.store, stream, each).await
    }

    /// Returns up to `limit` records of a stream with a number above `after`, in order.
    pub async fn read(
        &self,
        stream: &StreamName,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Record>, StoreError> {
        self.context.ports.store.read(stream, after, limit).await
    }

    /// Returns the head of a stream; [`Head::EMPTY`] if there is none.
    pub async fn head(&self, stream: &StreamName) -> Result<Head, StoreError> {
        self.context.ports.store.head(stream).await
    }

    /// Gives a fold of events the content of the version that the run of this record begins with, if
    /// the fold does not keep it.
    pub async fn complete_fold(
        &self,
        fold: &mut PlanEvents,
        placed: &Placed,
    ) -> Result<(), StoreError> {
        if let Some(version) = fold.missing_version(&placed.stream, &placed.record) {
            let plan = fold.plan().clone();
            if let Some(document) = self.version_content(&plan, version).await? {
                fold.give_version(version, document);
            }
        }
        Ok(())
    }

    /// Reads the content of a version of a plan; nothing if the journal does not have it or cannot be
    /// folded.
    pub async fn version_content(
        &self,
        plan: &PlanId,
        version: u32,
    ) -> Result<Option<Arc<Document>>, StoreError> {
        let store = &*self.context.ports.store;
        let found = async {
            let (review, _) = load_recent_review(store, &self.context.reviews, plan).await?;
            load_version(store, &review, version).await
        };
        match found.await {
            Ok(found) => Ok(found.map(|version| version.document)),
            Err(LoadError::Store(error)) if !matches!(error, StoreError::Damaged { .. }) => {
                Err(error)
            }
            Err(error) => {
                tracing::warn!(%plan, %error, "a version cannot be read");
                Ok(None)
            }
        }
    }

    /// Returns up to `limit` records committed after `after`, in the order of their commits.
    pub async fn feed(
        &self,
        of: &FeedOf,
        after: Position,
        limit: usize,
    ) -> Result<Vec<Placed>, StoreError> {
        self.context.ports.store.feed(of, after, limit).await
    }

    /// Returns the position of the last record there is.
    pub async fn end_of_feed(&self) -> Result<Position, StoreError> {
        end_of_feed(&*self.context.ports.store).await
    }

    /// Returns what is cached about one stream.
    pub async fn info(&self, stream: &StreamName) -> Result<Option<StreamInfo>, StoreError> {
        self.context.ports.store.info(stream).await
    }

    /// Lists all plan streams, most recently updated first.
    pub async fn plans(&self) -> Result<Vec<StreamInfo>, StoreError> {
        self.context.ports.store.plans().await
    }

    /// Lists up to `limit` plan streams by age, the latest first, in an order that never changes.
    pub async fn plans_by_age(
        &self,
        after: Option<(Timestamp, &PlanId)>,
        limit: usize,
    ) -> Result<Vec<StreamInfo>, StoreError> {
        self.context.ports.store.plans_by_age(after, limit).await
    }

    /// Lists the run streams of a plan, oldest first.
    pub async fn runs(&self, plan: &PlanId) -> Result<Vec<StreamInfo>, StoreError> {
        self.context.ports.store.runs(plan).await
    }

    /// Lists the run streams of all plans whose cached status is one of these, oldest first.
    pub async fn runs_in(&self, statuses: &[CachedStatus]) -> Result<Vec<StreamInfo>, StoreError> {
        self.context.ports.store.runs_in(statuses).await
    }

    /// Counts the streams by status.
    pub async fn counts(&self) -> Result<StreamCounts, StoreError> {
        self.context.ports.store.counts().await
    }

    /// Changes its value whenever anything in the store may have changed, also by another process.
    pub fn changes(&self) -> watch::Receiver<u64> {
        self.context.ports.store.changes()
    }

    /// Reads the value of a step, wherever it is kept.
    pub async fn read_value(&self, value: &StoredValue) -> Result<Value, ArtifactError> {
        read_value(&*self.context.ports.artifacts, value).await
    }

    /// Reads the bytes of an artifact.
    pub async fn read_artifact(&self, artifact: &ArtifactRef) -> Result<Vec<u8>, ArtifactError> {
        self.context.ports.artifacts.get(artifact).await
    }
}
