//! What every route is given.

use super::auth::SignIn;
use super::auth::Tickets;
use super::idempotency::WorkingOn;
use super::limits::{Limits, Strangers};
use super::settings::Settings;
use crate::Service;
use crate::events::Events;
use crate::observe::{Health, Metrics};
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
    pub tickets: Tickets,
    pub(super) limits: Limits,
    pub(super) strangers: Strangers,
    /// The keys of the requests that are being done.
    pub(super) working_on: WorkingOn,
    /// Executes runs while no caller waits for them.
    pub supervisor: Supervisor,
    pub health: Health,
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
        let stopping = stop.clone();
        health.require("service", move || {
            if stopping.is_cancelled() {
                Err("it is shutting down".to_owned())
            } else {
                Ok(())
            }
        });
        let background = SupervisorOptions {
            max_runs: settings.max_runs,
            files: Some(Arc::clone(&service.files)),
        };
        Self(Arc::new(Parts {
            sign_in: SignIn::default(),
            tickets: Tickets::default(),
            limits: Limits::new(&settings),
            strangers: Strangers::default(),
            working_on: WorkingOn::default(),
            supervisor: Supervisor::start(service.engine.clone(), &background),
            health,
            events: Events::start(
                service.engine.clone(),
                settings.events.clone(),
                stop.clone(),
            ),
            stop,
            stop_now: CancellationToken::new(),
            openapi: OnceLock::new(),
            service,
            settings,
        }))
    }
}

impl Deref for Http {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
