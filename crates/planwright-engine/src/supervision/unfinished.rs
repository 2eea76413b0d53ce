//! Finding the runs that were being executed when the last process ended.

use super::crew::Order;
use super::follow::{FAILED_PAUSE, root_of};
use crate::engine::Engine;
use crate::port::StoreError;
use planwright_core::id::{PlanId, RunId};
use planwright_core::journal::StreamName;
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Sends an order for every run that has not ended and does not wait for anybody.
pub(super) async fn find(engine: Engine, orders: mpsc::Sender<Order>, stopping: CancellationToken) {
    let searching = async {
        let plans = loop {
            match engine.store().plans().await {
                Ok(plans) => break plans,
                Err(error) => {
                    tracing::warn!(%error, "unfinished runs cannot be found");
                    tokio::time::sleep(FAILED_PAUSE).await;
                }
            }
        };
        let mut found = BTreeSet::new();
        for plan in plans {
            let plan = plan.status.plan;
            // One damaged plan does not keep the runs of the others from going on.
            if let Err(error) = search(&engine, &orders, &plan, &mut found).await {
                tracing::warn!(%plan, %error, "unfinished runs of this plan cannot be found");
            }
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = searching => {}
    }
}

async fn search(
    engine: &Engine,
    orders: &mpsc::Sender<Order>,
    plan: &PlanId,
    found: &mut BTreeSet<RunId>,
) -> Result<(), StoreError> {
    let store = engine.store();
    for run in store.runs(plan).await? {
        let StreamName::Run(id) = run.stream else { continue };
        // What was adjusted may have been agreed to meanwhile.
        if !matches!(run.status.status.as_str(), "executing" | "adjusted") {
            continue;
        }
        let root = root_of(&**store, &id).await?;
        if found.insert(root.clone()) {
            // Nobody takes orders any more: the supervisor is stopping.
            drop(orders.send(Order::GoOn(root)).await);
        }
    }
    Ok(())
}
