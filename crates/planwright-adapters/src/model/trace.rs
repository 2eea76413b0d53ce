//! Spans of questions to models for tracing systems, by OpenTelemetry's conventions for generative
//! models.

use super::options::ProviderOptions;
use planwright_engine::Redaction;
use planwright_engine::port::{ModelAnswer, ModelError, ModelRequest};
use planwright_engine::telemetry;
use reqwest::Url;
use tracing::Span;
use tracing::field::{Empty, display};

/// The span of one question. Without a subscriber it costs nothing.
pub(super) fn span(
    request: &ModelRequest,
    provider: &ProviderOptions,
    name: &str,
    redaction: &Redaction,
) -> Span {
    let span = tracing::info_span!(
        "chat",
        otel.name = %format_args!("chat {name}"),
        otel.kind = "client",
        otel.status_code = Empty,
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = provider.kind.as_str(),
        gen_ai.request.model = name,
        gen_ai.response.finish_reasons = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.input.messages = Empty,
        gen_ai.output.messages = Empty,
        server.address = Empty,
        server.port = Empty,
        error.type = Empty,
        planwright.model.role = %request.role,
    );
    if !span.is_disabled()
        && let Ok(url) = Url::parse(&provider.base_url)
    {
        span.record("server.address", url.host_str());
        span.record("server.port", url.port_or_known_default().map(i64::from));
    }
    if !span.is_disabled() && telemetry::content_wanted() {
        let mut messages = serde_json::to_value(&request.messages).unwrap_or_default();
        redaction.redactor().value(&mut messages);
        span.record("gen_ai.input.messages", display(messages));
    }
    span
}

pub(super) fn record_end(
    span: &Span,
    ended: &Result<ModelAnswer, ModelError>,
    reason: Option<&str>,
) {
    if span.is_disabled() {
        return;
    }
    match ended {
        Ok(answer) => {
            let usage = &answer.used.usage;
            span.record("gen_ai.usage.input_tokens", signed(usage.input));
            span.record("gen_ai.usage.output_tokens", signed(usage.output));
            span.record("gen_ai.response.finish_reasons", reason.unwrap_or("stop"));
            if telemetry::content_wanted() {
                span.record("gen_ai.output.messages", display(&answer.text));
            }
        }
        Err(error) => {
            span.record("error.type", kind(error));
            span.record("otel.status_code", "ERROR");
        }
    }
}

/// Unsigned numbers are exported as texts.
fn signed(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn kind(error: &ModelError) -> &'static str {
    match error {
        ModelError::NotConfigured { .. } | ModelError::Unknown { .. } => "model_unknown",
        ModelError::NoKey { .. } => "no_key",
        ModelError::Refused { .. } => "refused",
        ModelError::Unavailable { .. } => "unavailable",
        ModelError::TimedOut { .. } => "timeout",
        ModelError::Unreadable { .. } => "unreadable",
        ModelError::Cancelled => "cancelled",
    }
}
