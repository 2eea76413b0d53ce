//! The program's reports to its operators: logs on stderr, and spans for a collector.
//!
//! Everything passes the same mask as everything else that is shown. No listener, present or
//! absent, changes an outcome.

mod line;
mod log;
#[cfg(feature = "otlp")]
mod otlp;
pub(crate) mod stderr;
mod table;

pub(crate) use table::TelemetryTable;

use crate::exit::{Exit, Failure};
use log::LogLayer;
use planwright_engine::Redaction;
use std::sync::{OnceLock, PoisonError, RwLock};
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry};

/// Only what is wrong: a command says everything else itself.
const QUIET: &str = "off,planwright=warn";
/// What a service does, and what is wrong with what it uses.
const SERVICE: &str = "warn,planwright=info";

/// How lines of the log look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum LogFormat {
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// What was asked for on the command line.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct LogArgs {
    /// What is logged on stderr: error, warn, info, debug, trace, or a filter such as
    /// `planwright=debug,warn`.
    #[arg(long, global = true, env = "PLANWRIGHT_LOG", value_name = "FILTER")]
    log_level: Option<String>,
    /// How lines of the log look.
    #[arg(
        long,
        global = true,
        env = "PLANWRIGHT_LOG_FORMAT",
        value_name = "FORMAT",
        default_value = "text"
    )]
    log_format: LogFormat,
}

/// Everything secret in this process, once it is known where that is kept.
static REDACTION: RwLock<Option<Redaction>> = RwLock::new(None);

/// From here on, what is logged and exported is searched for these.
pub(crate) fn mask(redaction: Redaction) {
    *REDACTION.write().unwrap_or_else(PoisonError::into_inner) = Some(redaction);
}

fn redaction() -> Option<Redaction> {
    REDACTION
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .clone()
}

/// Ends the export when it is dropped: what was recorded is sent, if that needs no long wait.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    #[cfg(feature = "otlp")]
    export: Option<otlp::Export>,
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        #[cfg(feature = "otlp")]
        if let Some(export) = self.export.take() {
            export.finish();
        }
    }
}

/// Begins to log and to export. Must be called before a runtime is started.
pub(crate) fn start(
    args: &LogArgs,
    service: bool,
    table: &TelemetryTable,
) -> Result<Telemetry, Failure> {
    static STARTED: OnceLock<()> = OnceLock::new();
    if STARTED.set(()).is_err() {
        return Ok(Telemetry::default());
    }
    let default = if service { SERVICE } else { QUIET };
    let wanted = args
        .log_level
        .as_deref()
        .map(str::trim)
        .filter(|wanted| !wanted.is_empty());
    let filter = EnvFilter::builder()
        .parse(wanted.unwrap_or(default))
        .map_err(|error| {
            Failure::usage(format!("the log filter cannot be read: {error}")).hint(
                "use error, warn, info, debug or trace, or a list such as `planwright=debug,warn`",
            )
        })?;
    planwright_engine::telemetry::with_content(table.content);
    if service {
        let failed = |error| {
            Failure::new(
                Exit::RunFailed,
                format!("the log cannot be written: {error}"),
            )
        };
        stderr::start_queue().map_err(failed)?;
    }
    let log = LogLayer::new(args.log_format).with_filter(filter);
    #[cfg(feature = "otlp")]
    let (export, spans) = otlp::start(table)?;
    let subscriber = Registry::default().with(log);
    #[cfg(feature = "otlp")]
    let subscriber = subscriber.with(spans);
    // Another subscriber was installed first, and it stays.
    drop(tracing::subscriber::set_global_default(subscriber));
    Ok(Telemetry {
        #[cfg(feature = "otlp")]
        export,
    })
}
