//! Tools that servers listed to earlier commands: who looks starts nothing, who runs is told what is
//! there. Each server writes down that it was started, and what it was told to do.

use planwright_core::digest::Digest;
use planwright_testing::steps::call;
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::{Bench, said};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

/// A server whose tools are those of a file. `grow` adds one, and says so before it answers.
const COUNTED: &str = r#"
import json, sys
name = sys.argv[1]
open("starts.txt", "a").write(name + "\n")

def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    message = json.loads(line)
    method, ident = message.get("method"), message.get("id")
    if method == "initialize":
        send({"id": ident, "result": {"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": name, "version": "1"},
            "instructions": "Ask " + name + " nicely."}})
    elif method == "tools/list":
        send({"id": ident, "result": {"tools": json.load(open(name + ".json"))}})
    elif method == "tools/call":
        tool = message["params"]["name"]
        open("effects.txt", "a").write(name + "." + tool + "\n")
        if tool == "grow":
            tools = json.load(open(name + ".json"))
            tools.append({"name": "added", "inputSchema": {"type": "object"}})
            json.dump(tools, open(name + ".json", "w"))
            send({"method": "notifications/tools/list_changed"})
        send({"id": ident, "result": {"content": [{"type": "text", "text": "ok"}]}})
    elif ident is not None:
        send({"id": ident, "error": {"code": -32601, "message": "Method not found"}})
"#;

fn tool(name: &str, annotations: Value) -> Value {
    json!({ "name": name, "description": "Does something.", "annotations": annotations,
        "inputSchema": { "type": "object", "properties": { "text": { "type": "string" } } } })
}

fn write() -> Value {
    tool("write", json!({}))
}

fn read() -> Value {
    tool(
        "read",
        json!({ "readOnlyHint": true, "openWorldHint": false }),
    )
}

/// A workspace with servers that count.
struct Counted(Bench);

impl Counted {
    /// Trusted servers of these names. Each can `read` and `write`.
    fn new(names: &[&str]) -> Self {
        let counted = Self::untrusted(names);
        let mut trust = vec!["servers", "trust", "--yes"];
        trust.extend(names);
        counted.0.run(&trust).ends(0);
        counted
    }

    fn untrusted(names: &[&str]) -> Self {
        let counted = Self(Bench::new());
        counted.0.write("counted.py", COUNTED);
        for name in names {
            counted.has(name, json!([read(), write()]));
        }
        counted.launch(names, &[]);
        counted
    }

    /// Says in `.mcp.json` how they are started.
    fn launch(&self, names: &[&str], more: &[&str]) {
        let servers: serde_json::Map<String, Value> = names
            .iter()
            .map(|name| {
                let mut args = vec!["counted.py", name];
                args.extend(more);
                let env = json!({ "LEVEL": "${LEVEL:-low}" });
                let launch = json!({ "command": "python3", "args": args, "env": env });
                ((*name).to_owned(), launch)
            })
            .collect();
        let text = json!({ "mcpServers": servers }).to_string();
        self.0.write(".mcp.json", &text);
    }

    /// What a server lists from now on.
    fn has(&self, server: &str, tools: Value) {
        self.0.write(&format!("{server}.json"), &tools.to_string());
    }

    /// The servers that were started since the last look, in order of their names.
    fn starts(&self) -> Vec<String> {
        let path = self.0.path("starts.txt");
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        std::fs::remove_file(&path).unwrap_or_default();
        let mut started: Vec<String> = text.lines().map(str::to_owned).collect();
        started.sort();
        started
    }

    fn effects(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.0.path("effects.txt")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The directory of what is remembered.
    fn memory(&self) -> PathBuf {
        self.0.home().join(".config/planwright/seen-tools")
    }

    fn remembered(&self) -> Vec<PathBuf> {
        let Ok(files) = std::fs::read_dir(self.memory()) else {
            return Vec::new();
        };
        files.map(|file| file.unwrap().path()).collect()
    }

    /// Changes the answer of the only remembered server, so that the file is whole.
    fn forge(&self, from: &str, to: &str) {
        let [path] = &self.remembered()[..] else {
            panic!("one file, not {:?}", self.remembered());
        };
        let file = std::fs::read_to_string(path).unwrap();
        let (heading, answer) = file.split_once('\n').unwrap();
        let forged = answer.replace(from, to);
        assert_ne!(forged, answer);
        let mut heading: Value = serde_json::from_str(heading).unwrap();
        heading["answer"] = json!(Digest::of_bytes(forged.as_bytes()));
        std::fs::write(path, format!("{heading}\n{forged}")).unwrap();
    }
}

fn calls(tools: &[&str]) -> Value {
    let steps = tools.iter().enumerate();
    steps
        .map(|(at, tool)| call(&format!("s{at}"), tool, json!({}), &[]))
        .collect()
}

#[test]
fn who_only_looks_starts_no_server_whose_tools_were_seen() {
    let counted = Counted::new(&["one", "two", "three"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.write", "two.write"]));
    let cold = bench.run(&["validate", &plan, "--json"]).ends(0).json();
    assert_eq!(counted.starts(), ["one", "two"]);

    let warm = bench.run(&["validate", &plan, "--json"]).ends(0).json();
    assert_eq!(warm["digest"], cold["digest"]);
    bench.run(&["import", &plan]).ends(0);
    let digest = warm["digest"].as_str().unwrap();
    for look in [
        &["show", "p"][..],
        &["show", "p", "--json"],
        &["list"],
        &["inbox"],
        &["status"],
        &["doctor"],
        &["policy", "explain", "p"],
        &["tools", "one.write"],
        &["server", "list"],
        &["approve", "p", "--digest", digest],
        &["show", "p"],
        &["stats"],
    ] {
        bench.run(look).ends(0);
        assert_eq!(counted.starts(), [""; 0], "{look:?}");
    }
    bench.run(&["reject", "p", "--version", "1", "--reason", "no"]);
    assert_eq!(counted.starts(), [""; 0]);

    // The third was never asked, and is asked once.
    let tools = bench.run(&["tools", "--json"]).ends(0).json();
    assert_eq!(counted.starts(), ["three"]);
    let seen_at = |tools: &Value, server: &str| {
        let all = tools.as_array().unwrap().iter();
        let of_server: Vec<&Value> = all.filter(|tool| tool["server"] == server).collect();
        assert!(!of_server.is_empty(), "{server}: {tools:#}");
        of_server.iter().all(|tool| tool["seenAt"].is_string())
    };
    assert!(seen_at(&tools, "one") && seen_at(&tools, "two"));
    assert!(!seen_at(&tools, "three") && !seen_at(&tools, "local"));
    let text = bench.run(&["tools"]).ends(0);
    assert_eq!(counted.starts(), [""; 0]);
    let words = "as seen just now; planwright tools --refresh asks again";
    assert!(text.err.contains(words), "{text:#?}");
    for words in ["three.write", "says  Ask two nicely."] {
        assert!(text.out.contains(words), "{text:#?}");
    }

    let listed = bench.run(&["server", "list", "--json"]).ends(0).json();
    for server in listed.as_array().unwrap() {
        assert_eq!(server["tools"], 2, "{server:#}");
        assert!(server["seenAt"].is_string(), "{server:#}");
    }
    let listed = bench.run(&["server", "list"]).ends(0).out;
    assert!(listed.contains("2 tools, as seen just now"), "{listed}");
    assert_eq!(counted.starts(), [""; 0]);

    let again = bench.run(&["tools", "--refresh", "--json"]).ends(0).json();
    assert_eq!(counted.starts(), ["one", "three", "two"]);
    assert!(!seen_at(&again, "one"));
    bench.run(&["server", "check", "two"]).ends(0);
    assert_eq!(counted.starts(), ["two"]);
}

#[test]
fn a_run_starts_the_servers_whose_tools_it_uses_once_each() {
    let counted = Counted::new(&["one", "two", "three"]);
    let bench = &counted.0;
    counted.has("three", json!([write(), tool("only_three", json!({}))]));
    let plan = bench.plan("p", calls(&["one.write", "two.write", "one.read"]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(counted.starts(), ["one", "two"]);
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(counted.starts(), ["one", "two"]);

    // Any of them could have a tool that is named without its server, until all were seen.
    let plan = bench.plan("bare", calls(&["only_three"]));
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(counted.starts(), ["one", "three", "two"]);
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(counted.starts(), ["three"]);
    assert_eq!(counted.effects().last().unwrap(), "three.only_three");

    // What an executor may call is what the plan lists.
    let agent = json!({ "id": "agent", "title": "Agent", "toolsRequired": ["two.read"],
        "steps": [{ "id": "a", "title": "Look", "agent": { "instruction": "Look around." } }] });
    let plan = bench.document(agent);
    bench.run(&["run", &plan, "--dry-run"]);
    assert_eq!(counted.starts(), ["two"]);
}

#[test]
fn a_person_is_asked_before_any_server_starts() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.write"]));
    bench.run(&["validate", &plan]).ends(0);
    counted.starts();
    for (answer, code, started) in [("n\n", 3, 0), ("y\n", 0, 1)] {
        let mut terminal = Terminal::start(bench, &["run", &plan]);
        terminal.wait_for("Approve and run?");
        assert_eq!(counted.starts(), [""; 0]);
        terminal.types(answer);
        assert_eq!(terminal.ends(), Some(code), "{}", terminal.seen());
        assert_eq!(counted.starts().len(), started);
    }
    assert_eq!(counted.effects(), ["one.write"]);
}

#[test]
fn a_tool_that_changed_since_it_was_seen_is_asked_about_and_not_called() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    let changes = [
        (
            "described",
            json!([read(), { "name": "write", "description": "Deletes everything.",
            "inputSchema": { "type": "object" } }]),
        ),
        (
            "annotated",
            json!([read(), tool("write", json!({ "destructiveHint": true }))]),
        ),
        (
            "typed",
            json!([read(), { "name": "write", "description": "Does something.",
            "inputSchema": { "type": "object", "properties": { "text": { "type": "number" } } } }]),
        ),
    ];
    for (id, changed) in changes {
        counted.has("one", json!([read(), write()]));
        bench.run(&["tools", "--refresh"]).ends(0);
        let plan = bench.plan(id, calls(&["one.write"]));
        bench.run(&["import", &plan]).ends(0);
        bench.run(&["approve", id, "--version", "1"]).ends(0);
        counted.starts();
        counted.has("one", changed.clone());
        assert_eq!(bench.status(id), "approved");
        assert_eq!(counted.starts(), [""; 0]);

        let refused = bench.run(&["run", id]).ends(3);
        assert!(refused.err.contains("`one.write`"), "{refused:#?}");
        assert_eq!(counted.starts(), ["one"]);

        // At a terminal the approval seems to count, until the server is asked.
        counted.has("one", json!([read(), write()]));
        bench.run(&["tools", "--refresh"]).ends(0);
        counted.has("one", changed);
        counted.starts();
        let mut terminal = Terminal::start(bench, &["run", id]);
        terminal.wait_for("not what they were when they were last seen");
        terminal.wait_for("Approve and run?");
        assert_eq!(counted.starts(), ["one"]);
        terminal.types("n\n");
        assert_eq!(terminal.ends(), Some(3), "{}", terminal.seen());
    }
    assert_eq!(counted.effects(), [""; 0]);
}

#[test]
fn a_tool_that_no_longer_says_that_it_reads_does_not_run_unasked() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.read"]));
    bench.run(&["run", &plan]).ends(0);
    assert_eq!(counted.effects(), ["one.read"]);
    counted.has("one", json!([tool("read", json!({})), write()]));
    bench.run(&["run", &plan]).ends(3);
    counted.has("one", json!([read(), write()]));
    // More care was taken at once, and is kept: the person accepts what it says.
    bench.run(&["servers", "trust", "one", "--yes"]).ends(0);
    bench.run(&["tools", "--refresh"]).ends(0);
    counted.has("one", json!([tool("read", json!({})), write()]));
    let mut terminal = Terminal::start(bench, &["run", &plan]);
    terminal.wait_for("Approve and run?");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(3), "{}", terminal.seen());
    assert_eq!(counted.effects(), ["one.read"]);
}

#[test]
fn another_launch_line_or_another_value_is_another_server() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.write"]));
    bench.run(&["validate", &plan]).ends(0);
    assert_eq!(counted.starts(), ["one"]);
    let other_value = || {
        let mut command = bench.command(&["validate", &plan]);
        command.env("LEVEL", "high");
        said(command.output().unwrap()).ends(0);
        counted.starts()
    };
    assert_eq!(other_value(), ["one"]);
    assert_eq!(other_value(), [""; 0]);

    counted.launch(&["one"], &["--more"]);
    let said = bench.run(&["validate", &plan]).ends(2);
    assert!(said.err.contains("not what you trusted"), "{said:#?}");
    let tools = bench.run(&["tools", "--json"]).ends(0).out;
    assert!(!tools.contains("\"one\""), "{tools}");
    let listed = bench.run(&["server", "list", "--json"]).ends(0).json();
    assert!(listed[0]["seenAt"].is_null(), "{listed:#}");
    assert_eq!(counted.starts(), [""; 0]);
    bench.run(&["servers", "trust", "one", "--yes"]).ends(0);
    bench.run(&["validate", &plan]).ends(0);
    assert_eq!(counted.starts(), ["one"]);
    bench.run(&["validate", &plan]).ends(0);
    assert_eq!(counted.starts(), [""; 0]);

    // Without trust nothing of it is used.
    bench.run(&["servers", "untrust", "one"]).ends(0);
    let said = bench.run(&["validate", &plan]).ends(2);
    assert!(said.err.contains("not trusted"), "{said:#?}");
    assert_eq!(counted.starts(), [""; 0]);
}

#[test]
fn a_forged_memory_shows_something_wrong_and_allows_nothing() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    counted.has("one", json!([write()]));
    let plan = bench.plan("p", calls(&["one.write"]));
    bench.run(&["import", &plan]).ends(0);
    let honest = bench.digest("p");
    let harmless = "\"annotations\":{\"readOnlyHint\":true}";
    let forge = || {
        bench.run(&["tools", "--refresh"]).ends(0);
        counted.forge("\"annotations\":{}", harmless);
        counted.starts();
    };

    // Hints that were seen before are not loosened by a file.
    forge();
    let tool = bench.run(&["tools", "one.write", "--json"]).ends(0).json();
    assert_eq!(counted.starts(), [""; 0]);
    assert_eq!(
        (&tool["readOnly"], &tool["believed"]),
        (&json!(false), &json!(false))
    );

    // Also where they are forgotten, the server is asked before it is called.
    bench.run(&["servers", "trust", "one", "--yes"]).ends(0);
    let forged = bench.digest("p");
    assert_eq!(counted.starts(), [""; 0]);
    assert_ne!(forged, honest);
    bench.run(&["approve", "p", "--digest", &forged]).ends(0);
    assert_eq!(counted.starts(), [""; 0]);
    bench.run(&["run", "p"]).ends(3);
    assert_eq!(counted.starts(), ["one"]);
    assert_eq!(counted.effects(), [""; 0]);

    forge();
    bench.run(&["servers", "trust", "one", "--yes"]).ends(0);
    let mut terminal = Terminal::start(bench, &["run", "p"]);
    terminal.wait_for("not what they were when they were last seen");
    terminal.wait_for("Approve and run?");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(3), "{}", terminal.seen());
    assert_eq!(counted.effects(), [""; 0]);
    assert_eq!(bench.digest("p"), honest);
}

#[test]
fn what_is_damaged_or_from_elsewhere_is_as_if_there_were_nothing() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.write"]));
    let validate = |dir: Option<&str>| {
        let mut args = vec!["validate", &plan, "--trust-project-servers"];
        args.extend(dir.iter().flat_map(|dir| ["--dir", dir]));
        bench.run(&args).ends(0);
        // A copy of the workspace counts in its own file.
        let own = dir.map(|dir| PathBuf::from(dir).join("starts.txt"));
        let own = own.is_some_and(|path| std::fs::remove_file(path).is_ok());
        usize::from(own) + counted.starts().len()
    };
    assert_eq!((validate(None), validate(None)), (1, 0));
    let [file] = &counted.remembered()[..] else {
        panic!("one file, not {:?}", counted.remembered());
    };
    let whole = std::fs::read(file).unwrap();
    for broken in [&b""[..], b"{}", &whole[..whole.len() - 1]] {
        std::fs::write(file, broken).unwrap();
        assert_eq!((validate(None), validate(None)), (1, 0));
    }

    // A copy of the workspace, with everything in it, is another one.
    let copy = tempfile::tempdir().unwrap();
    for name in ["counted.py", "one.json", ".mcp.json"] {
        std::fs::copy(bench.path(name), copy.path().join(name)).unwrap();
    }
    let copy = copy.path().to_str().unwrap();
    assert_eq!((validate(Some(copy)), validate(Some(copy))), (1, 0));
    assert_eq!(validate(None), 0);

    // Where another account could write, nothing is read or written.
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(counted.memory(), open).unwrap();
    assert_eq!((validate(None), validate(None)), (1, 1));
}

#[test]
fn a_memory_that_lies_in_the_workspace_is_not_used() {
    let counted = Counted::untrusted(&["one"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.write"]));
    for _ in 0..2 {
        let mut command = bench.command(&["validate", &plan, "--trust-project-servers"]);
        command.env("XDG_CONFIG_HOME", bench.path("config"));
        said(command.output().unwrap()).ends(0);
        assert_eq!(counted.starts(), ["one"]);
    }
    assert!(!bench.path("config/planwright/seen-tools").exists());
}

#[test]
fn a_plan_is_wrong_only_about_tools_as_they_are() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    bench.run(&["tools"]).ends(0);
    counted.starts();
    let plan = bench.plan("p", calls(&["one.later"]));
    counted.has("one", json!([tool("later", json!({}))]));
    bench.run(&["validate", &plan]).ends(0);
    assert_eq!(counted.starts(), ["one"]);
    bench.run(&["validate", &plan]).ends(0);
    assert_eq!(counted.starts(), [""; 0]);

    counted.has(
        "one",
        json!([{ "name": "later", "inputSchema": { "type": "object", "required": ["n"],
        "properties": { "n": { "type": "number" } } } }]),
    );
    let plan = bench.plan(
        "q",
        json!([call("a", "one.later", json!({ "n": 1, "text": 2 }), &[])]),
    );
    bench.run(&["validate", &plan]).ends(0);
    assert_eq!(counted.starts(), ["one"]);
    counted.has("one", json!([write()]));
    bench.run(&["tools", "one.write"]).ends(0);
    assert_eq!(counted.starts(), ["one"]);
    bench.run(&["tools", "one.nowhere"]).ends(2);
    assert_eq!(counted.starts(), ["one"]);
}

#[test]
fn a_list_that_changes_during_a_run_is_remembered() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    counted.has("one", json!([write(), tool("grow", json!({}))]));
    let steps = json!([
        call("a", "one.grow", json!({}), &[]),
        call("b", "one.write", json!({}), &["a"]),
    ]);
    let plan = bench.plan("p", steps);
    bench.run(&["run", &plan, "--yes"]).ends(0);
    assert_eq!(counted.effects(), ["one.grow", "one.write"]);
    assert_eq!(counted.starts(), ["one"]);
    bench.run(&["tools", "one.added"]).ends(0);
    assert_eq!(counted.starts(), [""; 0]);
}

#[test]
fn an_encrypted_workspace_seals_what_it_remembers() {
    let counted = Counted::new(&["one"]);
    let bench = &counted.0;
    let plan = bench.plan("p", calls(&["one.write"]));
    bench.run(&["import", &plan]).ends(0);
    let is_plain = || {
        let files = counted.remembered();
        let text = |path: &PathBuf| std::fs::read(path).unwrap();
        files.iter().any(|path| {
            let text = text(path);
            text.windows(5).any(|part| part == b"write")
        })
    };
    assert!(is_plain());
    let file = bench.write("secret-word", "correct horse battery\n");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = file.to_str().unwrap();
    let run = |args: &[&str]| bench.run(&[args, &["--passphrase-file", file]].concat());
    run(&["store", "encrypt", "--yes"]).ends(0);
    counted.starts();
    run(&["show", "p"]).ends(0);
    assert_eq!(counted.starts(), ["one"]);
    assert!(!is_plain());
    run(&["show", "p"]).ends(0);
    assert_eq!(counted.starts(), [""; 0]);
}
