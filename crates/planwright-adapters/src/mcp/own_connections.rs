//! Connections of their own, for a server that plans do not share: one for each run that uses it,
//! with a process or session behind each.

use super::server::Server;
use futures::future;
use planwright_core::id::RunId;
use planwright_core::principal::Principal;
use planwright_engine::port::CallError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::task::JoinHandle;

/// The servers that stand for one run each. They are opened by the first call, as every server is.
#[derive(Debug, Default)]
pub(super) struct OwnConnections(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    open: BTreeMap<RunId, Vec<Own>>,
    /// Connections whose processes are ending.
    closing: Vec<JoinHandle<()>>,
}

/// A connection of a run, and the person it is signed in as. Below one run there can be runs in the
/// name of others, which never use its sign-in.
#[derive(Debug)]
struct Own {
    person: Option<Principal>,
    server: Arc<Server>,
}

impl OwnConnections {
    /// The server of one run, made from the one that all runs see, if there may be another.
    pub(super) fn of(
        &self,
        shared: &Server,
        run: &RunId,
        person: Option<&Principal>,
    ) -> Result<Arc<Server>, CallError> {
        let State { open, .. } = &mut *self.lock();
        let of_run = open.get(run).into_iter().flatten();
        if let Some(own) = of_run.into_iter().find(|own| own.person.as_ref() == person) {
            return Ok(Arc::clone(&own.server));
        }
        let limit = shared.spec.max_connections;
        if open.values().map(Vec::len).sum::<usize>() >= limit {
            let name = &shared.spec.name;
            return Err(CallError::Unavailable(format!(
                "the server {name} has {limit} connections, one for each run that uses it, and \
                 takes no more: try again when one of these runs is over, or raise \
                 `max_connections` in [servers.{name}]"
            )));
        }
        let server = Arc::new(shared.for_one_run(person.cloned()));
        open.entry(run.clone()).or_default().push(Own {
            person: person.cloned(),
            server: Arc::clone(&server),
        });
        Ok(server)
    }

    /// Closes the connection of a run that is over. This does not wait for the process to end.
    pub(super) fn end(&self, run: &RunId) {
        let mut state = self.lock();
        let Some(own) = state.open.remove(run) else {
            return;
        };
        state.closing.retain(|closing| !closing.is_finished());
        // Without a runtime this process is ending, and the process behind the connection with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let closing = own
                .into_iter()
                .map(|own| runtime.spawn(async move { own.server.close().await }));
            state.closing.extend(closing);
        }
    }

    /// Closes all of them, and waits for their processes to be gone.
    pub(super) async fn close(&self) {
        let State { open, closing } = std::mem::take(&mut *self.lock());
        future::join(
            future::join_all(open.values().flatten().map(|own| own.server.close())),
            future::join_all(closing),
        )
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
