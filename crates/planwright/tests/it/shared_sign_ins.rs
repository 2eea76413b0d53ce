//! Sign-ins to the servers of tools, where several services share a store: a person signs in once.

use crate::databases::Shared;
use crate::service::Served;
use planwright_testing::http::{HttpReply, HttpRequest};
use planwright_testing::postgres::server;
use planwright_testing::service::ServiceClient;
use planwright_testing::steps::call;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::Bench;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The name that a proxy in front of both services has.
const HOST: &str = "plans.example.org";

/// A server that wants a sign-in. Ended with the test.
struct SignedServer {
    child: Child,
    port: u16,
    folder: tempfile::TempDir,
}

impl Drop for SignedServer {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl SignedServer {
    fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/signed_server.py");
        let mut child = Command::new("python3")
            .args(["-IS", script])
            .arg(folder.path().join("log"))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut said = BufReader::new(child.stdout.take().unwrap());
        said.read_line(&mut line).unwrap();
        let port = line.trim().parse().unwrap();
        Self {
            child,
            port,
            folder,
        }
    }

    fn count(&self, word: &str) -> usize {
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        log.lines().filter(|line| *line == word).count()
    }

    /// Agrees as a person, and returns where the browser is sent.
    fn agree(&self, address: &str) -> String {
        let own = format!("http://127.0.0.1:{}", self.port);
        let path = address.strip_prefix(&own).unwrap();
        let own = format!("127.0.0.1:{}", self.port);
        let answer = HttpRequest::new(&own, "GET", path).send().ends(302);
        answer.header("location").unwrap().to_owned()
    }
}

/// Two services in workspaces of their own, on one store.
struct Pair {
    shared: Shared,
    /// The workspace of the second one.
    other_bench: Bench,
    _running: [Served; 2],
    one: ServiceClient,
    other: ServiceClient,
}

impl Pair {
    fn new(database: &str, signed: &SignedServer) -> Self {
        let shared = Shared::new(database);
        let other_bench = Bench::new();
        let config = format!(
            "[serve]\nallow_hosts = [\"{HOST}\"]\n[servers.desk]\nurl = \"http://127.0.0.1:{}/mcp\"\n",
            signed.port
        );
        shared.bench.configure(&config);
        other_bench.configure(&config);
        let token = shared.token("ada");
        let (first, one) = shared.serve(&token);
        let mut command = other_bench.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        command.env("PLANWRIGHT_STORE", &shared.url);
        let second = Served::start(command);
        let other = ServiceClient {
            host: second.address().to_owned(),
            admin: token,
        };
        Self {
            shared,
            other_bench,
            _running: [first, second],
            one,
            other,
        }
    }
}

fn is_signed_in(client: &ServiceClient) -> bool {
    let listed = client.get("/servers/sign-ins").ends(200).json();
    listed[0]["signedIn"] == true
}

/// As through the proxy.
fn through_proxy(request: HttpRequest) -> HttpReply {
    request.header("Host", HOST).send()
}

#[test]
fn a_sign_in_that_begins_at_one_service_ends_at_another_and_is_used_and_renewed_by_both() {
    let signed = SignedServer::start();
    let pair = Pair::new("shared_sign_ins", &signed);
    let begun = through_proxy(pair.one.request("POST", "/servers/desk/sign-in")).ends(200);
    let cookie = begun.header("set-cookie").unwrap();
    let cookie = cookie.split(';').next().unwrap().to_owned();
    let back = signed.agree(begun.json()["address"].as_str().unwrap());
    let path = back.strip_prefix(&format!("http://{HOST}")).unwrap();
    // The proxy sends the browser that comes back to the other service.
    let ended = pair.other.bare("GET", path).header("Cookie", &cookie);
    through_proxy(ended).ends(200);
    assert_eq!(signed.count("registered"), 1);
    assert_eq!(signed.count("signed in"), 1);
    assert!(is_signed_in(&pair.one) && is_signed_in(&pair.other));
    // The other service hears of the server's tools, too.
    for client in [&pair.one, &pair.other] {
        wait_until("the tools of the server", || {
            client.get("/tools").ends(200).text().contains("\"look\"")
        });
    }

    // Both use it, longer than a token lasts. What renews one is good once.
    let steps = |id: &str| {
        let step = |number: usize| call(&format!("{id}{number}"), "desk.look", json!({}), &[]);
        Value::from((0..4).map(step).collect::<Vec<_>>())
    };
    let mut round = 0;
    wait_until(
        "both services to call the server, with tokens that were renewed",
        || {
            round += 1;
            std::thread::sleep(Duration::from_millis(1_500));
            let ids = [(&pair.one, "a"), (&pair.other, "b")];
            for (client, name) in ids {
                let id = format!("{name}{round}");
                client.plan(&id, steps(&id));
                client.approve(&id);
                client.run(&id);
            }
            for (client, name) in ids {
                client.wait_for(&format!("{name}{round}"), "completed");
            }
            round >= 4
        },
    );
    assert_eq!(signed.count("called"), 4 * 2 * 4);
    assert!(signed.count("renewed") >= 1, "no token was renewed");
    assert!(is_signed_in(&pair.one) && is_signed_in(&pair.other));

    // It is in the store alone, and forgotten for both.
    for bench in [&pair.shared.bench, &pair.other_bench] {
        assert!(!bench.path("planwright.db-sign-ins").exists());
    }
    let forgotten = pair.one.request("DELETE", "/servers/desk/sign-in").send();
    forgotten.ends(204);
    assert!(!is_signed_in(&pair.one) && !is_signed_in(&pair.other));
    let left = server().sql(
        "shared_sign_ins",
        "SELECT string_agg(encode(kept, 'escape'), ' ') FROM planwright.sign_ins",
    );
    assert!(!left.contains("renewal-"), "{left}");
}
