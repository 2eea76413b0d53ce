//! Signing in to servers over HTTP, at authorization servers that others wrote.

use planwright_testing::http::HttpRequest;
use planwright_testing::peers::{Project, installed, interpreter};
use planwright_testing::steps::{call, value};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A server of the protocol and the one who signs people in for it. Ended with the test.
struct SignedServer {
    child: Child,
    port: u16,
    authority: u16,
}

impl SignedServer {
    fn start(command: impl FnOnce(u16, u16) -> Command) -> Self {
        let free = || {
            let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
            listener.local_addr().unwrap().port()
        };
        let port = free();
        let authority = free();
        let mut command = command(port, authority);
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let started = Self {
            child: command.spawn().unwrap(),
            port,
            authority,
        };
        for port in [port, authority] {
            wait_until("the servers to listen", || {
                TcpStream::connect(("localhost", port)).is_ok()
            });
        }
        started
    }

    /// The server whose calls and renewals can be counted.
    fn with_log(project: &Project) -> Self {
        let script =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../planwright-testing/src/authority.mjs");
        let folder = installed("node-authority");
        let log = project.file("authority.txt");
        Self::start(|port, authority| {
            let mut command = Command::new(interpreter("node"));
            command.arg(script).arg(folder).arg(log);
            command.args([port.to_string(), authority.to_string()]);
            command
        })
    }

    fn entry(&self) -> Value {
        json!({ "type": "http", "url": format!("http://localhost:{}/mcp", self.port) })
    }

    /// Has the authorization server forget something.
    fn tell(&self, path: &str) {
        let address = format!("localhost:{}", self.authority);
        HttpRequest::new(&address, "POST", path).send().ends(204);
    }

    /// Signs in as a person does: opens the address, agrees, and comes back.
    fn sign_in(&self, project: &Project) {
        let mut terminal = Terminal::of(project.command(&["servers", "sign-in", "example"]));
        terminal.wait_for("code_challenge_method=S256");
        terminal.wait_for("\n");
        let page = format!("http://localhost:{}/", self.authority);
        let seen = terminal.seen();
        let address = seen
            .split_whitespace()
            .find(|word| word.starts_with(&page))
            .unwrap();
        let back = self.agree(address.trim_start_matches(&page));
        let (host, path) = back.split_once('/').unwrap();
        // What does not belong to this sign-in is not taken for its end.
        let forged = HttpRequest::new(host, "GET", "/callback?code=x&state=y").send();
        assert_eq!(forged.status, 404);
        let answered = HttpRequest::new(host, "GET", &format!("/{path}")).send();
        assert_eq!(answered.status, 200);
        assert_eq!(terminal.ends(), Some(0), "{}", terminal.seen());
    }

    /// Follows the pages as a browser does, to the address that leads back.
    fn agree(&self, path: &str) -> String {
        let own = format!("http://localhost:{}", self.authority);
        let mut cookies: BTreeMap<String, String> = BTreeMap::new();
        let mut path = format!("/{path}");
        for _ in 0..10 {
            let sent: Vec<String> = cookies
                .iter()
                .map(|(name, value)| format!("{name}={value}"))
                .collect();
            let request = HttpRequest::new(&format!("localhost:{}", self.authority), "GET", &path);
            let answer = request.header("Cookie", &sent.join("; ")).send();
            for cookie in answer.headers("set-cookie") {
                let (pair, _) = cookie.split_once(';').unwrap_or((cookie, ""));
                let (name, value) = pair.split_once('=').unwrap();
                cookies.insert(name.to_owned(), value.to_owned());
            }
            let next = answer.header("location");
            let next = next.unwrap_or_else(|| panic!("{path}: {}", answer.text()));
            match next.strip_prefix(&own) {
                Some(inside) => path = inside.to_owned(),
                None if next.starts_with('/') => path = next.to_owned(),
                None => return next.trim_start_matches("http://").to_owned(),
            }
        }
        panic!("the pages do not end");
    }
}

impl Drop for SignedServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// The files of the sign-ins, without the locks beside them.
fn kept(project: &Project) -> Vec<PathBuf> {
    let folder = std::fs::read_dir(project.file(".plans/planwright.db-sign-ins"));
    let files = folder.into_iter().flatten();
    files
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "sealed"))
        .collect()
}

fn greet(project: &Project, plan: &str) -> Value {
    let step = call("greet", "example.greet", json!({ "name": plan }), &[]);
    project.result(plan, json!([step]))
}

fn assert_asks_for_sign_in(project: &Project) {
    let said = project.run(&["servers", "check", "example"]).ends(1);
    let hint = "planwright servers sign-in example";
    assert!(said.out.contains(hint), "{said:#?}");
}

fn lines(project: &Project, beginning: &str) -> usize {
    let log = std::fs::read_to_string(project.file("authority.txt")).unwrap_or_default();
    log.lines()
        .filter(|line| line.starts_with(beginning))
        .count()
}

/// The example server of the protocol's own library, with its authorization server beside it.
#[test]
fn a_person_signs_in_to_a_server_that_wants_it() {
    let project = Project::with(&[]);
    let script = installed(
        "node-agents/node_modules/@modelcontextprotocol/sdk/dist/esm/examples/server/simpleStreamableHttp.js",
    );
    let server = SignedServer::start(|port, authority| {
        let mut command = Command::new(interpreter("node"));
        command.arg(&script).args(["--oauth", "--oauth-strict"]);
        command.env("MCP_PORT", port.to_string());
        command.env("MCP_AUTH_PORT", authority.to_string());
        command
    });
    project.name(&json!({ "example": server.entry() }));
    assert_asks_for_sign_in(&project);
    server.sign_in(&project);
    assert_eq!(value(&greet(&project, "Ada"), "greet"), "Hello, Ada!");
    let [file] = kept(&project).try_into().unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let token = kept["access_token"].as_str().unwrap();
    assert!(!project.run(&["log", "Ada", "--json"]).out.contains(token));
    project.run(&["servers", "sign-out", "example"]).ends(0);
    project.run(&["servers", "check", "example"]).ends(1);
}

#[test]
fn tokens_are_renewed_and_a_refused_renewal_asks_for_a_sign_in_once() {
    let project = Project::with(&[]);
    let server = SignedServer::with_log(&project);
    project.name(&json!({ "example": server.entry() }));
    server.sign_in(&project);
    assert_eq!(value(&greet(&project, "a"), "greet"), "Hello, a!");
    assert_eq!(lines(&project, "granted refresh_token"), 0);

    // Its time has come.
    let [file] = kept(&project).try_into().unwrap();
    let mut tokens: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let before = tokens["refresh_token"].clone();
    tokens["renew_at"] = json!(1);
    std::fs::write(&file, tokens.to_string()).unwrap();
    assert_eq!(value(&greet(&project, "b"), "greet"), "Hello, b!");
    assert_eq!(lines(&project, "granted refresh_token"), 1);
    let tokens: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert_ne!(tokens["refresh_token"], before, "it was not replaced");
    assert!(tokens["renew_at"].as_u64().unwrap() > 1);

    // It ended before its time: the server refuses it, and the call is sent once more.
    server.tell("/test/expire");
    assert_eq!(value(&greet(&project, "c"), "greet"), "Hello, c!");
    assert_eq!(lines(&project, "granted refresh_token"), 2);

    // Nothing is left of it: a person has to sign in, and no second renewal is tried.
    server.tell("/test/forget");
    for _ in 0..2 {
        assert_asks_for_sign_in(&project);
    }
    assert_eq!(lines(&project, "refused refresh_token"), 1);
    server.sign_in(&project);
    assert_eq!(value(&greet(&project, "d"), "greet"), "Hello, d!");
    for name in ["a", "b", "c", "d"] {
        assert_eq!(lines(&project, &format!("greeted {name}")), 1);
    }
}

#[test]
fn a_sign_in_is_sealed_with_the_store() {
    let project = Project::with(&[]);
    let server = SignedServer::with_log(&project);
    project.name(&json!({ "example": server.entry() }));
    server.sign_in(&project);
    let [plain] = kept(&project).try_into().unwrap();
    let text = std::fs::read_to_string(&plain).unwrap();
    let tokens: Value = serde_json::from_str(&text).unwrap();
    let token = tokens["access_token"].as_str().unwrap().to_owned();

    let word = project.file("word");
    std::fs::write(&word, "correct horse battery staple\n").unwrap();
    std::fs::set_permissions(&word, PermissionsExt::from_mode(0o600)).unwrap();
    let with_word = |args: &[&str]| project.run(&[args, &["--passphrase-file", &word]].concat());
    with_word(&["store", "encrypt", "--yes"]).ends(0);
    assert!(!plain.exists(), "the plain file stayed");
    let [sealed] = kept(&project).try_into().unwrap();
    let bytes = std::fs::read(&sealed).unwrap();
    let is_readable = bytes
        .windows(token.len())
        .any(|part| part == token.as_bytes());
    assert!(!is_readable);
    with_word(&["servers", "check", "example"]).ends(0);
    with_word(&["store", "decrypt", "--yes"]).ends(0);
    assert_eq!(kept(&project), [plain]);
    project.run(&["servers", "check", "example"]).ends(0);
}
