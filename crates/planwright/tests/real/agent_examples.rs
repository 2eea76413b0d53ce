//! The agents in `examples/agents`, run as their README says, without a model and without a network.

use planwright_testing::peers::installed;
use planwright_testing::wait::wait_until;
use planwright_testing::workbench::{Bench, Running, Said, program_path, said};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agents")
}

/// A command with the environment of the workspace's user and nothing else.
fn command(bench: &Bench, program: &Path) -> Command {
    let planwright = bench.command(&["mcp"]);
    let mut command = Command::new(program);
    command.current_dir(bench.root()).env_clear();
    for (name, value) in planwright.get_envs() {
        command.env(name, value.unwrap());
    }
    command
}

#[test]
fn an_agent_of_the_openai_sdk_waits_for_its_person() {
    let bench = Bench::new();
    let mut agent = command(&bench, &installed("py-agents/bin/python"));
    agent
        .arg(examples().join("plan_agent.py"))
        .arg(program_path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let agent = Running::of(agent);
    let is_proposed = || {
        let listed = bench.run(&["list", "--json"]);
        listed.out.contains("\"proposed\"")
    };
    wait_until("the plan to be proposed", is_proposed);
    assert!(!bench.path("note.txt").exists());
    bench.run(&["approve", "note", "--version", "1"]).ends(0);
    let said = agent.wait().ends(0);
    assert!(said.out.contains("The run is completed."), "{said:#?}");
    assert_eq!(bench.read("note.txt"), "agreed");
}

/// Compiles the TypeScript example strictly, and runs it with a person who answers this.
fn run_typescript(bench: &Bench, answer: &str) -> Said {
    let folder = tempfile::tempdir().unwrap();
    for name in ["plan_agent.ts", "tsconfig.json"] {
        std::fs::copy(examples().join(name), folder.path().join(name)).unwrap();
    }
    std::fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    let modules = installed("node-agents/node_modules");
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let compiled = Command::new("node")
        .arg(modules.join("typescript/bin/tsc"))
        .args(["-p", "."])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(
        compiled.status.success(),
        "{}",
        String::from_utf8_lossy(&compiled.stdout)
    );
    let mut agent = command(bench, Path::new("/usr/bin/env"));
    agent
        .arg("node")
        .arg(folder.path().join("plan_agent.js"))
        .arg(program_path())
        .arg(answer)
        .env("PATH", std::env::var_os("PATH").unwrap());
    said(agent.output().unwrap()).ends(0)
}

#[test]
fn an_agent_of_the_typescript_sdk_does_what_its_person_agreed_to() {
    let bench = Bench::new();
    let said = run_typescript(&bench, "reject");
    assert!(said.out.starts_with("Nothing was done"), "{said:#?}");
    assert!(!bench.path("note.txt").exists());
    let bench = Bench::new();
    let said = run_typescript(&bench, "approve");
    assert!(said.out.contains("The run is completed."), "{said:#?}");
    // The person saw what was asked.
    assert!(said.err.contains("note.txt"), "{said:#?}");
    assert_eq!(bench.read("note.txt"), "agreed");
}
