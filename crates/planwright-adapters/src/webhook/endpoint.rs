//! One endpoint: what is sent to it, and what its answers mean.

use super::body::body;
use super::options::{InvalidWebhook, WebhookOptions, explain};
use super::sign::{Key, signatures};
use crate::outbound::{build_client, check_target, describe_failure, find_refusal};
use planwright_core::time::Timestamp;
use planwright_engine::port::{BoxFuture, Clock, Secrets};
use planwright_engine::webhooks::Notice;
use planwright_engine::webhooks::{SendNoticeError, Webhook};
use planwright_engine::{Redaction, telemetry};
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Client, Response, StatusCode, Url};
use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tracing::Instrument as _;
use tracing::field::Empty;

/// For everything, from the lookup of the name to the answer.
const TIMEOUT: Duration = Duration::from_secs(20);

/// An endpoint that is told over HTTP.
pub struct HttpWebhook {
    options: WebhookOptions,
    url: Url,
    secrets: Arc<dyn Secrets>,
    redaction: Redaction,
    clock: Arc<dyn Clock>,
    /// Made when first needed: a machine without certificates can still do everything else.
    client: OnceLock<Client>,
}

impl fmt::Debug for HttpWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpWebhook")
            .field("name", &self.options.name)
            .finish_non_exhaustive()
    }
}

impl HttpWebhook {
    pub fn new(
        options: WebhookOptions,
        secrets: Arc<dyn Secrets>,
        redaction: Redaction,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, InvalidWebhook> {
        let url = options.check()?;
        Ok(Self {
            options,
            url,
            secrets,
            redaction,
            clock,
            client: OnceLock::new(),
        })
    }

    pub fn options(&self) -> &WebhookOptions {
        &self.options
    }

    /// The URL without its query, which may hold a key.
    pub fn shown_url(&self) -> String {
        format!(
            "{}{}",
            self.url.origin().ascii_serialization(),
            self.url.path()
        )
    }

    async fn post(&self, notice: &Notice) -> Result<(), SendNoticeError> {
        let keys = self.keys().await?;
        let bytes = body(
            self.options.format,
            notice,
            self.options.service_url.as_deref(),
            &self.redaction.redactor(),
        );
        // The time of this attempt, not of what happened: receivers refuse what was signed long
        // ago.
        let seconds = self.clock.now().as_millis().div_euclid(1000);
        let mut request = self
            .client()?
            .post(self.url.clone())
            .header(CONTENT_TYPE, self.options.format.content_type())
            .header("webhook-id", &notice.id)
            .header("webhook-timestamp", seconds.to_string())
            .header(
                "webhook-signature",
                signatures(&keys, &notice.id, seconds, &bytes),
            );
        if let Some(place) = telemetry::place(&tracing::Span::current()) {
            request = request.header("traceparent", place.to_string());
        }
        let span = tracing::Span::current();
        match request.body(bytes).send().await {
            Ok(response) => {
                let status = response.status();
                span.record("http.response.status_code", i64::from(status.as_u16()));
                if !status.is_success() {
                    note_failure(&span, status.as_str());
                }
                self.judge(&response)
            }
            Err(error) => {
                note_failure(
                    &span,
                    if error.is_timeout() {
                        "timeout"
                    } else {
                        "no_answer"
                    },
                );
                Err(failed(self.unanswered(&error)))
            }
        }
    }

    /// Reads the signing secrets, afresh so that a change is seen. Each is known as secret before it
    /// is used.
    async fn keys(&self) -> Result<Vec<Key>, SendNoticeError> {
        let mut keys = Vec::new();
        for name in &self.options.secrets {
            let secret = self
                .secrets
                .get(name)
                .await
                .map_err(|error| failed(error.to_string()))?;
            self.redaction
                .learn(name, &secret)
                .map_err(|error| failed(error.to_string()))?;
            keys.push(Key::read(name, &secret).map_err(|error| failed(error.to_string()))?);
        }
        Ok(keys)
    }

    fn client(&self) -> Result<&Client, SendNoticeError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let range = check_target(&self.url, self.options.allow_private)
            .map_err(|refused| failed(explain(&refused)))?;
        let made = build_client(range, self.url.scheme() == "https", Some(TIMEOUT));
        let client = made.map_err(|error| failed(describe_failure(&error)))?;
        Ok(self.client.get_or_init(|| client))
    }

    fn judge(&self, response: &Response) -> Result<(), SendNoticeError> {
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let reason = format!("the endpoint answered {status}");
        let retry_after = self.retry_after(response);
        match status {
            StatusCode::GONE => Err(SendNoticeError::Gone),
            StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::GATEWAY_TIMEOUT => Err(SendNoticeError::Throttled {
                reason,
                retry_after,
            }),
            _ if status.is_redirection() => {
                let reason = format!("{reason}; redirects are not followed");
                Err(SendNoticeError::Failed {
                    reason,
                    retry_after,
                })
            }
            _ => Err(SendNoticeError::Failed {
                reason,
                retry_after,
            }),
        }
    }

    /// Seconds, or a date.
    fn retry_after(&self, response: &Response) -> Option<Duration> {
        let text = response.headers().get(RETRY_AFTER)?.to_str().ok()?.trim();
        if let Ok(seconds) = text.parse() {
            return Some(Duration::from_secs(seconds));
        }
        Timestamp::from_http_date(text).map(|at| at.since(self.clock.now()))
    }

    fn unanswered(&self, error: &reqwest::Error) -> String {
        let reason = match find_refusal(error) {
            Some(refused) => explain(refused),
            None if error.is_timeout() => format!("no answer within {} s", TIMEOUT.as_secs()),
            None => format!("no answer: {}", describe_failure(error)),
        };
        self.redaction.redactor().text(&reason).into_owned()
    }
}

impl Webhook for HttpWebhook {
    fn name(&self) -> &str {
        &self.options.name
    }

    fn wants(&self, kind: &str) -> bool {
        self.options.wants(kind)
    }

    fn send<'a>(&'a self, notice: &'a Notice) -> BoxFuture<'a, Result<(), SendNoticeError>> {
        let span = tracing::info_span!(
            parent: None,
            "webhook",
            otel.name = "POST",
            otel.kind = "client",
            http.request.method = "POST",
            http.response.status_code = Empty,
            otel.status_code = Empty,
            error.type = Empty,
            server.address = self.url.host_str(),
            server.port = self.url.port_or_known_default().map(i64::from),
            planwright.webhook = self.options.name,
            planwright.notice.kind = notice.kind,
            planwright.notice.id = notice.id,
        );
        Box::pin(self.post(notice).instrument(span))
    }
}

fn note_failure(span: &tracing::Span, kind: &str) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
}

fn failed(reason: String) -> SendNoticeError {
    SendNoticeError::Failed {
        reason,
        retry_after: None,
    }
}
