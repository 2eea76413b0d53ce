//! `planwright models`: listed without being asked, checked by being asked, and trusted before they
//! are asked.

use crate::telemetry::Collector;
use planwright_testing::provider::{Provider, ScriptedReply};
use planwright_testing::workbench::{Bench, Said, said};
use serde_json::json;

const CANARY: &str = "sk-canary-Zk3vQ8sTn5LwX2y";

fn with(bench: &Bench, args: &[&str], variables: &[(&str, &str)]) -> Said {
    said(
        bench
            .command(args)
            .envs(variables.iter().copied())
            .output()
            .unwrap(),
    )
}

/// Answers both questions of `models check`.
fn able() -> Provider {
    Provider::answering(|asked| match asked.text().contains("write_note") {
        true => ScriptedReply::calls([("write_note", json!({"text": "ready"}))]),
        false => ScriptedReply::json(json!({"answer": 4})).using(30, 5, 0),
    })
}

#[test]
fn models_are_listed_with_roles_places_keys_and_prices() {
    let bench = Bench::new();
    let none = bench.run(&["models"]).ends(0);
    assert!(
        none.err.contains("no model is configured") && none.err.contains("PLANWRIGHT_MODEL"),
        "{none:#?}"
    );
    assert_eq!(bench.run(&["models", "--json"]).ends(0).json(), json!([]));
    let listed = with(
        &bench,
        &["models", "list", "--json"],
        &[("PLANWRIGHT_MODEL", "anthropic/claude-sonnet-4-5")],
    );
    let listed = listed.ends(0).json();
    assert_eq!(
        listed[0]["roles"],
        json!(["planner", "reflector", "executor", "chat"])
    );
    assert_eq!(
        listed[0]["key"],
        json!({"source": "variable ANTHROPIC_API_KEY", "present": false})
    );
    assert_eq!(listed[0]["price"]["input"], json!(3.0));
    bench.configure("[models]\ndefault = \"openai/gpt-5\"\nexecutor = \"ollama/qwen3\"\n[models.providers.ollama]\ncontext_tokens = 4096\n",
    );
    let listed = with(&bench, &["models"], &[("OPENAI_API_KEY", CANARY)]).ends(0);
    for words in [
        "openai/gpt-5",
        "planner, reflector, chat",
        "ollama/qwen3",
        "no key",
        "4096 tokens",
        "OPENAI_API_KEY",
    ] {
        assert!(listed.out.contains(words), "{words}: {listed:#?}");
    }
    assert!(!listed.out.contains("canary"));
}

#[test]
fn a_check_asks_and_says_what_a_model_can_do() {
    let bench = Bench::new();
    let provider = able();
    bench.configure(&provider.config());
    let checked = bench.run(&["models", "check", "--json"]).ends(0).json();
    assert_eq!(checked[0]["ok"], json!(true));
    assert_eq!(
        (&checked[0]["structured"], &checked[0]["toolCalling"]),
        (&json!("json_schema"), &json!(true))
    );
    assert_eq!(checked[0]["usage"]["input"], json!(130));
    let checked = bench.run(&["models", "check", "scripted/other"]).ends(0);
    assert!(
        checked.out.contains("JSON by json_schema") && checked.out.contains("it calls tools"),
        "{checked:#?}"
    );
    assert_eq!(provider.asked()[2].body["model"], json!("other"));
    bench
        .run(&["models", "check", "nobody/x"])
        .complains(2, "there is no model `nobody/x`");
    Bench::new()
        .run(&["models", "check"])
        .complains(7, "no model is configured");
}

#[test]
fn a_model_that_fails_the_check_fails_the_command_and_no_key_is_shown() {
    let body =
        format!(r#"{{"error": {{"message": "Incorrect API key provided: Bearer {CANARY}"}}}}"#);
    let bench = Bench::new();
    let provider = Provider::answering(move |_| ScriptedReply::status(401, body.clone()));
    bench.configure(&format!("{}key_env = \"A_KEY\"\n", provider.config()));
    for args in [
        ["models", "check"].as_slice(),
        &["models", "check", "--json"],
    ] {
        let checked = with(&bench, args, &[("A_KEY", CANARY)]).ends(1);
        assert!(
            checked.out.contains("Incorrect API key") && !format!("{checked:?}").contains("canary"),
            "{checked:#?}"
        );
    }
    assert_eq!(
        provider.asked()[0].headers["authorization"],
        format!("Bearer {CANARY}")
    );
    let missing = bench.run(&["models", "check"]).ends(1);
    assert!(
        missing.out.contains("no API key for `scripted/model`"),
        "{missing:#?}"
    );
    assert!(missing.out.contains("A_KEY is not set"), "{missing:#?}");
}

#[test]
fn a_provider_elsewhere_that_a_project_describes_is_asked_only_once_it_is_trusted() {
    let bench = Bench::new();
    let describe = |url: &str| {
        let text = format!(
            "[models]\ndefault = \"openai/gpt-5\"\n[models.providers.openai]\nbase_url = \"{url}\"\n"
        );
        bench.write("planwright.toml", &text);
    };
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("trust.json");
    let trusting = |args: &[&str]| {
        with(
            &bench,
            args,
            &[("PLANWRIGHT_TRUST_FILE", file.to_str().unwrap())],
        )
    };
    let obstacle = || trusting(&["models", "--json"]).ends(0).json()[0]["obstacle"].clone();
    describe("https://models.example.org/v1");
    assert!(
        obstacle()
            .as_str()
            .unwrap()
            .contains("is not trusted (planwright trust)")
    );
    let checked = trusting(&["models", "check"]).ends(1);
    assert!(checked.out.contains("is not trusted"), "{checked:#?}");
    trusting(&["models", "trust", "openai"]).complains(3, "needs a confirmation");
    let shown = trusting(&["models", "trust", "openai", "--yes"]).ends(0);
    assert!(
        shown.err.contains("models.example.org") && shown.err.contains("OPENAI_API_KEY"),
        "{shown:#?}"
    );
    assert_eq!(obstacle(), json!(null));
    describe("https://other.example.org/v1");
    assert!(
        obstacle()
            .as_str()
            .unwrap()
            .contains("is not what you trusted")
    );
    trusting(&["models", "untrust", "openai"]).ends(0);
    let trusted = trusting(&["models", "--json", "--trust-project-servers"]).ends(0);
    assert_eq!(trusted.json()[0]["obstacle"], json!(null));
    trusting(&["models", "trust", "gemini", "--yes"]).complains(2, "needs trust");
}

#[test]
fn commands_that_ask_nobody_need_no_key_and_mistakes_are_named() {
    let bench = Bench::new();
    bench.write("planwright.toml", "[models]\ndefault = \"openai/gpt-5\"\n[models.providers.openai]\nkey = \"file:not/there\"\n",
    );
    bench.run(&["list"]).ends(0);
    let odd = [
        ("PLANWRIGHT_MODEL", "no such name"),
        ("OPENAI_BASE_URL", "http://models.example.org/v1"),
    ];
    with(&bench, &["list"], &odd).ends(0);
    assert!(
        bench
            .run(&["doctor"])
            .out
            .contains("`openai` of planwright.toml is not trusted")
    );
    let doctor = with(
        &Bench::new(),
        &["doctor"],
        &[("PLANWRIGHT_MODEL", "openai/gpt-5")],
    );
    assert!(
        doctor
            .out
            .contains("its key is missing (variable OPENAI_API_KEY)"),
        "{doctor:#?}"
    );
    bench.write("planwright.toml", "[models]\ndefalt = \"openai/gpt-5\"\n");
    bench
        .run(&["list"])
        .complains(2, "line 2: the key `defalt` is unknown");
    bench.write("planwright.toml", "[models]\ndefault = \"opnai/gpt-5\"\n");
    bench
        .run(&["list"])
        .complains(2, "`opnai`, which is not configured");
}

#[test]
fn a_question_is_a_span_without_what_was_said_unless_that_is_wanted() {
    for wanted in [false, true] {
        let bench = Bench::new();
        let provider = able();
        let collector = Collector::start();
        let content = format!("[telemetry]\ncontent = {wanted}\n");
        bench.configure(&format!("{}{content}", provider.config()));
        with(
            &bench,
            &["models", "check"],
            &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.url())],
        )
        .ends(0);
        let received = String::from_utf8_lossy(&collector.bytes()).into_owned();
        for name in [
            "chat model",
            "gen_ai.request.model",
            "gen_ai.usage.input_tokens",
            "gen_ai.provider.name",
        ] {
            assert!(received.contains(name), "{name} is missing");
        }
        assert_eq!(received.contains("two plus two"), wanted);
        assert_eq!(received.contains("gen_ai.output.messages"), wanted);
    }
}
