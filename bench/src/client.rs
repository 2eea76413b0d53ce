//! The program as a service, and the least that speaks HTTP to it.

use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Longer than anything takes.
const PATIENCE: Duration = Duration::from_secs(120);

/// A running service. It is killed when it is dropped.
pub(crate) struct Served {
    child: Child,
    address: String,
    token: String,
    /// From starting the process to its saying where it listens.
    pub(crate) ready: Duration,
}

impl Served {
    pub(crate) fn start(binary: &Path, workspace: &Path) -> Result<Self> {
        Self::start_on("sqlite", binary, workspace)
    }

    /// A service on a store that is elsewhere.
    pub(crate) fn start_on(store: &str, binary: &Path, workspace: &Path) -> Result<Self> {
        std::fs::create_dir_all(workspace)?;
        let settings = "[serve]\nrequests_per_second = 1000000\nburst = 1000000\n";
        std::fs::write(workspace.join("planwright.toml"), settings)?;
        let command = |args: &[&str]| {
            let mut command = Command::new(binary);
            command
                .args(args)
                // As a person starts it, also when an agent starts the measurement.
                .env_clear()
                .env("HOME", workspace)
                .env("PLANWRIGHT_DIR", workspace)
                .env("PLANWRIGHT_STORE", store)
                .current_dir(workspace);
            command.stderr(Stdio::null());
            command
        };
        let made = command(&[
            "token", "create", "--role", "admin", "--kind", "person", "--name", "bench", "--json",
        ]);
        let made = { made }.output()?;
        let made: Value = serde_json::from_slice(&made.stdout).context("no token was made")?;
        let token = made["token"]
            .as_str()
            .context("no token was made")?
            .to_owned();
        let started = Instant::now();
        let mut child = command(&["serve", "--listen", "127.0.0.1:0", "--json"])
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        BufReader::new(child.stdout.take().context("it has an output")?).read_line(&mut line)?;
        let ready = started.elapsed();
        let announced: Value = serde_json::from_str(&line).context("the service did not start")?;
        let url = announced["url"]
            .as_str()
            .context("the service says where it is")?;
        let address = url
            .strip_prefix("http://")
            .context("plain HTTP")?
            .to_owned();
        Ok(Self {
            child,
            address,
            token,
            ready,
        })
    }

    fn connect(&self, request: &str) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.write_all(request.as_bytes())?;
        let mut stream = BufReader::new(stream);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            ensure!(
                stream.read_line(&mut head)? > 0,
                "the service hung up: {head}"
            );
        }
        let success = head
            .split(' ')
            .nth(1)
            .is_some_and(|status| status.starts_with('2'));
        if !success {
            let mut body = String::new();
            stream.read_to_string(&mut body)?;
            bail!("{head}{body}");
        }
        Ok(stream)
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let address = &self.address;
        let token = &self.token;
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut answer = String::new();
        let context = || format!("POST {path}");
        self.connect(&request)
            .with_context(context)?
            .read_to_string(&mut answer)?;
        Ok(serde_json::from_str(&answer).unwrap_or_default())
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        let address = &self.address;
        let token = &self.token;
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        let mut answer = String::new();
        let context = || format!("GET {path}");
        self.connect(&request)
            .with_context(context)?
            .read_to_string(&mut answer)?;
        Ok(serde_json::from_str(&answer)?)
    }

    /// A stream of events.
    pub(crate) fn listen(&self, path: &str) -> Result<Listener> {
        let address = &self.address;
        let token = &self.token;
        let request = format!(
            "GET {path} HTTP/1.0\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nAccept: text/event-stream\r\n\r\n"
        );
        Ok(Listener(
            self.connect(&request)
                .with_context(|| format!("GET {path}"))?,
        ))
    }

    /// What the process holds in memory.
    pub(crate) fn resident_bytes(&self) -> Result<u64> {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))
            .context("the kernel knows")?;
        let kib: u64 = line.trim().trim_end_matches("kB").trim().parse()?;
        Ok(kib * 1024)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // It may be gone already.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The events of a stream, one after the other.
pub(crate) struct Listener(BufReader<TcpStream>);

impl Listener {
    /// The data of the next event; nothing at the end of the stream.
    pub(crate) fn next(&mut self) -> Result<Option<Value>> {
        let mut line = String::new();
        loop {
            line.clear();
            if self.0.read_line(&mut line)? == 0 {
                return Ok(None);
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Ok(Some(serde_json::from_str(data)?));
            }
        }
    }
}
