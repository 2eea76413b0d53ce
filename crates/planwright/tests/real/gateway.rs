//! `planwright mcp --gateway` between servers and a client that others wrote.

use planwright_testing::peers::{Project, installed};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

pub(crate) const ERAS: [&str; 2] = ["legacy", "2026-07-28"];

/// What a client sees that makes these calls, with a person who answers this.
fn client(project: &Project, era: &str, answer: &Value, calls: &Value) -> Value {
    let planwright = project.command(&["mcp", "--gateway"]);
    let program = planwright.get_program().to_str().unwrap().to_owned();
    let order = json!({ "command": program, "args": ["mcp", "--gateway"], "era": era,
        "answer": answer, "calls": calls });
    talk(project, &order)
}

pub(crate) fn talk(project: &Project, order: &Value) -> Value {
    read_answer(&mut client_command(project, order))
}

/// What a client prints, which is one JSON document.
pub(crate) fn read_answer(client: &mut Command) -> Value {
    let output = client.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{problem}: {error}"))
}

fn client_command(project: &Project, order: &Value) -> Command {
    script_command(project, "py", "gateway_client.py", order)
}

/// A client over these packages, with the environment of the workspace's user and nothing else.
pub(crate) fn script_command(
    project: &Project,
    packages: &str,
    script: &str,
    order: &Value,
) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/real")
        .join(script);
    let mut client = Command::new(installed(&format!("{packages}/bin/python")));
    client
        .arg(script)
        .arg(order.to_string())
        .current_dir(project.bench.root())
        .env_clear();
    for (name, value) in project.command(&["mcp"]).get_envs() {
        client.env(name, value.unwrap());
    }
    client
}

/// The lines that calls left, as the oracle of what really happened.
fn effects(project: &Project) -> Vec<String> {
    let text = std::fs::read_to_string(project.bench.path("effects.txt")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

fn work(name: &str) -> Value {
    json!(["workshop__work", { "name": name, "steps": 1, "milliseconds": 1 }])
}

#[test]
fn what_only_reads_passes_and_the_rest_waits_for_a_person() {
    for era in ERAS {
        let project = Project::with(&["workshop"]);
        let calls = json!([["workshop__measure", { "word": "plank" }], work("shelf")]);
        let seen = client(&project, era, &json!("approve"), &calls);
        assert_eq!(
            seen["results"][0]["structuredContent"],
            json!({ "word": "plank", "letters": 5 }),
            "{seen:#}"
        );
        assert!(
            seen["results"][1].to_string().contains("shelf is done"),
            "{seen:#}"
        );
        // The person saw what would be sent, and was asked once.
        let asked = seen["asked"].as_array().unwrap();
        assert_eq!(asked.len(), 1, "{seen:#}");
        for words in ["workshop.work", "shelf"] {
            assert!(asked[0].as_str().unwrap().contains(words), "{asked:?}");
        }
        assert_eq!(effects(&project), ["shelf"]);
        for answer in [json!("yes"), json!("reject"), json!("decline"), json!(null)] {
            let seen = client(&project, era, &answer, &json!([work("table")]));
            let result = &seen["results"][0];
            assert_eq!(result["isError"], true, "{era} {answer}: {seen:#}");
            let told = result["structuredContent"]["next"].as_str().unwrap();
            assert!(told.contains("plan_propose"), "{told}");
            assert_eq!(effects(&project), ["shelf"], "{era} {answer}");
        }
        project.leaves_no_server_behind();
    }
}

#[test]
fn a_guarded_tool_is_called_only_as_a_step_of_an_approved_plan() {
    for era in ERAS {
        let project = Project::with(&["workshop"]);
        project.configure(
            "[policy]\nguarded_tools = ['workshop.work']\n\
             [[policy.rules]]\ntool = 'workshop.*'\nthen = 'allow'\n",
        );
        let plan = json!({ "id": "shelf", "title": "Build a shelf", "steps": [{ "id": "build",
            "tool": "workshop.work", "args": { "name": "shelf", "steps": 1, "milliseconds": 1 } }] });
        let calls = json!([
            work("stolen"),
            ["plan_propose", { "plan": plan }],
            work("stolen"),
            ["plan_execute", { "planId": "shelf" }],
        ]);
        let seen = client(&project, era, &json!("approve"), &calls);
        for refused in [0, 2] {
            let result = &seen["results"][refused]["structuredContent"];
            assert_eq!(result["code"], "guarded_tool", "{seen:#}");
        }
        assert_eq!(
            seen["results"][3]["structuredContent"]["success"], true,
            "{seen:#}"
        );
        assert_eq!(effects(&project), ["shelf"]);
    }
}

#[test]
fn what_a_server_asks_its_person_reaches_them_through_the_gateway() {
    for era in ERAS {
        let project = Project::with(&["workshop"]);
        let calls = json!([["workshop__paint", {}]]);
        let seen = client(&project, era, &json!({ "colour": "green" }), &calls);
        assert!(
            seen["results"][0].to_string().contains("painted green"),
            "{era}: {seen:#}"
        );
        assert_eq!(effects(&project), ["painted green"]);
    }
}

/// Names without those of the gateway, and what is said about each tool.
fn by_name(tools: &Value, prefix: &str) -> Vec<(String, Value)> {
    let tools = tools.as_array().unwrap().iter();
    let mut named: Vec<(String, Value)> = tools
        .filter_map(|tool| {
            let name = tool["name"]
                .as_str()
                .unwrap()
                .strip_prefix(prefix)?
                .to_owned();
            let said = json!([
                tool["description"],
                tool["inputSchema"],
                tool["outputSchema"]
            ]);
            Some((name, said))
        })
        .collect();
    named.sort_by(|one, other| one.0.cmp(&other.0));
    named
}

#[test]
fn tools_and_answers_are_the_same_with_and_without_the_gateway() {
    let project = Project::with(&["everything"]);
    project.configure("[[policy.rules]]\ntool = 'everything.*'\nthen = 'allow'\n");
    let calls = [
        ("echo", json!({ "message": "hello" })),
        ("get-sum", json!({ "a": 2, "b": 3 })),
        ("get-tiny-image", json!({})),
        (
            "get-annotated-message",
            json!({ "messageType": "error", "includeImage": true }),
        ),
        ("get-structured-content", json!({ "location": "Chicago" })),
        ("get-resource-links", json!({ "count": 2 })),
        (
            "get-resource-reference",
            json!({ "resourceType": "Text", "resourceId": 1 }),
        ),
    ];
    let entry = project.entry("everything");
    let named = |prefix: &str| -> Vec<Value> {
        let named = calls.iter();
        named
            .map(|(name, args)| json!([format!("{prefix}{name}"), args]))
            .collect()
    };
    let direct = json!({ "command": entry["command"], "args": entry["args"], "era": "legacy",
        "answer": null, "calls": named("") });
    let direct = talk(&project, &direct);
    for era in ERAS {
        let behind = client(&project, era, &json!(null), &json!(named("everything__")));
        // The reference server has more tools for clients that can do more, and ours can.
        let offered = by_name(&behind["tools"], "everything__");
        for tool in by_name(&direct["tools"], "") {
            assert!(offered.contains(&tool), "{era}: {tool:#?}");
        }
        for (place, (name, _)) in calls.iter().enumerate() {
            let part = |seen: &Value| {
                let result = &seen["results"][place];
                json!([
                    result["content"],
                    result["structuredContent"],
                    result["isError"]
                ])
            };
            let one = part(&behind);
            let other = part(&direct);
            assert_eq!(without_times(one), without_times(other), "{era} {name}");
        }
    }
}

/// Resources of the reference server say when they were made.
fn without_times(mut value: Value) -> Value {
    fn strip(value: &mut Value) {
        match value {
            Value::String(text) if text.contains("created at") || text.contains("at:") => {
                "a text with a time".clone_into(text);
            }
            Value::Array(items) => items.iter_mut().for_each(strip),
            Value::Object(fields) => fields.values_mut().for_each(strip),
            _ => {}
        }
    }
    strip(&mut value);
    value
}

#[test]
fn every_call_of_an_agent_is_in_the_journal_also_those_that_were_refused() {
    let project = Project::with(&["workshop"]);
    let calls = json!([["workshop__measure", { "word": "plank" }], work("shelf"), ["workshop__measure", { "word": 7 }]]);
    client(&project, "legacy", &json!(null), &calls);
    let listed = project
        .run(&["list", "--label", "session", "--json"])
        .ends(0)
        .json();
    let id = listed[0]["id"].as_str().unwrap().to_owned();
    assert!(
        listed[0]["title"]
            .as_str()
            .unwrap()
            .starts_with("Session of")
    );
    let plain = project.run(&["list", "--json"]).ends(0).json();
    assert_eq!(plain, json!([]));
    let log = project.run(&["log", &id, "--json"]).ends(0).out;
    for words in ["workshop.measure", "plank", "workshop.work", "needs_person"] {
        assert!(log.contains(words), "{words} is not in {log}");
    }
    project.run(&["verify"]).ends(0);
}

#[test]
fn a_hundred_calls_at_once_each_get_their_own_answer() {
    let project = Project::with(&["workshop"]);
    let words: Vec<String> = (0..100).map(|number| "x".repeat(number + 1)).collect();
    let calls: Vec<Value> = words
        .iter()
        .map(|word| json!(["workshop__measure", { "word": word }]))
        .collect();
    let planwright = project.command(&["mcp", "--gateway"]);
    let program = planwright.get_program().to_str().unwrap().to_owned();
    let order = json!({ "command": program, "args": ["mcp", "--gateway"], "era": "2026-07-28",
        "answer": null, "calls": calls, "parallel": true });
    let seen = talk(&project, &order);
    for (place, word) in words.iter().enumerate() {
        assert_eq!(
            seen["results"][place]["structuredContent"],
            json!({ "word": word, "letters": word.len() })
        );
    }
}

#[test]
fn the_word_of_a_client_is_not_enough_where_policy_wants_the_person() {
    for era in ERAS {
        let project = Project::with(&["workshop"]);
        project.configure("[policy.approval]\nin_person = ['workshop.*']\n");
        let plan = json!({ "id": "shelf", "title": "Build a shelf", "steps": [{ "id": "build",
            "tool": "workshop.work", "args": { "name": "shelf", "steps": 1, "milliseconds": 1 } }] });
        let calls = json!([
            work("shelf"),
            ["plan_propose", { "plan": plan }],
            ["plan_approve", { "planId": "shelf" }],
            ["plan_execute", { "planId": "shelf" }],
        ]);
        let seen = client(&project, era, &json!("approve"), &calls);
        for refused in [0, 2, 3] {
            assert_eq!(seen["results"][refused]["isError"], true, "{era}: {seen:#}");
        }
        let told = seen["results"][2]["structuredContent"]["error"]
            .as_str()
            .unwrap();
        assert!(told.contains("at a terminal"), "{told}");
        assert_eq!(effects(&project), Vec::<String>::new(), "{era}");
        project.run(&["approve", "shelf", "--version", "1"]).ends(0);
        project.run(&["run", "shelf"]).ends(0);
        assert_eq!(effects(&project), ["shelf"]);
    }
}

#[test]
fn eight_clients_at_once_share_one_store() {
    let project = Project::with(&["workshop"]);
    let planwright = project.command(&["mcp"]);
    let program = planwright.get_program().to_str().unwrap();
    let clients: Vec<_> = (0..8)
        .map(|client| {
            let calls: Vec<Value> = (0..10)
                .map(|call| json!(["workshop__measure", { "word": format!("{client} {call}") }]))
                .collect();
            let order = json!({ "command": program, "args": ["mcp", "--gateway"], "era": "legacy",
                "answer": null, "calls": calls });
            let mut command = client_command(&project, &order);
            command
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    for (client, child) in clients.into_iter().enumerate() {
        let output = child.wait_with_output().unwrap();
        let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
        for call in 0..10 {
            let word = format!("{client} {call}");
            assert_eq!(
                seen["results"][call]["structuredContent"]["word"],
                json!(word),
                "{seen:#}"
            );
        }
    }
    let sessions = project
        .run(&["list", "--label", "session", "--json"])
        .ends(0)
        .json();
    let sessions = sessions.as_array().unwrap();
    assert_eq!(sessions.len(), 8);
    assert!(
        sessions
            .iter()
            .all(|session| session["status"] == "completed"),
        "{sessions:#?}"
    );
    project.run(&["verify"]).ends(0);
}

#[test]
fn a_client_of_another_library_sees_the_same() {
    let project = Project::with(&["workshop"]);
    let planwright = project.command(&["mcp"]);
    let program = planwright.get_program().to_str().unwrap();
    let calls = json!([
        ["workshop__measure", { "word": "plank" }],
        ["plan_propose", { "plan": { "id": "p", "title": "P", "steps": [
            { "id": "s", "tool": "workshop.measure", "args": { "word": "beam" } }] } }],
        ["plan_execute", { "planId": "p" }],
        work("stolen"),
    ]);
    let order = json!({ "command": program, "args": ["mcp", "--gateway"], "calls": calls });
    let seen = read_answer(&mut script_command(
        &project,
        "py",
        "fast_client.py",
        &order,
    ));
    assert_eq!(seen["results"][0]["structured"]["letters"], 5, "{seen:#}");
    assert_eq!(
        seen["results"][1]["structured"]["status"], "proposed",
        "{seen:#}"
    );
    assert_eq!(
        seen["results"][2]["structured"]["success"], true,
        "{seen:#}"
    );
    assert_eq!(
        seen["results"][3]["structured"]["code"], "needs_person",
        "{seen:#}"
    );
    assert_eq!(effects(&project), Vec::<String>::new());
}

#[test]
fn what_servers_offer_besides_tools_is_the_same_with_and_without_the_gateway() {
    let project = Project::with(&["everything"]);
    let entry = project.entry("everything");
    let direct = json!({ "command": entry["command"], "args": entry["args"], "era": "legacy",
        "answer": null, "calls": [] });
    let listed = {
        let mut order = direct.clone();
        order["reads"] = json!(["demo://nothing"]);
        order["prompt"] = json!(["simple-prompt"]);
        talk(&project, &order)
    };
    let uri = listed["resources"]["resources"][0]["uri"].clone();
    let ask = |mut order: Value, prompt: &str| {
        order["reads"] = json!([uri, "demo://resource/dynamic/text/1"]);
        order["prompt"] = json!([prompt]);
        talk(&project, &order)
    };
    let direct = ask(direct, "simple-prompt");
    let planwright = project.command(&["mcp"]);
    let program = planwright.get_program().to_str().unwrap();
    for era in ERAS {
        let behind = json!({ "command": program, "args": ["mcp", "--gateway"], "era": era,
            "answer": null, "calls": [] });
        let behind = ask(behind, "everything__simple-prompt");
        for resource in direct["resources"]["resources"].as_array().unwrap() {
            let offered = behind["resources"]["resources"].as_array().unwrap();
            let same =
                |one: &&Value| one["uri"] == resource["uri"] && one["name"] == resource["name"];
            assert!(offered.iter().any(|one| same(&one)), "{era}: {resource}");
        }
        assert_eq!(
            behind["read"][0]["contents"], direct["read"][0]["contents"],
            "{era}"
        );
        // An address that a model makes up would carry what it chose to the server.
        assert!(behind["read"][1]["raised"].is_string(), "{era}: {behind:#}");
        assert_eq!(
            behind["prompt"]["messages"], direct["prompt"]["messages"],
            "{era}"
        );
    }
}

/// The service of a workspace, stopped at the end.
pub(crate) struct Served {
    child: std::process::Child,
    pub(crate) url: String,
}

impl Served {
    pub(crate) fn start(project: &Project) -> Self {
        let mut command = project.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let mut child = command
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = String::new();
        let stdout = child.stdout.take().unwrap();
        std::io::BufRead::read_line(&mut std::io::BufReader::new(stdout), &mut first).unwrap();
        let said: Value = serde_json::from_str(&first).unwrap();
        let url = said["url"].as_str().unwrap().to_owned();
        Self { child, url }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

pub(crate) fn token(project: &Project, kind: &str, role: &str, name: &str) -> String {
    let made = [
        "token", "create", "--role", role, "--kind", kind, "--name", name, "--json",
    ];
    let made = project.run(&made).ends(0).json();
    made["token"].as_str().unwrap().to_owned()
}

#[test]
fn over_http_a_proposal_names_the_page_where_it_is_reviewed() {
    let project = Project::with(&["workshop"]);
    let agent = token(&project, "agent", "author", "bot");
    let served = Served::start(&project);
    let plan = json!({ "id": "shelf", "title": "Build a shelf", "steps": [{ "id": "build",
        "tool": "workshop.work", "args": { "name": "shelf", "steps": 1, "milliseconds": 1 } }] });
    let calls =
        json!([["plan_propose", { "plan": plan }], ["plan_approve", { "planId": "shelf" }]]);
    let order = json!({ "url": format!("{}/mcp", served.url), "token": agent, "era": "legacy",
        "answer": null, "calls": calls });
    let seen = talk(&project, &order);
    let proposed = &seen["results"][0]["structuredContent"];
    let page = format!("{}/ui/plans/shelf", served.url);
    let dist = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/dist/index.html");
    if !dist.is_file() {
        assert_eq!(
            proposed["reviewUrl"],
            Value::Null,
            "there is no page: {seen:#}"
        );
        return;
    }
    assert_eq!(proposed["reviewUrl"], page.as_str(), "{seen:#}");
    let next = seen["results"][1]["structuredContent"]["next"].as_str();
    assert!(next.is_some_and(|next| next.contains(&page)), "{seen:#}");
}

#[test]
fn over_http_the_token_decides_who_calls_and_who_is_asked() {
    let project = Project::with(&["workshop"]);
    let owner = token(&project, "person", "admin", "ada");
    let agent = token(&project, "agent", "operator", "bot");
    let viewer = token(&project, "person", "viewer", "eve");
    let served = Served::start(&project);
    let ask = |era: &str, token: &str, name: &str| {
        let calls = json!([["workshop__measure", { "word": "plank" }], work(name)]);
        let url = format!("{}/mcp/gateway", served.url);
        let order =
            json!({ "url": url, "token": token, "era": era, "answer": "approve", "calls": calls });
        talk(&project, &order)
    };
    for era in ERAS {
        let name = format!("shelf {era}");
        let seen = ask(era, &owner, &name);
        assert_eq!(
            seen["results"][0]["structuredContent"]["letters"], 5,
            "{seen:#}"
        );
        assert!(
            seen["results"][1].to_string().contains("is done"),
            "{seen:#}"
        );
        assert_eq!(seen["asked"].as_array().unwrap().len(), 1, "{seen:#}");
        assert_eq!(effects(&project).last(), Some(&name));
        let before = effects(&project).len();
        // The client of an agent's token would answer for a person, and is not asked.
        let seen = ask(era, &agent, "stolen");
        assert_eq!(seen["asked"], json!([]), "{seen:#}");
        assert_eq!(
            seen["results"][0]["structuredContent"]["letters"], 5,
            "{seen:#}"
        );
        assert_eq!(
            seen["results"][1]["structuredContent"]["code"], "needs_person",
            "{seen:#}"
        );
        // A token that only reads calls nothing.
        let seen = ask(era, &viewer, "stolen");
        for result in seen["results"].as_array().unwrap() {
            assert_eq!(result["isError"], true, "{seen:#}");
        }
        assert_eq!(effects(&project).len(), before);
    }
}

/// Everything the agent was answered, one attempt after the other.
fn attack(project: &Project) -> Value {
    let planwright = project.command(&["mcp"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/gateway_attacks.py");
    let mut thief = Command::new(installed("py/bin/python"));
    thief
        .arg(script)
        .arg(planwright.get_program())
        .current_dir(project.bench.root())
        .env_clear();
    for (name, value) in planwright.get_envs() {
        thief.env(name, value.unwrap());
    }
    // It is its own client, and answers every question with a yes.
    thief.env("CLAUDECODE", "1");
    let output = thief.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn no_way_around_the_gateway_reaches_a_guarded_tool_or_approves_anything() {
    let project = Project::with(&["workshop"]);
    project.configure(
        "[policy]\nguarded_tools = ['workshop.work']\n\
         [[policy.rules]]\ntool = '*'\nthen = 'allow'\n",
    );
    let seen = attack(&project);
    assert!(
        seen["attempts"].as_u64().unwrap() >= 150,
        "{}",
        seen["attempts"]
    );
    assert_eq!(effects(&project), Vec::<String>::new(), "{seen:#}");
    for plan in ["theft", "template"] {
        let shown = project.run(&["show", plan, "--json"]).ends(0).json();
        assert_eq!(shown["approvals"], json!([]), "{shown:#}");
        assert_eq!(shown["status"], "proposed", "{shown:#}");
    }
    project.run(&["verify"]).ends(0);
}

#[test]
fn what_an_agent_did_becomes_a_plan_that_does_it_again() {
    let project = Project::with(&["workshop"]);
    let calls = json!([
        ["workshop__measure", { "word": "mahogany" }],
        work("table"),
        ["workshop__measure", { "word": "table is done" }],
    ]);
    client(&project, "legacy", &json!("approve"), &calls);
    let listed = project
        .run(&["list", "--label", "session", "--json"])
        .ends(0)
        .json();
    let session = listed[0]["id"].as_str().unwrap().to_owned();
    project
        .run(&["plan", "from-session", &session, "--id", "again"])
        .ends(0);
    let plan = project
        .run(&["export", "again", "--format", "json"])
        .ends(0)
        .out;
    let plan: Value = serde_json::from_str(&plan).unwrap();
    assert_eq!(
        plan["steps"][2]["args"]["word"], "${work.result}",
        "{plan:#}"
    );
    assert_eq!(plan["steps"][2]["dependsOn"], json!(["work"]));
    project.run(&["run", "again", "--yes"]).ends(0);
    assert_eq!(effects(&project), ["table", "table"]);
    project
        .run(&["plan", "from-session", "again"])
        .complains(2, "no session");
}

#[test]
fn a_client_that_was_set_up_calls_its_own_servers_through_the_gateway() {
    let project = Project::with(&["workshop"]);
    let entry = project.entry("workshop");
    std::fs::remove_file(project.bench.path(".mcp.json")).unwrap();
    std::fs::remove_file(project.bench.path("planwright.toml")).unwrap();
    let file = project.bench.home().join(".claude.json");
    let before =
        serde_json::to_string_pretty(&json!({ "mcpServers": { "workshop": entry } })).unwrap();
    std::fs::write(&file, &before).unwrap();
    project
        .run(&["setup", "claude-code", "--gateway", "--yes"])
        .ends(0);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let servers = written["mcpServers"].as_object().unwrap();
    assert_eq!(
        servers.keys().collect::<Vec<_>>(),
        ["planwright"],
        "{written:#}"
    );
    let calls = json!([["workshop__measure", { "word": "plank" }], work("shelf")]);
    let order = json!({ "command": servers["planwright"]["command"], "args": servers["planwright"]["args"],
        "era": "legacy", "answer": "approve", "calls": calls });
    let seen = talk(&project, &order);
    assert_eq!(
        seen["results"][0]["structuredContent"]["letters"], 5,
        "{seen:#}"
    );
    assert_eq!(effects(&project), ["shelf"], "{seen:#}");
    project
        .run(&["setup", "claude-code", "--undo", "--yes"])
        .ends(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), before);
}
