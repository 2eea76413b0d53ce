//! Resources of servers whose changes clients want to hear of.

use planwright_engine::port::{ServerError, ServerQuestion, Servers};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What all clients watch. A server is asked once for each address, as long as anyone wants it.
#[derive(Debug)]
pub(super) struct Watches {
    servers: Arc<dyn Servers>,
    wanted: Mutex<BTreeMap<(String, String), usize>>,
}

/// One client's wish to hear of one resource, until it is dropped.
#[derive(Debug)]
pub(super) struct Watch {
    watches: Arc<Watches>,
    server: String,
    uri: String,
}

impl Watches {
    pub(super) fn new(servers: Arc<dyn Servers>) -> Self {
        Self {
            servers,
            wanted: Mutex::default(),
        }
    }

    pub(super) async fn watch(
        self: &Arc<Self>,
        server: &str,
        uri: &str,
    ) -> Result<Watch, ServerError> {
        let watch = Watch {
            watches: Arc::clone(self),
            server: server.to_owned(),
            uri: uri.to_owned(),
        };
        let is_first = {
            let mut wanted = self.wanted();
            let count = wanted.entry(watch.key()).or_default();
            *count += 1;
            *count == 1
        };
        if is_first {
            let question = ServerQuestion::Watch(uri.to_owned());
            self.servers.ask(server, question).await?;
        }
        Ok(watch)
    }

    fn wanted(&self) -> MutexGuard<'_, BTreeMap<(String, String), usize>> {
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    pub(super) fn is_of(&self, server: &str, uri: &str) -> bool {
        self.server == server && self.uri == uri
    }

    fn key(&self) -> (String, String) {
        (self.server.clone(), self.uri.clone())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut wanted = self.watches.wanted();
        let Some(count) = wanted.get_mut(&self.key()) else {
            return;
        };
        *count = count.saturating_sub(1);
        if *count > 0 {
            return;
        }
        wanted.remove(&self.key());
        drop(wanted);
        let question = ServerQuestion::Unwatch(self.uri.clone());
        let asking = self.watches.servers.ask(&self.server, question);
        // Without a runtime this process is ending, and the connection with it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { drop(asking.await) });
        }
    }
}
