//! Whether the broker answers, and what it gave up.

use super::{CheckVerdict, Diagnosis, to_millis};
use crate::terminal::counts::count_of;
use crate::workspace::app::CommandContext;
use crate::workspace::broker_address::{find_broker, open_broker};
use serde::Serialize;
use std::time::Instant;

/// A broker that answered.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BrokerFacts {
    /// Without its password.
    address: String,
    latency_ms: f64,
    /// Notices that were given up: `queue list` names them.
    dead: u64,
}

/// Asks the broker, if there is one. Steps are offered in the store as well, so that its absence is only slower.
pub(super) async fn check_broker(diagnosis: &mut Diagnosis, context: &CommandContext) {
    let address = match find_broker(context, None) {
        Ok(Some(address)) => address,
        Ok(None) => return,
        Err(failure) => {
            return diagnosis.note("broker", CheckVerdict::Fail, failure.message, failure.hint);
        }
    };
    let place = address.to_string();
    let started = Instant::now();
    let states = async {
        let capabilities: Vec<String> =
            context.config.dispatch().capabilities.into_iter().collect();
        open_broker(address)?.states(&capabilities).await
    };
    match states.await {
        Ok(states) => {
            let latency = to_millis(started.elapsed());
            let dead: u64 = states.iter().map(|state| state.dead).sum();
            let message = format!("{place} answered after {latency:.1} ms");
            diagnosis.note("broker", CheckVerdict::Ok, message, None);
            diagnosis.broker = Some(BrokerFacts {
                address: place,
                latency_ms: latency,
                dead,
            });
            if dead > 0 {
                let message = format!("{} given up", count_of(dead, "notice was", "notices were"));
                let hint = "To list them: planwright queue list".to_owned();
                diagnosis.note("queues", CheckVerdict::Warn, message, Some(hint));
            }
        }
        Err(error) => {
            let hint = "Workers find steps in the store meanwhile, only later. Start the broker, or change [dispatch] url";
            diagnosis.note(
                "broker",
                CheckVerdict::Fail,
                error.to_string(),
                Some(hint.to_owned()),
            );
        }
    }
}
