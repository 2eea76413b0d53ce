//! The tools that workers have, learnt from the store.

use super::overseer::Workers;
use crate::port::{PublishedTool, StoreError};
use std::collections::BTreeMap;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often it is looked whether workers have other tools.
const PAUSE: Duration = Duration::from_secs(5);

/// The tools are read after so many looks in any case: a worker that died changes nothing about its row.
const LOOKS: u32 = 12;

/// Keeps the tools of workers up to date for as long as runs are executed in the background.
pub(crate) async fn follow_worker_tools(workers: Workers, stopping: CancellationToken) {
    if workers.context.settings.dispatch.capabilities.is_empty() {
        return;
    }
    let Some(offers) = workers.context.ports.offers.clone() else {
        return;
    };
    let mut looks: u32 = 0;
    let mut learned = None;
    loop {
        let version = offers.workers_version().await;
        let is_same = matches!((&version, &learned), (Ok(now), Some(before)) if now == before);
        if !is_same || looks >= LOOKS {
            looks = 0;
            learned = match workers.learn_tools().await {
                // Read before the tools were: what changed in between is read again.
                Ok(()) => version.ok(),
                Err(error) => {
                    tracing::debug!(%error, "the tools of workers cannot be read");
                    None
                }
            };
        }
        looks += 1;
        tokio::select! {
            () = stopping.cancelled() => return,
            () = tokio::time::sleep(PAUSE) => {}
        }
    }
}

impl Workers {
    /// Learns which tools the workers have whose capabilities this engine lets them carry out. Plans can name them from
    /// then on.
    pub async fn learn_tools(&self) -> Result<(), StoreError> {
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
        let tools = tools.into_values().map(PublishedTool::into_known_tool);
        context.worker_tools.learn(tools.collect());
        Ok(())
    }
}
