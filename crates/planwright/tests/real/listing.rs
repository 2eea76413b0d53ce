//! What is known of the servers before a plan runs.

use planwright_testing::peers::{ALL, Project};
use planwright_testing::steps::call;
use planwright_testing::workbench::said;
use serde_json::{Value, json};

#[track_caller]
fn find(list: &Value, name: &str) -> Value {
    let list = list.as_array().unwrap();
    list.iter()
        .find(|item| item["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {list:#?}"))
        .clone()
}

#[test]
fn every_server_is_listed_trusted_and_checked() {
    let project = Project::with(&ALL);
    let run = |args: &[&str]| said(project.untrusting(args).output().unwrap());
    let listed = run(&["servers", "list", "--json"]).ends(0).json();
    for name in ALL {
        assert_eq!(find(&listed, name)["status"], "untrusted", "{name}");
        run(&["servers", "check", name]).complains(3, "is not trusted");
        run(&["servers", "trust", name, "--yes"]).ends(0);
    }
    let checked = run(&["servers", "check", "--json"]).ends(0).json();
    for name in ALL {
        let server = find(&checked, name);
        assert_eq!(
            (&server["ok"], server["tools"].as_u64() > Some(0)),
            (&json!(true), true),
            "{server:#}"
        );
        assert_eq!(server["refusedTools"], json!([]), "{server:#}");
        let modern = ["git", "time", "workshop"].contains(&name);
        let era = if modern { "modern" } else { "earlier" };
        assert_eq!(server["era"], era, "{server:#}");
        assert_eq!(
            server["protocolVersion"],
            if modern { "2026-07-28" } else { "2025-11-25" },
            "{server:#}"
        );
    }
    assert!(
        find(&checked, "filesystem")["callsItself"]
            .as_str()
            .unwrap()
            .contains("secure-filesystem-server")
    );
    project.leaves_no_server_behind();
    let text = run(&["servers", "check", "time"]).ends(0).out;
    assert!(text.contains("2026-07-28 (modern)"), "{text}");
}

#[test]
fn tools_have_schemas_annotations_classes_and_digests_that_stay() {
    let project = Project::with(&["filesystem", "memory", "sqlite", "time"]);
    let tools = project.run(&["tools", "--json"]).ends(0).json();
    for (server, name, class, read_only) in [
        ("filesystem", "read_text_file", "safe", true),
        ("filesystem", "write_file", "safe", false),
        ("filesystem", "move_file", "unsafe", false),
        ("memory", "create_entities", "unsafe", false),
        ("memory", "read_graph", "safe", true),
        ("sqlite", "read_query", "unsafe", false),
        ("time", "convert_time", "safe", true),
    ] {
        let tool = find(&tools, name);
        assert_eq!(
            (&tool["server"], &tool["class"], &tool["readOnly"]),
            (&json!(server), &json!(class), &json!(read_only)),
            "{tool:#}"
        );
        assert!(tool["inputSchema"]["properties"].is_object(), "{tool:#}");
        let mut alone = project
            .run(&["tools", &format!("{server}.{name}"), "--json"])
            .ends(0)
            .json();
        // The server was asked once, and what it said is remembered.
        assert!(alone["seenAt"].is_string(), "{alone:#}");
        alone["seenAt"] = Value::Null;
        assert_eq!(alone, tool);
    }
    assert!(find(&tools, "convert_time")["outputSchema"].is_object());

    // A server whose word is not taken writes, regardless of what it says of itself, and its tools
    // are others to an approval.
    let before = find(&tools, "convert_time");
    project.configure("servers.time.trust_annotations = false\n");
    let doubted = project
        .run(&["tools", "time.convert_time", "--json"])
        .ends(0)
        .json();
    assert_eq!(
        (&doubted["class"], &doubted["readOnly"]),
        (&json!("unsafe"), &json!(false))
    );
    assert_ne!(before["digest"], doubted["digest"]);
    project.leaves_no_server_behind();
}

#[test]
fn only_the_servers_that_a_plan_names_are_started() {
    let project = Project::with(&["time"]);
    let broken = json!({ "mcpServers": {
        "time": serde_json::from_str::<Value>(&project.bench.read(".mcp.json")).unwrap()["mcpServers"]["time"],
        "broken": { "command": "sh", "args": ["-c", "echo started >> started.txt; echo it cannot >&2; exit 7"] },
    }});
    project.bench.write(".mcp.json", &broken.to_string());
    let args =
        json!({ "source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo" });
    let named = project.bench.plan(
        "named",
        json!([call("a", "time.convert_time", args.clone(), &[])]),
    );
    project.run(&["run", &named]).ends(0);
    project.run(&["list"]).ends(0);
    project.run(&["log", "named"]).ends(0);
    assert_eq!(project.bench.read("started.txt"), "");

    // A bare name could be any server's, so all are asked; one that fails is said and stops
    // nothing.
    let bare = project
        .bench
        .plan("bare", json!([call("a", "convert_time", args, &[])]));
    let said = project.run(&["run", &bare]).ends(0);
    assert!(
        said.err
            .contains("the server `broken` could not be started"),
        "{said:#?}"
    );
    assert_eq!(project.bench.read("started.txt"), "started\n");

    let needed = project
        .bench
        .plan("needed", json!([call("a", "broken.tool", json!({}), &[])]));
    let said = project.run(&["run", &needed, "--yes"]).ends(1);
    assert!(
        said.err
            .contains("error: the server `broken` could not be started"),
        "{said:#?}"
    );
    assert!(said.err.contains("it cannot"), "{said:#?}");
    let checked = project.run(&["servers", "check", "--json"]).ends(1).json();
    assert_eq!(find(&checked, "time")["ok"], true);
    assert!(
        find(&checked, "broken")["stderr"]
            .as_str()
            .unwrap()
            .contains("it cannot"),
        "{checked:#}"
    );
    project.leaves_no_server_behind();
}
