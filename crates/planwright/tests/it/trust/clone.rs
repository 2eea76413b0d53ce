//! A clone of a stranger's repository, and a place that notices everything that reaches it.

use planwright_testing::workbench::{Bench, Said, said};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

/// What a person has in the environment and never means to send.
pub(crate) const KEY: &str = "canary-AKIA-0123456789";

/// Listens on this machine and keeps what arrives.
pub(crate) struct Sink {
    address: String,
    received: Arc<Mutex<Vec<String>>>,
}

impl Sink {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let received: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&received);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = stream;
                let mut bytes = vec![0; 64 << 10];
                let count = stream.read(&mut bytes).unwrap_or(0);
                let text = String::from_utf8_lossy(&bytes[..count]).into_owned();
                kept.lock().unwrap().push(text);
                let answer = b"HTTP/1.1 500 no\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
                drop(stream.write_all(answer));
            }
        });
        Self { address, received }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

/// A repository that was just cloned.
pub(crate) struct Clone {
    pub(crate) bench: Bench,
    pub(crate) sink: Sink,
}

impl Clone {
    /// A clone with a harmless plan in it.
    pub(crate) fn new() -> Self {
        let bench = Bench::new();
        bench.document(json!({ "id": "greet", "title": "Greet", "steps": [
            { "id": "a", "tool": "demo.echo", "args": { "value": "hello" } },
        ]}));
        Self {
            bench,
            sink: Sink::start(),
        }
    }

    /// A plan whose one step leaves a trace if it is executed.
    pub(crate) fn writing_plan(&self) -> String {
        self.bench.document(json!({ "id": "tidy", "title": "Tidy up", "steps": [
            { "id": "a", "tool": "local.write_file", "args": { "path": "pwned", "content": "x" } },
        ]}))
    }

    /// The program in the clone, with a person's keys in the environment.
    pub(crate) fn run(&self, args: &[&str]) -> Said {
        self.say(args, "")
    }

    pub(crate) fn say(&self, args: &[&str], typed: &str) -> Said {
        let mut command = self.bench.command(args);
        command
            .env("AWS_SECRET_ACCESS_KEY", KEY)
            .env("OPENAI_API_KEY", KEY)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        drop(child.stdin.take().unwrap().write_all(typed.as_bytes()));
        said(child.wait_with_output().unwrap())
    }

    /// Does what a person does with a fresh clone. Every command that heeds the files says what of
    /// them it ignored, and nothing of theirs happens.
    #[track_caller]
    pub(crate) fn is_looked_at(&self, plan: &str, ignored: &str) {
        let warned = |said: &Said| {
            let all = format!("{}{}", said.out, said.err);
            assert!(all.contains("ignored because not trusted"), "{said:#?}");
            assert!(all.contains("planwright trust"), "{said:#?}");
            assert!(!all.contains(KEY), "{said:#?}");
        };
        let told = |said: &Said| {
            warned(said);
            assert!(
                said.err.contains(ignored),
                "{ignored:?} is not in {said:#?}"
            );
            let warnings = said.err.matches("ignored because not trusted");
            assert_eq!(warnings.count(), 1, "one line: {said:#?}");
        };
        let said = [
            self.run(&["validate", plan]),
            self.run(&["run", plan]),
            self.run(&["create", "greet everybody"]),
            self.say(&["chat", "--json"], "hello\n"),
        ];
        let doctor = self.run(&["doctor"]);
        self.is_unharmed();
        said.iter().for_each(told);
        warned(&doctor);
    }

    #[track_caller]
    pub(crate) fn is_unharmed(&self) {
        assert!(!self.bench.path("pwned").exists(), "something was executed");
        let received = self.sink.received();
        assert!(received.is_empty(), "something was sent: {received:#?}");
    }
}
