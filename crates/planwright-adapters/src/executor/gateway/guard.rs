//! The rules of the gateway: which requests there are, and who may make them.

use super::reply::Reply;
use hyper::header::{AUTHORIZATION, HOST, HeaderName};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use planwright_engine::port::Gateway;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;
use subtle::ConstantTimeEq as _;

/// Judges the requests of one attempt and makes the calls they ask for.
#[derive(Debug)]
pub(super) struct RequestGuard {
    token: String,
    port: u16,
    gateway: Arc<dyn Gateway>,
}

/// The body of `POST /call`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallBody {
    tool: String,
    #[serde(default)]
    args: Value,
}

impl RequestGuard {
    pub(super) fn new(token: String, port: u16, gateway: Arc<dyn Gateway>) -> Self {
        Self {
            token,
            port,
            gateway,
        }
    }

    pub(super) async fn answer(&self, head: &Parts, body: &[u8]) -> Reply {
        // A page in a browser can reach a loopback port under a name of its own, but not with
        // this host.
        if !self.is_own_host(find_header(head, &HOST)) {
            return Reply::error(
                StatusCode::MISDIRECTED_REQUEST,
                "wrong_host",
                "this is not the host that was asked for",
            );
        }
        if !self.is_own_token(find_header(head, &AUTHORIZATION)) {
            return Reply::error(
                StatusCode::UNAUTHORIZED,
                "wrong_token",
                "the token is not the one of this step",
            );
        }
        // The whole target is compared: a query, or an address with a host, is another request.
        if head.method == Method::GET && head.uri == *"/tools" {
            Reply::ok(json!({"tools": self.gateway.tools()}))
        } else if head.method == Method::POST && head.uri == *"/call" {
            self.answer_call(body).await
        } else {
            Reply::error(
                StatusCode::NOT_FOUND,
                "not_found",
                "there is GET /tools and POST /call",
            )
        }
    }

    fn is_own_host(&self, host: Option<&str>) -> bool {
        let is_named = |name: &str| host == Some(format!("{name}:{}", self.port).as_str());
        is_named("127.0.0.1") || is_named("localhost")
    }

    fn is_own_token(&self, authorization: Option<&str>) -> bool {
        let token = authorization.and_then(|value| value.strip_prefix("Bearer "));
        token.is_some_and(|token| token.as_bytes().ct_eq(self.token.as_bytes()).into())
    }

    async fn answer_call(&self, body: &[u8]) -> Reply {
        let call = match serde_json::from_slice::<CallBody>(body) {
            Ok(call) => call,
            Err(error) => {
                let message = error.to_string();
                return Reply::error(StatusCode::BAD_REQUEST, "bad_request", &message);
            }
        };
        let args = if call.args.is_null() {
            json!({})
        } else {
            call.args
        };
        match self.gateway.call(call.tool, args).await {
            Ok(value) => Reply::ok(json!({"result": value})),
            Err(refused) => Reply::error(
                StatusCode::UNPROCESSABLE_ENTITY,
                refused.code.as_str(),
                &refused.message,
            ),
        }
    }
}

fn find_header<'a>(head: &'a Parts, name: &HeaderName) -> Option<&'a str> {
    head.headers.get(name)?.to_str().ok()
}
