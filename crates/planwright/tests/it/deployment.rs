//! The files in `deploy/`: checked by programs that others wrote for them, and their command lines by the program itself.

use crate::service::Served;
use planwright_testing::http::HttpRequest;
use planwright_testing::peers::installed;
use planwright_testing::postgres::server;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, program_path, said};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Nothing listens there.
const NO_STORE: &str = "postgres://planwright@127.0.0.1:1/planwright";
const SERVERS: &str = "/etc/planwright/servers.json";
const UNITS: [&str; 2] = ["planwright-serve.service", "planwright-worker@.service"];
const MANIFESTS: [&str; 3] = ["account.yaml", "serve.yaml", "worker.yaml"];

/// The exposure, in tenths of its points, that `systemd-analyze` may find, of 100.
#[cfg(target_os = "linux")]
const MAX_EXPOSURE: &str = "20";

fn file(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().unwrap().join("deploy").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// Runs a checker, which must have nothing to complain about.
#[track_caller]
fn passes(command: &mut Command) {
    let said = said(command.output().unwrap());
    assert_eq!(said.code, 0, "{command:?} {said:#?}");
}

fn checker(name: &str) -> Command {
    Command::new(installed(&format!("py-deploy/bin/{name}")))
}

/// The documents of a YAML file, with its anchors and merges resolved by the library that the checkers use.
fn documents(name: &str) -> Vec<Value> {
    let script = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))";
    let mut python = checker("python");
    python.args(["-c", script]);
    python.stdin(std::fs::File::open(file(name)).unwrap());
    said(python.output().unwrap())
        .ends(0)
        .json()
        .as_array()
        .unwrap()
        .clone()
}

fn words(list: &Value) -> Vec<String> {
    let list = list.as_array().unwrap();
    let words = list.iter().map(|word| word.as_str().unwrap().to_owned());
    words.collect()
}

/// The words of an instruction of the Dockerfile.
fn instruction(name: &str) -> Vec<String> {
    let text = text("Dockerfile");
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    words(&serde_json::from_str(line.unwrap()).unwrap())
}

/// The containers of the Deployment in a manifest.
fn containers(manifest: &str) -> Vec<Value> {
    let documents = documents(&format!("kubernetes/{manifest}"));
    let of = documents.iter().filter(|one| one["kind"] == "Deployment");
    of.flat_map(|one| {
        let containers = &one["spec"]["template"]["spec"]["containers"];
        containers.as_array().unwrap().clone()
    })
    .collect()
}

/// What each file lets the program do, with the name of its file.
fn command_lines() -> Vec<(String, Vec<String>)> {
    let mut lines = vec![("Dockerfile".to_owned(), instruction("CMD "))];
    let compose = documents("compose.yaml").remove(0);
    for (name, service) in compose["services"].as_object().unwrap() {
        if service["image"]
            .as_str()
            .unwrap()
            .starts_with("planwright:")
        {
            lines.push((format!("compose.yaml {name}"), words(&service["command"])));
        }
    }
    for manifest in MANIFESTS {
        let of = containers(manifest).into_iter();
        lines.extend(of.map(|one| (manifest.to_owned(), words(&one["args"]))));
    }
    for unit in UNITS {
        let text = text(&format!("systemd/{unit}"));
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("ExecStart=/usr/bin/planwright "));
        let line = line.unwrap().replace("%i", "shell");
        lines.push((
            unit.to_owned(),
            line.split(' ').map(str::to_owned).collect(),
        ));
    }
    lines
}

#[test]
fn others_find_nothing_wrong_with_the_container_the_compose_file_and_the_manifests() {
    passes(checker("hadolint").arg(file("Dockerfile")));
    passes(
        checker("check-jsonschema")
            .args(["--builtin-schema", "vendor.compose-spec"])
            .arg(file("compose.yaml")),
    );
    let mut kubernetes = checker("kubernetes-validate");
    kubernetes.arg("--strict");
    kubernetes.args(MANIFESTS.map(|name| file(&format!("kubernetes/{name}"))));
    passes(&mut kubernetes);
    // The list of manifests is complete, here and for kubectl.
    let listed = &documents("kubernetes/kustomization.yaml")[0]["resources"];
    assert_eq!(words(listed), MANIFESTS);
    let there = std::fs::read_dir(file("kubernetes")).unwrap();
    assert_eq!(there.count(), MANIFESTS.len() + 1);
}

#[cfg(target_os = "linux")]
#[test]
fn systemd_finds_nothing_wrong_with_the_units_and_little_exposed() {
    let folder = tempfile::tempdir().unwrap();
    let there = std::fs::read_dir(file("systemd")).unwrap();
    assert_eq!(there.count(), UNITS.len());
    for unit in UNITS {
        let text = text(&format!("systemd/{unit}"));
        // It looks whether there is such a program.
        let program = program_path().display().to_string();
        let text = text.replace("/usr/bin/planwright", &program);
        let path = folder.path().join(unit.replace("@.", "@shell."));
        std::fs::write(&path, text).unwrap();
        passes(Command::new("systemd-analyze").arg("verify").arg(&path));
        passes(
            Command::new("systemd-analyze")
                .args(["security", "--offline=true", "--threshold", MAX_EXPOSURE])
                .arg(&path),
        );
    }
}

#[test]
fn the_program_understands_every_command_line() {
    let bench = Bench::new();
    let servers = bench
        .write("servers.json", r#"{"mcpServers": {}}"#)
        .display()
        .to_string();
    bench.write_own("planwright.toml", &settings());
    let lines = command_lines();
    assert_eq!(lines.len(), 9, "{lines:?}");
    for (name, line) in lines {
        let line: Vec<String> = line
            .iter()
            .map(|word| word.replace(SERVERS, &servers))
            .collect();
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        let mut command = bench.command(&line);
        command.env("PLANWRIGHT_STORE", NO_STORE);
        let said = said(command.output().unwrap());
        // Understood, and then there was no store to open.
        assert_eq!(said.code, 5, "{name}: {line:?} {said:#?}");
    }
}

/// The settings of the compose file, with a password.
fn settings() -> String {
    let compose = documents("compose.yaml").remove(0);
    let text = compose["configs"]["settings"]["content"].as_str().unwrap();
    let (before, rest) = text.split_once("${RABBITMQ_PASSWORD").unwrap();
    let (_, after) = rest.split_once('}').unwrap();
    format!("{before}hunter2{after}")
}

#[test]
fn the_probes_of_kubernetes_find_a_service_alive_ready_and_stopping() {
    server().create_database("probes");
    let bench = Bench::new();
    let container = containers("serve.yaml").remove(0);
    let mut line = words(&container["args"]);
    line.retain(|word| !word.starts_with("--listen"));
    let mut command = bench.command(&["--json"]);
    command
        .args(line)
        .args(["--listen", "127.0.0.1:0"])
        .env("PLANWRIGHT_STORE", server().url("probes"));
    let served = Served::start(command);
    let address = served.address().to_owned();
    let (_, port) = address.rsplit_once(':').unwrap();
    let running = served.into_running();
    let probe = |name: &str| {
        let request = &container[name]["httpGet"];
        let header = &request["httpHeaders"][0];
        assert_eq!(header["name"], "Host");
        let host = header["value"].as_str().unwrap().replace("7526", port);
        let path = request["path"].as_str().unwrap();
        let request = HttpRequest::new(&address, "GET", path);
        request.header("Host", &host).send().status
    };
    assert_eq!(probe("startupProbe"), 200);
    assert_eq!(probe("livenessProbe"), 200);
    assert_eq!(probe("readinessProbe"), 200);
    running.signal(Signal::TERM);
    // It is taken out of the endpoints, and answers meanwhile.
    wait_until("the service to say that it stops", || {
        probe("readinessProbe") == 503
    });
    assert_eq!(probe("livenessProbe"), 200);
    // Once more: at once, instead of after the seconds in which callers go elsewhere.
    running.signal(Signal::TERM);
    running.wait();
}
