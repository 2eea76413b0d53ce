//! `/mcp` and `/mcp/gateway` of the service: the same servers as on standard input and output.

use super::mcp::{build_host, gateway_settings, upstream};
use crate::workspace::app::{App, CommandContext};
use bytes::Bytes;
use planwright_core::policy::Permission;
use planwright_engine::port::BoxFuture;
use planwright_mcp::{
    GatewayServer, HttpAnswer, HttpCaller, HttpRefusal, HttpServer, MAX_BODY, PlanServer,
};
use planwright_server::http::{Caller, McpAddress, McpDoor, Problem, ProblemCode};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Both servers.
#[derive(Debug)]
pub(super) struct HttpDoor {
    plans: Arc<HttpServer<PlanServer>>,
    gateway: Arc<HttpServer<GatewayServer>>,
    sessions: GatewayServer,
}

impl HttpDoor {
    /// Serves until `stop` is cancelled. The person who is asked is the owner of the token: nothing
    /// is asked of the account that runs the service.
    pub(super) fn new(
        app: &App,
        context: &CommandContext,
        stop: &CancellationToken,
        page: Option<String>,
    ) -> Self {
        let host = || build_host(app, None, page.clone());
        let sessions = GatewayServer::new(host(), gateway_settings(app, context), upstream(app));
        let plans = PlanServer::new(host());
        let clients = sessions.clone();
        Self {
            plans: Arc::new(HttpServer::new(move || plans.clone(), stop.clone())),
            gateway: Arc::new(HttpServer::new(move || clients.for_client(), stop.clone())),
            sessions,
        }
    }

    /// Ends the sessions of all clients.
    pub(super) async fn close(&self) {
        self.sessions.close().await;
    }
}

impl McpDoor for HttpDoor {
    fn max_bytes(&self) -> usize {
        MAX_BODY
    }

    fn handle(
        &self,
        address: McpAddress,
        caller: Caller,
        allowed: Vec<Permission>,
        request: http::Request<Bytes>,
    ) -> BoxFuture<'static, Result<HttpAnswer, Problem>> {
        let plans = Arc::clone(&self.plans);
        let gateway = Arc::clone(&self.gateway);
        let caller = HttpCaller {
            principal: caller.principal,
            allowed,
            credential: caller.credential,
        };
        Box::pin(async move {
            let answered = match address {
                McpAddress::Plans => plans.handle(caller, request).await,
                McpAddress::Gateway => gateway.handle(caller, request).await,
            };
            answered.map_err(refuse)
        })
    }
}

fn refuse(refusal: HttpRefusal) -> Problem {
    match refusal {
        // The status by which the protocol tells a client to begin again.
        HttpRefusal::NoSession => Problem::not_found(refusal.to_string()),
        HttpRefusal::TooManySessions => {
            Problem::later(ProblemCode::TooBusy, refusal.to_string(), 5)
        }
    }
}
