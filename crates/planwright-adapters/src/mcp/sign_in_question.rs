//! The question that a call asks by itself when its server wants a sign-in: the server has not looked
//! at the call, so it waits for the person and is made again.

use super::server::Server;
use super::{ServerSpec, Transport};
use planwright_core::run::{Answered, Asked, Reply};
use serde_json::json;
use std::sync::atomic::Ordering;

const AUTHORIZATION: &str = "Authorization";

/// Returns whether a person's sign-in would be used: a token that the operator gives wins.
pub(super) fn can_sign_in(server: &Server) -> bool {
    server.options.tokens.is_some() && takes_sign_in(&server.spec)
}

/// Returns whether a person's sign-in would be sent to this server, if there is one.
pub fn takes_sign_in(spec: &ServerSpec) -> bool {
    match &spec.transport {
        Transport::Http { headers, .. } => {
            spec.headers_helper.is_none()
                && !headers
                    .keys()
                    .any(|name| name.eq_ignore_ascii_case(AUTHORIZATION))
        }
        Transport::Stdio { .. } => false,
    }
}

/// What the person is asked. A service has a page for it; everywhere else there is a command.
pub(super) fn ask(server: &Server) -> Asked {
    let name = &server.spec.name;
    let command = format!("planwright servers sign-in {name}");
    let has_page = server.options.has_sign_in_page.load(Ordering::Relaxed);
    let url = has_page.then(|| format!("/servers/{name}/sign-in"));
    let (how, schema) = match &url {
        Some(_) => (
            format!(
                "Sign in on the page of the service and the run goes on, or run `{command}` and answer here"
            ),
            json!({"type": "object"}),
        ),
        None => (
            format!("Run `{command}`, then answer: the call is made again"),
            json!({
                "type": "object",
                "properties": {"signedIn": {"type": "boolean", "const": true, "description": "I have signed in"}},
                "required": ["signedIn"],
            }),
        ),
    };
    let whose = match server.account().person() {
        Some(person) => format!("{} has to sign in to {name}", person.name),
        None => format!("The server {name} wants a sign-in"),
    };
    let message = format!("{whose}. Nothing was called yet. {how}.");
    Asked::for_sign_in(name, message, schema, url)
}

fn is_sign_in(answered: &Answered) -> bool {
    answered.asked.sign_in_server().is_some()
}

/// The latest answer that is for the server.
pub(super) fn last_for_server(answered: &[Answered]) -> Option<&Answered> {
    answered.iter().rev().find(|answered| !is_sign_in(answered))
}

/// Returns whether the person who was asked last does not want to sign in.
pub(super) fn is_declined(answered: &[Answered]) -> bool {
    let last = answered.last().filter(|last| is_sign_in(last));
    last.is_some_and(|last| last.replies.contains(&Reply::Decline))
}
