//! The door between an executor and the plan's tools: a loopback listener with a token of its own,
//! which lives exactly as long as the attempt it belongs to.
//!
//! It speaks just enough HTTP for two requests: `GET /tools` and `POST /call`.

use planwright_engine::port::Gateway;
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// The line and the headers of a request.
const MAX_HEAD: usize = 16 << 10;
/// The arguments of a call.
const MAX_BODY: usize = 4 << 20;
/// Requests at once.
const MAX_REQUESTS: usize = 16;
/// How long a request may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

/// The pause after a connection could not be accepted.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// An open door. Dropping closes it.
#[derive(Debug)]
pub(super) struct Door {
    address: String,
    token: String,
    serving: JoinHandle<()>,
}

impl Drop for Door {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl Door {
    pub(super) async fn open(gateway: Arc<dyn Gateway>) -> std::io::Result<Self> {
        Self::open_with_patience(gateway, PATIENCE).await
    }

    /// Opens a door with another limit for the arrival of a request than the usual one.
    async fn open_with_patience(
        gateway: Arc<dyn Gateway>,
        patience: Duration,
    ) -> std::io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let port = listener.local_addr()?.port();
        let token = random_token()?;
        let guard = Arc::new(Guard {
            token: token.clone(),
            port,
            gateway,
            patience,
        });
        let serving = tokio::spawn(serve(listener, guard));
        Ok(Self {
            address: format!("http://127.0.0.1:{port}"),
            token,
            serving,
        })
    }

    pub(super) fn address(&self) -> &str {
        &self.address
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }
}

fn random_token() -> std::io::Result<String> {
    let mut bytes = [0_u8; 32];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
}

/// What decides about a request.
#[derive(Debug)]
struct Guard {
    token: String,
    port: u16,
    gateway: Arc<dyn Gateway>,
    patience: Duration,
}

async fn serve(listener: TcpListener, guard: Arc<Guard>) {
    let slots = Arc::new(Semaphore::new(MAX_REQUESTS));
    // The requests end with the door.
    let mut requests = tokio::task::JoinSet::new();
    loop {
        while requests.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Most likely this process has no more files: that passes, but not at once.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let guard = Arc::clone(&guard);
        requests.spawn(async move {
            // A client that breaks a request off gets no answer.
            drop(answer(stream, &guard).await);
            drop(slot);
        });
    }
}

async fn answer(mut stream: TcpStream, guard: &Guard) -> std::io::Result<()> {
    let (status, body) = match timeout(guard.patience, Request::read(&mut stream)).await {
        Ok(Ok(request)) => guard.decide(request).await,
        Ok(Err(problem)) => (problem.0, error(problem.1, problem.1)),
        Err(_) => (408, error("too_slow", "the request did not arrive in time")),
    };
    let text = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reason(status),
        text.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(text.as_bytes()).await?;
    stream.shutdown().await
}

fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        401 => "Unauthorized",
        404 => "Not Found",
        408 => "Request Timeout",
        413 => "Content Too Large",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        _ => "Bad Request",
    }
}

fn error(code: &str, message: &str) -> Value {
    json!({"error": {"code": code, "message": message}})
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Order {
    tool: String,
    #[serde(default)]
    args: Value,
}

impl Guard {
    async fn decide(&self, request: Request) -> (u16, Value) {
        let hosts = [
            format!("127.0.0.1:{}", self.port),
            format!("localhost:{}", self.port),
        ];
        if !request
            .host
            .as_ref()
            .is_some_and(|host| hosts.contains(host))
        {
            return (
                421,
                error("wrong_host", "this is not the host that was asked for"),
            );
        }
        if !request
            .token
            .as_ref()
            .is_some_and(|token| token.as_bytes().ct_eq(self.token.as_bytes()).into())
        {
            return (
                401,
                error("wrong_token", "the token is not the one of this step"),
            );
        }
        match (request.method.as_str(), request.path.as_str()) {
            ("GET", "/tools") => (200, json!({"tools": self.gateway.tools()})),
            ("POST", "/call") => match serde_json::from_slice::<Order>(&request.body) {
                Ok(order) => self.call(order).await,
                Err(problem) => (400, error("bad_request", &problem.to_string())),
            },
            _ => (
                404,
                error("not_found", "there is GET /tools and POST /call"),
            ),
        }
    }

    async fn call(&self, order: Order) -> (u16, Value) {
        let args = if order.args.is_null() {
            json!({})
        } else {
            order.args
        };
        match self.gateway.call(order.tool, args).await {
            Ok(value) => (200, json!({"result": value})),
            Err(refused) => (422, error(refused.code.as_str(), &refused.message)),
        }
    }
}

#[derive(Debug, Default)]
struct Request {
    method: String,
    path: String,
    host: Option<String>,
    token: Option<String>,
    body: Vec<u8>,
}

type Problem = (u16, &'static str);

impl Request {
    async fn read(stream: &mut TcpStream) -> Result<Self, Problem> {
        const BROKEN: Problem = (400, "the request cannot be read");
        let mut bytes = Vec::new();
        let mut buffer = vec![0; 16 << 10];
        let end = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            if bytes.len() > MAX_HEAD {
                return Err((413, "the head of the request is too long"));
            }
            match stream.read(&mut buffer).await {
                Ok(n @ 1..) => bytes.extend_from_slice(&buffer[..n]),
                Ok(0) | Err(_) => return Err(BROKEN),
            }
        };
        let head = std::str::from_utf8(&bytes[..end]).map_err(|_| BROKEN)?;
        let mut lines = head.split("\r\n");
        let mut first = lines.next().unwrap_or_default().split(' ');
        let mut request = Self {
            method: first.next().unwrap_or_default().to_owned(),
            path: first.next().unwrap_or_default().to_owned(),
            ..Self::default()
        };
        let mut length = 0;
        for (name, value) in lines.filter_map(|line| line.split_once(':')) {
            match name.to_ascii_lowercase().as_str() {
                "host" => request.host = Some(value.trim().to_owned()),
                "authorization" => {
                    request.token = value.trim().strip_prefix("Bearer ").map(str::to_owned);
                }
                "content-length" => length = value.trim().parse::<usize>().map_err(|_| BROKEN)?,
                "transfer-encoding" => return Err((400, "give the body with a content-length")),
                _ => {}
            }
        }
        if length > MAX_BODY {
            return Err((413, "the body is too long"));
        }
        request.body = bytes.split_off(end + 4);
        while request.body.len() < length {
            match stream.read(&mut buffer).await {
                Ok(n @ 1..) => request.body.extend_from_slice(&buffer[..n]),
                Ok(0) | Err(_) => return Err(BROKEN),
            }
        }
        request.body.truncate(length);
        Ok(request)
    }
}

#[cfg(test)]
mod tests;
