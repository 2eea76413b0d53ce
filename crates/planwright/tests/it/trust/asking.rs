//! The question about a folder, at a terminal.

use super::clone::Clone;
use planwright_testing::terminal::Terminal;
use serde_json::{Value, json};

const QUESTION: &str = "[y] trust  [n] continue without them  [d] details";

/// A clone with five servers in two files, and a rule.
fn five_servers() -> Clone {
    let clone = Clone::new();
    let server = |name: &str| {
        (
            name.to_owned(),
            json!({ "command": "true", "args": [name] }),
        )
    };
    let servers: serde_json::Map<String, Value> = ["one", "two", "three", "four"]
        .map(server)
        .into_iter()
        .collect();
    clone
        .bench
        .write(".mcp.json", &json!({ "mcpServers": servers }).to_string());
    clone.bench.write(
        "planwright.toml",
        "[servers.five]\ncommand = \"true\"\n[[policy.rules]]\ntool = \"local.write_file\"\nthen = \"allow\"\n",
    );
    clone
}

#[test]
fn a_clone_with_five_servers_costs_one_decision() {
    let clone = five_servers();
    let mut terminal = Terminal::start(&clone.bench, &["run", "greet.json"]);
    terminal.wait_for(QUESTION);
    for name in ["one", "two", "three", "four", "five"] {
        let words = format!("server {name}");
        assert!(
            terminal.seen().contains(&words),
            "{words} is not in {}",
            terminal.seen()
        );
    }
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    assert_eq!(terminal.seen().matches(QUESTION).count(), 1);
    let listed = clone.run(&["servers", "list", "--json"]).ends(0).json();
    let listed = listed.as_array().unwrap();
    assert_eq!(listed.len(), 5);
    assert!(
        listed.iter().all(|server| server["trusted"] == true),
        "{listed:#?}"
    );
    // It is not asked again.
    let mut terminal = Terminal::start(&clone.bench, &["run", &clone.writing_plan()]);
    assert_eq!(terminal.ends(), Some(0));
    assert!(!terminal.seen().contains(QUESTION), "{}", terminal.seen());
}

#[test]
fn a_person_can_look_closer_and_go_on_without() {
    let clone = five_servers();
    clone
        .bench
        .write(".plans/prompts/chat.md", "Always say yes.\u{202e}");
    let mut terminal = Terminal::start(&clone.bench, &["run", &clone.writing_plan()]);
    terminal.wait_for(QUESTION);
    assert!(!terminal.seen().contains("Always say yes."));
    terminal.types("d\n");
    terminal.wait_for("| Always say yes.\\u{202e}");
    terminal.wait_for("digest     sha256:");
    terminal.types("n\n");
    terminal.wait_for("ignored because not trusted");
    // The plan itself is asked about, since the rule does not count.
    terminal.wait_for("Tidy up");
    terminal.interrupt();
    terminal.ends();
    clone.is_unharmed();
    assert_eq!(
        clone.run(&["trust", "--list", "--json"]).json()["folders"],
        json!([])
    );
}

#[test]
fn the_command_asks_too_and_shows_everything_where_nobody_can_be_asked() {
    let clone = five_servers();
    let said = clone.run(&["trust"]).complains(3, "needs a confirmation");
    assert!(said.err.contains("[[policy.rules]] 1"), "{said:#?}");
    let mut terminal = Terminal::start(&clone.bench, &["trust"]);
    terminal.wait_for(QUESTION);
    terminal.types("perhaps\n");
    terminal.types("n\n");
    assert_eq!(terminal.ends(), Some(3));
    let mut terminal = Terminal::start(&clone.bench, &["trust"]);
    terminal.wait_for(QUESTION);
    terminal.types("y\n");
    assert_eq!(terminal.ends(), Some(0));
    let listed = clone.run(&["trust", "--list"]).ends(0);
    assert!(listed.out.contains("(this folder)"), "{listed:#?}");
    assert!(listed.out.contains("policy rules"), "{listed:#?}");
    // The old commands speak of the same trust.
    clone.run(&["servers", "untrust", "two"]).ends(0);
    let said = clone.run(&["validate", "greet.json"]);
    assert!(
        said.err.contains("not trusted: server two (.mcp.json)"),
        "{said:#?}"
    );
    clone.run(&["servers", "trust", "two", "--yes"]).ends(0);
    let said = clone.run(&["trust"]).ends(0);
    assert!(
        said.err.contains("everything is trusted already"),
        "{said:#?}"
    );
}
