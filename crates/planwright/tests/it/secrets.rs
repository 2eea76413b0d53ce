//! Secrets in real runs: they reach the tool, and nothing that is kept or shown has them, in any
//! spelling.

use planwright_core::secret::{Redactor, SecretName, SecretText};
use planwright_testing::spellings::{encodings, standard};
use planwright_testing::steps::{call, step};
use planwright_testing::workbench::{Bench, Said};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// What is looked for: one as tokens are, one as passwords are.
pub(crate) const TOKEN: &str = "ghp_Zk3vQ8sTn5LwX2yRb7Hd";
pub(crate) const PASSWORD: &str = "Kanarie&\"7<x'\\9 %+/=zQ~~";

/// A workspace with both secrets, one in the environment and one in a file.
pub(crate) fn bench(http: &str) -> Bench {
    let bench = Bench::new();
    bench.configure(&format!(
        "[local]\nrun_command = true\n[local.http_get]\nenabled = true\nallow = [\"{http}\"]\n\
             [secrets]\nTOKEN = {{ env = \"SOME_TOKEN\" }}\nPASSWORD = {{ file = \"keys\" }}\n"
    ));
    private(&bench.write("keys/PASSWORD", &format!("{PASSWORD}\n")));
    bench
}

fn private(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

fn run(bench: &Bench, args: &[&str]) -> Said {
    let output = bench
        .command(args)
        .env("SOME_TOKEN", TOKEN)
        .output()
        .unwrap();
    Said {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Everything that must not be found anywhere.
pub(crate) struct Canaries {
    spelt: Vec<(String, String)>,
    redactor: Redactor,
}

impl Canaries {
    pub(crate) fn new() -> Self {
        let mut spelt = Vec::new();
        for secret in [TOKEN, PASSWORD] {
            for (name, text) in encodings(secret) {
                let written = serde_json::to_string(&text).unwrap();
                spelt.push((format!("{name} of {secret}"), text.clone()));
                spelt.push((
                    format!("{name} of {secret}, as JSON"),
                    written.trim_matches('"').to_owned(),
                ));
            }
        }
        let known = [("TOKEN", TOKEN), ("PASSWORD", PASSWORD)].map(|(name, text)| {
            (
                SecretName::new(name).unwrap(),
                SecretText::new(text.to_owned()).unwrap(),
            )
        });
        Self {
            spelt,
            redactor: Redactor::new(known.iter().map(|(name, text)| (name, text))),
        }
    }

    /// A spelling that was put into the run, as it was put in.
    fn known_hit(&self, bytes: &[u8]) -> Option<String> {
        let text = String::from_utf8_lossy(bytes);
        self.spelt
            .iter()
            .find(|(_, needle)| text.contains(needle))
            .map(|(name, _)| name.clone())
    }

    pub(crate) fn hit(&self, bytes: &[u8]) -> Option<String> {
        let other = || {
            self.redactor
                .finds(bytes)
                .then(|| "some other spelling".to_owned())
        };
        self.known_hit(bytes).or_else(other)
    }

    #[track_caller]
    pub(crate) fn are_not_in(&self, sink: &str, bytes: &[u8]) {
        assert!(
            !bytes.is_empty() || sink.ends_with("stderr"),
            "{sink} is empty: nothing was looked at"
        );
        if let Some(hit) = self.hit(bytes) {
            panic!(
                "{hit} is in {sink}: {}",
                String::from_utf8_lossy(&bytes[..bytes.len().min(4000)])
            );
        }
    }

    /// Looks at every file below a directory, and says how many there are.
    #[track_caller]
    pub(crate) fn are_not_below(
        &self,
        directory: &Path,
        hit: fn(&Self, &[u8]) -> Option<String>,
    ) -> usize {
        let mut files = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                files += self.are_not_below(&path, hit);
            } else if let Ok(bytes) = std::fs::read(&path) {
                files += 1;
                assert_eq!(hit(self, &bytes), None, "in {}", path.display());
            }
        }
        files
    }
}

/// Answers every request with the header it was sent and one spelling per path.
pub(crate) fn echoing_server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let spelt: Vec<String> = [TOKEN, PASSWORD]
            .iter()
            .flat_map(|secret| encodings(secret))
            .map(|(_, text)| text)
            .collect();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let request: Vec<String> = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map_while(Result::ok)
                .take_while(|line| !line.is_empty())
                .collect();
            let number: usize = request[0]
                .split(['/', ' '])
                .nth(2)
                .unwrap()
                .parse()
                .unwrap();
            let header = request
                .iter()
                .find(|line| line.to_lowercase().starts_with("x-key"))
                .cloned();
            let body = format!(
                "before {} after {}",
                spelt[number],
                header.unwrap_or_default()
            );
            let head = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nX-Echo: {TOKEN}\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream
                .write_all(format!("{head}{body}").as_bytes())
                .unwrap();
        }
    });
    address
}

/// Steps in which every echoing tool gives back every spelling.
pub(crate) fn echoes(bench: &Bench, http: SocketAddr) -> Vec<Value> {
    let mut steps = Vec::new();
    for (number, (_, text)) in [TOKEN, PASSWORD]
        .iter()
        .flat_map(|secret| encodings(secret))
        .enumerate()
    {
        let file = format!("echo/{number}.txt");
        bench.write(&file, &format!("before {text} after"));
        steps.push(call(
            &format!("read-{number}"),
            "read_file",
            json!({ "path": file }),
            &[],
        ));
        steps.push(call(
            &format!("out-{number}"),
            "run_command",
            json!({ "command": "cat", "args": [file] }),
            &[],
        ));
        let fail = json!({ "command": "sh", "args": ["-c", "cat \"$0\" >&2; exit 3", file] });
        let mut failing = call(&format!("err-{number}"), "run_command", fail, &[]);
        failing["critical"] = json!(false);
        steps.push(failing);
        let url = format!("http://{http}/{number}");
        let get = json!({ "url": url, "headers": { "X-Key": "Bearer ${secret.TOKEN}" } });
        steps.push(call(&format!("get-{number}"), "http_get", get, &[]));
    }
    steps
}

/// Steps that are given the secrets and make something of them themselves.
pub(crate) fn workers() -> Vec<Value> {
    let shell = |id: &str, script: &str| {
        let env = json!({ "T": "${secret.TOKEN}", "P": "${secret.PASSWORD}" });
        call(
            id,
            "run_command",
            json!({ "command": "sh", "args": ["-c", script], "env": env }),
            &[],
        )
    };
    vec![
        shell("environment", "env"),
        shell(
            "base64",
            "printf %s \"user:$T\" | base64; printf %s \"$P$P$P$P$P\" | base64",
        ),
        shell(
            "bytes",
            "printf %s \"$T\" | od -An -tx1; printf %s \"$P\" | od -An -c",
        ),
        shell(
            "halves",
            "printf %s \"$T\" | cut -c1-12; printf %s \"$T\" | cut -c13- >&2",
        ),
        shell(
            "large",
            "head -c 200000 /dev/zero | tr '\\0' x; echo \"$T\"",
        ),
        shell("letter by letter", "printf %s \"$T\" | sed 's/./& /g'")
            .tap(|step| step["id"] = json!("letters")),
        call(
            "stdin",
            "run_command",
            json!({ "command": "cat", "stdin": "password=${secret.PASSWORD}\n" }),
            &[],
        ),
        call(
            "write",
            "write_file",
            json!({ "path": "out.txt", "content": "${secret.TOKEN} ${secret.PASSWORD}" }),
            &[],
        ),
        call(
            "again",
            "read_file",
            json!({ "path": "out.txt" }),
            &["write"],
        ),
        call(
            "uses",
            "demo.echo",
            json!({ "value": "${again}" }),
            &["again"],
        ),
    ]
}

trait Tap: Sized {
    fn tap(mut self, change: impl FnOnce(&mut Self)) -> Self {
        change(&mut self);
        self
    }
}

impl Tap for Value {}

#[test]
fn no_spelling_of_a_secret_is_in_anything_that_is_kept_or_shown() {
    let http = echoing_server();
    let bench = bench(&http.to_string());
    let canaries = Canaries::new();
    let mut steps = echoes(&bench, http);
    steps.extend(workers());
    let count = steps.len();
    // Held until it is killed, so that the write-ahead log is still there.
    let last: Vec<String> = steps
        .iter()
        .map(|step| step["id"].as_str().unwrap().to_owned())
        .collect();
    let last: Vec<&str> = last
        .iter()
        .map(String::as_str)
        .filter(|id| !id.starts_with("err-"))
        .collect();
    steps.push(call("hold", "demo.sleep", json!({ "ms": 60_000 }), &last));
    let plan = bench.document(
        json!({ "id": "p", "title": "Canaries", "limits": { "maxConcurrency": 8 }, "steps": steps }),
    );
    assert!(
        canaries
            .hit(&std::fs::read(bench.path("echo/1.txt")).unwrap())
            .is_some(),
        "a hit is seen"
    );

    let dry = run(&bench, &["run", &plan, "--dry-run", "--json"]).ends(0);
    assert!(dry.out.contains("Bearer ${secret.TOKEN}"));
    canaries.are_not_in("the dry run", dry.out.as_bytes());

    let mut child = bench
        .command(&["run", &plan, "--yes", "--json"])
        .env("SOME_TOKEN", TOKEN)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    // `hold` waits for all steps but those that fail, so these may still be at work when it starts.
    let only_holds = || {
        let log = bench.log("p");
        let is = |entry: &Value, kind: &str| entry["kind"] == kind;
        let ended = |entry: &&Value| is(entry, "attempt_succeeded") || is(entry, "attempt_failed");
        let holds = |entry: &Value| is(entry, "attempt_started") && entry["step"] == "hold";
        log.iter().any(holds) && log.iter().filter(ended).count() == count
    };
    // Hundreds of processes, and none of them hurried by being watched too closely.
    let since = Instant::now();
    while !only_holds() && child.try_wait().unwrap().is_none() {
        assert!(
            since.elapsed() < Duration::from_secs(240),
            "the echoes do not end"
        );
        std::thread::sleep(Duration::from_millis(250));
    }
    assert!(
        child.try_wait().unwrap().is_none(),
        "it ended: {:?}",
        bench.log("p").last()
    );
    assert!(
        std::fs::metadata(bench.path(".plans/planwright.db-wal"))
            .unwrap()
            .len()
            > 0,
        "the log has entries"
    );
    assert!(canaries.are_not_below(&bench.path(".plans"), Canaries::known_hit) >= 4);
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    canaries.are_not_in(
        "stdout and stderr of the run",
        &[&output.stdout[..], &output.stderr, b"."].concat(),
    );
    assert!(canaries.are_not_below(&bench.path(".plans"), Canaries::known_hit) >= 4);

    run(&bench, &["cancel", "p"]).ends(0);
    for command in [
        &["log", "p", "--json"][..],
        &["log", "p"],
        &["log", "p", "--plan", "--json"],
        &["show", "p"],
        &["show", "p", "--json"],
        &["export", "p"],
        &["replay", "p", "--offline", "--json"],
        &["list", "--json"],
        &["verify", "--json"],
        &["doctor", "--json"],
        &["secrets", "list", "--json"],
        &["secrets", "list"],
    ] {
        let said = run(&bench, command);
        canaries.are_not_in(&format!("stdout of {command:?}"), said.out.as_bytes());
        canaries.are_not_in(&format!("{command:?} stderr"), said.err.as_bytes());
    }
    // A cancelled run is written out in files as well.
    assert!(bench.path(".plans/p/session.jsonl").exists());
    assert!(
        std::fs::read_dir(bench.path(".plans/planwright.db-artifacts"))
            .unwrap()
            .count()
            >= 1
    );
    assert!(canaries.are_not_below(&bench.path(".plans"), Canaries::hit) >= 6);

    let log = bench.log("p");
    let of = |kind: &str| log.iter().filter(|entry| entry["kind"] == kind).count();
    assert_eq!(
        of("attempt_succeeded") + of("attempt_failed"),
        count,
        "every echo came back"
    );
    let masked = log
        .iter()
        .filter(|entry| entry.to_string().contains("[secret "))
        .count();
    assert!(masked >= count - 10, "{masked} of {count} are masked");
    assert_eq!(
        bench.read("out.txt"),
        format!("{TOKEN} {PASSWORD}"),
        "the tool was given the real values"
    );
}

#[test]
fn a_tool_that_gives_its_secret_back_gives_a_mask_to_the_next() {
    let bench = bench("127.0.0.1");
    let header = json!({ "command": "printenv", "args": ["AUTH"], "env": { "AUTH": "Bearer ${secret.TOKEN}" } });
    let next = json!({ "command": "echo", "args": ["${a.stdout}"] });
    let plan = bench.plan(
        "p",
        json!([
            call("a", "run_command", header, &[]),
            call("b", "run_command", next, &[])
        ]),
    );
    let result = run(&bench, &["run", &plan, "--yes", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        step(&result, "a")["value"]["stdout"],
        "Bearer [secret TOKEN]\n"
    );
    assert_eq!(
        step(&result, "b")["value"]["stdout"],
        "Bearer [secret TOKEN]\n\n"
    );
    let encoded = standard(format!("x{TOKEN}").as_bytes());
    assert!(!result.to_string().contains(&encoded[4..20]));
}

#[test]
fn a_missing_secret_fails_its_step_before_any_call() {
    let bench = bench("127.0.0.1");
    let args = json!({ "path": "effects.txt", "content": "${secret.NOBODY}" });
    let plan = bench.plan("p", json!([call("a", "append_file", args, &[])]));
    let result = run(&bench, &["run", &plan, "--yes", "--json"])
        .ends(1)
        .json();
    assert_eq!(
        step(&result, "a")["error"]["code"],
        "secret_unavailable",
        "{result:#}"
    );
    assert!(
        step(&result, "a")["error"]["message"]
            .as_str()
            .unwrap()
            .contains("PLANWRIGHT_SECRET_NOBODY")
    );
    assert!(!bench.path("effects.txt").exists());
    assert!(
        !bench
            .log("p")
            .iter()
            .any(|entry| entry["kind"] == "attempt_started")
    );
    // It works once the variable is there.
    let output = bench
        .command(&["run", "p", "--yes"])
        .env("PLANWRIGHT_SECRET_NOBODY", "now it is")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(bench.read("effects.txt"), "now it is");
}

#[test]
fn a_secret_goes_only_to_the_tools_it_is_for() {
    let bench = Bench::new();
    bench.configure("[secrets]\nK = { env = \"K\", tools = [\"demo.*\"] }\n");
    let write = call(
        "a",
        "append_file",
        json!({ "path": "effects.txt", "content": "${secret.K}" }),
        &[],
    );
    let plan = bench.plan("p", json!([write]));
    let output = bench
        .command(&["run", &plan, "--yes", "--json"])
        .env("K", TOKEN)
        .output()
        .unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        step(&result, "a")["error"]["code"],
        "secret_not_allowed",
        "{result:#}"
    );
    assert!(!bench.path("effects.txt").exists());
}

#[test]
fn a_secret_goes_only_to_the_hosts_it_is_for() {
    let bench = Bench::new();
    bench.configure(
        "[local.http_get]\nenabled = true\nallow = [\"127.0.0.1\", \"localhost\"]\n\
         [secrets]\nK = { env = \"K\", only_for = { hosts = [\"api.example.com\"] } }\n",
    );
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for (id, url) in [
        ("plain", format!("http://127.0.0.1:{port}/${{secret.K}}")),
        (
            "named",
            format!("http://api.example.com@127.0.0.1:{port}/${{secret.K}}"),
        ),
    ] {
        let plan = bench.plan(
            id,
            json!([call("a", "http_get", json!({ "url": url }), &[])]),
        );
        let output = bench
            .command(&["run", &plan, "--yes", "--json"])
            .env("K", TOKEN)
            .output()
            .unwrap();
        let result: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &step(&result, "a")["error"];
        assert_eq!(error["code"], "secret_not_allowed", "{result:#}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("the secret is not for the host `127.0.0.1`"),
            "{message}"
        );
    }
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_err(), "no client connected");

    for wrong in [
        "only_for = {}",
        "only_for = { hosts = [\"https://api.example.com/\"] }",
        "tools = [\"a\"], only_for = { tools = [\"b\"] }",
    ] {
        bench.write(
            "planwright.toml",
            &format!("[secrets]\nK = {{ env = \"K\", {wrong} }}\n"),
        );
        let refused = bench.run(&["secrets", "list"]).ends(2);
        assert!(refused.err.contains("the secret `K`"), "{}", refused.err);
    }
}

#[test]
fn a_file_that_others_can_read_is_no_secret() {
    let bench = bench("127.0.0.1");
    std::fs::set_permissions(
        bench.path("keys/PASSWORD"),
        std::fs::Permissions::from_mode(0o640),
    )
    .unwrap();
    let said = run(&bench, &["secrets", "check", "PASSWORD"]).ends(2);
    assert!(said.out.contains("chmod 600"), "{said:#?}");
    private(&bench.path("keys/PASSWORD"));
    run(&bench, &["secrets", "check"]).ends(0);
    let doctor = run(&bench, &["doctor", "--json"]).ends(0).json();
    let check = doctor["checks"]
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["name"] == "secrets")
        .unwrap();
    assert_eq!(check["message"], "2 of 2 available");
}

#[test]
fn a_secret_that_cannot_be_read_says_why() {
    let bench = Bench::new();
    let nothing = json!([]);
    assert_eq!(
        bench.run(&["secrets", "list", "--json"]).ends(0).json(),
        nothing
    );
    bench.configure("[secrets]\nA = { file = \"gone\" }\nB = { file = \"/dev/null\" }\nC = { file = \"binary\" }\n\
         D = { file = \"long\" }\nE = { keyring = \"planwright/nobody\" }\n",
    );
    std::fs::write(bench.path("binary"), b"\xff\xfe\xff\xfe").unwrap();
    private(&bench.path("binary"));
    private(&bench.write("long", &"x".repeat(20_000)));
    let list = bench.run(&["secrets", "check", "--json"]).ends(2).json();
    let problems = [
        "there is no file",
        "is not a file",
        "not UTF-8",
        "longer than",
        "keyring",
    ];
    for (secret, problem) in list.as_array().unwrap().iter().zip(problems) {
        assert!(
            secret["problem"].as_str().unwrap().contains(problem),
            "{secret}"
        );
    }
    assert_eq!(list.as_array().unwrap().len(), problems.len());
    bench
        .run(&["secrets", "check", "a b"])
        .complains(2, "no name of a secret");
}

#[test]
fn the_list_says_where_a_secret_is_looked_for_and_never_what_it_is() {
    let bench = bench("127.0.0.1");
    let list = bench
        .command(&["secrets", "list", "--json"])
        .env("PLANWRIGHT_SECRET_EXTRA", "abc")
        .output()
        .unwrap();
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    let short = "the secret `EXTRA` cannot be used: it is too short to be recognised again: at least 4 visible characters are needed";
    let path = bench.path("keys").canonicalize().unwrap();
    let missing = "secret `TOKEN` not found: the variable SOME_TOKEN is not set";
    assert_eq!(
        list,
        json!([
            { "name": "EXTRA", "source": "variable PLANWRIGHT_SECRET_EXTRA", "available": false, "problem": short },
            { "name": "PASSWORD", "source": format!("file {}", path.display()), "available": true },
            { "name": "TOKEN", "source": "variable SOME_TOKEN", "available": false, "problem": missing },
        ])
    );
}

#[test]
fn arguments_are_checked_with_the_real_secret_which_the_error_does_not_repeat() {
    let bench = bench("127.0.0.1");
    // The schema of run_command takes no NUL in a variable's name, but any text as a value: `cwd`
    // must exist.
    let args = json!({ "url": "${secret.TOKEN}" });
    let plan = bench.plan("p", json!([call("a", "http_get", args, &[])]));
    let result = run(&bench, &["run", &plan, "--yes", "--json"]).ends(1);
    assert!(
        !result.out.contains(TOKEN) && !result.err.contains(TOKEN),
        "{result:#?}"
    );
}

#[test]
fn a_secret_in_a_prompt_is_refused_with_its_place() {
    let bench = bench("127.0.0.1");
    let plan = bench.plan(
        "p",
        json!([{ "id": "a", "think": { "prompt": "use ${secret.TOKEN}" } }]),
    );
    let said = run(&bench, &["validate", &plan]);
    assert_eq!(said.code, 2, "{said:#?}");
    assert!(
        format!("{}{}", said.out, said.err).contains("E0130"),
        "{said:#?}"
    );
}

#[test]
fn a_server_that_gives_away_what_it_was_told_is_heard_masked() {
    let bench = bench("127.0.0.1");
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/leaky_server.py");
    let config = format!(
        "{}[servers.leaky]\ncommand = \"python3\"\nargs = [\"{server}\"]\n",
        bench.read("planwright.toml")
    );
    bench.configure(&config);
    let canaries = Canaries::new();
    let mut steps = Vec::new();
    for how in [
        "stderr",
        "text",
        "structured",
        "bytes",
        "progress",
        "log",
        "error",
        "fault",
    ] {
        for secret in ["TOKEN", "PASSWORD"] {
            let args = json!({ "told": format!("${{secret.{secret}}}"), "how": how });
            let mut step = call(&format!("{how}-{secret}"), "leaky.leak", args, &[]);
            step["critical"] = json!(false);
            steps.push(step);
        }
    }
    let plan = bench.plan("p", json!(steps));
    let said = run(
        &bench,
        &["run", &plan, "--yes", "--json", "--trust-project-servers"],
    );
    assert_eq!(
        step(&said.json(), "text-TOKEN")["value"],
        "told [secret TOKEN]",
        "{said:#?}"
    );
    assert_eq!(step(&said.json(), "error-TOKEN")["status"], "failed");
    canaries.are_not_in("stdout of the run", said.out.as_bytes());
    canaries.are_not_in("the run's stderr", said.err.as_bytes());
    let shown = call(
        "talks",
        "leaky.leak",
        json!({ "told": "${secret.TOKEN}", "how": "log" }),
        &[],
    );
    let plan = bench.plan("q", json!([shown]));
    let said = run(&bench, &["run", &plan, "--yes", "--trust-project-servers"]).ends(0);
    let line = r#"talks │ error: {"told":"[secret TOKEN]"}"#;
    assert!(said.err.contains(line), "{said:#?}");
    canaries.are_not_in("what the person sees", said.err.as_bytes());
    let log = bench.read(".plans/logs/leaky.log");
    assert_eq!(log.matches("[secret ").count(), 6, "{log}");
    assert!(log.starts_with("ready\n"), "{log}");
    canaries.are_not_below(&bench.path(".plans"), Canaries::hit);
    let session = bench.read(".plans/p/session.jsonl");
    assert!(session.contains("no: [secret PASSWORD]"), "{session}");
}

#[test]
fn a_plan_that_only_reads_but_is_given_a_secret_waits_for_a_person() {
    let bench = bench("127.0.0.1");
    let plan = bench.plan(
        "p",
        json!([call(
            "a",
            "demo.echo",
            json!({ "value": "${secret.TOKEN}" }),
            &[]
        )]),
    );
    run(&bench, &["run", &plan]).complains(3, "not approved");
    let result = run(&bench, &["run", &plan, "--yes", "--json"])
        .ends(0)
        .json();
    assert_eq!(step(&result, "a")["value"], "[secret TOKEN]");
}

/// What a person types, in processes that execute nothing and have never used the secret.
#[test]
fn what_people_type_is_masked_by_a_process_that_executes_nothing() {
    let bench = bench("http://127.0.0.1:1/");
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let ask = json!({ "id": "ask", "input": { "message": "Your name?", "schema": schema } });
    let uses = call(
        "use",
        "demo.echo",
        json!({ "value": "${secret.TOKEN} ${secret.PASSWORD}" }),
        &["ask"],
    );
    let file = bench.plan("p", json!([ask, uses]));
    run(&bench, &["run", &file, "--yes"]).ends(4);
    let typed = format!("it is {TOKEN}, and {PASSWORD}");
    run(&bench, &["comment", "p", &typed]).ends(0);
    let answer = format!("name={TOKEN}");
    run(&bench, &["input", "p", "ask", "--set", &answer]).ends(0);
    for (file, command) in [("q", "reject"), ("r", "request-changes")] {
        let uses = call(
            "use",
            "demo.echo",
            json!({ "value": "${secret.TOKEN}" }),
            &[],
        );
        let plan = bench.plan(file, json!([uses]));
        run(&bench, &["import", &plan]).ends(0);
        let reason = format!("because of {TOKEN}");
        run(
            &bench,
            &[command, file, "--version", "1", "--reason", &reason],
        )
        .ends(0);
    }
    let canaries = Canaries::new();
    let screens: [&[&str]; 3] = [&["log", "p", "--json"], &["show", "q"], &["show", "r"]];
    for arguments in screens {
        let shown = run(&bench, arguments).ends(0);
        let text = format!("{}{}", shown.out, shown.err);
        assert!(text.contains("[secret TOKEN]"), "{arguments:?}: {text}");
        canaries.are_not_in("the screen", text.as_bytes());
    }
    // The database, its log, and the files of the plans.
    assert!(canaries.are_not_below(&bench.path(".plans"), Canaries::hit) > 1);
}
