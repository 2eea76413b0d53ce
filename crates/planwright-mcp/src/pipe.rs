//! The client on standard input and output.
//!
//! Nearly all that a client says is calls of tools. The library finds out what a message is by trying one kind
//! after the other; a call is read as one at once here, and everything else as the library reads it.

use crate::earlier_tasks::rename;
use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequest, CallToolRequestMethod, CallToolRequestParams, ClientJsonRpcMessage,
    ClientRequest, JsonRpcVersion2_0, RequestId, ServerJsonRpcMessage,
};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use serde::Deserialize;
use serde_json::Value;
use std::io;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, Empty, empty};

/// The longest line that is read. A longer one is passed over.
const MAX_LINE: usize = 16 << 20;
const CHUNK: usize = 8 << 10;
/// Some editors begin what they write with it.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// The pipes of one client. Messages are written as the library writes them.
pub(crate) struct ClientPipes<R, W: AsyncWrite> {
    lines: Lines<R>,
    told: AsyncRwTransport<RoleServer, Empty, W>,
}

impl<R, W: AsyncWrite + Send + Unpin + 'static> ClientPipes<R, W> {
    pub(crate) fn new(input: R, output: W) -> Self {
        Self {
            lines: Lines::new(input),
            told: AsyncRwTransport::new_server(empty(), output),
        }
    }
}

impl<R, W> Transport<RoleServer> for ClientPipes<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.told.send(message)
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            let line = match self.lines.next().await {
                Ok(line) => line?,
                Err(error) => {
                    tracing::error!(%error, "the client cannot be heard any more");
                    return None;
                }
            };
            match read(&line) {
                Heard::Message(message) => return Some(*message),
                Heard::Nothing => {}
                Heard::NoMessage => {
                    let error = ErrorData::invalid_request("Invalid request", None);
                    let told = self.send(ServerJsonRpcMessage::error(error, None)).await;
                    told.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.told.close().await
    }
}

/// Lines of bytes, as they come.
struct Lines<R> {
    input: R,
    /// What came and was not taken yet.
    came: Vec<u8>,
    /// So much of it has no end of a line.
    searched: usize,
    /// The line is too long, and what came of it is gone.
    is_passed_over: bool,
}

impl<R> Lines<R> {
    fn new(input: R) -> Self {
        Self {
            input,
            came: Vec::with_capacity(CHUNK),
            searched: 0,
            is_passed_over: false,
        }
    }

    /// Takes the first whole line, without its end.
    fn take(&mut self) -> Option<Vec<u8>> {
        let end = self.came[self.searched..]
            .iter()
            .position(|byte| *byte == b'\n');
        let Some(end) = end.map(|end| self.searched + end) else {
            self.searched = self.came.len();
            return None;
        };
        self.searched = 0;
        let line = self.came[..end].to_vec();
        self.came.drain(..=end);
        Some(line)
    }
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// The next line, or nothing at the end of the input: a last line without its end was cut. What came is
    /// kept if this is not waited for any longer.
    async fn next(&mut self) -> io::Result<Option<Vec<u8>>> {
        loop {
            while let Some(line) = self.take() {
                if std::mem::take(&mut self.is_passed_over) || line.len() > MAX_LINE {
                    tracing::error!(limit = MAX_LINE, "a message of the client is too long");
                    continue;
                }
                return Ok(Some(line));
            }
            if self.came.len() > MAX_LINE {
                self.came.clear();
                self.searched = 0;
                self.is_passed_over = true;
            }
            self.came.reserve(CHUNK);
            if self.input.read_buf(&mut self.came).await? == 0 {
                return Ok(None);
            }
        }
    }
}

/// What a line is.
enum Heard {
    Message(Box<ClientJsonRpcMessage>),
    /// Nothing that wants an answer, or that could be given one.
    Nothing,
    /// JSON that is no message.
    NoMessage,
}

fn read(line: &[u8]) -> Heard {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let line = line.strip_prefix(BYTE_ORDER_MARK).unwrap_or(line);
    let renamed = rename(line);
    let line = renamed.as_deref().unwrap_or(line);
    if let Ok(call) = serde_json::from_slice::<PlainCall>(line) {
        return Heard::Message(Box::new(call.into()));
    }
    if let Ok(message) = serde_json::from_slice(line) {
        return Heard::Message(Box::new(message));
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(said) if said["id"].is_null() && said["method"].is_string() => Heard::Nothing,
        Ok(_) => Heard::NoMessage,
        // Who says something that is no JSON might take the answer for something to answer.
        Err(_) => Heard::Nothing,
    }
}

/// A call of a tool, as nearly all clients write it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainCall {
    jsonrpc: JsonRpcVersion2_0,
    id: RequestId,
    method: CallToolRequestMethod,
    params: CallToolRequestParams,
}

impl From<PlainCall> for ClientJsonRpcMessage {
    fn from(call: PlainCall) -> Self {
        let PlainCall {
            jsonrpc: JsonRpcVersion2_0,
            id,
            method: CallToolRequestMethod,
            mut params,
        } = call;
        // The library has it beside the parameters.
        let meta = params.meta.take();
        let mut request = CallToolRequest::new(params);
        if let Some(meta) = meta {
            request.extensions.insert(meta);
        }
        Self::request(ClientRequest::CallToolRequest(request), id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rmcp::model::RequestMetaObject;
    use serde_json::json;
    use tokio::io::AsyncBufReadExt as _;

    fn message(line: &[u8]) -> Option<ClientJsonRpcMessage> {
        match read(line) {
            Heard::Message(message) => Some(*message),
            Heard::Nothing | Heard::NoMessage => None,
        }
    }

    /// Everything that is in a call, also what is beside its parameters.
    fn parts(message: &ClientJsonRpcMessage) -> (Value, Option<RequestMetaObject>) {
        let ClientJsonRpcMessage::Request(request) = message else {
            panic!("{message:?} is no request");
        };
        let ClientRequest::CallToolRequest(call) = &request.request else {
            panic!("{message:?} is no call");
        };
        assert_eq!(call.params.meta, None);
        let meta = call.extensions.get::<RequestMetaObject>();
        (serde_json::to_value(message).unwrap(), meta.cloned())
    }

    #[test]
    fn a_call_is_read_as_the_library_reads_it() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"method":"tools/call","params":{"arguments":{"b":[1,2.5,null],"a":{"c":"\u00e9"}},"name":"a"},"id":"x","jsonrpc":"2.0"}"#,
            r#" {"jsonrpc":"2.0","id":1e2,"method":"tools/call","params":{"name":"a","_meta":{"progressToken":7,"x":{"y":1}},"arguments":{}}} "#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","_meta":null,"arguments":null}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":1,"b":2,"a":3},"unknown":[1]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","requestState":"s","inputResponses":{"k":{"action":"accept"}}}}"#,
        ] {
            let quick = serde_json::from_str::<PlainCall>(line).expect(line);
            let slow = serde_json::from_str::<ClientJsonRpcMessage>(line).unwrap();
            assert_eq!(parts(&quick.into()), parts(&slow), "{line}");
        }
    }

    #[test]
    fn what_is_no_plain_call_is_left_to_the_library() {
        for line in [
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"},"more":1}"#,
            r#"{"jsonrpc":"2.0","method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1.5,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"1.0","id":1,"method":"tools/call","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"name":"a"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            r#"[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a"}}]"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"tools/call","params":{"name":"a"}}"#,
        ] {
            assert!(serde_json::from_str::<PlainCall>(line).is_err(), "{line}");
            let slow = serde_json::from_str::<ClientJsonRpcMessage>(line).ok();
            let debug = |message: &Option<ClientJsonRpcMessage>| format!("{message:?}");
            assert_eq!(debug(&message(line.as_bytes())), debug(&slow), "{line}");
        }
    }

    fn ping(id: u32) -> String {
        json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()
    }

    /// The ids of the requests that are heard, and the lines that are answered meanwhile.
    async fn hear(written: Vec<u8>) -> (Vec<String>, Vec<String>) {
        let (output, told) = tokio::io::duplex(1 << 16);
        let mut pipes = ClientPipes::new(std::io::Cursor::new(written), output);
        let mut heard = Vec::new();
        while let Some(message) = pipes.receive().await {
            let message = serde_json::to_value(&message).unwrap();
            heard.push(format!("{} {}", message["id"], message["method"]));
        }
        drop(pipes);
        let mut told = tokio::io::BufReader::new(told).lines();
        let mut answered = Vec::new();
        while let Some(line) = told.next_line().await.unwrap() {
            answered.push(line);
        }
        (heard, answered)
    }

    #[tokio::test]
    async fn lines_are_heard_in_their_order() {
        let call = r#"{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"a"}}"#;
        let task = r#"{"jsonrpc":"2.0","id":3,"method":"tasks/list"}"#;
        let marked = format!("\u{feff}{}", ping(4));
        let text = format!("{}\r\n\n{call}\n{task}\n{marked}\n{}", ping(1), ping(5));
        let (heard, answered) = hear(text.into_bytes()).await;
        let task = r#"3 "planwright/tasks/list""#;
        let calls = r#""c" "tools/call""#;
        assert_eq!(heard, [r#"1 "ping""#, calls, task, r#"4 "ping""#]);
        assert!(answered.is_empty(), "{answered:?}");
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_is_passed_over() {
        let endless = "x".repeat(MAX_LINE + 3 * CHUNK);
        let long = format!("{{\"jsonrpc\":\"{}\"}}", "x".repeat(MAX_LINE));
        let text = format!("{}\n{endless}\n{}\n{long}\n{}\n", ping(1), ping(2), ping(3));
        let (heard, answered) = hear(text.into_bytes()).await;
        assert_eq!(heard, [r#"1 "ping""#, r#"2 "ping""#, r#"3 "ping""#]);
        assert!(answered.is_empty(), "{answered:?}");
    }

    #[tokio::test]
    async fn only_what_is_json_and_no_notification_is_told_that_it_is_no_message() {
        let nothing = "hello\n{\"a\n\u{0}\n{\"method\":\"x\"}\n\n";
        let (heard, answered) = hear(nothing.to_owned().into_bytes()).await;
        assert!(
            heard.is_empty() && answered.is_empty(),
            "{heard:?} {answered:?}"
        );
        let (heard, answered) = hear(b"[1]\n{\"id\":1}\n7\n\xff\n".to_vec()).await;
        assert!(heard.is_empty(), "{heard:?}");
        assert_eq!(answered.len(), 3, "{answered:?}");
        assert!(answered[0].contains("-32600"), "{answered:?}");
    }
}
