//! The command lines, held against what the programs said they take, and what they printed, read.

use super::*;
use serde_json::json;
use std::path::Path;

/// What `--help` of each program named when its command line was written.
fn known_words(kind: AgentKind) -> Vec<&'static str> {
    let recorded = match kind {
        AgentKind::Claude => include_str!("help/claude.txt"),
        AgentKind::Codex => include_str!("help/codex.txt"),
        AgentKind::Gemini => include_str!("help/gemini.txt"),
        AgentKind::Goose => include_str!("help/goose.txt"),
    };
    let lines = recorded.lines().skip(1);
    lines.flat_map(|line| line.split(", ")).collect()
}

fn options(kind: AgentKind, own_tools: bool) -> AgentOptions {
    AgentOptions {
        kind,
        model: Some("some-model".to_owned()),
        own_tools,
        bridge: "/opt/my programs/planwright".into(),
        places: None,
    }
}

fn launch(options: &AgentOptions) -> (Launch, String) {
    let places = tempfile::tempdir().unwrap();
    let place = AttemptPlace::make(places.path()).unwrap();
    let launch = options.launch(&place, Path::new("/srv/space"), Duration::from_secs(90));
    let launch = launch.unwrap();
    for (file, text) in &launch.files {
        place.write(file, text).unwrap();
    }
    (launch, place.path().to_str().unwrap().to_owned())
}

#[test]
fn every_option_is_one_that_the_program_names() {
    for kind in AgentKind::ALL {
        for own_tools in [false, true] {
            let (launch, _) = launch(&options(kind, own_tools));
            let known = known_words(kind);
            let words = launch
                .args
                .iter()
                .filter(|arg| arg.starts_with('-') && *arg != "-");
            for word in words {
                assert!(known.contains(&word.as_str()), "{kind:?} has no {word}");
            }
            let features = launch.args.windows(2).filter(|pair| pair[0] == "--disable");
            for pair in features {
                assert!(known.contains(&pair[1].as_str()), "no feature {}", pair[1]);
            }
        }
    }
}

#[test]
fn no_token_is_in_a_command_line_or_a_file() {
    for kind in AgentKind::ALL {
        let (launch, _) = launch(&options(kind, false));
        let files = launch.files.iter().map(|(_, text)| text.as_str());
        let all: Vec<&str> = launch
            .args
            .iter()
            .map(String::as_str)
            .chain(files)
            .collect();
        // What is there is the name of the variable, as each program refers to one.
        let all = all.join("\n");
        let mentions = all.matches(STEP_TOKEN).count();
        let expected = match kind {
            AgentKind::Claude => all.matches("\"${PLANWRIGHT_STEP_TOKEN}\"").count() + 1,
            AgentKind::Gemini => all.matches("\"$PLANWRIGHT_STEP_TOKEN\"").count() + 1,
            AgentKind::Codex => 1,
            AgentKind::Goose => 0,
        };
        assert_eq!(mentions, expected, "{kind:?}: {all}");
    }
}

#[test]
fn the_tools_of_the_programs_themselves_are_off_unless_they_are_wanted() {
    let has = |launch: &Launch, words: &[&str]| {
        launch.args.windows(words.len()).any(|some| some == words)
    };
    let (claude, place) = launch(&options(AgentKind::Claude, false));
    assert!(has(&claude, &["--tools", ""]));
    assert!(has(&claude, &["--setting-sources", ""]));
    assert!(has(&claude, &["--strict-mcp-config"]));
    assert!(has(
        &claude,
        &["--mcp-config", &format!("{place}/mcp.json")]
    ));
    let (codex, _) = launch(&options(AgentKind::Codex, false));
    for words in [
        ["--disable", "shell_tool"],
        ["--disable", "unified_exec"],
        ["--sandbox", "read-only"],
        ["-c", "approval_policy=\"never\""],
        ["-c", "web_search=\"disabled\""],
        [
            "-c",
            "mcp_servers.planwright.command=\"/opt/my programs/planwright\"",
        ],
        ["-c", "mcp_servers.planwright.tool_timeout_sec=90"],
    ] {
        assert!(has(&codex, &words), "{words:?}");
    }
    assert!(has(&codex, &["--ignore-user-config"]) && has(&codex, &["--strict-config"]));
    let (gemini, place) = launch(&options(AgentKind::Gemini, false));
    assert!(has(
        &gemini,
        &["--admin-policy", &format!("{place}/policy.toml")]
    ));
    assert!(has(&gemini, &["--allowed-mcp-server-names", "planwright"]));
    let settings: Value = serde_json::from_str(&gemini.files[1].1).unwrap();
    assert_eq!(settings["tools"]["core"], json!(["none"]));
    assert_eq!(settings["mcpServers"]["planwright"]["timeout"], 90_000);
    let (goose, _) = launch(&options(AgentKind::Goose, false));
    assert!(has(&goose, &["--no-profile"]));
    assert!(has(
        &goose,
        &[
            "--with-extension",
            "\"/opt/my programs/planwright\" mcp --step"
        ]
    ));

    for kind in AgentKind::ALL {
        let (with, _) = launch(&options(kind, true));
        let closing = ["--tools", "--disable", "--admin-policy", "--no-profile"];
        assert!(
            !with.args.iter().any(|arg| closing.contains(&arg.as_str())),
            "{with:?}"
        );
    }
    let quoted = AgentOptions {
        bridge: "/opt/a\"b/planwright".into(),
        ..options(AgentKind::Goose, false)
    };
    let places = tempfile::tempdir().unwrap();
    let place = AttemptPlace::make(places.path()).unwrap();
    assert!(
        quoted
            .launch(&place, Path::new("/"), Duration::ZERO)
            .is_err()
    );
}

#[test]
fn a_place_is_its_owners_and_goes_with_the_attempt() {
    use std::os::unix::fs::PermissionsExt as _;
    let places = tempfile::tempdir().unwrap();
    let below = places.path().join("state/attempts");
    let place = AttemptPlace::make(&below).unwrap();
    place.write("folder/file", "words").unwrap();
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(place.path()), 0o700);
    assert_eq!(mode(&place.path().join("folder/file")), 0o600);
    assert!(
        place.write("folder/file", "other words").is_err(),
        "nothing is written over"
    );
    let path = place.path().to_owned();
    drop(place);
    assert!(!path.exists());
}

/// What the programs printed in a session with one call, shortened.
fn printed(kind: AgentKind) -> &'static str {
    match kind {
        AgentKind::Claude => {
            r#"{"type":"result","subtype":"success","is_error":false,"num_turns":2,"result":"final words","total_cost_usd":0.00035,
            "usage":{"input_tokens":20,"cache_creation_input_tokens":3,"cache_read_input_tokens":7,"output_tokens":10},
            "modelUsage":{"claude-opus-4-8":{"inputTokens":20,"outputTokens":10}},"permission_denials":[]}"#
        }
        AgentKind::Codex => {
            "{\"type\":\"thread.started\",\"thread_id\":\"01a1\"}\n{\"type\":\"turn.started\"}\n\
             {\"type\":\"item.completed\",\"item\":{\"id\":\"item_1\",\"type\":\"mcp_tool_call\",\"status\":\"completed\"}}\n\
             {\"type\":\"error\",\"message\":\"Reconnecting... 1/5\"}\n\
             {\"type\":\"item.completed\",\"item\":{\"id\":\"item_2\",\"type\":\"agent_message\",\"text\":\"final words\"}}\n\
             {\"type\":\"turn.completed\",\"usage\":{\"input_tokens\":30,\"cached_input_tokens\":7,\"output_tokens\":10}}\n"
        }
        AgentKind::Gemini => {
            r#"{"session_id":"d5ca","response":"final words\n","stats":{"models":{"gemini-2.5-pro":{"tokens":
            {"input":23,"prompt":30,"candidates":8,"total":40,"cached":7,"thoughts":2,"tool":0}}},"tools":{"totalCalls":1}}}"#
        }
        AgentKind::Goose => {
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"do it"}]},
            {"role":"assistant","content":[{"type":"toolRequest","id":"c1"}]},
            {"role":"user","content":[{"type":"toolResponse","id":"c1"}]},
            {"role":"assistant","content":[{"type":"text","text":"final words"}]}],
            "metadata":{"total_tokens":40,"input_tokens":30,"output_tokens":10,"status":"completed"}}"#
        }
    }
}

#[test]
fn the_final_message_and_the_tokens_are_read() {
    for kind in AgentKind::ALL {
        let report = options(kind, false).read("mine", printed(kind));
        assert_eq!(report.outcome.as_deref(), Ok("final words"), "{kind:?}");
        let used = report.used.unwrap();
        assert_eq!(used.usage.total(), 40, "{kind:?}: {used:?}");
        assert_eq!(used.usage.output, 10, "{kind:?}");
        assert_eq!(used.role, ModelRole::Executor);
        let model = match kind {
            AgentKind::Claude => "mine/claude-opus-4-8",
            AgentKind::Gemini => "mine/gemini-2.5-pro",
            AgentKind::Codex | AgentKind::Goose => "mine/some-model",
        };
        assert_eq!(used.model, model);
    }
    let report = options(AgentKind::Claude, false).read("mine", printed(AgentKind::Claude));
    assert_eq!(report.used.unwrap().cost, Some(Cost(350)));
}

#[test]
fn nothing_nonsense_and_an_empty_message_are_no_result() {
    let empty = |kind| printed(kind).replace("final words", " ");
    for kind in AgentKind::ALL {
        let cases = [
            "",
            "\n \n",
            "done!",
            "{}",
            "[]",
            "null",
            "{\"result\": 3}",
            &empty(kind),
        ];
        for case in cases {
            let report = options(kind, false).read("mine", case);
            assert!(report.outcome.is_err(), "{kind:?}: {case:?} is {report:?}");
        }
        let whole = printed(kind);
        let half = &whole[..whole.len() / 2];
        let report = options(kind, false).read("mine", half);
        assert!(
            report.outcome.is_err(),
            "{kind:?}: half of it is {report:?}"
        );
    }
}

#[test]
fn what_a_program_says_about_its_failure_is_told() {
    let failures = [
        (
            AgentKind::Claude,
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Invalid API key"}"#,
            "Invalid API key",
        ),
        (
            AgentKind::Claude,
            r#"{"type":"result","subtype":"error_max_turns","is_error":false,"result":"half"}"#,
            "error_max_turns",
        ),
        (
            AgentKind::Codex,
            "{\"type\":\"item.completed\",\"item\":{\"type\":\"agent_message\",\"text\":\"so far\"}}\n\
             {\"type\":\"turn.failed\",\"error\":{\"message\":\"no credit\"}}",
            "no credit",
        ),
        (
            AgentKind::Gemini,
            r#"{"session_id":"1","error":{"type":"Error","message":"Invalid auth method selected.","code":41}}"#,
            "Invalid auth method",
        ),
        (
            AgentKind::Goose,
            r#"{"messages":[{"role":"user","content":[{"type":"text","text":"do it"}]}],"metadata":{"status":"completed"}}"#,
            "no message of its model",
        ),
        (
            AgentKind::Goose,
            r#"{"messages":[{"role":"assistant","content":[{"type":"text","text":"Ran into this error: Authentication failed. Status: 401.\n\nPlease retry if you think this is a transient or recoverable error."}]}],"metadata":{"status":"completed"}}"#,
            "Authentication failed",
        ),
    ];
    for (kind, text, words) in failures {
        let report = options(kind, false).read("mine", text);
        let problem = report.outcome.unwrap_err();
        assert!(problem.contains(words), "{kind:?}: {problem}");
    }
}
