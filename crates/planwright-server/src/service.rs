//! What the service is made of.

use planwright_core::id::PlanId;
use planwright_engine::Engine;
use planwright_engine::port::{
    Answers, Passes, PasskeyVerifier, Passkeys, PlanFiles, RequestRates, ServiceNotes, Tokens,
};
use std::sync::Arc;

/// Everything a request may need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    pub engine: Engine,
    pub tokens: Arc<dyn Tokens>,
    /// Sessions and invitations.
    pub passes: Arc<dyn Passes>,
    /// The passkeys of people, and what checks them.
    pub passkeys: Arc<dyn Passkeys>,
    pub passkey_verifier: Arc<dyn PasskeyVerifier>,
    pub files: Arc<dyn PlanFiles>,
    /// Answers that are given again.
    pub answers: Arc<dyn Answers>,
    /// What services of one store leave for each other.
    pub notes: Arc<dyn ServiceNotes>,
    /// The rates that they have in common, if there can be several.
    pub rates: Option<Arc<dyn RequestRates>>,
}

impl Service {
    /// Brings the files of a plan up to date. That they could not be written is told and changes no
    /// outcome.
    pub async fn write_files(&self, plan: &PlanId) {
        if let Err(problem) = self.files.write(plan).await {
            tracing::warn!(%plan, problem, "the files of a plan are not up to date");
        }
    }
}
