//! The outside of one engine, as traits.

use super::grouped_store::GroupedStore;
use crate::port::{
    Artifacts, Clock, Executors, Ids, Leftovers, Model, Offers, Outbox, RetentionStore, Secrets,
    StepLogs, Store, Surroundings, Tokens, Tools,
};
use std::sync::Arc;

/// The adapters an engine was built with.
#[derive(Debug, Clone)]
pub(crate) struct Ports {
    pub(crate) store: Arc<dyn Store>,
    /// The same store, for records of reads.
    pub(crate) grouped: Arc<GroupedStore>,
    pub(crate) artifacts: Arc<dyn Artifacts>,
    /// The ports that bound the store. Without them nothing is sealed or removed.
    pub(crate) retention: Option<RetentionPorts>,
    /// The tokens of the service. Without them no approval can be lost with its giver's access.
    pub(crate) tokens: Option<Arc<dyn Tokens>>,
    pub(crate) tools: Arc<dyn Tools>,
    /// The offers to workers. Without them every call is made here.
    pub(crate) offers: Option<Arc<dyn Offers>>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) model: Arc<dyn Model>,
    /// The workspace in which plans will work.
    pub(crate) surroundings: Arc<dyn Surroundings>,
    /// Programs that work on agent steps.
    pub(crate) executors: Arc<dyn Executors>,
    /// The processes that interrupted calls left running.
    pub(crate) leftovers: Arc<dyn Leftovers>,
    /// The lines that servers log during calls.
    pub(crate) step_logs: Arc<dyn StepLogs>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) ids: Arc<dyn Ids>,
}

/// The outside of retention.
#[derive(Debug, Clone)]
pub(crate) struct RetentionPorts {
    pub(crate) store: Arc<dyn RetentionStore>,
    pub(crate) outbox: Arc<dyn Outbox>,
    /// The webhooks that are told what happens, by name.
    pub(crate) endpoints: Vec<String>,
}
