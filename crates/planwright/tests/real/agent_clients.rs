//! `planwright mcp`, driven by a client that the MCP project wrote, in both eras of the protocol.

use planwright_testing::peers::installed;
use planwright_testing::workbench::Bench;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The agent, with the environment of the workspace's user and nothing else.
fn agent(bench: &Bench, mode: &str, answer: &str) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/real/agent_client.py");
    let planwright = bench.command(&["mcp"]);
    let mut agent = Command::new(installed("py/bin/python"));
    agent
        .arg(script)
        .args([planwright.get_program().to_str().unwrap(), mode, answer])
        .current_dir(bench.root())
        .env_clear();
    for (name, value) in planwright.get_envs() {
        agent.env(name, value.unwrap());
    }
    agent
}

/// Runs the agent, and returns everything it saw.
fn talk(mut agent: Command) -> Value {
    let output = agent.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{problem}: {error}"))
}

const ERAS: [&str; 2] = ["legacy", "2026-07-28"];

#[test]
fn an_agent_proposes_repairs_and_runs_what_its_person_approved() {
    for era in ERAS {
        let bench = Bench::new();
        let seen = talk(agent(&bench, era, "approve"));
        assert_eq!(seen["tools"].as_array().unwrap().len(), 12, "{seen:#}");
        let broken = &seen["broken"];
        let findings = broken["findings"].to_string();
        assert!(
            findings.contains("did you mean") || findings.contains("local.write_file"),
            "{broken:#}"
        );
        assert!(
            broken["next"].as_str().unwrap().contains("repair"),
            "{broken:#}"
        );
        let proposed = &seen["proposed"];
        assert_eq!(proposed["status"], "proposed", "{proposed:#}");
        assert_eq!(
            proposed["briefing"]["steps"][0]["action"]["args"]["path"], "note.txt",
            "{proposed:#}"
        );
        // The person saw what would be sent.
        let question = seen["asked"][0].as_str().unwrap();
        for words in [
            "note.txt",
            "from an agent",
            "local.write_file",
            "no way to undo",
        ] {
            assert!(question.contains(words), "{words} is not in {question}");
        }
        assert_eq!(
            seen["asked"].as_array().unwrap().len(),
            1,
            "asked once: {seen:#}"
        );
        assert_eq!(seen["approved"]["success"], true, "{seen:#}");
        assert_eq!(seen["executed"]["success"], true, "{seen:#}");
        assert_eq!(bench.read("note.txt"), "from an agent");
        assert_eq!(seen["status"]["run"]["status"], "completed", "{seen:#}");
        let resource = seen["resource"].as_str().unwrap();
        assert!(resource.contains("status: completed"), "{resource}");
        assert!(
            seen["prompt"].as_str().unwrap().contains("tidy up"),
            "{seen:#}"
        );
        assert_eq!(seen["unknown"]["success"], false, "{seen:#}");
    }
}

#[test]
fn nothing_but_a_clear_yes_of_a_person_runs_anything() {
    for era in ERAS {
        for answer in ["yes", "decline", "reject", "absent"] {
            let bench = Bench::new();
            let seen = talk(agent(&bench, era, answer));
            assert_eq!(
                seen["approved"]["success"], false,
                "{era} {answer}: {seen:#}"
            );
            assert_eq!(
                seen["executed"]["success"], false,
                "{era} {answer}: {seen:#}"
            );
            assert!(!bench.path("note.txt").exists(), "{era} {answer}");
            if answer == "absent" {
                let next = seen["approved"]["next"].as_str().unwrap();
                assert!(next.contains("planwright approve note"), "{next}");
            }
            if answer == "reject" {
                assert_eq!(bench.status("note"), "rejected");
            }
        }
    }
}

#[test]
fn an_agent_that_starts_the_server_itself_cannot_answer_for_a_person() {
    let bench = Bench::new();
    let mut agent = agent(&bench, "legacy", "approve");
    agent.env("CLAUDECODE", "1");
    let seen = talk(agent);
    assert_eq!(seen["asked"].as_array().unwrap().len(), 0, "{seen:#}");
    assert_eq!(seen["approved"]["success"], false, "{seen:#}");
    assert!(!bench.path("note.txt").exists());
}
