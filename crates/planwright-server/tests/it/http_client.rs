//! A client that sends exactly the bytes it is told to send, over a socket.

use serde_json::Value;
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) address: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
}

impl Request {
    /// Sets a header in place of the one there was.
    pub(crate) fn header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .retain(|(known, _)| !known.eq_ignore_ascii_case(name));
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn token(self, token: &str) -> Self {
        self.header("Authorization", &format!("Bearer {token}"))
    }

    pub(crate) fn json(self, body: &Value) -> Self {
        self.body("application/json", body.to_string().as_bytes())
    }

    pub(crate) fn body(mut self, kind: &str, body: &[u8]) -> Self {
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

    /// Sends the head and says that a body will follow, which never does. The connection is held
    /// open by the caller.
    pub(crate) fn hang(&self, length: usize) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .write_all(self.head(Some(length)).as_bytes())
            .unwrap();
        stream
    }

    #[track_caller]
    pub(crate) fn send(self) -> Reply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_mins(1)))
            .unwrap();
        let posts = self.method != "GET" && self.method != "HEAD";
        let length = self
            .body
            .as_ref()
            .map(Vec::len)
            .or_else(|| posts.then_some(0));
        stream.write_all(self.head(length).as_bytes()).unwrap();
        // The service may have said no before it has read everything.
        drop(stream.write_all(self.body.as_deref().unwrap_or_default()));
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes));
        Reply::parse(&bytes).unwrap_or_else(|| panic!("no answer to {self:?}: {bytes:?}"))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
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

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }

    pub(crate) fn text(&self) -> String {
        format!("{} {}", self.status, String::from_utf8_lossy(&self.body))
    }

    #[track_caller]
    pub(crate) fn ends(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// A problem document with this status whose words contain these.
    #[track_caller]
    pub(crate) fn refuses(self, status: u16, words: &str) -> Self {
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
