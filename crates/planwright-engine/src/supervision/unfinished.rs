//! Finding the runs that were being executed when the last process ended.

use super::crew::Order;
use super::follow::root_of;
use crate::engine::Engine;
use crate::port::StoreError;
use planwright_core::journal::StreamName;
use std::collections::BTreeSet;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Sends an order for every run that has not ended and does not wait for anybody.
pub(super) async fn find(engine: Engine, orders: mpsc::Sender<Order>, stopping: CancellationToken) {
    let searching = async {
        if let Err(error) = search(&engine, &orders).await {
            tracing::warn!(%error, "unfinished runs cannot be found");
        }
    };
    tokio::select! {
        () = stopping.cancelled() => {}
        () = searching => {}
    }
}

async fn search(engine: &Engine, orders: &mpsc::Sender<Order>) -> Result<(), StoreError> {
    let store = engine.store();
    let mut found = BTreeSet::new();
    for plan in store.plans().await? {
        for run in store.runs(&plan.status.plan).await? {
            let StreamName::Run(id) = run.stream else { continue };
            if run.status.status != "executing" {
                continue;
            }
            let root = root_of(&**store, &id).await?;
            if found.insert(root.clone()) && orders.send(Order::GoOn(root)).await.is_err() {
                return Ok(());
            }
        }
    }
    Ok(())
}
