//! The other side of the gateway, for executors that are scripts.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A longer answer is not read.
const MAX_ANSWER: u64 = 64 << 20;

#[derive(Debug, thiserror::Error)]
pub enum CallGatewayError {
    #[error("`{0}` is no address of a gateway")]
    Address(String),
    #[error("the gateway cannot be reached: {0}")]
    Unreachable(#[from] std::io::Error),
    #[error("the gateway said something that cannot be read")]
    Unreadable,
    /// The call was refused or failed.
    #[error("{message}")]
    Refused { code: String, message: String },
}

/// Calls a tool of the plan through the gateway of a step. Without a tool: lists the tools.
pub async fn call_gateway(
    address: &str,
    token: &str,
    call: Option<(&str, Value)>,
) -> Result<Value, CallGatewayError> {
    let wrong = || CallGatewayError::Address(address.to_owned());
    let host = address.strip_prefix("http://").ok_or_else(wrong)?;
    // A token is sent nowhere but to this machine.
    if !host.starts_with("127.0.0.1:") || token.contains(['\r', '\n']) {
        return Err(wrong());
    }
    let (line, body) = match call {
        Some((tool, args)) => (
            "POST /call",
            json!({"tool": tool, "args": args}).to_string(),
        ),
        None => ("GET /tools", String::new()),
    };
    let mut stream = TcpStream::connect(host).await?;
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(MAX_ANSWER).read_to_end(&mut answer).await?;
    let end = answer
        .windows(4)
        .position(|four| four == b"\r\n\r\n")
        .ok_or(CallGatewayError::Unreadable)?;
    let said: Value =
        serde_json::from_slice(&answer[end + 4..]).map_err(|_| CallGatewayError::Unreadable)?;
    if let Some(error) = said.get("error") {
        let text = |name: &str| {
            error
                .get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        return Err(CallGatewayError::Refused {
            code: text("code"),
            message: text("message"),
        });
    }
    Ok(said
        .get("result")
        .or_else(|| said.get("tools"))
        .cloned()
        .unwrap_or(Value::Null))
}
