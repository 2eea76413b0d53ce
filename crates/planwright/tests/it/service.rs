//! The service as a process, and a client that knows nothing of it.

use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Running;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// A service that runs until this is dropped.
pub(crate) struct Served {
    running: Running,
    address: String,
    logs: Arc<Mutex<String>>,
}

/// What was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

impl Served {
    /// The command must say where it listens, with `--json`.
    pub(crate) fn start(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut errors = child.stderr.take().unwrap();
        let logs: Arc<Mutex<String>> = Arc::default();
        let seen = Arc::clone(&logs);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = errors.read(&mut buffer) {
                seen.lock()
                    .unwrap()
                    .push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut line)
            .unwrap();
        let said: serde_json::Value =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("{line:?} {:?}", logs.lock()));
        let address = said["url"]
            .as_str()
            .unwrap()
            .trim_start_matches("http://")
            .to_owned();
        Self {
            running: Running::from(child),
            address,
            logs,
        }
    }

    pub(crate) fn logs(&self) -> String {
        self.logs.lock().unwrap().clone()
    }

    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    #[track_caller]
    pub(crate) fn wait_for_log(&self, words: &str) {
        wait_until(words, || self.logs().contains(words));
    }

    pub(crate) fn into_running(self) -> Running {
        self.running
    }

    pub(crate) fn get(&self, path: &str, headers: &[(&str, &str)]) -> Answer {
        self.ask("GET", path, headers, "")
    }

    pub(crate) fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let mut head = format!(
            "{method} {path} HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n",
            self.address
        );
        for (name, value) in headers {
            head.extend([*name, ": ", *value, "\r\n"]);
        }
        let length = body.len();
        write!(stream, "{head}content-length: {length}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Answer {
            status,
            head: head.to_owned(),
            body: body.to_owned(),
        }
    }
}
