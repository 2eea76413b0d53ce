//! Agent steps at the command line: programs that work on them, and what they may do.

use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, said};
use serde_json::{Value, json};

/// A workspace with an executor that is this shell script.
fn bench(script: &str) -> Bench {
    let bench = Bench::new();
    bench.write("worker.sh", script);
    let program = env!("CARGO_BIN_EXE_planwright");
    bench.write("planwright.toml", &format!(
            "[executors.worker]\ncommand = [\"sh\", \"worker.sh\", {program:?}]\ntimeout_seconds = 60\n"
        ),
    );
    bench
}

fn plan(bench: &Bench, tools: &[&str]) -> String {
    bench.document(json!({"id": "p", "goal": "see", "toolsRequired": tools, "steps": [
        {"id": "first", "tool": "demo.echo", "args": {"value": "seven"}},
        {"id": "work", "agent": {"instruction": "use ${first}", "executor": "worker"}, "dependsOn": ["first"]},
    ]}))
}

fn value_of<'a>(result: &'a Value, step: &str) -> &'a Value {
    let steps = result["steps"].as_array().unwrap();
    &steps.iter().find(|found| found["id"] == step).unwrap()["value"]
}

#[test]
fn an_executor_gets_the_instruction_and_calls_tools_through_its_gateway() {
    let bench = bench(
        "read instruction\necho '{\"progress\": \"began\"}'\n\
         result=$($1 call demo.echo --args '{\"value\": \"from outside\"}')\n\
         echo \"{\\\"told\\\": \\\"$instruction\\\", \\\"got\\\": \\\"$result\\\", \\\"scope\\\": $PLANWRIGHT_SCOPE}\"\n",
    );
    let file = plan(&bench, &["demo.echo"]);
    let said = bench
        .run(&["run", &file, "--yes", "--trust-project-servers", "--json"])
        .ends(0);
    let result = said.json();
    assert_eq!(
        *value_of(&result, "work"),
        json!({"told": "use seven", "got": "from outside", "scope": ["demo.echo"]})
    );
    let turns: Vec<Value> = bench
        .log("p")
        .into_iter()
        .filter(|entry| entry["kind"] == "agent_turn")
        .collect();
    assert_eq!(turns.len(), 1);
    assert_eq!(turns[0]["calls"][0]["tool"], "demo.echo");
    assert!(
        turns[0]["calls"][0]["run"]
            .as_str()
            .unwrap()
            .starts_with("run_"),
        "{turns:#?}"
    );
}

#[test]
fn what_is_outside_the_scope_is_refused_at_the_gateway_too() {
    let bench = bench("$1 call write_file --args '{\"path\": \"x\", \"content\": \"y\"}' 2>&1\n");
    let file = plan(&bench, &["demo.echo"]);
    let said = bench.run(&["run", &file, "--yes", "--trust-project-servers", "--json"]);
    let result = said.json();
    let error = result["steps"][1]["error"].to_string();
    assert!(!bench.path("x").exists(), "{said:#?}");
    assert!(error.contains("executor_failed"), "{said:#?}");
    let turn = bench
        .log("p")
        .into_iter()
        .find(|entry| entry["kind"] == "agent_turn")
        .unwrap();
    let message = turn["calls"][0]["refused"]["message"].as_str().unwrap();
    assert_eq!(
        message,
        "Tool write_file not available in plan scope. Only [demo.echo] are available."
    );
}

#[test]
fn a_call_that_needs_a_person_waits_for_one_while_the_executor_does() {
    let bench =
        bench("$1 call append_file --args '{\"path\": \"effects.txt\", \"content\": \"once\"}'\n");
    let file = plan(&bench, &["demo.echo", "append_file"]);
    let running = bench.start(&["run", &file, "--yes", "--trust-project-servers"]);
    let asked = || {
        let turn = bench
            .log("p")
            .into_iter()
            .find(|entry| entry["kind"] == "agent_turn")?;
        let run = turn["calls"][0]["run"].as_str()?.to_owned();
        let request = bench
            .log(&run)
            .into_iter()
            .find(|entry| entry["kind"] == "approval_requested")?;
        Some((run, request["call"]["digest"].as_str()?.to_owned()))
    };
    wait_until("the call is asked about", || asked().is_some());
    assert!(!bench.path("effects.txt").exists());
    let (run, digest) = asked().unwrap();
    bench
        .run(&["approve", &run, "--step", "call", "--digest", &digest])
        .ends(0);
    running.wait().ends(0);
    assert_eq!(bench.read("effects.txt"), "once");
}

#[test]
fn an_executor_that_fails_says_why_and_one_that_hangs_is_stopped() {
    let failing = bench("echo broken >&2\nexit 3\n");
    let file = plan(&failing, &["demo.echo"]);
    let said = failing
        .run(&["run", &file, "--yes", "--trust-project-servers"])
        .ends(1);
    assert!(said.out.contains("exited with code 3: broken"), "{said:#?}");

    let hanging = bench("sleep 600 & echo $! > pid; wait\n");
    let config = hanging.read("planwright.toml").replace("= 60", "= 1");
    hanging.write("planwright.toml", &config);
    let file = plan(&hanging, &["demo.echo"]);
    let said = hanging.run(&["run", &file, "--yes", "--trust-project-servers"]);
    assert!(said.out.contains("outcome_unknown"), "{said:#?}");
    let pid = hanging.read("pid");
    wait_until("what it started is gone", || {
        !std::path::Path::new(&format!("/proc/{}", pid.trim())).exists()
    });
}

#[test]
fn the_gateway_knows_one_token_one_host_and_two_requests() {
    let script = r#"
import json, os, urllib.error, urllib.request
base, token = os.environ["PLANWRIGHT_GATEWAY"], os.environ["PLANWRIGHT_STEP_TOKEN"]
def ask(path, token, body=None, host=None):
    request = urllib.request.Request(base + path, data=body and json.dumps(body).encode())
    request.add_header("authorization", "Bearer " + token)
    if host: request.add_header("host", host)
    try:
        with urllib.request.urlopen(request) as answer: return [answer.status, json.load(answer)]
    except urllib.error.HTTPError as error: return [error.code, None]
print(json.dumps({
    "tools": [tool["name"] for tool in ask("/tools", token)[1]["tools"]],
    "call": ask("/call", token, {"tool": "demo.echo", "args": {"value": 1}}),
    "wrong": ask("/tools", token[:-1] + "x")[0],
    "other": ask("/approve", token)[0],
    "host": ask("/tools", token, None, "example.org")[0],
    "home": sorted(name for name in os.environ if name.startswith("SECRET")),
}))
"#;
    let bench = Bench::new();
    bench.write("worker.py", script);
    bench.write(
        "planwright.toml",
        "[executors.worker]\ncommand = [\"python3\", \"worker.py\"]\n",
    );
    let file = plan(&bench, &["demo.echo"]);
    let mut command = bench.command(&["run", &file, "--yes", "--trust-project-servers", "--json"]);
    let output = command.env("SECRET_KEY", "hidden").output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        *value_of(&result, "work"),
        json!({"tools": ["demo.echo"], "call": [200, {"result": 1}], "wrong": 401, "other": 404, "host": 421, "home": []}),
        "{result:#}"
    );
}

#[test]
fn an_executor_that_a_project_brings_needs_trust_and_one_that_is_not_there_is_named() {
    let bench = bench("echo never > ran\n");
    let file = plan(&bench, &["demo.echo"]);
    let said = bench
        .run(&["run", &file, "--yes"])
        .complains(3, "needs the executor `worker`");
    assert!(said.err.contains("planwright trust"), "{said:#?}");
    assert!(!bench.path("ran").exists());
    // The user's own file needs none.
    let program = env!("CARGO_BIN_EXE_planwright");
    let own = format!("[executors.worker]\ncommand = [\"sh\", \"worker.sh\", {program:?}]\n");
    bench.write_own("planwright.toml", &own);
    std::fs::remove_file(bench.path("planwright.toml")).unwrap();
    bench.run(&["run", "p", "--yes"]).ends(0);
    assert_eq!(bench.read("ran"), "never\n");
}

#[test]
fn trust_in_an_executor_is_bound_to_its_launch_line() {
    let bench = bench("echo x >> ran\n");
    let file = plan(&bench, &["demo.echo"]);
    // Inside the workspace trust would be a word of the project.
    let elsewhere = tempfile::tempdir().unwrap();
    let kept = elsewhere.path().join("trust.json");
    let ran = |args: &[&str]| {
        said(
            bench
                .command(args)
                .env("PLANWRIGHT_TRUST_FILE", &kept)
                .output()
                .unwrap(),
        )
    };
    let trusted = || {
        let listed = ran(&["executors", "--json"]).ends(0).json();
        assert_eq!(listed.as_array().unwrap().len(), 1);
        assert_eq!(
            (&listed[0]["name"], &listed[0]["command"][1]),
            (&json!("worker"), &json!("worker.sh"))
        );
        listed[0]["trusted"].as_bool().unwrap()
    };
    assert!(!trusted());
    let said = ran(&["run", &file, "--yes"]).complains(3, "needs the executor `worker`");
    assert!(said.err.contains("planwright trust"), "{said:#?}");
    ran(&["executors", "trust", "worker"]).complains(3, "needs a confirmation");
    ran(&["executors", "trust", "wroker"]).complains(2, "no file describes an executor `wroker`");
    let said = ran(&["executors", "trust", "worker", "--yes"]).ends(0);
    for words in [
        "command    [\"sh\",\"worker.sh\"",
        "`worker.sh` is a file of this project",
        "digest     sha256:",
    ] {
        assert!(said.err.contains(words), "{words:?} is not in {}", said.err);
    }
    assert!(
        said.out.contains("worker  trusted  sha256:"),
        "{}",
        said.out
    );
    assert!(trusted());
    ran(&["run", "p", "--yes"]).ends(0);
    assert_eq!(bench.read("ran"), "x\n");
    // More patience needs no trust, another launch line does.
    let config = bench.read("planwright.toml");
    bench.write("planwright.toml", &config.replace("= 60", "= 61"));
    assert!(trusted());
    bench.write(
        "planwright.toml",
        &config.replace("worker.sh\"", "worker.sh\", \"--more\""),
    );
    let said = ran(&["executors", "list"]).ends(0);
    assert!(
        said.out.contains("untrusted") && said.out.contains("launch line changed"),
        "{}",
        said.out
    );
    ran(&["run", "p", "--yes"]).complains(3, "needs the executor `worker`");
    assert_eq!(bench.read("ran"), "x\n");
    bench.write("planwright.toml", &config);
    ran(&["executors", "untrust", "worker"]).ends(0);
    assert!(!trusted());
    // What the user wrote down needs no more words, and wins over what a project says under the
    // same name.
    bench.write_own(
        "planwright.toml",
        "[executors.worker]\ncommand = [\"sh\", \"worker.sh\"]\n",
    );
    assert!(trusted());
    ran(&["executors", "untrust", "worker"]).complains(2, "your own planwright.toml");
}

#[test]
fn steps_that_name_an_operation_are_instructions_for_an_executor() {
    let bench = Bench::new();
    bench.write(
        "plan.json",
        &json!({"id": "invoice", "title": "Book it", "toolsRequired": ["read_file"], "steps": [
            {"description": "Read the invoice", "tool": "read_file", "operation": "read", "target": "invoice.txt"},
        ]})
        .to_string(),
    );
    bench.run(&["import", "plan.json"]).ends(0);
    let said = bench
        .run(&["run", "invoice", "--dry-run", "--json"])
        .ends(0);
    let args = &said.json()["steps"][0]["args"];
    assert_eq!(
        (&args["tools"], &args["maxTurns"], &args["maxCalls"]),
        (&json!(["read_file"]), &json!(20), &json!(50))
    );
    let said = bench.run(&["validate", "invoice"]).ends(0);
    assert!(
        format!("{}{}", said.out, said.err).contains("W0157"),
        "{said:#?}"
    );
    let digest = bench.digest("invoice");
    bench
        .run(&["approve", "invoice", "--digest", &digest])
        .ends(0);
    bench
        .run(&["run", "invoice"])
        .complains(3, "needs a model for the executor and none is configured");
}

#[test]
fn a_plan_of_descriptions_is_carried_out_by_a_model_within_its_scope() {
    let said = |args: Value| ScriptedReply::calls([("local.append_file", args)]);
    let line = json!({"path": "book.txt", "content": "${secret.KEY} 42 EUR\n"});
    let provider = Provider::scripted([
        // The first call fails, the model sees why and does better; then it wants what it may not
        // have.
        ScriptedReply::calls([("local.read_file", json!({"path": "bill.txt"}))]),
        ScriptedReply::calls([("local.read_file", json!({"path": "invoice.txt"}))]),
        ScriptedReply::calls([(
            "local.write_file",
            json!({"path": "other.txt", "content": "x"}),
        )]),
        ScriptedReply::text("42 EUR"),
        said(line),
        ScriptedReply::text("booked").using(70, 30, 0),
    ]);
    let bench = Bench::new();
    bench.configure(&provider.config());
    bench.write("invoice.txt", "total: 42 EUR");
    bench.write(
        "plan.json",
        &json!({"id": "invoice", "title": "Book it", "tools_required": ["read_file", "append_file"], "steps": [
            {"description": "Read the invoice", "tool": "read_file", "operation": "read", "target": "invoice.txt"},
            {"description": "Book it", "tool": "append_file", "operation": "write", "depends_on": ["1"]},
        ]})
        .to_string(),
    );
    bench.run(&["import", "plan.json"]).ends(0);
    // No approval covers calls that change something: each is asked about.
    let waits = bench
        .run(&["run", "invoice", "--yes", "--json"])
        .ends(4)
        .json();
    assert_eq!(waits["status"], "waiting", "{waits:#}");
    assert_eq!(bench.read("book.txt"), "");
    let turns: Vec<Value> = bench
        .log("invoice")
        .into_iter()
        .filter(|entry| entry["kind"] == "agent_turn")
        .collect();
    let refused = &turns[2]["calls"][0]["refused"]["message"];
    let only = "Tool local.write_file not available in plan scope. Only [read_file, append_file] are available.";
    assert_eq!(refused, only);
    let run = turns[4]["calls"][0]["run"].as_str().unwrap();
    let request = bench
        .log(run)
        .into_iter()
        .find(|entry| entry["kind"] == "approval_requested")
        .unwrap();
    let digest = request["call"]["digest"].as_str().unwrap();
    bench
        .run(&["approve", "invoice", "--step", "2/call", "--digest", digest])
        .ends(0);
    let done = bench.run(&["resume", "invoice", "--json"]).ends(0).json();
    assert_eq!(
        (value_of(&done, "1"), value_of(&done, "2")),
        (&json!("42 EUR"), &json!("booked"))
    );
    // What a model writes is text: nothing in it is a reference.
    assert_eq!(bench.read("book.txt"), "${secret.KEY} 42 EUR\n");
    assert!(!bench.path("other.txt").exists());
    assert_eq!(provider.times_asked(), 6);
}

#[test]
fn call_outside_of_an_executor_says_what_it_is_for() {
    Bench::new()
        .run(&["call", "demo.echo"])
        .complains(2, "PLANWRIGHT_GATEWAY");
}
