//! The extension of pi: compiled strictly against pi's own types, and run with a small stand-in for
//! pi.

use planwright_testing::peers::installed;
use planwright_testing::workbench::{Bench, program_path};
use serde_json::Value;
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// The extension as JavaScript, beside what drives it.
fn compile() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let copy = |from: &Path| {
        let name = from.file_name().unwrap();
        std::fs::copy(from, folder.path().join(name)).unwrap();
    };
    copy(&here.join("../../integrations/pi/planwright.ts"));
    copy(&here.join("../../integrations/pi/tsconfig.json"));
    copy(&here.join("tests/real/pi_extension.mjs"));
    std::fs::write(folder.path().join("package.json"), r#"{"type": "module"}"#).unwrap();
    let modules = installed("node-agents/node_modules");
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).unwrap();
    let compiled = Command::new("node")
        .arg(modules.join("typescript/bin/tsc"))
        .args(["-p", ".", "--noEmit", "false"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&compiled.stdout).into_owned();
    assert!(compiled.status.success(), "{told}");
    folder
}

/// Runs one scenario, and returns what the stand-in saw.
fn drive(bench: &Bench, folder: &TempDir, scenario: &str, program: &Path) -> Value {
    let planwright = bench.command(&["list"]);
    let mut pi = Command::new("/usr/bin/env");
    pi.arg("node")
        .arg(folder.path().join("pi_extension.mjs"))
        .arg(scenario)
        .current_dir(bench.root())
        .env_clear();
    for (name, value) in planwright.get_envs() {
        pi.env(name, value.unwrap());
    }
    pi.env("PLANWRIGHT", program)
        .env("PATH", std::env::var_os("PATH").unwrap());
    let output = pi.output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|problem| panic!("{problem}: {error}"))
}

#[test]
fn an_agent_in_pi_proposes_and_runs_what_a_person_approved() {
    let bench = Bench::new();
    let folder = compile();
    let seen = drive(&bench, &folder, "propose", &program_path());
    assert_eq!(seen["proposed"]["code"], 0, "{seen:#}");
    assert_eq!(seen["seed"]["code"], 0, "{seen:#}");
    let text = |name: &str| seen[name]["text"].as_str().unwrap().to_owned();
    assert!(
        text("proposed").contains("planwright approve note"),
        "{seen:#}"
    );
    assert!(text("listed").contains("\"proposed\""), "{seen:#}");
    assert!(text("shown").contains("from pi"), "{seen:#}");
    assert!(text("approve").contains("Not approved yet"), "{seen:#}");
    assert_eq!(seen["reject"]["code"], 0, "{seen:#}");
    assert_ne!(seen["option"]["code"], 0, "an id is no option: {seen:#}");
    assert_ne!(seen["executed"]["code"], 0, "{seen:#}");
    assert!(!bench.path("note.txt").exists());
    assert!(seen["notes"].to_string().contains("remind"), "{seen:#}");
    // Everything it did was an agent's.
    let comments = bench.run(&["comments", "note"]).ends(0);
    assert!(comments.out.contains("too early"), "{comments:#?}");
    bench.run(&["approve", "note", "--version", "1"]).ends(0);
    let seen = drive(&bench, &folder, "execute", &program_path());
    assert_eq!(seen["executed"]["code"], 0, "{seen:#}");
    assert_eq!(bench.read("note.txt"), "from pi");
}

#[test]
fn the_policy_decides_about_calls_in_pi() {
    let bench = Bench::new();
    bench.configure(
        "[policy]\nguarded_tools = ['edit']\n[[policy.rules]]\ntool = 'bash'\nif = \"args.command.contains('rm ')\"\n\
         then = 'deny'\n[[policy.rules]]\ntool = 'write'\nthen = 'ask'\n",
    );
    let folder = compile();
    let seen = drive(&bench, &folder, "calls", &program_path());
    for (name, blocked) in [
        ("ls", false),
        ("rm", true),
        ("guarded", true),
        ("agreed", false),
        ("declined", true),
        ("alone", true),
        ("strange", true),
        ("text", true),
        ("plan", false),
        ("planMode", true),
        ("reading", false),
    ] {
        assert_eq!(seen[name]["block"], blocked, "{name}: {seen:#}");
    }
    assert!(
        seen["guarded"]["reason"]
            .as_str()
            .unwrap()
            .contains("plan_propose"),
        "{seen:#}"
    );
    assert!(
        seen["prompt"]["systemPrompt"]
            .as_str()
            .unwrap()
            .contains("Plan mode is on"),
        "{seen:#}"
    );
    // Without the program nothing is called.
    let seen = drive(&bench, &folder, "alone", Path::new("/nowhere/planwright"));
    assert_eq!(seen["ls"]["block"], true, "{seen:#}");
}
