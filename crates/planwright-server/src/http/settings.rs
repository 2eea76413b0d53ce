//! What the operator decided about the service itself.

use super::auth::{AllowedHost, SingleSignOn};
use super::base_path::BasePath;
use super::operator::OperatorView;
use super::routes::mcp::McpDoor;
use crate::events::EventsOptions;
use planwright_engine::SupervisorOptions;
use planwright_engine::port::ServerSignIns;
use std::sync::Arc;
use std::time::Duration;

/// Everything has a limit. The defaults suit a team.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Names under which the service may be asked for.
    pub hosts: Vec<AllowedHost>,
    /// Web origins other than the service's own that may use it.
    pub origins: Vec<String>,
    /// The service's own pages are loaded over TLS.
    pub https: bool,
    /// Browsers reach the service over TLS, its own or that of a proxy in front of it.
    pub encrypted: bool,
    /// The path under which a proxy shows the service.
    pub base_path: BasePath,
    /// The identity provider that people may sign in with.
    pub single_sign_on: Option<Arc<SingleSignOn>>,
    /// The servers of tools that people may sign in to.
    pub server_sign_ins: Option<Arc<dyn ServerSignIns>>,
    /// What those who administer the service can look at.
    pub operator: Option<Arc<dyn OperatorView>>,
    /// The figures are shown without a token: a scraper inside the operator's network has none.
    pub metrics_public: bool,
    pub max_connections: usize,
    /// Connections of one address that have no request, or that have shown no token; addresses of this machine may have four
    /// times as many.
    pub max_idle_per_address: usize,
    /// A connection that has no request for this long is closed.
    pub idle_timeout: Duration,
    /// Requests that are worked on at once; more are told to come again.
    pub max_in_flight: usize,
    /// Requests of one principal that are worked on at once.
    pub max_in_flight_per_principal: usize,
    /// Runs that are executed at once; others wait for their turn.
    pub max_runs: usize,
    /// Requests of one principal per second, over time.
    pub requests_per_second: u32,
    /// Requests of one principal at once.
    pub burst: u32,
    pub max_body_bytes: usize,
    /// A client that sends or reads nothing for this long is cut off.
    pub stall_timeout: Duration,
    /// The time the service goes on answering once it said that it is not ready any more.
    pub drain: Duration,
    /// The time requests and calls in flight may take once the service is told to stop.
    pub grace: Duration,
    pub events: EventsOptions,
    /// Answers clients of the Model Context Protocol.
    pub mcp: Option<Arc<dyn McpDoor>>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            hosts: Vec::new(),
            origins: Vec::new(),
            https: false,
            encrypted: false,
            base_path: BasePath::default(),
            single_sign_on: None,
            server_sign_ins: None,
            operator: None,
            metrics_public: false,
            max_connections: 1_024,
            max_idle_per_address: 64,
            idle_timeout: Duration::from_secs(15),
            max_in_flight: 256,
            max_in_flight_per_principal: 64,
            max_runs: SupervisorOptions::default().max_runs,
            requests_per_second: 200,
            burst: 1_000,
            max_body_bytes: 1 << 20,
            stall_timeout: Duration::from_secs(30),
            drain: Duration::ZERO,
            grace: Duration::from_secs(10),
            events: EventsOptions::default(),
            mcp: None,
        }
    }
}
