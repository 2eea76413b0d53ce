//! How many calls may be in flight over all runs: globally, per server, per tool, and one writer
//! per server.

use super::isolation::Presences;
use crate::port::Tools;
use planwright_core::tool::KnownTool;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The operator's limits over all runs of this process.
#[derive(Debug, Clone)]
pub struct ConcurrencyLimits {
    /// Most calls at once, over all runs.
    pub global: usize,
    /// By server name.
    pub per_server: BTreeMap<String, usize>,
    /// By full tool name.
    pub per_tool: BTreeMap<String, usize>,
}

impl Default for ConcurrencyLimits {
    fn default() -> Self {
        Self {
            global: 4096,
            per_server: BTreeMap::new(),
            per_tool: BTreeMap::new(),
        }
    }
}

/// Counts the calls in flight. A run that was not admitted waits for [`Limiter::freed`].
#[derive(Debug)]
pub(crate) struct Limiter {
    limits: ConcurrencyLimits,
    counts: Mutex<Counts>,
    pub(super) presences: Mutex<Presences>,
    /// Counts the calls that ended, so that no run misses one between being refused and waiting.
    freed: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct Counts {
    global: usize,
    servers: BTreeMap<String, usize>,
    tools: BTreeMap<String, usize>,
    writers: BTreeMap<String, usize>,
}

/// The needs of one call beside the configured limits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Demand {
    pub(crate) server_limit: Option<usize>,
    pub(crate) serial_writes: bool,
}

impl Demand {
    /// Of a call that a worker makes.
    pub(crate) const NONE: Self = Self {
        server_limit: None,
        serial_writes: false,
    };

    /// Of a call that is made with these tools.
    pub(crate) fn of(tools: &dyn Tools, server: &str) -> Self {
        Self {
            server_limit: tools.server_limit(server),
            serial_writes: tools.serial_writes(server),
        }
    }
}

/// The right to have one call in flight. Given back when dropped.
#[derive(Debug)]
pub(crate) struct Permit {
    limiter: Arc<Limiter>,
    server: String,
    tool: Option<String>,
    writes: bool,
}

impl Limiter {
    pub(crate) fn new(limits: ConcurrencyLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            counts: Mutex::default(),
            presences: Mutex::default(),
            freed: watch::Sender::new(0),
        })
    }

    /// Admits a call that a worker is making already: it is counted, and not refused.
    pub(crate) fn admit_carried(self: &Arc<Self>, server: &str) -> Permit {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.global += 1;
        increment(&mut counts.servers, server);
        drop(counts);
        Permit {
            limiter: Arc::clone(self),
            server: server.to_owned(),
            tool: None,
            writes: false,
        }
    }

    /// Admits one call, or says no without waiting.
    pub(crate) fn try_admit(self: &Arc<Self>, tool: &KnownTool, demand: Demand) -> Option<Permit> {
        let server = &tool.name.server;
        let writes = demand.serial_writes && !tool.is_read_only();
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_full(&counts, tool, demand) {
            return None;
        }
        let full_name = (!self.limits.per_tool.is_empty()).then(|| tool.name.to_string());
        let tool = full_name.filter(|name| self.limits.per_tool.contains_key(name));
        counts.global += 1;
        increment(&mut counts.servers, server);
        if let Some(tool) = &tool {
            increment(&mut counts.tools, tool);
        }
        if writes {
            increment(&mut counts.writers, server);
        }
        drop(counts);
        Some(Permit {
            limiter: Arc::clone(self),
            server: server.clone(),
            tool,
            writes,
        })
    }

    /// Returns whether a call would be admitted now.
    pub(crate) fn would_admit(&self, tool: &KnownTool, demand: Demand) -> bool {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        !self.is_full(&counts, tool, demand)
    }

    fn is_full(&self, counts: &Counts, tool: &KnownTool, demand: Demand) -> bool {
        let server = &tool.name.server;
        let of_server = self.limits.per_server.get(server).copied();
        let per_server = of_server.or(demand.server_limit);
        let writes = demand.serial_writes && !tool.is_read_only();
        let count =
            |map: &BTreeMap<String, usize>, key: &str| map.get(key).copied().unwrap_or_default();
        let is_tool_full = || {
            let name = tool.name.to_string();
            let limit = self.limits.per_tool.get(&name);
            limit.is_some_and(|limit| count(&counts.tools, &name) >= *limit)
        };
        counts.global >= self.limits.global
            || per_server.is_some_and(|limit| count(&counts.servers, server) >= limit)
            || writes && count(&counts.writers, server) > 0
            || !self.limits.per_tool.is_empty() && is_tool_full()
    }

    /// Wakes the runs that were not admitted.
    pub(super) fn notify_freed(&self) {
        self.freed.send_modify(|ended| *ended += 1);
    }

    /// Changes whenever a call has ended.
    pub(crate) fn watch_freed(&self) -> watch::Receiver<u64> {
        self.freed.subscribe()
    }
}

fn increment(map: &mut BTreeMap<String, usize>, key: &str) {
    match map.get_mut(key) {
        Some(count) => *count += 1,
        None => {
            map.insert(key.to_owned(), 1);
        }
    }
}

fn decrement(map: &mut BTreeMap<String, usize>, key: &str) {
    if let Some(count) = map.get_mut(key) {
        *count -= 1;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut counts = self
            .limiter
            .counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        counts.global -= 1;
        decrement(&mut counts.servers, &self.server);
        if let Some(tool) = &self.tool {
            decrement(&mut counts.tools, tool);
        }
        if self.writes {
            decrement(&mut counts.writers, &self.server);
        }
        drop(counts);
        self.limiter.notify_freed();
    }
}
