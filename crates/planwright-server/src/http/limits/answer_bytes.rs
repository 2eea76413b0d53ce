//! Bytes of answers that are being sent: a client that does not read costs memory until it is cut off.

use super::requests::{PrincipalKey, lock};
use crate::http::problem::{Problem, ProblemCode};
use axum::body::Body;
use axum::response::Response;
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Over all answers, and those of one principal.
const MAX_BYTES: usize = 512 << 20;
const MAX_BYTES_EACH: usize = 128 << 20;

/// Smaller answers are not counted.
pub(super) const SMALL: usize = 256 << 10;

/// What is being sent.
#[derive(Debug, Clone, Default)]
pub(super) struct AnswerBytes(Arc<Mutex<Sent>>);

#[derive(Debug, Default)]
struct Sent {
    all: usize,
    each: HashMap<PrincipalKey, usize>,
}

/// Marks an answer whose bytes are counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Held;

/// Bytes of an answer, until it was sent.
#[derive(Debug)]
pub(crate) struct HeldAnswer {
    answers: AnswerBytes,
    principal: PrincipalKey,
    bytes: usize,
}

impl AnswerBytes {
    /// Counts an answer of this length. The first of a principal is never too long.
    pub(super) fn hold(
        &self,
        principal: PrincipalKey,
        bytes: usize,
    ) -> Result<HeldAnswer, Problem> {
        let mut sent = lock(&self.0);
        let own = sent.each.get(&principal).copied().unwrap_or_default();
        if own > 0 && own.saturating_add(bytes) > MAX_BYTES_EACH {
            let words = "too many large answers to this principal are on their way";
            return Err(Problem::later(ProblemCode::TooManyAnswers, words, 1));
        }
        if sent.all > 0 && sent.all.saturating_add(bytes) > MAX_BYTES {
            let words = "too many large answers are on their way";
            return Err(Problem::later(ProblemCode::TooBusy, words, 1));
        }
        sent.all = sent.all.saturating_add(bytes);
        let own = sent.each.entry(principal.clone()).or_default();
        *own = own.saturating_add(bytes);
        Ok(HeldAnswer {
            answers: self.clone(),
            principal,
            bytes,
        })
    }
}

impl Drop for HeldAnswer {
    fn drop(&mut self) {
        let mut sent = lock(&self.answers.0);
        sent.all = sent.all.saturating_sub(self.bytes);
        if let Some(own) = sent.each.get_mut(&self.principal) {
            *own = own.saturating_sub(self.bytes);
            if *own == 0 {
                sent.each.remove(&self.principal);
            }
        }
    }
}

impl HeldAnswer {
    /// The answer with this JSON.
    pub(crate) fn response(self, json: Vec<u8>) -> Response {
        let mut response = Response::new(Body::from(json));
        response
            .headers_mut()
            .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.keep_until_sent(response)
    }

    /// Counts the bytes until the last of them was sent.
    pub(super) fn keep_until_sent(self, response: Response) -> Response {
        let (mut parts, body) = response.into_parts();
        parts.extensions.insert(Held);
        // The closure is never called; it lives as long as the body.
        let body = body.map_err(move |error| {
            let _held = &self;
            error
        });
        Response::from_parts(parts, Body::new(body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_principal_does_not_fill_the_memory_with_answers_nobody_reads() {
        let answers = AnswerBytes::default();
        let who = |name: &str| ("person", name.to_owned());
        let first = answers.hold(who("ada"), MAX_BYTES_EACH).unwrap();
        assert_eq!(answers.hold(who("ada"), 1).unwrap_err().status, 429);
        let others: Vec<_> = ["b", "c", "d"]
            .map(|name| answers.hold(who(name), MAX_BYTES_EACH).unwrap())
            .into();
        assert_eq!(answers.hold(who("e"), 1).unwrap_err().status, 503);
        drop(others);
        drop(first);
        assert!(lock(&answers.0).each.is_empty());
        assert!(answers.hold(who("ada"), MAX_BYTES * 2).is_ok());
    }
}
