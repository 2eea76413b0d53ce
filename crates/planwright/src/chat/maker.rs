//! Plans that the model of a conversation has made.

use planwright_core::planning::ContextText;
use planwright_core::principal::Principal;
use planwright_core::review::Review;
use planwright_core::trace::TraceId;
use planwright_engine::port::BoxFuture;
use planwright_engine::with_causes;
use planwright_engine::{CreateOrder, Engine, PlanMaker, PlanWish};
use tokio_util::sync::CancellationToken;

/// Asks the planner, with what is known about the workspace.
#[derive(Debug)]
pub(crate) struct Planner {
    engine: Engine,
    /// Only the tools of these servers; those of all when empty.
    servers: Vec<String>,
}

impl Planner {
    pub(crate) fn new(engine: Engine, servers: Vec<String>) -> Self {
        Self { engine, servers }
    }
}

impl PlanMaker for Planner {
    fn make(
        &self,
        wish: PlanWish,
        by: Principal,
        trace: TraceId,
        cancelled: CancellationToken,
    ) -> BoxFuture<'static, Result<Review, String>> {
        let engine = self.engine.clone();
        let PlanWish { goal, context } = wish;
        let mut order = CreateOrder::new(goal, by);
        let context = context.map(|text| ContextText {
            name: "What the conversation has found out".to_owned(),
            text,
        });
        order.options.context.extend(context);
        order.trace = Some(trace);
        order.options.servers = self.servers.clone();
        order.options.cancelled = cancelled;
        Box::pin(async move {
            let created = engine.planner().create(order).await;
            created
                .map(|created| created.review)
                .map_err(|error| with_causes(&error))
        })
    }
}
