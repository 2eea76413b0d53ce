//! A client that reads a stream as the wire has it.

use serde_json::Value;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Longer than anything here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// An answer that ends.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// One event of a stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Event {
    pub(crate) id: Option<String>,
    pub(crate) name: String,
    pub(crate) data: Value,
}

impl Event {
    pub(crate) fn seq(&self) -> u64 {
        self.id
            .as_deref()
            .unwrap_or_else(|| panic!("{self:?} has no id"))
            .parse()
            .unwrap()
    }
}

pub(crate) struct Client {
    stream: BufReader<TcpStream>,
    chunked: bool,
    pub(crate) status: u16,
    pub(crate) headers: String,
    text: Vec<u8>,
    /// Lines that are no events: comments and the time to come back.
    pub(crate) comments: usize,
    pub(crate) retry: Option<u64>,
}

impl Client {
    /// Sends the request and reads the head of the answer. An answer that is no success is read to
    /// its end.
    pub(crate) async fn open(
        address: SocketAddr,
        path: &str,
        token: &str,
        accept: &str,
        last: Option<&str>,
    ) -> Result<Self, Answer> {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let last = last
            .map(|id| format!("Last-Event-ID: {id}\r\n"))
            .unwrap_or_default();
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nAccept: {accept}\r\nConnection: close\r\n{last}\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut stream = BufReader::new(stream);
        let mut headers = String::new();
        loop {
            let mut line = String::new();
            let read = timeout(PATIENCE, stream.read_line(&mut line))
                .await
                .unwrap()
                .unwrap();
            if read == 0 || line == "\r\n" {
                break;
            }
            headers.push_str(&line.to_ascii_lowercase());
        }
        let status = headers
            .split(' ')
            .nth(1)
            .and_then(|word| word.parse().ok())
            .unwrap_or_default();
        let chunked = headers.contains("transfer-encoding: chunked");
        let client = Self {
            stream,
            chunked,
            status,
            headers,
            text: Vec::new(),
            comments: 0,
            retry: None,
        };
        // 204 is a stream that has ended: nothing follows, and the connection is closed.
        if matches!(status, 200 | 204) {
            Ok(client)
        } else {
            Err(client.into_answer().await)
        }
    }

    pub(crate) async fn into_answer(mut self) -> Answer {
        if self.chunked {
            while self.more().await {}
        } else {
            let length = self
                .headers
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| {
                    rest.lines()
                        .next()
                        .and_then(|number| number.trim().parse::<usize>().ok())
                });
            let mut body = vec![0; length.unwrap_or_default()];
            self.stream.read_exact(&mut body).await.unwrap();
            self.text = body;
        }
        Answer {
            status: self.status,
            headers: self.headers,
            body: String::from_utf8_lossy(&self.text).into_owned(),
        }
    }

    /// Reads one more chunk. Returns false at the end of the stream, however it ends.
    async fn more(&mut self) -> bool {
        let mut size = String::new();
        match timeout(PATIENCE, self.stream.read_line(&mut size))
            .await
            .expect("nothing came for too long")
        {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            return false;
        };
        let mut chunk = vec![0; size + 2];
        if size == 0 || self.stream.read_exact(&mut chunk).await.is_err() {
            return false;
        }
        self.text.extend_from_slice(&chunk[..size]);
        true
    }

    /// The next event; nothing at the end of the stream.
    pub(crate) async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(end) = self.text.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.text.drain(..end + 2).collect();
                if let Some(event) = self.read(&String::from_utf8(block).unwrap()) {
                    return Some(event);
                }
            }
            if !self.more().await {
                return None;
            }
        }
    }

    fn read(&mut self, block: &str) -> Option<Event> {
        let mut event = Event::default();
        for line in block.lines().filter(|line| !line.is_empty()) {
            match line.split_once(": ") {
                Some(("id", id)) => event.id = Some(id.to_owned()),
                Some(("event", name)) => event.name = name.to_owned(),
                Some(("data", data)) => event.data = serde_json::from_str(data).unwrap(),
                Some(("retry", millis)) => self.retry = Some(millis.parse().unwrap()),
                _ if line.starts_with(':') => self.comments += 1,
                _ => panic!("{line:?} is no line of an event stream"),
            }
        }
        (!event.name.is_empty()).then_some(event)
    }

    /// All events until the stream ends.
    pub(crate) async fn rest(&mut self) -> Vec<Event> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await {
            events.push(event);
        }
        events
    }

    /// Reads one byte; false if there is none.
    pub(crate) async fn byte(&mut self) -> bool {
        let mut byte = [0];
        matches!(self.stream.read(&mut byte).await, Ok(1))
    }
}
