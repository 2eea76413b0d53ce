//! `[telemetry]` of `planwright.toml`.

use serde::Deserialize;

/// What the operator wants recorded, and where it goes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetryTable {
    /// The base URL of a collector that takes OTLP over HTTP. `OTEL_EXPORTER_OTLP_ENDPOINT` comes
    /// first.
    pub(crate) otlp_endpoint: Option<String>,
    /// Spans carry arguments and results, masked.
    pub(crate) content: bool,
}
