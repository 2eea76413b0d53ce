//! Signing in to servers over HTTP, at authorization servers that others wrote.

use planwright_testing::http::{HttpReply, HttpRequest};
use planwright_testing::peers::{Project, installed, interpreter};
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::{call, value};
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Running;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
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

/// Greets, asks a person, and greets again.
fn greet_ask_greet() -> Value {
    let ask = json!({ "id": "ask", "title": "Ask", "dependsOn": ["first"],
        "input": { "message": "Go on?", "schema": { "type": "string" } } });
    let second = call(
        "second",
        "example.greet",
        json!({ "name": "second" }),
        &["ask"],
    );
    json!([
        call("first", "example.greet", json!({ "name": "first" }), &[]),
        ask,
        second
    ])
}

#[test]
fn a_call_that_wants_a_sign_in_waits_for_it_and_is_made_once() {
    let project = Project::with(&[]);
    let server = SignedServer::with_log(&project);
    project.name(&json!({ "example": server.entry() }));
    server.sign_in(&project);
    let plan = project.bench.plan("p", greet_ask_greet());
    let mut terminal = Terminal::of(project.command(&["run", &plan, "--yes"]));
    terminal.wait_for("Go on?");
    // Nothing is left of the sign-in in the middle of the run.
    server.tell("/test/forget");
    terminal.types("yes\n");
    terminal.wait_for("signedIn");
    server.sign_in(&project);
    terminal.types("true\n");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.seen());
    for name in ["first", "second"] {
        assert_eq!(lines(&project, &format!("greeted {name}")), 1);
    }
    assert_eq!(status(&project), "completed");
}

fn status(project: &Project) -> Value {
    project.run(&["show", "p", "--json"]).json()["status"].clone()
}

#[test]
fn a_person_who_does_not_sign_in_fails_the_step_and_nothing_is_called() {
    let project = Project::with(&[]);
    let server = SignedServer::with_log(&project);
    project.name(&json!({ "example": server.entry() }));
    server.sign_in(&project);
    let plan = project.bench.plan("p", greet_ask_greet());
    let mut terminal = Terminal::of(project.command(&["run", &plan, "--yes"]));
    terminal.wait_for("Go on?");
    server.tell("/test/forget");
    terminal.types("yes\n");
    terminal.wait_for("signedIn");
    // Later.
    terminal.types("\u{4}");
    assert_eq!(terminal.ends(), Some(4), "{}", terminal.seen());
    server.sign_in(&project);
    project.run(&["input", "p", "second", "--decline"]).ends(0);
    project.run(&["resume", "p", "--json"]);
    assert_eq!(status(&project), "failed");
    assert_eq!(lines(&project, "greeted second"), 0);
}

/// A service with a person who may do everything.
fn serve(project: &Project) -> (ServiceClient, Running) {
    let words = "token create --role admin --kind person --name ada --json";
    let words: Vec<&str> = words.split(' ').collect();
    let admin = project.run(&words).ends(0).json()["token"].clone();
    let mut command = project.command(&["serve", "--listen", ":0", "--json"]);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let said: Value = serde_json::from_str(&line).unwrap();
    let url = said["url"].as_str().unwrap();
    let client = ServiceClient {
        host: url.trim_start_matches("http://").to_owned(),
        admin: admin.as_str().unwrap().to_owned(),
    };
    (client, Running::from(child))
}

impl SignedServer {
    /// Signs in from the page of a service: in one browser, which goes there and comes back.
    fn sign_in_at(&self, service: &ServiceClient) {
        self.sign_in_with(service, &service.admin);
    }

    /// The same with the token of another person.
    fn sign_in_with(&self, service: &ServiceClient, token: &str) {
        let begins = service.bare("POST", "/servers/example/sign-in");
        let begun = begins.token(token).json(&json!({})).send().ends(200);
        let cookie = begun.header("set-cookie").unwrap().to_owned();
        let (cookie, _) = cookie.split_once(';').unwrap();
        let address = begun.json()["address"].as_str().unwrap().to_owned();
        let page = format!("http://localhost:{}/", self.authority);
        let back = self.agree(address.strip_prefix(&page).unwrap());
        let (host, path) = back.split_once('/').unwrap();
        assert_eq!(host, service.host);
        let come_back = |path: &str, cookie: &str| -> HttpReply {
            let request = HttpRequest::new(host, "GET", path);
            request.header("Cookie", cookie).send()
        };
        // Another browser, another server, another state.
        let path = format!("/{path}");
        come_back(&path, "").ends(401);
        come_back(&path.replace("example", "other"), cookie).ends(404);
        come_back(&path.replace("state=", "state=x"), cookie).ends(401);
        let done = come_back(&path, cookie).ends(200);
        // Who loads the page again does not show the code a second time.
        assert!(done.header("set-cookie").unwrap().contains("Max-Age=0"));
        come_back(&path, "").ends(401);
    }
}

fn answer(service: &ServiceClient, step: &str, values: &Value) {
    let waits = || {
        let mut items = service.inbox().into_iter();
        items.find(|item| item["kind"] == "input" && item["step"] == step)
    };
    wait_until(&format!("{step} to ask"), || waits().is_some());
    let body = json!({ "question": waits().unwrap()["digest"], "values": values });
    let path = format!("/plan/p/steps/{step}/input");
    service.post(&path, &body).ends(200);
}

#[test]
fn people_sign_in_from_the_page_of_a_service_and_a_waiting_call_goes_on() {
    let project = Project::with(&[]);
    let server = SignedServer::with_log(&project);
    project.name(&json!({ "example": server.entry() }));
    let (service, _running) = serve(&project);
    let state = || service.get("/servers/sign-ins").ends(200).json();
    let shared =
        |signed_in: bool| json!([{ "name": "example", "signedIn": signed_in, "personal": false }]);
    assert_eq!(state(), shared(false));
    let viewer = "token create --role operator --kind person --name ben --json";
    let viewer: Vec<&str> = viewer.split(' ').collect();
    let viewer = project.run(&viewer).ends(0).json()["token"].clone();
    let begins = service.bare("POST", "/servers/example/sign-in");
    begins.token(viewer.as_str().unwrap()).send().ends(403);
    server.sign_in_at(&service);
    assert_eq!(state(), shared(true));

    service.plan("p", greet_ask_greet());
    service.approve("p");
    let run = service.run("p");
    wait_until("the first greeting", || {
        lines(&project, "greeted first") == 1
    });
    server.tell("/test/forget");
    answer(&service, "ask", &json!({ "value": "yes" }));
    let asks = || {
        let items = service.inbox();
        let mut urls = items.iter().map(|item| item.to_string());
        urls.any(|item| item.contains("/servers/example/sign-in"))
    };
    wait_until("the call to ask for a sign-in", asks);
    assert_eq!(state(), shared(false));
    // The sign-in is the answer.
    server.sign_in_at(&service);
    service.wait_for("p", "completed");
    for name in ["first", "second"] {
        assert_eq!(lines(&project, &format!("greeted {name}")), 1);
    }
    // The token is in no journal.
    let [file] = kept(&project).try_into().unwrap();
    let kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let token = kept["access_token"].as_str().unwrap();
    let journal = service
        .get(&format!("/plan/p/runs/{run}/journal"))
        .ends(200);
    assert!(!journal.text().contains(token));
}

/// The token of a person or program.
fn token(project: &Project, role: &str, kind: &str, name: &str) -> String {
    let words = ["token", "create", "--json", "--role", role, "--kind", kind];
    let made = project.run(&[&words[..], &["--name", name]].concat());
    made.ends(0).json()["token"].as_str().unwrap().to_owned()
}

#[test]
fn people_sign_in_by_themselves_and_runs_use_the_account_of_their_person() {
    let project = Project::with(&[]);
    let server = SignedServer::with_log(&project);
    project.name(&json!({ "example": server.entry() }));
    project.configure("[servers.example]\npersonal_sign_in = true\n");
    let ben = token(&project, "operator", "person", "ben");
    let bot = token(&project, "operator", "agent", "bot");
    let (service, _running) = serve(&project);
    let signed_in = |token: &str| {
        let listed = service.bare("GET", "/servers/sign-ins").token(token).send();
        let listed = listed.ends(200).json();
        assert_eq!(listed[0]["personal"], true);
        listed[0]["signedIn"] == true
    };
    let begins = service.bare("POST", "/servers/example/sign-in");
    begins.token(&bot).send().ends(403);

    server.sign_in_at(&service);
    assert!(signed_in(&service.admin) && !signed_in(&ben));
    let greets = |name: &str| json!([call("greet", "example.greet", json!({ "name": name }), &[])]);
    service.plan("a", greets("first"));
    let shown = service.get("/plan/a").ends(200).text();
    assert!(
        shown.contains("uses the account at example of the person who starts the run"),
        "{shown}"
    );
    service.approve("a");
    service.run("a");
    service.wait_for("a", "completed");
    assert_eq!(lines(&project, "greeted first as ada"), 1);

    // What ada signed in with is not for a run of ben's.
    service.plan("b", greets("second"));
    service.approve("b");
    let begins = service.bare("POST", "/plan/b/run");
    begins.token(&ben).send().ends(202);
    service.wait_for("b", "waiting");
    assert!(
        service.inbox()[0]
            .to_string()
            .contains("ben has to sign in to example")
    );
    server.sign_in_at(&service);
    assert_eq!(service.status("b"), "waiting");
    assert_eq!(lines(&project, "greeted second"), 0);
    server.tell("/test/person/ben");
    server.sign_in_with(&service, &ben);
    service.wait_for("b", "completed");
    assert_eq!(lines(&project, "greeted second as ben"), 1);

    // Each signs out of what is theirs.
    let ends = |token: &str| {
        service
            .bare("DELETE", "/servers/example/sign-in")
            .token(token)
            .send()
    };
    ends(&bot).ends(403);
    ends(&ben).ends(204);
    assert!(signed_in(&service.admin) && !signed_in(&ben));
    assert_eq!(kept(&project).len(), 1);
}
