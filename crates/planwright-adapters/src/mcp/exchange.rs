//! The outcome of a request: what the server said, or what is known if it said nothing.

use super::answer::{self, Meaning, failed, refused, shorten, unusable};
use super::connection::{Connection, plain, sign_in_hint};
use super::http::HttpError;
use super::message::{MALFORMED, TOO_LARGE};
use super::questions;
use super::server::Server;
use super::sign_in_question::{ask, can_sign_in};
use super::wire::{End, Ticket};
use planwright_core::run::{Asked, CallEffect, StepErrorCode};
use planwright_core::tool::KnownTool;
use planwright_engine::port::{Call, CallError, Outcome};
use reqwest::StatusCode;
use rmcp::model::{ErrorCode, ErrorData, ServerResult};
use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use serde_json::json;
use std::time::Duration;

/// The time until the reason for a broken connection has to be known.
const REASON_TIMEOUT: Duration = Duration::from_secs(1);
/// The code of an error that sends a person to a page first.
const URL_ELICITATION_REQUIRED: i32 = -32042;

/// The result of a request, as rmcp reports it.
pub(super) type RpcReply =
    Result<Result<ServerResult, ServiceError>, tokio::sync::oneshot::error::RecvError>;

/// The outcome of one exchange with the server.
pub(super) enum Exchange {
    Done(Outcome),
    Asks(Asked),
    /// It asked in the middle of its work, and got no answer.
    AskedMidway(Asked),
    /// The server refused its own note about its questions: it was started again since it wrote
    /// that.
    Forgotten(CallError),
    /// The server has not seen the call.
    NotSent(String),
}

/// Reads the answer, or finds out what is known without one.
pub(super) async fn settle_exchange(
    server: &Server,
    connection: &Connection,
    tool: &KnownTool,
    ticket: &Ticket,
    call: &Call,
    answer: RpcReply,
) -> Exchange {
    let error = match answer {
        Ok(Ok(result)) => {
            ticket.was_answered();
            let said = plain(result);
            call.answer.take(&said);
            return match answer::meaning(said, tool, &*server.options.artifacts).await {
                Meaning::Done(outcome) => {
                    if let (Ok(value), Some(shapes)) = (&outcome, &server.options.shapes) {
                        shapes.learn(tool, value, &server.options.redaction);
                    }
                    Exchange::Done(outcome)
                }
                Meaning::Asks(asked) => Exchange::Asks(asked),
            };
        }
        Ok(Err(error)) => error,
        Err(_) => return Box::pin(broken(connection, ticket)).await,
    };
    match error {
        ServiceError::McpError(error) => {
            ticket.was_answered();
            answered_error(&error, call)
        }
        ServiceError::TransportSend(error) => {
            Box::pin(unsent(server, connection, ticket, &error)).await
        }
        ServiceError::TransportClosed
            if connection.is_child || connection.wire.how_it_ended().is_some() =>
        {
            Box::pin(broken(connection, ticket)).await
        }
        other => Exchange::Done(Err(CallError::Lost(shorten(&other.to_string())))),
    }
}

/// The server answered with an error: trying again does not help.
fn answered_error(error: &ErrorData, call: &Call) -> Exchange {
    if error.code == MALFORMED {
        return Exchange::Done(Err(unusable("invalid_output", &error.message)));
    }
    if error.code == TOO_LARGE {
        return Exchange::Done(Err(too_large(&error.message)));
    }
    if error.code.0 == URL_ELICITATION_REQUIRED
        && let Some(asked) = error.data.as_ref().and_then(questions::of_error)
    {
        return Exchange::Asks(asked);
    }
    // A client reads more from the error than a step needs.
    call.answer.take(&json!({ "error": error }));
    Exchange::Done(Err(refusal(error)))
}

pub(super) fn refusal(error: &ErrorData) -> CallError {
    let message = format!("{} ({})", shorten(&error.message), error.code.0);
    match error.code {
        // The protocol says that nothing was carried out.
        ErrorCode::PARSE_ERROR
        | ErrorCode::INVALID_REQUEST
        | ErrorCode::METHOD_NOT_FOUND
        | ErrorCode::INVALID_PARAMS => refused("tool_error", &message),
        _ => failed("tool_error", &message),
    }
}

/// The connection is over. Whether the server saw the call decides what is known of it.
pub(super) async fn broken(connection: &Connection, ticket: &Ticket) -> Exchange {
    tokio::time::timeout(REASON_TIMEOUT, connection.wire.wait_until_ended())
        .await
        .unwrap_or_default();
    let end = connection.wire.how_it_ended();
    let reason = end.map_or("the connection broke", End::reason);
    if ticket.was_sent() {
        Exchange::Done(Err(CallError::Lost(format!(
            "the server was lost during the call: {reason}"
        ))))
    } else {
        Exchange::NotSent(reason.to_owned())
    }
}

/// The request did not get an answer of its own from the transport.
async fn unsent(
    server: &Server,
    connection: &Connection,
    ticket: &Ticket,
    error: &DynamicTransportError,
) -> Exchange {
    let Some(error) = error.error.downcast_ref::<StreamableHttpError<HttpError>>() else {
        return broken(connection, ticket).await;
    };
    let done = |error| Exchange::Done(Err(error));
    match error {
        StreamableHttpError::Client(HttpError::Unreachable(reason)) => {
            Exchange::NotSent(reason.clone())
        }
        StreamableHttpError::Client(HttpError::TooLarge) => {
            done(too_large("the answer is too large"))
        }
        StreamableHttpError::Client(HttpError::Status { status, excerpt }) => {
            if *status == StatusCode::UNAUTHORIZED && can_sign_in(server) {
                return wants_sign_in(server, connection);
            }
            done(by_status(*status, excerpt, connection.wire.server()))
        }
        StreamableHttpError::Client(HttpError::SignIn(_)) => wants_sign_in(server, connection),
        StreamableHttpError::Client(HttpError::NotRenewed(reason)) => {
            done(refused("unauthorized", reason))
        }
        // The server did not look at the call: it no longer knows the session.
        StreamableHttpError::SessionExpired => {
            connection.wire.end(End::Gone("the session expired".into()));
            Exchange::NotSent("the session expired".into())
        }
        other => done(CallError::Lost(shorten(&other.to_string()))),
    }
}

/// The server refused the request before it looked at the call. The next one is made on another
/// connection, with what the person signed in with: this one may have been opened without.
fn wants_sign_in(server: &Server, connection: &Connection) -> Exchange {
    connection.wire.retire();
    Exchange::Asks(ask(server))
}

fn by_status(status: StatusCode, excerpt: &str, server: &str) -> CallError {
    let message = format!("the server answered {status}{excerpt}");
    match status {
        StatusCode::UNAUTHORIZED => {
            let hint = sign_in_hint(server);
            refused("unauthorized", &format!("{message} ({hint})"))
        }
        StatusCode::FORBIDDEN => refused("unauthorized", &message),
        StatusCode::TOO_MANY_REQUESTS => CallError::Failed {
            code: StepErrorCode::ToolError,
            message: shorten(&message),
            retryable: true,
            effect: CallEffect::None,
        },
        StatusCode::BAD_REQUEST
        | StatusCode::NOT_FOUND
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::NOT_ACCEPTABLE
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE
        | StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => refused("http_status", &message),
        // It may have broken down in the middle of the call.
        _ if status.is_server_error() => CallError::Lost(message),
        _ => failed("http_status", &message),
    }
}

/// The server did what it was told and said too much about it.
pub(super) fn too_large(reason: &str) -> CallError {
    unusable("output_too_large", reason)
}
