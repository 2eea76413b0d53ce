//! Looks after plans while the service runs: what time brings about is noted when it is due.

use super::state::Http;
use std::time::Duration;

/// Plans are looked at no more often than this, however soon something is due.
const SHORTEST: Duration = Duration::from_secs(30);

/// And no less often than this: other processes change things too.
const LONGEST: Duration = Duration::from_mins(10);

/// Notes what is due, until the service stops.
pub(super) async fn tend(http: Http) {
    loop {
        let pause = match http.service.engine.maintenance().tend().await {
            Ok(tended) => {
                for notice in &tended.notices {
                    tracing::info!(plan = %notice.plan(), "{notice}");
                    http.service.write_files(notice.plan()).await;
                }
                let now = http.service.engine.now();
                tended
                    .next_at
                    .map_or(LONGEST, |at| at.since(now).clamp(SHORTEST, LONGEST))
            }
            Err(error) => {
                tracing::warn!(%error, "plans could not be looked after");
                LONGEST
            }
        };
        tokio::select! {
            () = http.stop.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
