//! `serve`: the HTTP service over the plans of this workspace.

use super::mcp_door::HttpDoor;
use super::operator_view::RunningProgram;
use super::stop_signals::StopSignals;
use crate::command::setup::servers::find_known_client;
use crate::config::file::{FILE, ServeTable};
use crate::config::sign_in::read_oidc;
use crate::descriptors::connections_within_limit;
use crate::exit::{Exit, Failure};
use crate::workspace::app::{Access, App, CommandContext, user};
use crate::workspace::projections::WorkspaceFiles;
use crate::workspace::store_address::WholeStore;
use planwright_adapters::mcp::{ServiceServer, ServiceSignIns, Transport};
use planwright_adapters::postgres::PostgresStore;
use planwright_adapters::webauthn::WebAuthn;
use planwright_core::policy::Role;
use planwright_core::principal::PrincipalKind;
use planwright_engine::memory::MemoryNotes;
use planwright_engine::port::RequestRates;
use planwright_engine::webhooks::CourierWatch;
use planwright_server::Service;
use planwright_server::events::EventsOptions;
use planwright_server::http::{
    AllowedHost, BasePath, Http, ServeError, Settings, Tls, listen, page_is_built, secret, serve,
};
use planwright_server::observe::WebhookMetrics;
use serde_json::json;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Where the service listens unless it is told otherwise.
const DEFAULT_PORT: u16 = 7526;

/// How long a service behind a proxy goes on answering once it is told to stop.
const BEHIND_PROXY_DRAIN: Duration = Duration::from_secs(5);
const LONGEST_DRAIN: Duration = Duration::from_mins(10);

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen: ADDRESS:PORT, or :PORT on this machine only. Port 0 takes a free one.
    #[arg(long, value_name = "ADDR", value_parser = parse_address, default_value = "127.0.0.1:7526")]
    listen: SocketAddr,
    /// The certificate chain, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// The certificate's private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// A proxy in front of the service does the encryption: an address that others reach is fine
    /// without a certificate.
    #[arg(long)]
    behind_proxy: bool,
    /// A name or address that the service answers to, besides those of this machine. With a port,
    /// only that one.
    #[arg(long = "allow-host", value_name = "HOST")]
    allow_host: Vec<AllowedHost>,
    /// A web origin whose pages may use the service, besides its own.
    #[arg(long = "allow-origin", value_name = "ORIGIN")]
    allow_origin: Vec<String>,
    /// The path under which a proxy shows the service, such as /planwright. The proxy may take it off
    /// the requests or leave it on.
    #[arg(long, value_name = "PATH")]
    base_path: Option<BasePath>,
}

fn parse_address(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix(':') {
        let port = port.parse().map_err(|_| format!("`{port}` is no port"))?;
        return Ok((Ipv4Addr::LOCALHOST, port).into());
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Ok((ip, DEFAULT_PORT).into());
    }
    let local = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"));
    let text = local.as_deref().unwrap_or(text);
    text.parse()
        .map_err(|_| format!("`{text}` is no address: ADDRESS:PORT or :PORT is expected"))
}

pub(crate) async fn run(context: &CommandContext, args: &Args) -> Result<Exit, Failure> {
    refuse_unencrypted_address(args)?;
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(certificate), Some(key)) => Some(Tls::read(certificate, key).await?),
        _ => None,
    };
    let app = context.open(Access::Write)?;
    let wanted: BTreeSet<String> = app.roster.ready().map(|spec| spec.name.clone()).collect();
    app.connect(&wanted).await?;
    let listener = listen(args.listen)?;
    let address = listener.local_addr().map_err(|error| {
        Failure::new(
            Exit::RunFailed,
            format!("cannot tell where the service listens: {error}"),
        )
    })?;
    let service = build_service(&app)?;
    let stop_clients = CancellationToken::new();
    // Behind a proxy people know the service by another address.
    let page = (page_is_built() && !args.behind_proxy).then(|| service_url(args, address));
    let door = Arc::new(HttpDoor::new(&app, context, &stop_clients, page));
    let mut settings = read_settings(context, args, address)?;
    settings.operator = Some(Arc::new(RunningProgram(app.clone())));
    settings.mcp = Some(Arc::<HttpDoor>::clone(&door));
    if let Some(oidc) = &context.config.sign_in().oidc {
        let redaction = app.engine.redaction().clone();
        let way = read_oidc(oidc, Arc::clone(&app.secrets), redaction)?;
        settings.single_sign_on = Some(Arc::new(way));
    }
    settings.server_sign_ins = Some(Arc::new(sign_ins(&app).await?));
    let http = Http::new(service, settings);
    tokio::spawn(end_clients(http.stop.clone(), stop_clients));
    let watch: Arc<dyn CourierWatch> = Arc::new(WebhookMetrics);
    let couriers = app.start_couriers(&watch, &http.stop)?;
    // Heard from here on: the reader of the address may already tell the service to stop.
    let signals = StopSignals::listen("service")?;
    let signals = tokio::spawn(stop_on_signals(signals, http.clone()));
    announce_address(&app, &http, args, address)?;
    let served = serve(&http, listener, tls).await;
    signals.abort();
    door.close().await;
    if http.stop_now.is_cancelled() {
        // Nothing is started any more; what runs is not waited for.
        app.engine.drain();
        app.context.children.kill().await;
    }
    // A notice that is on its way is sent again after the next start, with the same id.
    couriers.iter().for_each(JoinHandle::abort);
    served?;
    app.printer().talk("stopped");
    Ok(Exit::Done)
}

/// The servers that people can sign in to from the page.
async fn sign_ins(app: &App) -> Result<ServiceSignIns, Failure> {
    let mut servers = Vec::new();
    for spec in app.roster.ready() {
        let Transport::Http { url, .. } = &spec.transport else {
            continue;
        };
        servers.push(ServiceServer {
            known_as: find_known_client(app, (&spec.name, url)).await?,
            name: spec.name.clone(),
            url: url.clone(),
            is_personal: spec.personal_sign_in,
        });
    }
    let remote = app.tools.remote().clone();
    Ok(ServiceSignIns::new(servers, app.sign_ins(), remote))
}

/// Streams of MCP clients end when the service does.
async fn end_clients(stop: CancellationToken, clients: CancellationToken) {
    stop.cancelled().await;
    clients.cancel();
}

/// The parts of the service. Requests and their answers are kept in the store whose journals they
/// change: one commit says both.
fn build_service(app: &App) -> Result<Service, Failure> {
    let Some(store) = &app.whole else {
        return Err(Failure::new(
            Exit::Store,
            "there is no store that the service could write to",
        ));
    };
    // The page and the inbox ask while the calls wait.
    app.engine.hold_questions();
    Ok(Service {
        engine: app.engine.clone(),
        tokens: Arc::<dyn WholeStore>::clone(store),
        passes: Arc::<dyn WholeStore>::clone(store),
        passkeys: Arc::<dyn WholeStore>::clone(store),
        passkey_verifier: Arc::new(WebAuthn),
        files: Arc::<WorkspaceFiles>::clone(&app.files),
        answers: Arc::<dyn WholeStore>::clone(store),
        notes: match &app.postgres {
            Some(postgres) => Arc::<PostgresStore>::clone(postgres),
            None => Arc::new(MemoryNotes::new()),
        },
        rates: app
            .postgres
            .clone()
            .map(|postgres| postgres as Arc<dyn RequestRates>),
    })
}

/// Refuses to send tokens and plans unencrypted over a network, unless a proxy encrypts.
fn refuse_unencrypted_address(args: &Args) -> Result<(), Failure> {
    if args.listen.ip().is_loopback() || args.tls_cert.is_some() || args.behind_proxy {
        return Ok(());
    }
    Err(Failure::refused(format!("{} is reachable from other machines, and the connection would not be encrypted", args.listen))
        .hint("give --tls-cert and --tls-key, or --behind-proxy if a proxy encrypts, or listen on 127.0.0.1"))
}

/// What the command line and `[serve]` say together.
fn read_settings(
    context: &CommandContext,
    args: &Args,
    address: SocketAddr,
) -> Result<Settings, Failure> {
    let table = context.config.serve();
    let default = Settings::default();
    let mut hosts = AllowedHost::of_address(address);
    hosts.extend(args.allow_host.iter().cloned());
    for host in &table.allow_hosts {
        hosts.push(
            host.parse()
                .map_err(|error| Failure::usage(format!("{FILE}, [serve]: {error}")))?,
        );
    }
    if table.max_runs == Some(0) {
        return Err(Failure::usage(format!(
            "{FILE}, [serve]: with max_runs = 0 no run would ever have its turn"
        ))
        .hint("use 1 or more, or leave it out"));
    }
    let counts = [
        table.max_streams,
        table.max_streams_per_principal,
        table.max_global_streams,
        table.max_global_streams_per_principal,
        table.max_connections,
        table.max_idle_per_address,
        table.max_in_flight,
        table.max_in_flight_per_principal,
    ];
    let zero = counts.contains(&Some(0)) || table.idle_timeout_seconds == Some(0);
    if zero || [table.requests_per_second, table.burst].contains(&Some(0)) {
        return Err(Failure::usage(format!(
            "{FILE}, [serve]: a limit of 0 would refuse every request"
        ))
        .hint("use 1 or more, or leave it out"));
    }
    Ok(Settings {
        hosts,
        origins: args
            .allow_origin
            .iter()
            .chain(&table.allow_origins)
            .cloned()
            .collect(),
        https: args.tls_cert.is_some(),
        encrypted: args.tls_cert.is_some() || args.behind_proxy,
        metrics_public: table.metrics_public,
        max_connections: limit_connections(
            context,
            table.max_connections.unwrap_or(default.max_connections),
        ),
        max_idle_per_address: table
            .max_idle_per_address
            .unwrap_or(default.max_idle_per_address),
        idle_timeout: table
            .idle_timeout_seconds
            .map_or(default.idle_timeout, Duration::from_secs),
        max_in_flight: table.max_in_flight.unwrap_or(default.max_in_flight),
        max_in_flight_per_principal: table
            .max_in_flight_per_principal
            .unwrap_or(default.max_in_flight_per_principal),
        max_runs: table.max_runs.unwrap_or(default.max_runs),
        requests_per_second: table
            .requests_per_second
            .unwrap_or(default.requests_per_second),
        burst: table.burst.unwrap_or(default.burst),
        base_path: read_base_path(args, table.base_path.as_deref())?,
        drain: drain_time(args, table.drain_seconds)?,
        events: read_stream_limits(table, default.events),
        ..default
    })
}

fn read_base_path(args: &Args, configured: Option<&str>) -> Result<BasePath, Failure> {
    if let Some(base) = &args.base_path {
        return Ok(base.clone());
    }
    let wrong = |error| Failure::usage(format!("{FILE}, [serve]: {error}"));
    configured.map_or_else(
        || Ok(BasePath::default()),
        |path| path.parse().map_err(wrong),
    )
}

/// A proxy needs a moment to notice that the service is not ready any more; callers of this machine
/// do not look.
fn drain_time(args: &Args, configured: Option<u64>) -> Result<Duration, Failure> {
    let drain = match configured {
        Some(seconds) => Duration::from_secs(seconds),
        None if args.behind_proxy => BEHIND_PROXY_DRAIN,
        None => Duration::ZERO,
    };
    if drain > LONGEST_DRAIN {
        let most = LONGEST_DRAIN.as_secs();
        return Err(Failure::usage(format!(
            "{FILE}, [serve]: drain_seconds is at most {most}"
        )));
    }
    Ok(drain)
}

fn read_stream_limits(table: &ServeTable, default: EventsOptions) -> EventsOptions {
    EventsOptions {
        max_streams: table.max_streams.unwrap_or(default.max_streams),
        max_streams_each: table
            .max_streams_per_principal
            .unwrap_or(default.max_streams_each),
        max_global_streams: table
            .max_global_streams
            .unwrap_or(default.max_global_streams),
        max_global_streams_each: table
            .max_global_streams_per_principal
            .unwrap_or(default.max_global_streams_each),
        ..default
    }
}

/// As many connections as are wanted, if the file descriptors allow it: runs need some too.
fn limit_connections(context: &CommandContext, wanted: usize) -> usize {
    let most = connections_within_limit();
    if wanted > most {
        context.printer.talk(&format!(
            "at most {most} connections instead of {wanted}: the limit of open files is low (ulimit -Hn, LimitNOFILE=)"
        ));
    }
    wanted.min(most)
}

fn service_url(args: &Args, address: SocketAddr) -> String {
    let scheme = match args.tls_cert {
        Some(_) => "https",
        None => "http",
    };
    format!("{scheme}://{address}")
}

/// Prints the address and, on a terminal, the sign-in link.
fn announce_address(
    app: &App,
    http: &Http,
    args: &Args,
    address: SocketAddr,
) -> Result<(), Failure> {
    let printer = app.printer();
    let url = service_url(args, address);
    printer.talk(&format!("listening on {url}"));
    let by = user();
    if printer.is_live() && by.kind == PrincipalKind::Person {
        let code = secret("").map_err(|problem| Failure::new(Exit::RunFailed, problem.detail))?;
        http.sign_in.offer(&code, by, Role::Admin, app.now());
        let page = if page_is_built() { "/" } else { "/docs" };
        let base = &http.settings.base_path;
        printer.talk(&format!(
            "sign in once, within five minutes: {url}{base}{page}#sign-in={code}"
        ));
    }
    if printer.json {
        printer.document(&json!({ "url": url }))
    } else {
        Ok(())
    }
}

/// The first signal stops the service in good order, the second one at once.
async fn stop_on_signals(mut signals: StopSignals, http: Http) {
    signals.first().await;
    let draining = http.clone();
    tokio::spawn(async move { draining.stop_after_drain().await });
    signals.second().await;
    http.stop_now.cancel();
}

impl From<ServeError> for Failure {
    fn from(error: ServeError) -> Self {
        match error {
            ServeError::Listen { .. } => Self::from_error(Exit::RunFailed, &error)
                .hint("another program may listen there: --listen :0 takes a free port"),
            ServeError::Certificate { .. } => Self::from_error(Exit::Usage, &error)
                .hint("both are files in PEM, and the key is the certificate's own"),
            ServeError::Stopped(_) => Self::from_error(Exit::RunFailed, &error),
            ServeError::StoreLost(_) => Self::from_error(Exit::Store, &error).hint(
                "start it again: what was acknowledged is there, and what was in flight is decided then; \
                 planwright verify lists what is damaged",
            ),
        }
    }
}
