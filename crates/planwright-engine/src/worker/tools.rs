//! The tools that workers have, learnt from the store.

use crate::engine::Engine;
use crate::port::{PublishedTool, StoreError};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is looked which tools workers have.
const PAUSE: Duration = Duration::from_secs(5);

/// Keeps the tools of workers up to date for as long as runs are executed in the background.
pub(crate) async fn follow_worker_tools(engine: Engine, stopping: CancellationToken) {
    if engine.context.settings.dispatch.capabilities.is_empty() {
        return;
    }
    loop {
        if let Err(error) = engine.learn_worker_tools().await {
            tracing::debug!(%error, "the tools of workers cannot be read");
        }
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

impl Engine {
    /// Learns which tools the workers have whose capabilities this engine lets them carry out. Plans can name them from
    /// then on.
    pub async fn learn_worker_tools(&self) -> Result<(), StoreError> {
        let context = &self.context;
        let capabilities = &context.settings.dispatch.capabilities;
        let Some(offers) = context
            .ports
            .offers
            .as_ref()
            .filter(|_| !capabilities.is_empty())
        else {
            return Ok(());
        };
        // Of several workers with a tool of one name, the one that began last says what it is, before those that are gone.
        let mut workers = offers.workers().await?;
        workers.sort_by_key(|worker| (worker.is_alive, worker.started_at));
        let mut tools: BTreeMap<String, PublishedTool> = BTreeMap::new();
        for worker in workers {
            let own = &worker.record.capabilities;
            if own.iter().any(|name| capabilities.contains(name)) {
                let published = worker.record.tools.into_iter();
                tools.extend(published.map(|tool| (tool.definition.tool_name().to_string(), tool)));
            }
        }
        let tools = tools.into_values().map(PublishedTool::known);
        context.worker_tools.learn(tools.collect());
        Ok(())
    }
}
