//! Failures of questions, each with the answer to whether asking again can help.
//!
//! What the library says about errors is not passed on: it may repeat the prompt. What a provider
//! says is, in short, as one line, and without anything secret.

use crate::outbound::describe_failure;
use genai::Error;
use planwright_core::secret::Redactor;
use planwright_core::text::sanitize_line;
use planwright_engine::port::ModelError;
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;
use std::time::Duration;

/// No provider has more to say than this.
const MAX_MESSAGE: usize = 300;

/// The remedy for a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Remedy {
    /// Nothing.
    None,
    /// Ask again later, as much later as the provider wants.
    Later { after: Option<Duration> },
    /// Ask again until the model is loaded.
    Loaded,
    /// Ask for JSON in another way.
    OtherDialect,
}

#[derive(Debug)]
pub(super) struct Failure {
    pub(super) error: ModelError,
    pub(super) remedy: Remedy,
}

impl Failure {
    pub(super) fn final_(error: ModelError) -> Self {
        Self {
            error,
            remedy: Remedy::None,
        }
    }

    /// The provider is there, perhaps, but does not answer now.
    pub(super) fn passing(
        model: &str,
        message: impl Into<String>,
        after: Option<Duration>,
    ) -> Self {
        let error = ModelError::Unavailable {
            model: model.to_owned(),
            message: message.into(),
        };
        Self {
            error,
            remedy: Remedy::Later { after },
        }
    }

    pub(super) fn unreadable(model: &str, message: impl Into<String>) -> Self {
        Self::final_(ModelError::Unreadable {
            model: model.to_owned(),
            message: message.into(),
        })
    }

    /// The caller knows a part of the answer already: it cannot be asked for again.
    pub(super) fn after_beginning(self) -> Self {
        let error = match self.error {
            ModelError::Unavailable { model, message } => ModelError::Unreadable { model, message },
            other => other,
        };
        Self::final_(error)
    }
}

/// Returns whether a connection to this machine was refused.
fn is_refused_here(error: &reqwest::Error) -> bool {
    let host = error.url().and_then(reqwest::Url::host_str);
    let is_here =
        host.is_some_and(|host| host == "localhost" || host == "[::1]" || host.starts_with("127."));
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        let refused = error
            .downcast_ref::<std::io::Error>()
            .is_some_and(|error| error.kind() == std::io::ErrorKind::ConnectionRefused);
        if refused {
            return is_here;
        }
        cause = error.source();
    }
    false
}

/// The judge of an error: which model it is about, and what must not be repeated.
#[derive(Debug, Clone, Copy)]
pub(super) struct Judge<'a> {
    pub(super) model: &'a str,
    pub(super) redactor: &'a Redactor,
    /// The answer must be JSON, so a refusal may be about how that was asked for.
    pub(super) structured: bool,
}

impl Judge<'_> {
    pub(super) fn judge(&self, error: &Error) -> Failure {
        match error {
            Error::HttpError {
                status,
                body,
                headers,
                ..
            } => self.status(*status, body, headers),
            Error::WebStream { error, .. } => {
                if let Some(error) = error.downcast_ref::<Error>() {
                    self.judge(error)
                } else if let Some(error) = error.downcast_ref::<reqwest::Error>() {
                    self.transport(error)
                } else {
                    Failure::unreadable(self.model, "it is no UTF-8 text")
                }
            }
            Error::WebModelCall { webc_error, .. } => match webc_error {
                genai::webc::Error::Reqwest(error) => self.transport(error),
                _ => Failure::unreadable(self.model, "the provider does not speak its format"),
            },
            Error::ChatResponse { body, .. } => self.event(body),
            Error::StreamParse { .. } => Failure::unreadable(self.model, "a part of it is no JSON"),
            _ => Failure::unreadable(self.model, "it is not what its provider promises to send"),
        }
    }

    fn transport(&self, error: &reqwest::Error) -> Failure {
        let what = if error.is_connect() {
            "no connection"
        } else {
            "the connection broke"
        };
        let message = self.clean(&format!("{what}: {}", describe_failure(error)));
        if error.is_builder() {
            // A header or URL that cannot be sent, such as a key with a line break in it.
            return Failure::final_(ModelError::Refused {
                model: self.model.to_owned(),
                status: 0,
                message,
            });
        }
        let failure = Failure::passing(self.model, message, None);
        if is_refused_here(error) {
            // No program listens there, and on this machine none begins to by itself.
            return Failure::final_(failure.error);
        }
        failure
    }

    fn status(&self, status: StatusCode, body: &str, headers: &HeaderMap) -> Failure {
        let said = self.said(body);
        let message = if said.is_empty() {
            format!("status {status}")
        } else {
            said
        };
        match status.as_u16() {
            503 if message.to_ascii_lowercase().contains("loading") => Failure {
                remedy: Remedy::Loaded,
                ..Failure::passing(self.model, message, None)
            },
            408 | 425 | 429 | 500 | 502 | 503 | 504 | 520..=529 => {
                let message = format!("{message} ({})", status.as_u16());
                Failure::passing(self.model, message, retry_after(headers))
            }
            status => {
                let remedy = if self.structured
                    && matches!(status, 400 | 404 | 415 | 422 | 501)
                    && about_json(body)
                {
                    Remedy::OtherDialect
                } else {
                    Remedy::None
                };
                Failure {
                    error: self.refused(status, message),
                    remedy,
                }
            }
        }
    }

    /// An error that came as a part of the answer.
    fn event(&self, body: &Value) -> Failure {
        let message = self.said(&body.to_string());
        let kind = body
            .pointer("/error/type")
            .or_else(|| body.get("type"))
            .and_then(Value::as_str);
        let code = body.pointer("/error/code").or_else(|| body.get("code"));
        let number = code.and_then(|code| code.as_u64().or_else(|| code.as_str()?.parse().ok()));
        let passing = [
            "overloaded",
            "rate_limit",
            "server_error",
            "api_error",
            "unavailable",
            "timeout",
        ];
        let passes = kind.is_some_and(|kind| passing.iter().any(|word| kind.contains(word)))
            || number.is_some_and(|code| code == 429 || (500..600).contains(&code));
        if passes {
            return Failure::passing(self.model, message, None);
        }
        let status = number
            .and_then(|code| u16::try_from(code).ok())
            .unwrap_or(200);
        Failure::final_(self.refused(status, message))
    }

    pub(super) fn refused(&self, status: u16, message: String) -> ModelError {
        let message = if message.is_empty() {
            "without a reason".to_owned()
        } else {
            message
        };
        ModelError::Refused {
            model: self.model.to_owned(),
            status,
            message,
        }
    }

    /// Finds the provider's own words about an error: the message it means for people, wherever it
    /// puts it.
    fn said(&self, body: &str) -> String {
        let read: Option<Value> = serde_json::from_str(body).ok();
        let places = [
            "/error/message",
            "/0/error/message",
            "/message",
            "/error",
            "/detail",
            "/msg",
        ];
        let message = read.as_ref().and_then(|value| {
            places.iter().find_map(|place| {
                value
                    .pointer(place)?
                    .as_str()
                    .filter(|text| !text.is_empty())
            })
        });
        match (message, &read) {
            (Some(message), _) => self.clean(message),
            // A page for browsers says nothing to anybody here.
            (None, None) if !body.trim_start().starts_with('<') => self.clean(body),
            (None, _) => String::new(),
        }
    }

    /// One short line without anything secret.
    fn clean(&self, text: &str) -> String {
        // Masked before it is cut: half a secret would not be found.
        let bounded: String = text.chars().take(MAX_MESSAGE * 20).collect();
        let masked = self.redactor.text(&bounded);
        let line = sanitize_line(masked.trim()).into_owned();
        match line.char_indices().nth(MAX_MESSAGE) {
            Some((end, _)) => format!("{}…", &line[..end]),
            None => line,
        }
    }
}

/// Returns whether a refusal speaks of the way JSON was asked for.
fn about_json(body: &str) -> bool {
    let body = body.to_ascii_lowercase();
    let words = [
        "response_format",
        "json_schema",
        "schema",
        "grammar",
        "json_object",
        "tool_choice",
        "format",
    ];
    words.iter().any(|word| body.contains(word))
}

/// The seconds that a provider wants to be left alone. Dates are not read: no provider of models
/// sends them.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok()?.trim().parse::<f64>().ok();
    let seconds = text("retry-after-ms")
        .map(|millis| millis / 1000.0)
        .or_else(|| text(RETRY_AFTER.as_str()))?;
    Duration::try_from_secs_f64(seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(redactor: &Redactor) -> Judge<'_> {
        Judge {
            model: "local/model",
            redactor,
            structured: true,
        }
    }

    fn status(status: u16, body: &str) -> Failure {
        let redactor = Redactor::default();
        judge(&redactor).status(
            StatusCode::from_u16(status).expect("a status"),
            body,
            &HeaderMap::new(),
        )
    }

    #[test]
    fn what_passes_is_told_from_what_stays() {
        for code in [408, 429, 500, 502, 503, 504, 529] {
            assert_eq!(
                status(code, "busy").remedy,
                Remedy::Later { after: None },
                "{code}"
            );
        }
        assert_eq!(
            status(503, r#"{"error": {"message": "Loading model"}}"#).remedy,
            Remedy::Loaded
        );
        for code in [400, 401, 403, 404, 413] {
            assert_eq!(status(code, "no").remedy, Remedy::None, "{code}");
        }
        assert_eq!(
            status(400, "response_format is unknown").remedy,
            Remedy::OtherDialect
        );
        assert_eq!(
            status(401, "response_format is unknown").remedy,
            Remedy::None
        );
    }

    #[test]
    fn a_provider_is_quoted_in_one_short_line() {
        let quoted = |body: &str| match status(400, body).error {
            ModelError::Refused {
                message,
                status: 400,
                ..
            } => message,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            quoted(r#"{"error": {"message": "a\nb\u001b[31m"}}"#),
            "a b[31m"
        );
        assert_eq!(quoted(r#"{"error": "plain"}"#), "plain");
        assert_eq!(
            quoted("<html><body>502</body></html>"),
            "status 400 Bad Request"
        );
        assert_eq!(quoted(""), "status 400 Bad Request");
        assert!(quoted(&"x".repeat(10_000)).chars().count() <= MAX_MESSAGE + 1);
    }

    #[test]
    fn pauses_are_read_and_never_break_anything() {
        let read = |text: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().expect("a header"));
            retry_after(&headers)
        };
        assert_eq!(read("7"), Some(Duration::from_secs(7)));
        for odd in ["-1", "soon", "NaN", "1e400", ""] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }
}
