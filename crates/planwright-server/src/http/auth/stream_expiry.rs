//! Closes event streams whose token was revoked or has expired, or whose session is over.

use crate::http::state::Http;
use planwright_core::digest::Digest;
use planwright_core::time::Timestamp;
use planwright_engine::passes::valid_session;
use std::time::Duration;

/// Tokens are looked at no more often than this, however much happens in the store.
const SHORTEST: Duration = Duration::from_millis(300);

/// And no less often than this: clocks are set.
const LONGEST: Duration = Duration::from_mins(1);

/// Checks all tokens whenever a stream is opened, the store changes or a token expires, until the
/// service stops.
pub(crate) async fn close_expired_streams(http: Http) {
    let mut changes = http.service.engine.journals().changes();
    let opened_one = &http.events.open_streams().opened_one;
    loop {
        changes.mark_unchanged();
        let pause = close_expired(&http).await;
        let news = async {
            tokio::select! {
                changed = changes.changed() => changed.is_ok(),
                () = opened_one.notified() => true,
                () = tokio::time::sleep(pause) => true,
            }
        };
        let Some(true) = http.stop.run_until_cancelled(news).await else {
            return;
        };
        tokio::time::sleep(SHORTEST).await;
    }
}

/// Closes the streams of tokens that are no longer valid. Returns for how long the others are.
async fn close_expired(http: &Http) -> Duration {
    let now = http.service.engine.now();
    let mut pause = LONGEST;
    for credential in http.events.open_streams().credentials() {
        match remaining_validity(http, &credential, now).await {
            Some(rest) => pause = pause.min(rest),
            None => http.events.open_streams().close_streams(&credential),
        }
    }
    pause
}

/// Returns for how long a token or a session is still valid. A token that cannot be looked up counts
/// as invalid: its owner can connect again.
async fn remaining_validity(http: &Http, credential: &Digest, now: Timestamp) -> Option<Duration> {
    let tokens = &*http.service.tokens;
    let session = valid_session((&*http.service.passes, tokens), credential, now).await;
    let session = session
        .inspect_err(|error| tracing::warn!(%error, "a session could not be looked up"))
        .ok()?;
    if let Some(session) = session {
        return Some(session.expires_at.since(now));
    }
    let found = tokens.find(credential).await;
    let token = found
        .inspect_err(|error| tracing::warn!(%error, "a token could not be looked up"))
        .ok()??;
    let rest = token
        .expires_at
        .map_or(LONGEST, |expires_at| expires_at.since(now));
    token.is_valid(now).then_some(rest)
}
