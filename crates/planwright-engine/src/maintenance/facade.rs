//! The facade `engine.maintenance()`.

use super::report::MaintenanceReport;
use crate::context::Context;
use crate::journal::load::LoadError;
use crate::review::plans::Plans;
use crate::run::runs::Runs;
use std::sync::Arc;

/// Notes what time does to plans and runs.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// engine.maintenance().check_store().await?;
/// assert!(engine.maintenance().run_maintenance().await?.notices.is_empty());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Maintenance {
    pub(super) context: Arc<Context>,
}

impl Maintenance {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
        }
    }

    pub(super) fn plans(&self) -> Plans {
        Plans::new(&self.context)
    }

    pub(super) fn runs(&self) -> Runs {
        Runs::new(&self.context)
    }

    /// Notes everything that is due. What cannot be read or written is left for the next time; one
    /// damaged plan does not keep the others from being looked at. Only plans and runs that
    /// something can be due for are looked at.
    pub async fn run_maintenance(&self) -> Result<MaintenanceReport, LoadError> {
        let mut report = MaintenanceReport::default();
        self.backfill_statuses().await?;
        self.expire_runs(&mut report).await?;
        self.expire_plans(&mut report).await?;
        self.put_away(&mut report).await?;
        self.seal_along(&mut report).await;
        Ok(report)
    }
}
