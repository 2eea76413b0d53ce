//! Ends the streams of those who are no longer let in: a token was revoked or has expired, a
//! session is over.

use super::state::Http;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use std::time::Duration;

/// Tokens are looked at no more often than this, however much happens in the store.
const SHORTEST: Duration = Duration::from_millis(300);

/// And no less often than this: clocks are set.
const LONGEST: Duration = Duration::from_mins(1);

/// Looks whenever somebody came in, something in the store changed, or a token expires, until the
/// service stops.
pub(super) async fn watch(http: Http) {
    let mut changes = http.service.engine.journals().changes();
    let entered = &http.events.admission().entered;
    loop {
        changes.mark_unchanged();
        let pause = expel(&http).await;
        let news = async {
            tokio::select! {
                changed = changes.changed() => changed.is_ok(),
                () = entered.notified() => true,
                () = tokio::time::sleep(pause) => true,
            }
        };
        let Some(true) = http.stop.run_until_cancelled(news).await else {
            return;
        };
        tokio::time::sleep(SHORTEST).await;
    }
}

/// Ends what may no longer go on. Returns how long the rest is good at least.
async fn expel(http: &Http) -> Duration {
    let now = http.service.engine.now();
    let mut pause = LONGEST;
    for credential in http.events.admission().credentials() {
        match good_for(http, &credential, now).await {
            Some(rest) => pause = pause.min(rest),
            None => http.events.admission().expel(&credential),
        }
    }
    pause
}

/// For how long a token or a session is still good. What cannot be looked up is not: its owner can
/// come back.
async fn good_for(http: &Http, credential: &Digest, now: Timestamp) -> Option<Duration> {
    if let Some((_, expires_at)) = http.sign_in.kept_session(credential, now) {
        return Some(expires_at.since(now));
    }
    let found = http.service.tokens.find(credential).await;
    let token = found
        .inspect_err(|error| tracing::warn!(%error, "a token could not be looked up"))
        .ok()??;
    let rest = token
        .expires_at
        .map_or(LONGEST, |expires_at| expires_at.since(now));
    token.is_valid(now).then_some(rest)
}
