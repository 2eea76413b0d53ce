//! The gateway as a program on the other side of a socket meets it: each limit and each refusal.

use super::connection::{MAX_BODY, MAX_HEAD};
use super::listener::{GatewayListener, MAX_CONNECTIONS};
use planwright_core::run::StepError;
use planwright_engine::port::{BoxFuture, Gateway, GatewayTool};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::timeout;

/// Long enough for anything that happens, on a machine that does other things too.
const LONG: Duration = Duration::from_secs(60);
/// Short enough to wait for.
const SHORT: Duration = Duration::from_millis(300);

/// Tools that answer with their arguments: `fail` refuses, `wait` waits to be released.
#[derive(Debug, Default)]
struct Echo {
    calls: Arc<AtomicUsize>,
    finished: Arc<Notify>,
    released: Arc<Notify>,
}

impl Echo {
    fn count_calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Gateway for Echo {
    fn tools(&self) -> Vec<GatewayTool> {
        Vec::new()
    }

    fn call(&self, tool: String, args: Value) -> BoxFuture<'static, Result<Value, StepError>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let released = Arc::clone(&self.released);
        let finished = Arc::clone(&self.finished);
        Box::pin(async move {
            match tool.as_str() {
                "fail" => Err(StepError::new("tool_failed".into(), "it is broken")),
                "wait" => {
                    released.notified().await;
                    finished.notify_one();
                    Ok(args)
                }
                _ => Ok(args),
            }
        })
    }
}

async fn open_with(arrival_limit: Duration) -> (GatewayListener, Arc<Echo>) {
    let echo = Arc::new(Echo::default());
    let gateway = Arc::clone(&echo) as Arc<dyn Gateway>;
    let listener = GatewayListener::open_with(gateway, arrival_limit)
        .await
        .unwrap();
    (listener, echo)
}

async fn open() -> (GatewayListener, Arc<Echo>) {
    open_with(LONG).await
}

fn host_of(listener: &GatewayListener) -> &str {
    listener.address().strip_prefix("http://").unwrap()
}

/// The head of a request with the right host and the right token, to which `more` is added.
fn head(listener: &GatewayListener, line: &str, more: &str) -> String {
    let host = host_of(listener);
    let token = listener.token();
    format!("{line} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\n{more}\r\n")
}

/// A whole call with the right host and the right token.
fn call(listener: &GatewayListener, body: &str) -> String {
    let length = format!("content-length: {}\r\n", body.len());
    head(listener, "POST /call", &length) + body
}

async fn connect(listener: &GatewayListener) -> TcpStream {
    TcpStream::connect(host_of(listener)).await.unwrap()
}

/// A reply, as far as it arrived.
#[derive(Debug)]
struct Reply {
    head: String,
    body: String,
}

impl Reply {
    fn status(&self) -> u16 {
        let word = self.head.split(' ').nth(1).unwrap_or_default();
        word.parse().unwrap_or_default()
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or(Value::Null)
    }

    #[track_caller]
    fn is_error(&self, status: u16, code: &str) {
        assert_eq!(self.status(), status, "{self:?}");
        assert_eq!(self.json()["error"]["code"], code, "{self:?}");
    }
}

/// Reads until the gateway closes the connection.
async fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let read = timeout(LONG, stream.read_to_end(&mut bytes)).await;
    // A connection that is closed with unread bytes may be reset after its reply.
    drop(read.expect("the gateway closes a connection after one reply"));
    let text = String::from_utf8(bytes).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_str(), ""));
    Reply {
        head: head.to_owned(),
        body: body.to_owned(),
    }
}

/// Sends bytes, keeps the connection open and reads the reply.
async fn ask(listener: &GatewayListener, bytes: impl AsRef<[u8]>) -> Reply {
    let mut stream = connect(listener).await;
    // A gateway that has read enough may close the connection meanwhile.
    drop(stream.write_all(bytes.as_ref()).await);
    read_reply(&mut stream).await
}

/// Sends bytes, says that there are no more, and reads the reply.
async fn ask_and_close(listener: &GatewayListener, bytes: impl AsRef<[u8]>) -> Reply {
    let mut stream = connect(listener).await;
    drop(stream.write_all(bytes.as_ref()).await);
    drop(stream.shutdown().await);
    read_reply(&mut stream).await
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let (listener, echo) = open().await;
    let reply = ask(&listener, head(&listener, "GET /tools", "")).await;
    assert_eq!(reply.status(), 200, "{reply:?}");
    assert_eq!(reply.json(), json!({"tools": []}));
    assert!(reply.head.contains("content-type: application/json"));
    let reply = ask(
        &listener,
        call(&listener, r#"{"tool": "t", "args": {"a": [1]}}"#),
    )
    .await;
    assert_eq!(reply.status(), 200, "{reply:?}");
    assert_eq!(reply.json(), json!({"result": {"a": [1]}}));
    assert_eq!(echo.count_calls(), 1);
    for without in [r#"{"tool": "t"}"#, r#"{"tool": "t", "args": null}"#] {
        let reply = ask(&listener, call(&listener, without)).await;
        assert_eq!(reply.json(), json!({"result": {}}));
    }
}

#[tokio::test]
async fn a_refused_call_says_its_code_and_its_reason() {
    let (listener, _) = open().await;
    let reply = ask(&listener, call(&listener, r#"{"tool": "fail"}"#)).await;
    reply.is_error(422, "tool_failed");
    assert_eq!(reply.json()["error"]["message"], "it is broken");
}

#[tokio::test]
async fn it_listens_on_the_loopback_interface_only() {
    let (listener, _) = open().await;
    assert!(host_of(&listener).starts_with("127.0.0.1:"), "{listener:?}");
    let port = host_of(&listener).rsplit(':').next().unwrap();
    let elsewhere = format!("127.0.0.2:{port}");
    assert!(TcpStream::connect(elsewhere).await.is_err());
}

#[tokio::test]
async fn each_gateway_has_a_token_of_its_own() {
    let (first, _) = open().await;
    let (second, _) = open().await;
    assert_ne!(first.token(), second.token());
    assert_eq!(first.token().len(), 64);
}

#[tokio::test]
async fn a_request_without_the_token_is_refused() {
    let (listener, echo) = open().await;
    let (other, _) = open().await;
    let host = host_of(&listener);
    let token = listener.token();
    let body = r#"{"tool": "t"}"#;
    let wrong = [
        String::new(),
        format!("authorization: Bearer {}\r\n", other.token()),
        format!("authorization: Bearer {}\r\n", &token[..63]),
        format!("authorization: Bearer {token}0\r\n"),
        format!("authorization: Bearer {}\r\n", token.to_uppercase()),
        format!("authorization: Basic {token}\r\n"),
        format!("authorization: {token}\r\n"),
        "authorization: Bearer \r\n".to_owned(),
        format!("x-authorization: Bearer {token}\r\n"),
    ];
    for line in wrong {
        let request = format!(
            "POST /call HTTP/1.1\r\nhost: {host}\r\n{line}content-length: {}\r\n\r\n{body}",
            body.len()
        );
        ask(&listener, request).await.is_error(401, "wrong_token");
    }
    assert_eq!(echo.count_calls(), 0);
}

#[tokio::test]
async fn a_request_for_another_host_is_refused() {
    let (listener, _) = open().await;
    let token = listener.token();
    let host = host_of(&listener);
    let port = host.rsplit(':').next().unwrap();
    let ask_host = async |line: String| {
        let request = format!("GET /tools HTTP/1.1\r\n{line}authorization: Bearer {token}\r\n\r\n");
        ask(&listener, request).await
    };
    let wrong = [
        String::new(),
        "host: 127.0.0.1\r\n".to_owned(),
        "host: 127.0.0.1:1\r\n".to_owned(),
        "host: \r\n".to_owned(),
        format!("host: evil.example:{port}\r\n"),
        format!("host: 127.0.0.1.evil.example:{port}\r\n"),
    ];
    for line in wrong {
        ask_host(line).await.is_error(421, "wrong_host");
    }
    let right = ask_host(format!("Host: localhost:{port}\r\n")).await;
    assert_eq!(right.status(), 200, "{right:?}");
}

#[tokio::test]
async fn there_are_two_requests_and_no_others() {
    let (listener, echo) = open().await;
    let absolute = format!("GET {}/tools", listener.address());
    let unknown = [
        "GET /",
        "GET /call",
        "POST /tools",
        "PUT /call",
        "DELETE /tools",
        "OPTIONS /tools",
        "GET /tools/",
        "GET /tools?all",
        "GET /TOOLS",
        "GET //tools",
        "GET /x/../tools",
        "GET /%74ools",
        absolute.as_str(),
    ];
    for line in unknown {
        let reply = ask(&listener, head(&listener, line, "")).await;
        reply.is_error(404, "not_found");
    }
    assert_eq!(echo.count_calls(), 0);
}

#[tokio::test]
async fn a_body_that_is_no_call_is_refused() {
    let (listener, echo) = open().await;
    let wrong = [
        "",
        "{",
        "[]",
        "{}",
        r#"{"args": {}}"#,
        r#"{"tool": 1}"#,
        r#"{"tool": "t", "more": 1}"#,
        r#"{"tool": "t"} {"tool": "t"}"#,
    ];
    for body in wrong {
        ask(&listener, call(&listener, body))
            .await
            .is_error(400, "bad_request");
    }
    assert_eq!(echo.count_calls(), 0);
}

#[tokio::test]
async fn the_longest_body_is_taken_and_a_longer_one_refused() {
    let (listener, echo) = open().await;
    let frame = r#"{"tool": "t", "args": ""}"#.len();
    let text = "y".repeat(MAX_BODY - frame);
    let body = format!(r#"{{"tool": "t", "args": "{text}"}}"#);
    assert_eq!(body.len(), MAX_BODY);
    let reply = ask(&listener, call(&listener, &body)).await;
    assert_eq!(reply.status(), 200, "{}", reply.head);
    assert_eq!(reply.json()["result"], text);

    // Refused by its announcement: nothing of it is sent.
    let length = format!("content-length: {}\r\n", MAX_BODY + 1);
    let reply = ask(&listener, head(&listener, "POST /call", &length)).await;
    reply.is_error(413, "the body is too long");
    assert_eq!(echo.count_calls(), 1);
}

#[tokio::test]
async fn a_body_in_chunks_is_refused() {
    let (listener, echo) = open().await;
    let chunked = head(&listener, "POST /call", "transfer-encoding: chunked\r\n");
    let reply = ask(&listener, chunked + "d\r\n{\"tool\": \"t\"}\r\n0\r\n\r\n").await;
    reply.is_error(400, "give the body with a content-length");
    assert_eq!(echo.count_calls(), 0);
}

#[tokio::test]
async fn a_long_head_is_taken_and_one_over_the_limit_refused() {
    let (listener, _) = open().await;
    let long = format!("x: {}\r\n", "y".repeat(MAX_HEAD - 1024));
    let reply = ask(&listener, head(&listener, "GET /tools", &long)).await;
    assert_eq!(reply.status(), 200, "{reply:?}");

    let endless = format!("x: {}", "y".repeat(MAX_HEAD + 4096));
    let reply = ask(&listener, head(&listener, "GET /tools", "") + &endless).await;
    assert_eq!(reply.status(), 200, "the end of the head comes first");
    let too_long = format!("x: {}\r\n", "y".repeat(MAX_HEAD + (16 << 10)));
    let reply = ask(&listener, head(&listener, "GET /tools", &too_long)).await;
    assert_eq!(reply.status(), 431, "{reply:?}");
}

#[tokio::test]
async fn a_body_that_breaks_off_is_refused() {
    let (listener, echo) = open().await;
    let cut = head(&listener, "POST /call", "content-length: 20\r\n") + r#"{"tool": "t"}"#;
    let reply = ask_and_close(&listener, cut).await;
    reply.is_error(400, "the request cannot be read");
    assert_eq!(echo.count_calls(), 0);
}

#[tokio::test]
async fn garbage_is_refused_and_harms_nothing() {
    let (listener, echo) = open().await;
    let token = listener.token();
    let garbage: [Vec<u8>; 9] = [
        b"\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"hello there\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(),
        vec![0; 64],
        vec![0xff; 64],
        format!("POST /call HTTP/1.1\r\ncontent-length: many\r\n\r\n{token}").into_bytes(),
        format!("POST /call HTTP/1.1\r\ncontent-length: -1\r\n\r\n{token}").into_bytes(),
    ];
    for bytes in garbage {
        let reply = ask_and_close(&listener, &bytes).await;
        let status = reply.status();
        let is_refused = status == 0 || (400..500).contains(&status);
        assert!(is_refused, "{bytes:?}: {reply:?}");
    }
    assert_eq!(echo.count_calls(), 0);
    let reply = ask(&listener, call(&listener, r#"{"tool": "t"}"#)).await;
    assert_eq!(reply.status(), 200, "{reply:?}");
}

#[tokio::test]
async fn a_head_that_does_not_arrive_in_time_ends_the_connection() {
    let (listener, _) = open_with(SHORT).await;
    assert_eq!(ask(&listener, "").await.status(), 0);
    let whole = head(&listener, "GET /tools", "");
    let half = &whole[..whole.len() - 2];
    let reply = ask(&listener, half).await;
    assert_eq!(reply.status(), 0, "no reply: {reply:?}");
}

#[tokio::test]
async fn a_body_that_does_not_arrive_in_time_is_refused() {
    let (listener, echo) = open_with(SHORT).await;
    let half = head(&listener, "POST /call", "content-length: 20\r\n") + r#"{"tool":"#;
    ask(&listener, half).await.is_error(408, "too_slow");
    assert_eq!(echo.count_calls(), 0);
}

#[tokio::test]
async fn a_call_may_take_longer_than_a_request_may_take_to_arrive() {
    let (listener, echo) = open_with(SHORT).await;
    let mut stream = connect(&listener).await;
    let request = call(&listener, r#"{"tool": "wait"}"#);
    stream.write_all(request.as_bytes()).await.unwrap();
    // The other request ends because its time is over; the call began before it.
    wait_for_calls(&echo, 1).await;
    assert_eq!(ask(&listener, "").await.status(), 0);
    echo.released.notify_one();
    assert_eq!(read_reply(&mut stream).await.status(), 200);
}

/// Waits until so many calls have begun.
async fn wait_for_calls(echo: &Echo, count: usize) {
    let began = timeout(LONG, async {
        while echo.count_calls() < count {
            tokio::task::yield_now().await;
        }
    });
    began.await.expect("the calls begin");
}

#[tokio::test]
async fn a_connection_carries_one_request() {
    let (listener, echo) = open().await;
    let one = call(&listener, r#"{"tool": "t"}"#);
    let reply = ask(&listener, format!("{one}{one}")).await;
    assert!(reply.head.contains("connection: close"), "{reply:?}");
    assert_eq!(reply.body, r#"{"result":{}}"#);
    assert_eq!(echo.count_calls(), 1);

    let kept = head(&listener, "GET /tools", "connection: keep-alive\r\n");
    let reply = ask(&listener, kept).await;
    assert!(reply.head.contains("connection: close"), "{reply:?}");
}

#[tokio::test]
async fn a_client_that_has_closed_its_side_gets_its_reply() {
    let (listener, _) = open().await;
    let reply = ask_and_close(&listener, call(&listener, r#"{"tool": "t"}"#)).await;
    assert_eq!(reply.json(), json!({"result": {}}));
}

#[tokio::test]
async fn a_call_goes_on_when_its_client_is_gone() {
    let (listener, echo) = open().await;
    let mut stream = connect(&listener).await;
    let request = call(&listener, r#"{"tool": "wait"}"#);
    stream.write_all(request.as_bytes()).await.unwrap();
    wait_for_calls(&echo, 1).await;
    drop(stream);
    // Another request in between gives the gateway time to notice.
    ask(&listener, head(&listener, "GET /tools", "")).await;
    echo.released.notify_one();
    timeout(LONG, echo.finished.notified()).await.unwrap();
}

#[tokio::test]
async fn one_connection_too_many_waits_for_a_place() {
    let (listener, echo) = open().await;
    let mut waiting = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        let mut stream = connect(&listener).await;
        let request = call(&listener, r#"{"tool": "wait"}"#);
        stream.write_all(request.as_bytes()).await.unwrap();
        waiting.push(stream);
    }
    wait_for_calls(&echo, MAX_CONNECTIONS).await;
    let mut late = connect(&listener).await;
    let request = head(&listener, "GET /tools", "");
    late.write_all(request.as_bytes()).await.unwrap();
    let mut byte = [0];
    let early = timeout(SHORT, late.peek(&mut byte)).await;
    assert!(early.is_err(), "it is answered only when there is a place");
    echo.released.notify_one();
    assert_eq!(read_reply(&mut late).await.status(), 200);
    drop(waiting);
}

#[tokio::test]
async fn a_slow_client_gives_its_place_back() {
    let (listener, _) = open_with(SHORT).await;
    let mut idle = Vec::new();
    for _ in 0..MAX_CONNECTIONS {
        idle.push(connect(&listener).await);
    }
    let mut late = connect(&listener).await;
    let request = head(&listener, "GET /tools", "");
    late.write_all(request.as_bytes()).await.unwrap();
    assert_eq!(read_reply(&mut late).await.status(), 200);
    drop(idle);
}

#[tokio::test]
async fn closing_the_gateway_ends_its_connections_and_its_calls() {
    let (listener, echo) = open().await;
    let mut stream = connect(&listener).await;
    let request = call(&listener, r#"{"tool": "wait"}"#);
    stream.write_all(request.as_bytes()).await.unwrap();
    wait_for_calls(&echo, 1).await;
    let address = host_of(&listener).to_owned();
    drop(listener);
    let reply = read_reply(&mut stream).await;
    assert_eq!(reply.status(), 0, "no reply: {reply:?}");
    // The call is gone with its connection, so this releases nothing.
    echo.released.notify_waiters();
    assert!(timeout(SHORT, echo.finished.notified()).await.is_err());
    assert!(TcpStream::connect(address).await.is_err());
}
