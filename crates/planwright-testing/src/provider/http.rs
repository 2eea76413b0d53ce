//! As much HTTP as a provider needs: one request, one answer, then the connection closes.

use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A request that a client made.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    pub method: String,
    /// With its query.
    pub path: String,
    /// By lower-case name.
    pub headers: BTreeMap<String, String>,
    /// Null if it is no JSON.
    pub body: Value,
}

impl RecordedRequest {
    /// All text of the request's body, to look for words in.
    pub fn text(&self) -> String {
        self.body.to_string()
    }
}

pub(super) struct Connection(TcpStream);

impl Connection {
    /// Reads the request; `None` for a connection that brings none.
    pub(super) fn accept(stream: TcpStream) -> Option<(Self, RecordedRequest)> {
        stream
            .set_read_timeout(Some(Duration::from_secs(60)))
            .ok()?;
        let mut reader = BufReader::new(stream.try_clone().ok()?);
        let mut first = String::new();
        reader.read_line(&mut first).ok()?;
        let mut words = first.split_whitespace();
        let method = words.next()?.to_owned();
        let path = words.next()?.to_owned();
        let mut headers = BTreeMap::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
        }
        let length = headers
            .get("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Some((
            Self(stream),
            RecordedRequest {
                method,
                path,
                headers,
                body,
            },
        ))
    }

    /// A whole answer.
    pub(super) fn whole(&mut self, status: u16, headers: &[(&'static str, String)], body: &str) {
        let extra: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!(
            "HTTP/1.1 {status} Scripted\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{extra}connection: \
             close\r\n\r\n",
            body.len()
        );
        // The client may be gone, which is no concern of the script.
        drop(
            self.0
                .write_all(head.as_bytes())
                .and_then(|()| self.0.write_all(body.as_bytes())),
        );
    }

    pub(super) fn begin_stream(&mut self, headers: &[(&'static str, String)]) {
        let extra: String = headers
            .iter()
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let head = format!(
            "HTTP/1.1 200 Scripted\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{extra}connection: \
             close\r\n\r\n"
        );
        drop(self.0.write_all(head.as_bytes()));
    }

    /// Sends one chunk; false if the client no longer listens.
    pub(super) fn send(&mut self, text: &str) -> bool {
        write!(self.0, "{:x}\r\n{text}\r\n", text.len())
            .and_then(|()| self.0.flush())
            .is_ok()
    }

    pub(super) fn end_stream(&mut self) {
        drop(self.0.write_all(b"0\r\n\r\n"));
    }

    /// Says nothing until the other side goes away.
    pub(super) fn wait_until_closed(&mut self) {
        let mut byte = [0];
        drop(self.0.read(&mut byte));
    }
}
