//! A client that sends exactly the bytes it is told to send, over a socket.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A request that is put together piece by piece.
#[derive(Debug, Clone)]
pub struct HttpRequest {
    address: String,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
}

impl HttpRequest {
    /// A request to the service at `address` (host and port), without a token.
    pub fn new(address: &str, method: &str, path: &str) -> Self {
        Self {
            address: address.to_owned(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("Host".to_owned(), address.to_owned())],
            body: None,
        }
    }

    /// Requests to a service that was started elsewhere.
    pub fn to(address: &str) -> impl Fn(&str, &str) -> Self {
        move |method, path| Self::new(address, method, path)
    }

    /// Sets a header in place of the one there was.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().as_bytes())
    }

    pub fn body(mut self, kind: &str, body: &[u8]) -> Self {
        self.body = Some(body.to_vec());
        self.header("Content-Type", kind)
    }

    /// The head of the request as it is sent.
    fn head(&self, length: Option<usize>) -> String {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        if let Some(length) = length {
            write!(head, "Content-Length: {length}\r\n").unwrap();
        }
        head.push_str("Connection: close\r\n\r\n");
        head
    }

    /// Sends the request and leaves it to the caller to read what comes.
    pub fn open(&self) -> TcpStream {
        self.try_open().unwrap()
    }

    /// As [`HttpRequest::open`], to a service that may not be there.
    pub fn try_open(&self) -> io::Result<TcpStream> {
        let mut stream = TcpStream::connect(&self.address)?;
        let posts = self.method != "GET" && self.method != "HEAD";
        let length = self
            .body
            .as_ref()
            .map(Vec::len)
            .or_else(|| posts.then_some(0));
        stream.write_all(self.head(length).as_bytes())?;
        // The service may have said no before it has read everything.
        drop(stream.write_all(self.body.as_deref().unwrap_or_default()));
        Ok(stream)
    }

    /// Sends the head and says that a body will follow, which never does. The connection is held
    /// open by the caller.
    pub fn hang(&self, length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .write_all(self.head(Some(length)).as_bytes())
            .unwrap();
        stream
    }

    /// Sends the request; `None` if the service does not answer.
    pub fn try_send(self) -> Option<HttpReply> {
        HttpReply::parse(&self.exchange().ok()?)
    }

    /// As [`HttpRequest::try_send`], where the service may take the request and say nothing.
    pub fn try_send_within(self, time: Duration) -> Option<HttpReply> {
        HttpReply::parse(&self.exchange_within(time).ok()?)
    }

    #[track_caller]
    pub fn send(self) -> HttpReply {
        let bytes = self.exchange().unwrap();
        HttpReply::parse(&bytes).unwrap_or_else(|| panic!("no answer to {self:?}: {bytes:?}"))
    }

    /// Sends the request and returns what comes back.
    fn exchange(&self) -> io::Result<Vec<u8>> {
        self.exchange_within(Duration::from_mins(1))
    }

    fn exchange_within(&self, time: Duration) -> io::Result<Vec<u8>> {
        let mut stream = self.try_open()?;
        stream.set_read_timeout(Some(time))?;
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        Ok(bytes)
    }
}

/// What the service answered.
#[derive(Debug, Clone)]
pub struct HttpReply {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpReply {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let headers = lines.filter_map(|line| line.split_once(": "));
        let headers: Vec<(String, String)> = headers
            .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
            .collect();
        let rest = &bytes[end + 4..];
        let chunked = headers
            .iter()
            .any(|(name, value)| name == "transfer-encoding" && value == "chunked");
        let body = if chunked {
            unchunk(rest)?
        } else {
            rest.to_vec()
        };
        Some(Self {
            status,
            headers,
            body,
        })
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    /// The values of a header that comes more than once.
    pub fn headers(&self, name: &str) -> impl Iterator<Item = &str> {
        let named = move |(known, _): &&(String, String)| known == name;
        self.headers
            .iter()
            .filter(named)
            .map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    pub fn text(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }

    #[track_caller]
    pub fn ends(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// A problem document with this status whose words contain these.
    #[track_caller]
    pub fn refuses(self, status: u16, words: &str) -> Self {
        let answer = self.ends(status);
        assert_eq!(
            answer.header("content-type"),
            Some("application/problem+json"),
            "{}",
            answer.text()
        );
        let problem = answer.json();
        assert_eq!(problem["status"], status, "{problem}");
        assert!(
            problem["traceId"]
                .as_str()
                .is_some_and(|trace| trace.len() == 36),
            "{problem}"
        );
        assert!(
            problem["title"].is_string() && problem["type"].is_string(),
            "{problem}"
        );
        assert!(
            problem["detail"].as_str().unwrap().contains(words),
            "{words:?} is not in {problem}"
        );
        answer
    }
}

fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..end]).ok()?, 16).ok()?;
        rest = &rest[end + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}
