//! The same servers over HTTP, in both eras.

use planwright_testing::peers::Project;
use planwright_testing::steps::call;
use planwright_testing::steps::value;
use planwright_testing::terminal::Terminal;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::said;
use serde_json::{Value, json};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// A server that Planwright did not start. Ended with the test.
struct Listening {
    child: Child,
    port: u16,
}

impl Listening {
    /// Starts the command of a server with other last arguments and variables.
    fn start(entry: &Value, args: impl Fn(u16, &mut Vec<String>)) -> Self {
        let free = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        Self::start_on(port, entry, args)
    }

    fn start_on(port: u16, entry: &Value, args: impl Fn(u16, &mut Vec<String>)) -> Self {
        let written = entry["args"]
            .as_array()
            .unwrap()
            .iter()
            .map(|arg| arg.as_str().unwrap().to_owned());
        let mut words: Vec<String> = written.collect();
        args(port, &mut words);
        let mut command = Command::new(entry["command"].as_str().unwrap());
        command.args(words).env("PORT", port.to_string());
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let listening = Self {
            child: command.spawn().unwrap(),
            port,
        };
        wait_until("the server to listen", || {
            TcpStream::connect(("127.0.0.1", port)).is_ok()
        });
        listening
    }

    fn entry(&self) -> Value {
        json!({ "type": "http", "url": format!("http://127.0.0.1:{}/mcp", self.port),
                "headers": { "X-Token": "${TOKEN:-none}" } })
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn servers_of_both_eras_are_called_over_http() {
    let project = Project::with(&[]);
    let everything = Listening::start(&project.entry("everything"), |_, args| {
        args.pop();
        args.push("streamableHttp".to_owned());
    });
    let workshop = Listening::start(&project.entry("workshop"), |port, args| {
        args.push(port.to_string());
    });
    project.name(&json!({ "everything": everything.entry(), "workshop": workshop.entry() }));

    let run = |args: &[&str]| said(project.untrusting(args).output().unwrap());
    run(&["servers", "check", "everything"]).complains(3, "is not trusted");
    let shown = run(&["servers", "trust", "everything", "--yes"]).ends(0);
    assert!(
        shown
            .err
            .contains(&format!("http://127.0.0.1:{}/mcp", everything.port)),
        "{shown:#?}"
    );
    run(&["servers", "trust", "workshop", "--yes"]).ends(0);
    let checked = run(&["servers", "check", "--json"]).ends(0).json();
    let eras: Vec<&str> = checked
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["era"].as_str().unwrap())
        .collect();
    assert_eq!(eras, ["earlier", "modern"], "{checked:#}");

    let result = project.result(
        "web",
        json!([
            call(
                "sum",
                "everything.get-sum",
                json!({ "a": 20, "b": 22 }),
                &[]
            ),
            call(
                "measure",
                "workshop.measure",
                json!({ "word": "${sum}" }),
                &[]
            ),
            call(
                "work",
                "workshop.work",
                json!({ "name": "table", "steps": 2, "milliseconds": 20 }),
                &["measure"]
            ),
        ]),
    );
    assert_eq!(
        value(&result, "measure")["letters"],
        "The sum of 20 and 22 is 42.".len()
    );
    assert_eq!(value(&result, "work"), json!({ "result": "table is done" }));
    assert_eq!(project.effects(), ["table"]);

    // Another address under the same name is another server.
    let moved = json!({ "url": format!("http://127.0.0.1:{}/mcp", workshop.port) });
    project.name(&json!({ "everything": moved }));
    run(&["servers", "check", "everything"]).complains(3, "its launch line changed");
}

/// It answers 400 in a session that it does not know, as many servers of its library do.
#[test]
fn a_server_that_was_started_again_gets_a_new_session() {
    let project = Project::with(&[]);
    let streams = |_: u16, args: &mut Vec<String>| {
        args.pop();
        args.push("streamableHttp".to_owned());
    };
    let entry = project.entry("everything");
    let before = Listening::start(&entry, streams);
    let port = before.port;
    project.name(&json!({ "everything": before.entry() }));
    let sum =
        |id: &str, after: &[&str]| call(id, "everything.get-sum", json!({ "a": 1, "b": 2 }), after);
    let plan = project.bench.plan(
        "sums",
        json!([
            sum("first", &[]),
            { "id": "pause", "dependsOn": ["first"], "input": { "message": "Go on?", "schema": { "type": "boolean" } } },
            sum("second", &["pause"]),
        ]),
    );
    let mut terminal = Terminal::of(project.command(&["run", &plan, "--yes"]));
    terminal.wait_for("value (boolean):");
    drop(before);
    let _after = Listening::start_on(port, &entry, streams);
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0), "{}", terminal.seen());
    assert_eq!(project.count("sums", "attempt_succeeded"), 2);
}

#[test]
fn a_server_that_streams_events_as_they_first_did_is_called() {
    let project = Project::with(&[]);
    let everything = Listening::start(&project.entry("everything"), |_, args| {
        args.pop();
        args.push("sse".to_owned());
    });
    let url = format!("http://127.0.0.1:{}/sse", everything.port);
    project.name(&json!({ "everything": { "type": "sse", "url": url } }));
    let result = project.result(
        "old",
        json!([call(
            "sum",
            "everything.get-sum",
            json!({ "a": 20, "b": 22 }),
            &[]
        )]),
    );
    assert_eq!(value(&result, "sum"), "The sum of 20 and 22 is 42.");
}
