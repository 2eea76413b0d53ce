//! Coding agents in a person's shell: they ask, and never approve or trust.

use super::clone::Clone;
use planwright_testing::steps::{effect, sleep};
use planwright_testing::terminal::Terminal;
use planwright_testing::workbench::{Said, said};
use serde_json::json;

const MARKS: [(&str, &str); 9] = [
    ("PLANWRIGHT_AGENT", "bot"),
    ("CLAUDECODE", "1"),
    ("CODEX_SANDBOX", "seatbelt"),
    ("CURSOR_AGENT", "1"),
    ("GEMINI_CLI", "1"),
    ("GOOSE_TERMINAL", "1"),
    ("AIDER_MODEL", "x"),
    ("COPILOT_CLI", "1"),
    ("AGENT", "amp"),
];

fn by_agent(clone: &Clone, (name, value): (&str, &str), args: &[&str]) -> Said {
    said(clone.bench.command(args).env(name, value).output().unwrap())
}

#[test]
fn yes_from_an_agents_shell_is_a_request() {
    for mark in MARKS {
        let clone = Clone::new();
        let plan = clone.writing_plan();
        let said = by_agent(&clone, mark, &["run", &plan, "--yes"]).complains(3, "not approved");
        assert!(!said.err.contains("--yes"), "{mark:?}: {said:#?}");
        for words in [
            "a person approves",
            "terminal",
            "phone",
            "planwright approve tidy --digest",
        ] {
            assert!(
                said.err.contains(words),
                "{mark:?}: {words:?} is not in {said:#?}"
            );
        }
        let digest = clone.bench.digest("tidy");
        let refused = by_agent(&clone, mark, &["approve", "tidy", "--digest", &digest]);
        let refused = refused.complains(3, "may not approve");
        assert!(refused.err.contains("a person approves"), "{refused:#?}");
        clone.is_unharmed();
        let shown = clone.run(&["show", "tidy", "--json"]).json();
        assert_eq!(shown["status"], "proposed", "{shown:#}");
        // A person approves it outside.
        clone.run(&["approve", "tidy", "--digest", &digest]).ends(0);
        by_agent(&clone, mark, &["run", "tidy"]).ends(0);
        assert!(clone.bench.path("pwned").exists());
    }
}

#[test]
fn a_terminal_does_not_make_an_agent_a_person() {
    let clone = Clone::new();
    clone
        .bench
        .write("planwright.toml", "[local]\nrun_command = true\n");
    let mut command = clone.bench.command(&["run", &clone.writing_plan()]);
    command.env("CLAUDECODE", "1");
    let mut terminal = Terminal::of(command);
    assert_eq!(terminal.ends(), Some(3));
    assert!(!terminal.seen().contains("[y]"), "{}", terminal.seen());
    clone.is_unharmed();
}

#[test]
fn an_agent_trusts_nothing_by_any_route() {
    let clone = Clone::new();
    let servers = json!({ "mcpServers": { "x": { "command": "touch", "args": ["pwned"] } } });
    clone.bench.write(".mcp.json", &servers.to_string());
    let text = "[executors.w]\ncommand = [\"touch\", \"pwned\"]\n[models.providers.m]\nkind = \"openai\"\n\
                base_url = \"http://127.0.0.1:1/v1\"\n[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n";
    clone.bench.write("planwright.toml", text);
    // What a person trusted elsewhere, in a file that the agent points at.
    let chosen = clone.bench.home().join("chosen.json");
    let mut person = clone.bench.command(&["trust", "--yes"]);
    said(
        person
            .env("PLANWRIGHT_TRUST_FILE", &chosen)
            .output()
            .unwrap(),
    )
    .ends(0);
    let agent = |args: &[&str]| {
        let mut command = clone.bench.command(args);
        command
            .env("GEMINI_CLI", "1")
            .env("PLANWRIGHT_TRUST_FILE", &chosen)
            .env("PLANWRIGHT_TRUST_PROJECT_SERVERS", "1");
        said(command.output().unwrap())
    };
    for args in [
        &["trust", "--yes"][..],
        &["trust", "--owner", "0"],
        &["trust", "--revoke"],
        &["servers", "trust", "x", "--yes"],
        &["executors", "trust", "w", "--yes"],
        &["models", "trust", "m", "--yes"],
        &["servers", "untrust", "x"],
    ] {
        let said = agent(args).complains(3, "an agent cannot");
        assert!(said.err.contains("GEMINI_CLI is set"), "{said:#?}");
        assert!(!said.err.contains("--yes"), "{said:#?}");
    }
    let plan = clone.writing_plan();
    let said = agent(&["run", &plan, "--trust-project-servers"]).ends(3);
    assert!(
        said.err.contains("ignored because not trusted"),
        "{said:#?}"
    );
    agent(&["servers", "check"]);
    clone.is_unharmed();
    assert!(
        !clone
            .bench
            .home()
            .join(".config/planwright/trust.json")
            .exists()
    );
}

#[test]
fn files_add_marks_and_take_none_away() {
    let clone = Clone::new();
    let plan = clone.writing_plan();
    clone
        .bench
        .write_own("planwright.toml", "[agent]\nmarks = [\"OUR_BOT\"]\n");
    clone
        .bench
        .write("planwright.toml", "[agent]\nmarks = [\"THEIR_*\"]\n");
    for mark in [("OUR_BOT", "1"), ("THEIR_SESSION", "1"), ("CLAUDECODE", "")] {
        by_agent(&clone, mark, &["run", &plan, "--yes"]).complains(3, "not approved");
    }
    clone.is_unharmed();
    clone
        .bench
        .write("planwright.toml", "[agent]\nmarks = []\n");
    by_agent(&clone, ("CLAUDECODE", "1"), &["run", &plan, "--yes"]).complains(3, "not approved");
    clone
        .bench
        .write("planwright.toml", "[agent]\nmarks = [\"a b\"]\n");
    clone.run(&["list"]).complains(2, "is no mark");
    clone.bench.write("planwright.toml", "");
    clone.run(&["run", &plan, "--yes"]).ends(0);
}

#[test]
fn hints_for_agents_never_name_yes() {
    let clone = Clone::new();
    clone.run(&["import", "greet.json"]).ends(0);
    let said = by_agent(&clone, ("CLAUDECODE", "1"), &["delete", "greet"]).ends(3);
    assert!(!said.err.contains("--yes"), "{said:#?}");
}

#[test]
fn the_demo_in_an_agents_shell_ends_where_a_person_is_needed() {
    let clone = Clone::new();
    let args = ["demo", "--dir", "stage"];
    let said = by_agent(&clone, ("CLAUDECODE", "1"), &args).ends(0);
    for words in ["may not approve", "This shell belongs to an agent"] {
        assert!(said.err.contains(words), "{said:#?}");
    }
    assert!(!clone.bench.path("stage/notes.txt").exists());
}

#[test]
fn an_agent_does_not_resume_what_a_person_paused() {
    let clone = Clone::new();
    let plan = clone
        .bench
        .plan("p", json!([sleep("a", 1_500, &[]), effect("b", &["a"])]));
    let running = clone.bench.start(&["run", &plan, "--yes"]);
    clone.bench.wait_for("p", "attempt_started", "a");
    clone.run(&["pause", "p"]).ends(0);
    running.wait();
    let said = by_agent(&clone, ("CLAUDECODE", "1"), &["resume", "p"]);
    let said = said.complains(3, "only a person can");
    assert!(said.err.contains("planwright resume"), "{said:#?}");
    assert!(!clone.bench.path("effects.txt").exists());
    clone.run(&["resume", "p"]).ends(0);
    assert_eq!(clone.bench.read("effects.txt"), "b\n");
}

#[test]
fn what_an_agent_drops_from_a_plan_is_named_and_needs_a_person() {
    let clone = Clone::new();
    clone
        .bench
        .configure("[[policy.rules]]\ntool = \"*\"\nthen = \"allow\"\n");
    let mut step = effect("a", &[]);
    step["timeoutSeconds"] = json!(60);
    let plan = clone.bench.plan("p", json!([step]));
    let agent = ("CURSOR_AGENT", "1");
    by_agent(&clone, agent, &["run", &plan]).ends(0);
    assert_eq!(
        clone.bench.read("effects.txt"),
        "a\n",
        "the policy allows it"
    );
    by_agent(
        &clone,
        agent,
        &["edit", "p", "--unset", "steps.a.timeoutSeconds"],
    )
    .ends(0);
    for args in [&["run", "p"][..], &["run", "p", "--yes"]] {
        let said = by_agent(&clone, agent, args).ends(3);
        assert!(said.err.contains("a person approves"), "{said:#?}");
    }
    assert_eq!(clone.bench.read("effects.txt"), "a\n");
    let named = "! safeguard: step a: timeoutSeconds removed (was 60.0)";
    let diff = clone.run(&["diff", "p", "1", "2"]).ends(0);
    assert!(diff.out.contains(named), "{diff:#?}");
    let shown = clone.run(&["show", "p"]).ends(0);
    assert!(shown.out.contains(named), "{shown:#?}");
    let diff = clone.run(&["diff", "p", "1", "2", "--json"]).ends(0).json();
    assert_eq!(diff["safeguards"][0]["path"], "timeoutSeconds", "{diff:#}");
    let shown = clone.run(&["show", "p", "--json"]).ends(0).json();
    assert_eq!(shown["lostSafeguards"]["since"], 1, "{shown:#}");
    // A person agrees to do without.
    clone.run(&["run", "p", "--yes"]).ends(0);
    by_agent(&clone, agent, &["run", "p"]).ends(0);
    assert_eq!(clone.bench.read("effects.txt"), "a\na\na\n");
}
