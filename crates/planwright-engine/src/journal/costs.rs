//! The costs of a plan: writing its versions, and asking models in its runs.

use crate::journal::journals::Journals;
use crate::journal::load::{LoadError, readable_runs};
use planwright_core::journal::decode;
use planwright_core::review::Review;
use planwright_core::run::RunEvent;
use planwright_core::stats::ModelCosts;

/// Entries that are read at once.
const PAGE: usize = 1_000;
/// The kind of entries about models, as it is written. Others are not decoded.
const KIND: &[u8] = b"\"model_used\"";

impl Journals {
    /// Sums up the tokens and costs of asking models for this plan so far, by model.
    pub async fn model_costs(&self, review: &Review) -> Result<ModelCosts, LoadError> {
        let mut costs = ModelCosts::default();
        let planned = review
            .versions()
            .iter()
            .filter_map(|version| version.planning.as_deref());
        planned
            .flat_map(|planning| &planning.used)
            .for_each(|used| costs.record(used));
        for run in readable_runs(&*self.context.ports.store, review).await? {
            let mut after = 0;
            loop {
                let records = self
                    .context
                    .ports
                    .store
                    .read(&run.stream, after, PAGE)
                    .await?;
                let Some(last) = records.last() else { break };
                after = last.seq;
                for record in records.iter().filter(|record| mentions(&record.body)) {
                    // What cannot be read is reported when the run is loaded.
                    let entry = decode::<RunEvent>(record).ok();
                    if let Some(RunEvent::ModelUsed { used, .. }) = entry.map(|entry| entry.event) {
                        costs.record(&used);
                    }
                }
            }
        }
        Ok(costs)
    }
}

fn mentions(body: &[u8]) -> bool {
    body.windows(KIND.len()).any(|window| window == KIND)
}
