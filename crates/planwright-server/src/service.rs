//! What the service is made of.

use planwright_engine::Engine;
use planwright_engine::port::{PlanFiles, Tokens};
use std::sync::Arc;

/// Everything a request may need. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Service {
    pub engine: Engine,
    pub tokens: Arc<dyn Tokens>,
    pub files: Arc<dyn PlanFiles>,
}
