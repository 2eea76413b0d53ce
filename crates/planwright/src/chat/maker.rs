//! Plans that the model of a conversation has made.

use crate::wire_up::App;
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::trace::TraceId;
use planwright_engine::PlanMaker;
use planwright_engine::port::BoxFuture;
use tokio_util::sync::CancellationToken;

/// Asks the planner, with what is known about the workspace.
#[derive(Debug)]
pub(super) struct Planner {
    #[expect(dead_code, reason = "the planner comes later")]
    app: App,
}

impl Planner {
    pub(super) fn new(app: App) -> Self {
        Self { app }
    }
}

impl PlanMaker for Planner {
    fn make(
        &self,
        _: String,
        _: Principal,
        _: TraceId,
        _: CancellationToken,
    ) -> BoxFuture<'static, Result<Review, String>> {
        Box::pin(std::future::ready(Err("this version cannot make plans".to_owned())))
    }
}
