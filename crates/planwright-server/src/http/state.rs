//! What every route is given.

use super::auth::{Confirmations, SignIn, VISIT_KEY, Visits};
use super::idempotency::WorkingOn;
use super::limits::{Limits, Strangers};
use super::planning_jobs::PlanningJobs;
use super::settings::Settings;
use crate::Service;
use crate::events::{Events, InboxWatch};
use crate::observe::{Health, Metrics};
use planwright_engine::port::StoreError;
use planwright_engine::{Supervisor, SupervisorOptions};
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use tokio_util::sync::CancellationToken;

/// The running service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Http(Arc<Parts>);

#[derive(Debug)]
pub struct Parts {
    pub service: Service,
    pub settings: Settings,
    pub sign_in: SignIn,
    pub events: Events,
    /// The amount of work that waits for people.
    pub(crate) inbox_watch: InboxWatch,
    /// Plans that are being written in the background.
    pub(super) planning_jobs: PlanningJobs,
    pub(super) limits: Limits,
    pub(super) strangers: Strangers,
    /// The keys of the requests that are being done.
    pub(super) working_on: WorkingOn,
    /// Executes runs while no caller waits for them.
    pub supervisor: Supervisor,
    pub health: Health,
    /// Cancelled when the service will stop: probes are told, and callers go elsewhere.
    draining: CancellationToken,
    /// Cancelled when the service stops: streams end, nothing new begins.
    pub stop: CancellationToken,
    /// Cancelled when it has to stop at once, regardless of what is in flight.
    pub stop_now: CancellationToken,
    /// The OpenAPI document, set once the routes are known.
    pub(super) openapi: OnceLock<super::openapi::Document>,
}

impl Http {
    /// Begins to execute what is to be executed; needs a runtime.
    pub fn new(service: Service, settings: Settings) -> Self {
        let figures = Metrics::of_this_process();
        figures.watch(&service.engine);
        let stop = CancellationToken::new();
        let health = Health::new(service.engine.clone(), figures);
        let draining = CancellationToken::new();
        let stopping = draining.clone();
        let stopped = stop.clone();
        health.require("service", move || {
            if stopping.is_cancelled() || stopped.is_cancelled() {
                Err("it is shutting down".to_owned())
            } else {
                Ok(())
            }
        });
        let background = SupervisorOptions {
            max_runs: settings.max_runs,
            files: Some(Arc::clone(&service.files)),
        };
        let limits = Limits::new(&settings, service.rates.clone());
        let owner = service.engine.owner().clone();
        tokio::spawn(limits.count_services(owner, stop.clone()));
        Self(Arc::new(Parts {
            sign_in: SignIn::default(),
            inbox_watch: InboxWatch::default(),
            planning_jobs: PlanningJobs::default(),
            limits,
            strangers: Strangers::default(),
            working_on: WorkingOn::default(),
            supervisor: Supervisor::start(service.engine.clone(), &background),
            health,
            events: Events::start(
                service.engine.clone(),
                settings.events.clone(),
                stop.clone(),
            ),
            draining,
            stop,
            stop_now: CancellationToken::new(),
            openapi: OnceLock::new(),
            service,
            settings,
        }))
    }
}

impl Http {
    /// Sessions that are confirmed with a passkey, or are about to be.
    pub(crate) fn confirmations(&self) -> Confirmations<'_> {
        Confirmations(&*self.service.notes)
    }

    /// People who sign in elsewhere and come back, to this service or to another one.
    pub(crate) async fn visits(&self) -> Result<Visits, StoreError> {
        let key = self.service.notes.shared_key(VISIT_KEY).await?;
        Ok(Visits::new(key))
    }

    /// Says that the service is not ready any more, and stops it a little later.
    pub async fn stop_after_drain(&self) {
        self.draining.cancel();
        tokio::time::sleep(self.settings.drain).await;
        self.stop.cancel();
    }
}

impl Deref for Http {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
