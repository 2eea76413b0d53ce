//! Spans for a collector, in OpenTelemetry's protocol over HTTP.
//!
//! A thread of its own sends them. What cannot be sent is dropped: a collector never slows a run
//! down.

use super::redaction;
use super::table::TelemetryTable;
use crate::exit::Failure;
use opentelemetry::trace::{
    SpanContext, SpanId, Status, TraceContextExt as _, TraceFlags, TraceId as OtelTraceId,
    TraceState, TracerProvider as _,
};
use opentelemetry::{Array, Context, KeyValue, Value};
use opentelemetry_otlp::{SpanExporter as OtlpExporter, WithExportConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter, Tracer};
use planwright_core::secret::Redactor;
use planwright_core::trace::{TraceId, TraceParent};
use planwright_engine::telemetry::{self, Propagation};
use std::borrow::Cow;
use std::time::Duration;
use tracing::level_filters::LevelFilter;
use tracing::{Metadata, Span, Subscriber};
use tracing_opentelemetry::{OpenTelemetryLayer, OpenTelemetrySpanExt as _};
use tracing_subscriber::Layer as _;
use tracing_subscriber::filter::{FilterFn, Filtered};
use tracing_subscriber::registry::LookupSpan;

/// The time the end of the program waits for a collector.
const LAST_WAIT: Duration = Duration::from_secs(2);

/// The export, until it is finished.
#[derive(Debug)]
pub(super) struct Export(SdkTracerProvider);

impl Export {
    pub(super) fn finish(self) {
        if let Err(error) = self.0.shutdown_with_timeout(LAST_WAIT) {
            tracing::debug!(%error, "the last spans were not sent");
        }
    }
}

type Spans<S> = Filtered<OpenTelemetryLayer<S, Tracer>, FilterFn<fn(&Metadata<'_>) -> bool>, S>;

/// Builds the layer that records spans, if an exporter is configured.
pub(super) fn start<S>(
    table: &TelemetryTable,
) -> Result<(Option<Export>, Option<Spans<S>>), Failure>
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    let Some(exporter) = exporter(table)? else {
        return Ok((None, None));
    };
    let mut resource = Resource::builder();
    if !is_set("OTEL_SERVICE_NAME") {
        resource = resource.with_service_name("planwright");
    }
    let resource = resource
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder()
        .with_resource(resource)
        .with_batch_exporter(Masked(exporter))
        .build();
    let tracer = provider.tracer("planwright");
    let ours: fn(&Metadata<'_>) -> bool =
        |metadata| metadata.is_span() && metadata.target().starts_with("planwright");
    let layer = OpenTelemetryLayer::new(tracer)
        .with_location(false)
        .with_threads(false)
        .with_tracked_inactivity(false)
        .with_target(false)
        .with_filter(FilterFn::new(ours).with_max_level_hint(LevelFilter::INFO));
    telemetry::install(Box::new(Places));
    Ok((Some(Export(provider)), Some(layer)))
}

/// The exporter, if there is a collector. The environment comes first, as everywhere with
/// OpenTelemetry.
fn exporter(table: &TelemetryTable) -> Result<Option<OtlpExporter>, Failure> {
    let named =
        is_set("OTEL_EXPORTER_OTLP_ENDPOINT") || is_set("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
    let off = |name: &str, value: &str| {
        std::env::var(name).is_ok_and(|found| found.eq_ignore_ascii_case(value))
    };
    if off("OTEL_SDK_DISABLED", "true") || off("OTEL_TRACES_EXPORTER", "none") {
        return Ok(None);
    }
    let builder = OtlpExporter::builder().with_http();
    let builder = match &table.otlp_endpoint {
        _ if named => builder,
        Some(endpoint) => {
            builder.with_endpoint(format!("{}/v1/traces", endpoint.trim_end_matches('/')))
        }
        None => return Ok(None),
    };
    planwright_adapters::install_crypto();
    let wrong = |error| {
        Failure::usage(format!("spans cannot be exported: {error}")).hint(
            "check OTEL_EXPORTER_OTLP_ENDPOINT and [telemetry] otlp_endpoint, such as http://127.0.0.1:4318",
        )
    };
    builder.build().map(Some).map_err(wrong)
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}

/// Knows where spans are in their traces.
#[derive(Debug)]
struct Places;

impl Propagation for Places {
    fn place(&self, span: &Span) -> Option<TraceParent> {
        let context = span.context();
        let found = context.span();
        let found = found.span_context();
        let trace = TraceId::from_bytes(found.trace_id().to_bytes())?;
        TraceParent::new(
            trace,
            u64::from_be_bytes(found.span_id().to_bytes()),
            found.is_sampled(),
        )
    }

    fn adopt(&self, span: &Span, parent: &TraceParent) {
        let remote = SpanContext::new(
            OtelTraceId::from_bytes(parent.trace.to_bytes()),
            SpanId::from_bytes(parent.span().to_be_bytes()),
            if parent.sampled {
                TraceFlags::SAMPLED
            } else {
                TraceFlags::NOT_SAMPLED
            },
            true,
            TraceState::default(),
        );
        if let Err(error) = span.set_parent(Context::new().with_remote_span_context(remote)) {
            tracing::debug!(%error, "a span begins a trace of its own");
        }
    }
}

/// Masks everything on its way out.
#[derive(Debug)]
struct Masked(OtlpExporter);

impl SpanExporter for Masked {
    fn export(&self, mut batch: Vec<SpanData>) -> impl Future<Output = OTelSdkResult> + Send {
        batch.iter_mut().for_each(list_reasons);
        if let Some(redaction) = redaction() {
            let redactor = redaction.redactor();
            if !redactor.is_empty() {
                batch.iter_mut().for_each(|span| mask_span(&redactor, span));
            }
        }
        self.0.export(batch)
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.0.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.0.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.0.set_resource(resource);
    }
}

/// The conventions have a list here, and spans of this program can carry none.
fn list_reasons(span: &mut SpanData) {
    for attribute in &mut span.attributes {
        if attribute.key.as_str() == "gen_ai.response.finish_reasons"
            && let Value::String(reason) = &attribute.value
        {
            attribute.value = Value::Array(Array::String(vec![reason.clone()]));
        }
    }
}

fn mask_span(redactor: &Redactor, span: &mut SpanData) {
    if let Cow::Owned(name) = redactor.text(&span.name) {
        span.name = Cow::Owned(name);
    }
    if let Status::Error { description } = &span.status {
        span.status = Status::error(redactor.text(description).into_owned());
    }
    mask_attributes(redactor, &mut span.attributes);
    for event in &mut span.events.events {
        event.name = Cow::Owned(redactor.text(&event.name).into_owned());
        mask_attributes(redactor, &mut event.attributes);
    }
}

fn mask_attributes(redactor: &Redactor, attributes: &mut [KeyValue]) {
    for attribute in attributes {
        match &mut attribute.value {
            Value::String(text) => {
                if let Cow::Owned(masked) = redactor.text(text.as_str()) {
                    attribute.value = Value::String(masked.into());
                }
            }
            Value::Array(Array::String(texts)) => {
                for text in texts {
                    if let Cow::Owned(masked) = redactor.text(text.as_str()) {
                        *text = masked.into();
                    }
                }
            }
            _ => {}
        }
    }
}
