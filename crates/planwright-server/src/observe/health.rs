//! Whether the service is well: alive, and ready to be asked.

use super::counts::Counts;
use super::dispatch::DispatchGauges;
use super::prometheus::{Metrics, name};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use planwright_core::status::RunStatus;
use planwright_engine::{Engine, SupervisorStats};
use serde::Serialize;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A store that takes longer than this is not ready for anybody.
const PATIENCE: Duration = Duration::from_secs(2);

/// Who asks again within this time gets the same answer: probes do not multiply writes.
const FRESH: Duration = Duration::from_secs(1);

type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What is known about the service's health. Cheap to clone; all clones are the same.
#[derive(Clone)]
pub struct Health {
    engine: Engine,
    figures: Metrics,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    checks: Mutex<Vec<(&'static str, Check)>>,
    counts: Counts,
    dispatch: DispatchGauges,
    probed: tokio::sync::Mutex<Option<Probed>>,
}

/// What the last look at the store found, and when.
struct Probed {
    at: Instant,
    problem: Option<String>,
}

impl fmt::Debug for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Health")
    }
}

/// The answer to whether the service is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Readiness {
    pub ready: bool,
    /// Why it is not.
    pub reasons: Vec<String>,
}

impl Health {
    pub fn new(engine: Engine, figures: Metrics) -> Self {
        Self {
            engine,
            figures,
            shared: Arc::default(),
        }
    }

    /// Adds something that has to be well for the service to be ready.
    pub fn require(
        &self,
        name: &'static str,
        check: impl Fn() -> Result<(), String> + Send + Sync + 'static,
    ) {
        self.shared
            .checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((name, Box::new(check)));
    }

    pub async fn readiness(&self) -> Readiness {
        let mut reasons = Vec::new();
        for (name, check) in &*self
            .shared
            .checks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
        {
            if let Err(problem) = check() {
                reasons.push(format!("{name}: {problem}"));
            }
        }
        reasons.extend(self.store_problem().await);
        Readiness {
            ready: reasons.is_empty(),
            reasons,
        }
    }

    /// Reads from the store and writes to it, for all who ask within a second together.
    async fn store_problem(&self) -> Option<String> {
        let mut probed = self.shared.probed.lock().await;
        if let Some(last) = &*probed
            && last.at.elapsed() < FRESH
        {
            return last.problem.clone();
        }
        let problem = self.probe_store().await;
        *probed = Some(Probed {
            at: Instant::now(),
            problem: problem.clone(),
        });
        problem
    }

    async fn probe_store(&self) -> Option<String> {
        let maintenance = self.engine.maintenance();
        match tokio::time::timeout(PATIENCE, maintenance.check_store()).await {
            Ok(Ok(())) => None,
            Ok(Err(problem)) => Some(problem.to_string()),
            Err(_) => Some(format!(
                "the store gave no answer within {} s",
                PATIENCE.as_secs()
            )),
        }
    }

    /// The answer of `/metrics`. Who may see it is decided by the caller.
    pub async fn metrics(&self, standing: SupervisorStats) -> Response {
        let supervised = [
            (RunStatus::Executing.as_str(), standing.executing),
            ("queued", standing.queued),
            ("troubled", standing.troubled),
        ];
        for (state, runs) in supervised {
            let runs = f64::from(u32::try_from(runs).unwrap_or(u32::MAX));
            metrics::gauge!(name::SUPERVISED, "state" => state).set(runs);
        }
        self.shared.counts.note(&self.engine).await;
        self.shared.dispatch.note(&self.engine).await;
        let headers = [
            (
                header::CONTENT_TYPE,
                "text/plain; version=0.0.4; charset=utf-8",
            ),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (headers, self.figures.render()).into_response()
    }
}
