//! A client of `planwright mcp` that speaks JSON-RPC line by line, and so sees every word.

use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How long the server may take for one message, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A client of the protocol of one era. The server ends with it.
#[derive(Debug)]
pub struct McpClient {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    /// What the client says of itself in every request of the modern era.
    meta: Option<Value>,
    next: u64,
    /// What came while something else was waited for.
    notices: Vec<Value>,
}

impl McpClient {
    /// A client of the modern era with these capabilities.
    pub fn modern(command: Command, capabilities: Value) -> Self {
        let mut client = Self::start(command);
        client.meta = Some(json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": capabilities,
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        }));
        client
    }

    /// A client of the earlier era with these capabilities.
    pub fn legacy(command: Command, capabilities: Value) -> Self {
        let mut client = Self::start(command);
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": capabilities,
            "clientInfo": { "name": "test", "version": "1" },
        });
        client.ask("initialize", params);
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn start(mut command: Command) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line);
                let message = message.unwrap_or_else(|error| panic!("{error}: {line}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Self {
            child,
            stdin,
            lines,
            meta: None,
            next: 0,
            notices: Vec::new(),
        }
    }

    /// Sends a message as it is.
    pub fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().unwrap();
        writeln!(stdin, "{message}").unwrap();
        stdin.flush().unwrap();
    }

    /// Sends a request and returns its id.
    pub fn begin(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if let Some(meta) = &self.meta {
            let mut meta = meta.clone();
            if let Some(own) = params["_meta"].as_object() {
                meta.as_object_mut().unwrap().extend(own.clone());
            }
            params["_meta"] = meta;
        }
        let id = self.next;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        id
    }

    /// The next message of the server that this is true of. Others are kept as notices.
    #[track_caller]
    pub fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.notices.iter().position(&wanted) {
            return self.notices.remove(at);
        }
        loop {
            let message = match self.lines.recv_timeout(PATIENCE) {
                Ok(message) => message,
                Err(RecvTimeoutError::Timeout) => panic!("no answer: {:#?}", self.notices),
                Err(RecvTimeoutError::Disconnected) => panic!("it ended: {:#?}", self.notices),
            };
            if wanted(&message) {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// Makes a request and returns the whole answer.
    #[track_caller]
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        self.answer(id)
    }

    /// The answer to a request that was begun.
    #[track_caller]
    pub fn answer(&mut self, id: u64) -> Value {
        self.wait_for(|message| message["id"] == id && message["method"].is_null())
    }

    /// Calls a tool and returns its result.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask(
            "tools/call",
            json!({ "name": tool, "arguments": arguments }),
        );
        assert!(answer["error"].is_null(), "{answer:#}");
        answer["result"].clone()
    }

    /// Ends the connection as clients do, and waits for the server to end.
    pub fn close(mut self) {
        self.stdin = None;
        self.child.wait().unwrap();
    }

    /// Kills the server.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// What the server told without being asked, and what it was told while something else was
    /// waited for.
    pub fn notices(&mut self) -> &[Value] {
        while let Ok(message) = self.lines.try_recv() {
            self.notices.push(message);
        }
        &self.notices
    }
}

impl Drop for McpClient {
    fn drop(&mut self) {
        self.stdin = None;
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
