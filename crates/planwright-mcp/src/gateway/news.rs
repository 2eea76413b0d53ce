//! What servers tell by themselves, and which of it a client hears.

use super::server::GatewayServer;
use super::watches::Watch;
use crate::earlier_tasks::task_of;
use crate::subscription::stream_of;
use planwright_engine::port::ServerNews;
use rmcp::ErrorData;
use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::{
    Peer, RoleServer, ServiceError, SubscriptionContext, SubscriptionSendError, SubscriptionSink,
};
use std::time::Duration;
use tokio::sync::{broadcast, watch};

/// Resources that one client watches.
pub(super) const MAX_WATCHED: usize = 64;

/// The time after which it is looked whether a client is still there.
const BETWEEN_LOOKS: Duration = Duration::from_secs(10);

/// Something that a client may want to hear.
enum Change {
    Tools,
    Prompts,
    Resources,
    Resource { server: String, uri: String },
}

/// What happens at the servers, from now on.
pub(super) struct Ticker {
    tools: watch::Receiver<u64>,
    news: broadcast::Receiver<ServerNews>,
    /// Told after some of the news were missed.
    missed: Vec<Change>,
}

impl Ticker {
    pub(super) fn new(server: &GatewayServer) -> Self {
        Self {
            tools: server.offers.servers.changes(),
            news: server.offers.servers.news(),
            missed: Vec::new(),
        }
    }

    /// The next change. Nothing when the servers are gone.
    async fn next(&mut self) -> Option<Change> {
        if let Some(change) = self.missed.pop() {
            return Some(change);
        }
        tokio::select! {
            changed = self.tools.changed() => changed.ok().map(|()| Change::Tools),
            told = self.news.recv() => match told {
                Ok(ServerNews::Prompts) => Some(Change::Prompts),
                Ok(ServerNews::Resources) => Some(Change::Resources),
                Ok(ServerNews::Resource { server, uri }) => Some(Change::Resource { server, uri }),
                Err(broadcast::error::RecvError::Lagged(_)) => {
                    self.missed.push(Change::Prompts);
                    Some(Change::Resources)
                }
                Err(broadcast::error::RecvError::Closed) => None,
            },
        }
    }
}

impl GatewayServer {
    /// Tells a client of the earlier era, as long as it is there.
    pub(super) async fn tell_changes(self, mut ticker: Ticker, peer: Peer<RoleServer>) {
        // A client that went says nothing, and what it watched is not watched for ever.
        while !peer.is_transport_closed() {
            let Ok(change) = tokio::time::timeout(BETWEEN_LOOKS, ticker.next()).await else {
                continue;
            };
            let Some(change) = change else {
                return;
            };
            if self.tell_change(change, &peer).await.is_err() {
                return;
            }
        }
    }

    async fn tell_change(
        &self,
        change: Change,
        peer: &Peer<RoleServer>,
    ) -> Result<(), ServiceError> {
        match change {
            Change::Tools => peer.notify_tool_list_changed().await,
            Change::Prompts => peer.notify_prompt_list_changed().await,
            Change::Resources => peer.notify_resource_list_changed().await,
            Change::Resource { server, uri } if self.client.watches(&server, &uri) => {
                let updated = ResourceUpdatedNotificationParam::new(uri);
                peer.notify_resource_updated(updated).await
            }
            Change::Resource { .. } => Ok(()),
        }
    }

    /// Tells a modern client what it asked to hear, until it does not listen any more.
    pub(super) async fn tell_subscriber(
        &self,
        context: &SubscriptionContext,
    ) -> Result<(), ErrorData> {
        let mut ticker = Ticker::new(self);
        let wanted = context.accepted().resource_subscriptions.iter().flatten();
        let mut watches = Vec::new();
        let mut ours = Vec::new();
        for uri in wanted.take(MAX_WATCHED) {
            if stream_of(uri).is_some() {
                ours.extend(self.host.watch_resource(uri).await);
                continue;
            }
            if task_of(uri).is_some() {
                continue;
            }
            // One that is not there, or whose server does not tell of it, never changes.
            let Some(server) = self.offers.owner(uri).await else {
                continue;
            };
            watches.extend(self.watches.watch(&server, uri).await.ok());
        }
        let tell = |uri: String| {
            let sink = context.sink().clone();
            async move { sink.notify_resource_updated(uri).await.is_ok() }
        };
        let mut plans = std::pin::pin!(self.host.tell_changes(ours, tell));
        let mut tasks = std::pin::pin!(self.plans.tell_tasks(context));
        loop {
            let change = tokio::select! {
                () = context.cancelled() => return Ok(()),
                () = &mut plans => return Ok(()),
                () = &mut tasks => return Ok(()),
                change = ticker.next() => change,
            };
            let Some(change) = change else {
                return Ok(());
            };
            match send(change, context.sink(), &watches).await {
                Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_)) => {}
                Err(_) => return Ok(()),
            }
        }
    }
}

async fn send(
    change: Change,
    sink: &SubscriptionSink,
    watches: &[Watch],
) -> Result<(), SubscriptionSendError> {
    match change {
        Change::Tools => sink.notify_tool_list_changed().await,
        Change::Prompts => sink.notify_prompt_list_changed().await,
        Change::Resources => sink.notify_resource_list_changed().await,
        Change::Resource { server, uri } => {
            if watches.iter().any(|watch| watch.is_of(&server, &uri)) {
                return sink.notify_resource_updated(uri).await;
            }
            Ok(())
        }
    }
}
