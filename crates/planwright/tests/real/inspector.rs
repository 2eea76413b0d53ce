//! Clients that people look at servers with: the inspector of the protocol, and another.

use crate::conformance::NODE;
use crate::gateway::{Served, token};
use planwright_testing::peers::{Project, installed};
use serde_json::{Value, json};
use std::process::{Command, Output};

/// Where the inspector finds a server.
enum Target<'a> {
    Pipe(&'a Project, &'a [&'a str]),
    Http { url: String, token: &'a str },
}

const INSPECTOR: &str =
    "node-conformance/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js";

fn inspect(home: &Project, target: &Target<'_>, era: &str, wanted: &[&str]) -> Output {
    let mut inspector = Command::new(installed(NODE));
    inspector
        .arg(installed(INSPECTOR))
        .args(["--cli", "--format", "json", "--protocol-era", era])
        // A busy machine takes longer than the inspector waits by itself.
        .args(["--connect-timeout", "60000"])
        .args(wanted)
        .current_dir(home.bench.root())
        .env_clear();
    for (name, value) in home.command(&["mcp"]).get_envs() {
        inspector.env(name, value.unwrap());
    }
    match target {
        Target::Http { url, token } => {
            let header = format!("Authorization: Bearer {token}");
            inspector.args([
                "--transport",
                "http",
                "--server-url",
                url,
                "--header",
                &header,
            ]);
        }
        Target::Pipe(project, args) => {
            let command = project.command(args);
            // The inspector hands on what it is told, and little else.
            for (name, value) in command.get_envs() {
                let value = value.unwrap().to_str().unwrap();
                inspector.args(["-e", &format!("{}={value}", name.to_str().unwrap())]);
            }
            inspector
                .arg("--")
                .arg(command.get_program())
                .args(command.get_args());
        }
    }
    inspector.output().unwrap()
}

#[track_caller]
fn answer(output: &Output, what: &str) -> Value {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{what}: {error}");
    let said: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|problem| panic!("{what}: {problem}: {error}"));
    said["result"].clone()
}

#[test]
fn the_inspector_lists_and_calls_in_every_era_and_finds_nothing_to_complain_about() {
    let project = Project::with(&["workshop"]);
    let owner = token(&project, "person", "admin", "ada");
    let served = Served::start(&project);
    let over_http = |path: &str| Target::Http {
        url: format!("{}{path}", served.url),
        token: &owner,
    };
    let targets = [
        ("mcp", false, Target::Pipe(&project, &["mcp"])),
        (
            "mcp --gateway",
            true,
            Target::Pipe(&project, &["mcp", "--gateway"]),
        ),
        ("/mcp", false, over_http("/mcp")),
        ("/mcp/gateway", true, over_http("/mcp/gateway")),
    ];
    for era in ["legacy", "auto", "modern"] {
        std::thread::scope(|scope| {
            for (name, has_tools, target) in &targets {
                let project = &project;
                // What is found out about a version is the same for both servers.
                if era == "auto" && !has_tools {
                    continue;
                }
                scope.spawn(move || {
                    let what = format!("{name}, {era}");
                    // `--strict` fails on schemas that some client cannot read.
                    let listed = ["--method", "tools/list", "--strict"];
                    let listed = answer(&inspect(project, target, era, &listed), &what);
                    let tools = listed["tools"].as_array().unwrap();
                    let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
                    assert!(has("plan_propose"), "{what}: {listed}");
                    assert_eq!(has("workshop__measure"), *has_tools, "{what}");
                    let (tool, args) = match has_tools {
                        true => ("workshop__measure", r#"{"word":"plank"}"#),
                        false => ("plan_list", "{}"),
                    };
                    let call = ["--method", "tools/call", "--tool-name", tool];
                    let call = [&call[..], &["--tool-args-json", args]].concat();
                    let called = answer(&inspect(project, target, era, &call), &what);
                    let said = &called["structuredContent"];
                    match has_tools {
                        true => assert_eq!(said["letters"], 5, "{what}: {called}"),
                        false => assert_eq!(said["success"], true, "{what}: {called}"),
                    }
                });
            }
        });
    }
    let gateway = over_http("/mcp/gateway");
    for (method, field) in [("resources/list", "resources"), ("prompts/list", "prompts")] {
        let output = inspect(&project, &gateway, "modern", &["--method", method]);
        let listed = answer(&output, method);
        assert!(listed[field].is_array(), "{method}: {listed}");
    }
    let load = [
        "--method",
        "tools/call",
        "--tool-name",
        "workshop__measure",
        "--tool-args-json",
        r#"{"word":"plank"}"#,
        "--load",
        "--load-requests",
        "60",
        "--load-concurrency",
        "6",
    ];
    let loaded = inspect(&project, &gateway, "modern", &load);
    let said = String::from_utf8_lossy(&loaded.stdout);
    let error = String::from_utf8_lossy(&loaded.stderr);
    assert!(loaded.status.success(), "{said}\n{error}");
    let summary: Value = serde_json::from_slice(&loaded.stdout).unwrap();
    assert!(summary.to_string().contains("60"), "{summary}");
}

#[test]
fn another_client_of_the_command_line_calls_through_the_gateway() {
    let project = Project::with(&["workshop"]);
    let command = project.command(&["mcp", "--gateway"]);
    let environment: serde_json::Map<String, Value> = command
        .get_envs()
        .map(|(name, value)| {
            let name = name.to_str().unwrap().to_owned();
            (name, json!(value.unwrap().to_str().unwrap()))
        })
        .collect();
    let config = json!({ "mcpServers": { "planwright": {
        "command": command.get_program().to_str().unwrap(),
        "args": ["mcp", "--gateway", "--dir", project.bench.root()],
        "env": environment,
    } } });
    project.bench.write("clients.json", &config.to_string());
    let ask = |what: &str, target: &str, args: Value| -> Value {
        let mut client = Command::new(installed(NODE));
        client
            .arg(installed("node-conformance/node_modules/.bin/mcp-cli"))
            .args(["-c", "clients.json", what])
            .arg(format!("planwright:{target}"))
            .args(["--args", &args.to_string()])
            .current_dir(project.bench.root())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", project.bench.home());
        let output = client.output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let start = said.find('{').unwrap_or_else(|| {
            panic!("{said}\n{}", String::from_utf8_lossy(&output.stderr));
        });
        serde_json::from_str(&said[start..]).unwrap()
    };
    let measured = ask("call-tool", "workshop__measure", json!({ "word": "plank" }));
    assert_eq!(measured["structuredContent"]["letters"], 5, "{measured}");
    let listed = ask("call-tool", "plan_list", json!({}));
    assert_eq!(listed["structuredContent"]["success"], true, "{listed}");
    let prompt = ask("get-prompt", "plan", json!({ "goal": "build a shelf" }));
    assert!(prompt.to_string().contains("build a shelf"), "{prompt}");
    // No person can be asked here, so what policy asks about is not called.
    let args = json!({ "name": "stolen", "steps": 1, "milliseconds": 1 });
    let refused = ask("call-tool", "workshop__work", args);
    assert_eq!(
        refused["structuredContent"]["code"], "needs_person",
        "{refused}"
    );
    assert!(!project.bench.path("effects.txt").exists());
}
