//! What every route is given.

use super::settings::Settings;
use super::sign_in::SignIn;
use crate::Service;
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
    /// Executes runs while nobody waits for them.
    pub supervisor: Supervisor,
    /// Cancelled when the service stops: streams end, nothing new begins.
    pub stop: CancellationToken,
    /// Cancelled when it has to stop at once, whatever is in flight.
    pub stop_now: CancellationToken,
    /// The OpenAPI document, set once the routes are known.
    pub(super) openapi: OnceLock<super::openapi::Document>,
}

impl Http {
    /// Begins to execute what is to be executed; needs a runtime.
    pub fn new(service: Service, settings: Settings) -> Self {
        let (stop, stop_now) = (CancellationToken::new(), CancellationToken::new());
        let supervisor = Supervisor::start(service.engine.clone(), &SupervisorOptions::default());
        let sign_in = SignIn::default();
        Self(Arc::new(Parts {
            service,
            settings,
            sign_in,
            supervisor,
            stop,
            stop_now,
            openapi: OnceLock::new(),
        }))
    }
}

impl Deref for Http {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
