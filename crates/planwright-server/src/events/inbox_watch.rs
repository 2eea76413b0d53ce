//! How much waits for people, counted once for all who want to know.

use planwright_api::InboxCount;
use planwright_engine::{Engine, LoadError, WaitCounts};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A count that is younger is given again: many changes in a row are counted once.
const FRESH: Duration = Duration::from_millis(300);

/// The latest count. Cheap to clone; all clones are the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct InboxWatch(Arc<Mutex<Option<(Instant, WaitCounts)>>>);

impl InboxWatch {
    /// Counts what waits, unless that was just done.
    pub(crate) async fn count(&self, engine: &Engine) -> Result<InboxCount, LoadError> {
        let mut known = self.0.lock().await;
        if let Some((at, counts)) = &*known
            && at.elapsed() < FRESH
        {
            return Ok(describe(counts));
        }
        let counts = engine.inbox().count().await?;
        *known = Some((Instant::now(), counts));
        Ok(describe(&counts))
    }
}

fn describe(counts: &WaitCounts) -> InboxCount {
    InboxCount {
        total: counts.total(),
        plans: counts.plans,
        steps: counts.steps,
        inputs: counts.inputs,
        outcomes: counts.outcomes,
        mark: counts.mark.map(|mark| mark.to_string()).unwrap_or_default(),
    }
}
