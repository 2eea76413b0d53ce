//! `planwright setup`: the files of clients, changed and changed back.

use planwright_testing::workbench::{Bench, Said, said};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

const CLIENTS: [&str; 8] = [
    "claude-code",
    "claude-desktop",
    "cursor",
    "vscode",
    "codex",
    "gemini",
    "goose",
    "pi",
];

/// Every file below a directory, with its content and mode.
fn files(root: &Path) -> Vec<(PathBuf, String, u32)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if entry.file_type().unwrap().is_file() {
                let mode = entry.metadata().unwrap().permissions().mode() & 0o777;
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path.strip_prefix(root).unwrap().to_owned(), text, mode));
            }
        }
    }
    found.sort();
    found
}

fn write(bench: &Bench, name: &str, text: &str) -> PathBuf {
    let path = bench.home().join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path
}

fn read(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.home().join(name))
        .unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn setup(bench: &Bench, args: &[&str]) -> Said {
    let mut all = vec!["setup"];
    all.extend(args);
    bench.run(&all)
}

/// Configuration as people have it: comments, odd spacing, servers and hooks of their own.
fn furnish(bench: &Bench) {
    let servers = r#"{
    "numStartups": 7,
    "mcpServers": {
        "github": { "type": "stdio", "command": "gh-mcp", "args": ["stdio"], "env": { "TOKEN": "${GH}" } },
        "old": { "type": "sse", "url": "https://old.example.org/sse" }
    },
    "theme":   "dark"
}"#;
    let config = bench.home().join(".config");
    std::fs::create_dir_all(&config).unwrap();
    for name in [
        ".claude.json",
        ".config/Claude/claude_desktop_config.json",
        ".cursor/mcp.json",
        ".gemini/settings.json",
    ] {
        write(bench, name, servers);
    }
    write(
        bench,
        ".claude/settings.json",
        r#"{"hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "mine.sh"}]}]},
  "permissions": {"allow": ["Bash(git *)"]}}
"#,
    );
    write(
        bench,
        ".config/Code/User/mcp.json",
        "{\n\t// my servers\n\t\"servers\": {\n\t\t\"github\": { \"command\": \"gh-mcp\" }, // the best\n\t},\n\t\"inputs\": [],\n}\n",
    );
    write(
        bench,
        ".codex/config.toml",
        "# mine\nmodel = \"x\" # the best\n\n[mcp_servers.github] # first\ncommand = \"gh-mcp\"\nargs = [\"stdio\"]\n\n[tui]\ntheme = \"dark\"\n",
    );
    write(
        bench,
        ".config/goose/config.yaml",
        "GOOSE_MODEL: x # the best\nextensions:\n  developer:\n    enabled: true # yes\n    type: builtin\n  github:\n    type: stdio\n    cmd: gh-mcp # theirs\n    args: [serve]\n    envs:\n      HOST: example.org\n    timeout: 300\nGOOSE_MODE: smart\n",
    );
    for (path, _, _) in files(bench.home()) {
        let path = bench.home().join(path);
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o640)).unwrap();
    }
}

#[test]
fn every_client_is_set_up_and_taken_back_byte_for_byte() {
    for client in CLIENTS {
        for furnished in [false, true] {
            let bench = Bench::new();
            if furnished {
                furnish(&bench);
            }
            let before = files(bench.home());
            let folders = || bench.home().join(".cursor").exists();
            let had_folder = folders();
            let said = setup(&bench, &[client, "--yes"]).ends(0);
            assert!(!said.out.is_empty(), "{client}: {said:#?}");
            let after = files(bench.home());
            assert_ne!(after, before, "{client}");
            for (path, text, mode) in &before {
                let (_, now, new_mode) = after.iter().find(|(name, ..)| name == path).unwrap();
                assert_eq!(new_mode, mode, "{client}: {}", path.display());
                for comment in [
                    "// my servers",
                    "// the best",
                    "# mine",
                    "# first",
                    "# yes",
                    "mine.sh",
                    "theme",
                ] {
                    assert!(
                        !text.contains(comment) || now.contains(comment),
                        "{client}: {now}"
                    );
                }
            }
            // Once more changes nothing.
            let again = setup(&bench, &[client, "--yes"]).ends(0);
            assert_eq!(again.out, "", "{client}: {again:#?}");
            assert_eq!(files(bench.home()), after, "{client}");
            setup(&bench, &[client, "--undo", "--yes"]).ends(0);
            assert_eq!(
                files(bench.home()),
                before,
                "{client}, furnished {furnished}"
            );
            assert_eq!(folders(), had_folder, "{client}");
            setup(&bench, &[client, "--undo", "--yes"]).complains(2, "was not set up");
        }
    }
}

#[test]
fn the_project_is_set_up_and_taken_back() {
    for client in CLIENTS {
        let bench = Bench::new();
        let said = setup(&bench, &[client, "--scope", "project", "--yes"]);
        if client == "claude-desktop" {
            said.complains(2, "no configuration per project");
            continue;
        }
        said.ends(0);
        let made = files(bench.root());
        assert!(!made.is_empty(), "{client}");
        for (path, text, _) in &made {
            // Others use this file on other machines.
            let program = planwright_testing::workbench::program_path();
            assert!(
                !text.contains(program.to_str().unwrap()),
                "{}",
                path.display()
            );
        }
        setup(&bench, &[client, "--scope", "project", "--undo", "--yes"]).ends(0);
        assert_eq!(files(bench.root()), [], "{client}");
    }
}

#[test]
fn claude_code_gets_a_server_hooks_and_the_skill() {
    let bench = Bench::new();
    furnish(&bench);
    setup(&bench, &["claude-code", "--yes"]).ends(0);
    let program = planwright_testing::workbench::program_path();
    let servers: Value = serde_json::from_str(&read(&bench, ".claude.json")).unwrap();
    assert_eq!(
        servers["mcpServers"]["planwright"]["command"],
        json!(program)
    );
    assert_eq!(servers["mcpServers"]["planwright"]["args"], json!(["mcp"]));
    assert_eq!(servers["numStartups"], 7);
    let settings: Value = serde_json::from_str(&read(&bench, ".claude/settings.json")).unwrap();
    let before = settings["hooks"]["PreToolUse"].as_array().unwrap();
    assert_eq!(before.len(), 2, "{settings:#}");
    assert_eq!(before[0]["hooks"][0]["command"], "mine.sh");
    let ours = before[1]["hooks"][0]["command"].as_str().unwrap();
    let wanted = format!("{} hook pre-tool-use || exit 2", program.display());
    assert_eq!(ours, wanted);
    // The shell of the client blocks when the program is gone.
    let gone = ours.replace(program.to_str().unwrap(), "/nowhere/planwright");
    let ended = std::process::Command::new("sh")
        .args(["-c", &gone])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let asked = settings["hooks"]["PermissionRequest"].to_string();
    assert!(
        asked.contains("exit-plan-mode") && asked.contains("permission-request"),
        "{asked}"
    );
    assert!(
        settings["hooks"]["SessionStart"]
            .to_string()
            .contains("session-start")
    );
    let skill = read(&bench, ".claude/skills/planwright/SKILL.md");
    assert!(skill.starts_with("---\nname: planwright\n"), "{skill}");
}

#[test]
fn an_agent_changes_nothing_and_may_look() {
    let bench = Bench::new();
    furnish(&bench);
    let before = files(bench.home());
    let agent = |args: &[&str]| {
        let mut command = bench.command(args);
        command.env("CLAUDECODE", "1");
        said(command.output().unwrap())
    };
    agent(&["setup", "claude-code", "--yes"]).complains(3, "an agent cannot change what guards it");
    agent(&["setup", "claude-code", "--undo", "--yes"]).complains(3, "an agent cannot");
    // A person's word is needed, and no person is there to give it.
    setup(&bench, &["claude-code"]);
    let said = setup(&bench, &["claude-code"]);
    assert_eq!(said.code, 3, "{said:#?}");
    assert!(
        said.err.contains("+ ") && said.err.contains("needs a confirmation"),
        "{said:#?}"
    );
    let shown = agent(&["setup", "codex", "--print"]).ends(0);
    for words in [
        "config.toml",
        "[mcp_servers.planwright]",
        "hooks.json",
        "SKILL.md",
    ] {
        assert!(shown.out.contains(words), "{words}: {shown:#?}");
    }
    let shown = agent(&["setup", "vscode", "--print", "--json"])
        .ends(0)
        .json();
    assert!(
        shown["files"][0]["text"]
            .as_str()
            .unwrap()
            .contains("\"servers\""),
        "{shown:#}"
    );
    assert_eq!(files(bench.home()), before);
}

#[test]
fn undo_takes_only_ours_out_of_a_file_that_changed_since() {
    let bench = Bench::new();
    furnish(&bench);
    for client in CLIENTS {
        setup(&bench, &[client, "--yes"]).ends(0);
    }
    // The user and the clients go on with their lives.
    for (name, old, new) in [
        (".claude.json", "\"numStartups\": 7", "\"numStartups\": 8"),
        (".claude/settings.json", "Bash(git *)", "Bash(ls *)"),
        (
            ".codex/config.toml",
            "theme = \"dark\"",
            "theme = \"light\"",
        ),
        (
            ".config/goose/config.yaml",
            "GOOSE_MODE: smart",
            "GOOSE_MODE: auto",
        ),
        (
            ".config/Code/User/mcp.json",
            "// my servers",
            "// all my servers",
        ),
    ] {
        let text = read(&bench, name);
        assert!(text.contains(old), "{name}: {text}");
        write(&bench, name, &text.replace(old, new));
    }
    for client in CLIENTS {
        setup(&bench, &[client, "--undo", "--yes"]).ends(0);
    }
    for (name, wanted) in [
        (".claude.json", "\"numStartups\": 8"),
        (".claude/settings.json", "Bash(ls *)"),
        (".codex/config.toml", "theme = \"light\""),
        (".config/goose/config.yaml", "GOOSE_MODE: auto"),
        (".config/Code/User/mcp.json", "// all my servers"),
    ] {
        let text = read(&bench, name);
        assert!(text.contains(wanted), "{name}: {text}");
        assert!(!text.contains("planwright"), "{name}: {text}");
    }
    let settings: Value = serde_json::from_str(&read(&bench, ".claude/settings.json")).unwrap();
    assert_eq!(
        settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"],
        "mine.sh"
    );
    assert_eq!(
        settings["hooks"].as_object().unwrap().len(),
        1,
        "{settings:#}"
    );
}

#[test]
fn the_gateway_takes_the_servers_over_and_gives_them_back() {
    for (client, file) in [
        ("claude-code", ".claude.json"),
        ("codex", ".codex/config.toml"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("goose", ".config/goose/config.yaml"),
    ] {
        let bench = Bench::new();
        furnish(&bench);
        bench.write_own(
            "planwright.toml",
            "# my own\n[servers.time]\ncommand = \"time-mcp\"\n",
        );
        let before = files(bench.home());
        let said = setup(&bench, &[client, "--gateway", "--yes"]).ends(0);
        let theirs = read(&bench, file);
        assert!(theirs.contains("--gateway"), "{client}: {theirs}");
        assert!(!theirs.contains("gh-mcp"), "{client}: {theirs}");
        let ours = read(&bench, ".config/planwright/planwright.toml");
        for words in ["# my own", "[servers.time]", "[servers.github]", "gh-mcp"] {
            assert!(ours.contains(words), "{client}, {words}: {ours}");
        }
        // It is a server of the user's, ready to be started.
        let listed = bench.run(&["servers", "list", "--json"]).ends(0);
        assert!(listed.out.contains("github"), "{client}: {listed:#?}");
        if client == "claude-code" {
            assert!(
                said.err.contains("`old` stays with the client"),
                "{said:#?}"
            );
            assert!(theirs.contains("old.example.org"), "{theirs}");
        }
        if client == "goose" {
            let words = "`developer` stays with the client";
            assert!(said.err.contains(words), "{said:#?}");
            assert!(ours.contains("example.org"), "{ours}");
        }
        setup(&bench, &[client, "--undo", "--yes"]).ends(0);
        assert_eq!(files(bench.home()), before, "{client}");
        // Also when the client wrote to its file since.
        setup(&bench, &[client, "--gateway", "--yes"]).ends(0);
        let text = read(&bench, file);
        write(
            &bench,
            file,
            &text
                .replace("dark", "light")
                .replace("// my", "// our")
                .replace("smart", "auto"),
        );
        setup(&bench, &[client, "--undo", "--yes"]).ends(0);
        let theirs = read(&bench, file);
        assert!(
            theirs.contains("gh-mcp") && !theirs.contains("planwright"),
            "{client}: {theirs}"
        );
        let ours = read(&bench, ".config/planwright/planwright.toml");
        assert!(
            !ours.contains("gh-mcp") && ours.contains("# my own"),
            "{ours}"
        );
    }
}

#[test]
fn a_gateway_overwrites_no_server_of_the_user() {
    let bench = Bench::new();
    furnish(&bench);
    bench.write_own(
        "planwright.toml",
        "[servers.github]\ncommand = \"another\"\n",
    );
    let said = setup(&bench, &["cursor", "--gateway", "--yes"]).ends(0);
    assert!(
        said.err.contains("another server of this name"),
        "{said:#?}"
    );
    assert!(read(&bench, ".cursor/mcp.json").contains("gh-mcp"));
    assert!(read(&bench, ".config/planwright/planwright.toml").contains("another"));
    setup(&bench, &["pi", "--gateway", "--yes"]).complains(2, "no servers of its own");
}

#[test]
fn links_are_followed_inside_of_home_only() {
    let bench = Bench::new();
    let elsewhere = tempfile::tempdir().unwrap();
    let theirs = elsewhere.path().join("mcp.json");
    std::fs::write(&theirs, "{}\n").unwrap();
    std::fs::create_dir(bench.home().join(".cursor")).unwrap();
    let link = bench.home().join(".cursor/mcp.json");
    std::os::unix::fs::symlink(&theirs, &link).unwrap();
    let said = setup(&bench, &["cursor", "--yes"]);
    assert_eq!(said.code, 3, "{said:#?}");
    assert!(said.err.contains("out of"), "{said:#?}");
    assert_eq!(std::fs::read_to_string(&theirs).unwrap(), "{}\n");
    assert!(
        !bench.home().join(".cursor/hooks.json").exists(),
        "all or nothing"
    );
    // A folder of links in the same home is what people do with their dotfiles.
    std::fs::remove_file(&link).unwrap();
    let dotfile = write(&bench, "dotfiles/mcp.json", "{}\n");
    std::os::unix::fs::symlink(&dotfile, &link).unwrap();
    setup(&bench, &["cursor", "--yes"]).ends(0);
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert!(read(&bench, "dotfiles/mcp.json").contains("planwright"));
    setup(&bench, &["cursor", "--undo", "--yes"]).ends(0);
    assert_eq!(read(&bench, "dotfiles/mcp.json"), "{}\n");
    // A link to nothing is no file.
    std::fs::remove_file(&dotfile).unwrap();
    assert_ne!(setup(&bench, &["cursor", "--yes"]).code, 0);
}

#[test]
fn what_is_not_understood_is_left_as_it_is() {
    for (client, file, text) in [
        ("claude-code", ".claude.json", "{ not json"),
        ("claude-code", ".claude.json", "{\"mcpServers\": []}"),
        (
            "claude-code",
            ".claude/settings.json",
            "{\"hooks\": {\"PreToolUse\": {}}}",
        ),
        ("codex", ".codex/config.toml", "[mcp_servers"),
        ("goose", ".config/goose/config.yaml", "extensions: {a: 1}\n"),
        (
            "claude-code",
            ".claude/skills/planwright/SKILL.md",
            "something of mine\n",
        ),
    ] {
        let bench = Bench::new();
        write(&bench, file, text);
        let before = files(bench.home());
        let said = setup(&bench, &[client, "--yes"]);
        assert_ne!(said.code, 0, "{client} {text}: {said:#?}");
        assert_eq!(files(bench.home()), before, "{client} {text}");
    }
}

#[test]
fn planwright_is_not_its_own_server() {
    for client in ["claude-code", "vscode"] {
        let bench = Bench::new();
        setup(&bench, &[client, "--scope", "project", "--yes"]).ends(0);
        bench.run(&["trust", "--yes"]).ends(0);
        let listed = bench.run(&["servers", "list", "--json"]);
        assert!(
            listed.out.contains("not its own server"),
            "{client}: {listed:#?}"
        );
        // It would start itself, and that one itself again.
        let tools = bench.run(&["tools", "--json"]).ends(0);
        assert!(!tools.out.contains("plan_propose"), "{client}: {tools:#?}");
    }
}

#[test]
fn the_version_of_a_file_is_its_own() {
    let bench = Bench::new();
    write(
        &bench,
        ".cursor/hooks.json",
        "{ \"version\": 2, \"hooks\": {} }\n",
    );
    setup(&bench, &["cursor", "--yes"]).ends(0);
    let hooks: Value = serde_json::from_str(&read(&bench, ".cursor/hooks.json")).unwrap();
    assert_eq!(hooks["version"], 2);
    assert_eq!(hooks["hooks"]["beforeMCPExecution"][0]["failClosed"], true);
}
