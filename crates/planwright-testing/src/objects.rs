//! A server that speaks S3 and checks signatures, written by others. It keeps objects in memory, and is gone with the process
//! that started it.

use crate::peers::installed;
use serde_json::Value;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// The bucket that is there.
pub const BUCKET: &str = "values";

const SCRIPT: &str = include_str!("objects.py");

/// A server that runs until it is dropped.
#[derive(Debug)]
pub struct ObjectServer {
    child: Child,
    /// Its standard input, with whose end it ends, and what it answers.
    talk: Mutex<(ChildStdin, BufReader<ChildStdout>)>,
    port: u64,
    keys: [(String, String); 2],
}

impl Default for ObjectServer {
    fn default() -> Self {
        Self::start()
    }
}

impl ObjectServer {
    /// Starts a server on a free port.
    pub fn start() -> Self {
        let mut python = Command::new(installed("py-objects/bin/python"));
        python
            .args(["-c", SCRIPT])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = python.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let said = read_answer(&mut output);
        let word = |name: &str| said[name].as_str().unwrap().to_owned();
        Self {
            child,
            talk: Mutex::new((input, output)),
            port: said["port"].as_u64().unwrap(),
            keys: [
                ("AWS_ACCESS_KEY_ID".to_owned(), word("key")),
                ("AWS_SECRET_ACCESS_KEY".to_owned(), word("secret")),
            ],
        }
    }

    /// The variables with the keys that it accepts.
    pub fn keys(&self) -> [(String, String); 2] {
        self.keys.clone()
    }

    /// The address of a prefix in its bucket.
    pub fn url(&self, prefix: &str) -> String {
        self.url_of(BUCKET, prefix)
    }

    /// The address of a prefix in a bucket that may be missing.
    pub fn url_of(&self, bucket: &str, prefix: &str) -> String {
        format!(
            "s3://{bucket}/{prefix}?endpoint=http://127.0.0.1:{}&region=us-east-1",
            self.port
        )
    }

    fn tell(&self, line: &str) -> Value {
        let mut talk = self.talk.lock().unwrap_or_else(PoisonError::into_inner);
        writeln!(talk.0, "{line}").unwrap();
        read_answer(&mut talk.1)
    }

    /// The names of the objects that begin so.
    pub fn names(&self, prefix: &str) -> Vec<String> {
        let names = self.tell(&format!("keys {prefix}/"));
        let names = names.as_array().unwrap().iter();
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    }

    /// Changes what an object holds.
    pub fn replace(&self, name: &str, text: &str) {
        self.tell(&format!("put {name} {text}"));
    }

    pub fn remove(&self, name: &str) {
        self.tell(&format!("delete {name}"));
    }

    /// Lets it listen no more. Its objects stay.
    pub fn stop(&self) {
        self.tell("stop");
    }

    /// Lets it listen again, where it did.
    pub fn resume(&self) {
        self.tell("resume");
    }
}

fn read_answer(output: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    output.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap_or_else(|_| panic!("the object store says {line:?}"))
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
