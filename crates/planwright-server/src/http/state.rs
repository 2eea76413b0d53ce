//! What every route is given.

use super::background::Background;
use super::settings::Settings;
use super::sign_in::SignIn;
use crate::Service;
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
    /// Runs that go on while nobody waits for them.
    pub background: Background,
    /// Cancelled when the service stops: streams end, nothing new begins.
    pub stop: CancellationToken,
    /// The OpenAPI document, set once the routes are known.
    pub(super) openapi: OnceLock<super::openapi::Document>,
}

impl Http {
    pub fn new(service: Service, settings: Settings) -> Self {
        let stop = CancellationToken::new();
        let background = Background::new(service.clone());
        let sign_in = SignIn::default();
        Self(Arc::new(Parts { service, settings, sign_in, background, stop, openapi: OnceLock::new() }))
    }
}

impl Deref for Http {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}
