//! What `GET /settings/operator` shows of this program.

use super::webhooks::describe_webhook;
use crate::command::setup::secrets::probe_secrets;
use crate::trust::TrustState;
use crate::workspace::app::App;
use crate::workspace::servers::ListedServer;
use planwright_adapters::mcp::{ServerState, ServerStatus};
use planwright_engine::port::BoxFuture;
use planwright_server::http::{
    OperatorSecret, OperatorServer, OperatorServerState, OperatorSettings, OperatorView,
    OperatorWebhook,
};

/// Reads it from the program as it runs.
#[derive(Debug)]
pub(super) struct RunningProgram(pub(super) App);

impl OperatorView for RunningProgram {
    fn look(&self) -> BoxFuture<'_, Result<OperatorSettings, String>> {
        Box::pin(self.read())
    }
}

impl RunningProgram {
    async fn read(&self) -> Result<OperatorSettings, String> {
        let app = &self.0;
        let config = &app.context.config;
        let statuses = app.tools.remote().status();
        let servers = app.roster.servers.iter();
        let servers = servers.map(|server| server_line(server, &statuses));
        let mut webhooks = Vec::new();
        for webhook in app.webhooks().map_err(|failure| failure.message)? {
            let line = describe_webhook(app, &webhook).await;
            webhooks.push(line.map_err(|failure| failure.message)?);
        }
        let secrets = config.secrets(&app.context.workspace.root);
        let secrets = secrets.map_err(|failure| failure.message)?;
        let names = secrets.names();
        let secrets = probe_secrets(&secrets, names).await.into_iter();
        Ok(OperatorSettings {
            policy: config.policy_text()?,
            servers: servers.collect(),
            webhooks: webhooks.into_iter().map(OperatorWebhook::from).collect(),
            secrets: secrets.map(OperatorSecret::from).collect(),
        })
    }
}

fn server_line(server: &ListedServer, statuses: &[ServerStatus]) -> OperatorServer {
    let status = statuses.iter().find(|status| status.name == server.name);
    let mut line = OperatorServer {
        name: server.name.clone(),
        source: server.source.to_string(),
        launch: server.launch.line(),
        trusted: server.trusted == TrustState::Trusted,
        state: OperatorServerState::Idle,
        calls_itself: None,
        tools: None,
        problem: server.obstacle().map(|(reason, _)| reason),
        log: None,
    };
    match status.map(|status| &status.state) {
        _ if line.problem.is_some() => line.state = OperatorServerState::NotReady,
        None | Some(ServerState::Idle) => {}
        Some(ServerState::Connected(connected)) => {
            line.state = OperatorServerState::Connected;
            line.calls_itself.clone_from(&connected.calls_itself);
            line.tools = Some(connected.tools);
        }
        Some(ServerState::Failed { reason, stderr }) => {
            line.state = OperatorServerState::Failed;
            line.problem = Some(reason.clone());
            line.log = Some(stderr.clone()).filter(|log| !log.is_empty());
        }
    }
    line
}
