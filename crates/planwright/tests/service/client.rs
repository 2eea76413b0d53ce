//! A service of its own for each test, and a client that says exactly what it is told to say.

use crate::workbench::{Bench, Running, wait_until};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

/// A running service.
pub(crate) struct Service {
    pub(crate) bench: Bench,
    running: Option<Running>,
    /// Host and port.
    pub(crate) host: String,
    /// Of a person who may do everything.
    pub(crate) admin: String,
}

impl Service {
    pub(crate) fn new() -> Self {
        Self::configured("")
    }

    /// A service whose operator wrote this into `planwright.toml`.
    pub(crate) fn configured(config: &str) -> Self {
        let bench = Bench::new();
        bench.write("planwright.toml", config);
        let admin = token(&bench, "admin", "person", "ada");
        let mut service = Self {
            bench,
            running: None,
            host: String::new(),
            admin,
        };
        service.start();
        service
    }

    /// Starts the service, and waits until it says where it is.
    pub(crate) fn start(&mut self) {
        let mut command = self
            .bench
            .command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let out = std::fs::File::create(self.bench.path("serve.out")).unwrap();
        let err = std::fs::File::create(self.bench.path("serve.err")).unwrap();
        command.stdout(out).stderr(err);
        self.running = Some(Running::of(command));
        wait_until("the service", || {
            self.bench.read("serve.out").ends_with('\n')
        });
        let said: Value = serde_json::from_str(&self.bench.read("serve.out")).unwrap();
        self.host = said["url"]
            .as_str()
            .unwrap()
            .strip_prefix("http://")
            .unwrap()
            .to_owned();
    }

    /// Tells the service to stop, and waits until it has.
    pub(crate) fn stop(&mut self) -> i32 {
        let running = self.running.take().unwrap();
        running.signal(rustix::process::Signal::TERM);
        running.wait().code
    }

    pub(crate) fn kill(&mut self) {
        self.running.take().unwrap().kill();
    }

    /// A request with the token of the person who may do everything.
    pub(crate) fn request(&self, method: &str, path: &str) -> Request {
        self.bare(method, path).token(&self.admin)
    }

    /// A request without a token.
    pub(crate) fn bare(&self, method: &str, path: &str) -> Request {
        Request {
            address: self.host.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("Host".to_owned(), self.host.clone())],
            body: None,
        }
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.request("GET", path).send()
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Answer {
        self.request("POST", path).json(body).send()
    }

    /// Posts a plan with these steps.
    #[track_caller]
    pub(crate) fn plan(&self, id: &str, steps: Value) -> Value {
        let plan =
            json!({ "id": id, "title": format!("Plan {id}"), "goal": "a test", "steps": steps });
        self.post("/plan", &plan).ends(201).json()
    }

    #[track_caller]
    pub(crate) fn approve(&self, id: &str) {
        self.post(
            &format!("/plan/{id}/approve"),
            &json!({ "decision": "approve", "version": 1 }),
        )
        .ends(200);
    }

    /// Begins a run and returns its id.
    #[track_caller]
    pub(crate) fn run(&self, id: &str) -> String {
        let begun = self
            .request("POST", &format!("/plan/{id}/run"))
            .send()
            .ends(202)
            .json();
        begun["runId"].as_str().unwrap().to_owned()
    }

    pub(crate) fn status(&self, id: &str) -> String {
        self.get(&format!("/plan/{id}")).ends(200).json()["status"]
            .as_str()
            .unwrap()
            .to_owned()
    }

    #[track_caller]
    pub(crate) fn wait_for(&self, id: &str, status: &str) {
        wait_until(&format!("{id} to be {status}"), || {
            self.status(id) == status
        });
    }

    /// The run with this id.
    #[track_caller]
    pub(crate) fn result(&self, id: &str, run: &str) -> Value {
        self.get(&format!("/plan/{id}/runs/{run}")).ends(200).json()
    }
}

fn token(bench: &Bench, role: &str, kind: &str, name: &str) -> String {
    let made = bench
        .run(&[
            "token", "create", "--role", role, "--kind", kind, "--name", name, "--json",
        ])
        .ends(0);
    made.json()["token"].as_str().unwrap().to_owned()
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    address: String,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
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

    /// Sends the request and leaves it to the caller to read what comes.
    pub(crate) fn open(&self) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(self.head(None).as_bytes()).unwrap();
        stream
    }

    #[track_caller]
    pub(crate) fn send(self) -> Answer {
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
        Answer::parse(&bytes).unwrap_or_else(|| panic!("no answer to {self:?}: {bytes:?}"))
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
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

impl Request {
    /// Requests to a service that was started elsewhere.
    pub(crate) fn to(host: &str) -> impl Fn(&str, &str) -> Self {
        let host = host.to_owned();
        move |method, path| Self {
            address: host.clone(),
            method: method.to_owned(),
            path: path.to_owned(),
            headers: vec![("Host".to_owned(), host.clone())],
            body: None,
        }
    }
}
