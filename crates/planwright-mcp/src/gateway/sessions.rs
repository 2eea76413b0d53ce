//! The sessions of the clients of one gateway.

use planwright_engine::{Engine, OpenSessionError, Session, SessionTerms};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;

/// A session in which nothing was called for so long is ended; the next call begins another.
const IDLE: Duration = Duration::from_secs(30 * 60);
/// The time that calls under way get when the gateway ends.
const GRACE: Duration = Duration::from_secs(10);
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// One session per caller.
#[derive(Debug, Default)]
pub(super) struct Sessions(Mutex<BTreeMap<String, Held>>);

#[derive(Debug)]
struct Held {
    session: Arc<Session>,
    used: Instant,
}

impl Sessions {
    /// The session of a caller, begun on these terms if there is none.
    pub(super) async fn get(
        &self,
        key: &str,
        engine: &Engine,
        terms: impl FnOnce() -> SessionTerms,
    ) -> Result<Arc<Session>, OpenSessionError> {
        let mut sessions = self.0.lock().await;
        if let Some(held) = sessions.get_mut(key) {
            held.used = Instant::now();
            return Ok(Arc::clone(&held.session));
        }
        end_idle(&mut sessions);
        let opened = Box::pin(engine.sessions().open(terms())).await?;
        let session = Arc::new(opened);
        let held = Held {
            session: Arc::clone(&session),
            used: Instant::now(),
        };
        sessions.insert(key.to_owned(), held);
        Ok(session)
    }

    /// Ends all sessions, and waits for calls under way for a while. What they leave then is found in
    /// the journal like that of a process that was killed.
    pub(super) async fn close(&self) {
        let sessions = std::mem::take(&mut *self.0.lock().await);
        let since = Instant::now();
        for held in sessions.into_values() {
            let mut session = held.session;
            loop {
                match Arc::try_unwrap(session) {
                    Ok(last) => break last.close().await,
                    Err(used) if since.elapsed() < GRACE => {
                        session = used;
                        tokio::time::sleep(BETWEEN_LOOKS).await;
                    }
                    Err(_) => break,
                }
            }
        }
    }
}

/// Ends sessions that are not used any more, in the background. One that a person ended stays: its
/// caller does not get another by waiting.
fn end_idle(sessions: &mut BTreeMap<String, Held>) {
    let is_idle = |held: &Held| {
        held.used.elapsed() > IDLE
            && Arc::strong_count(&held.session) == 1
            && !held.session.is_over()
    };
    let idle: Vec<String> = sessions
        .iter()
        .filter(|(_, held)| is_idle(held))
        .map(|(key, _)| key.clone())
        .collect();
    for key in idle {
        let ended = sessions.remove(&key).map(|held| held.session);
        if let Some(session) = ended.and_then(Arc::into_inner) {
            tokio::spawn(session.close());
        }
    }
}
