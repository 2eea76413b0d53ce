//! Servers that do not know how they are asked for JSON, and those that answer in their own way.

use crate::scene::{KINDS, MODEL, ask, described, models, models_of, structured};
use planwright_adapters::model::{
    Dialect, Effort, ModelOptions, Models, ProviderKind, ProviderOptions, RoleSettings, Structured,
};
use planwright_core::model::{Message, ModelRole, WantedCall};
use planwright_engine::Redaction;
use planwright_engine::port::{ModelError, ModelRequest};
use planwright_testing::provider::{Provider, ScriptedReply};
use serde_json::json;

#[tokio::test]
async fn a_schema_is_asked_for_without_strictness() {
    let provider = Provider::scripted([ScriptedReply::json(json!({"answer": 1}))]);
    ask(&models(&provider, ProviderKind::OpenAi), structured("?"))
        .await
        .0
        .unwrap();
    let format = &provider.asked()[0].body["response_format"];
    assert_eq!(
        (&format["type"], &format["json_schema"]["strict"]),
        (&json!("json_schema"), &json!(false))
    );
    assert_eq!(
        format["json_schema"]["schema"]["required"],
        json!(["answer"]),
        "free-form fields stay optional"
    );
}

#[tokio::test]
async fn a_server_that_knows_no_schemas_is_asked_otherwise_and_remembered() {
    let provider =
        Provider::answering(
            |asked| match asked.body["response_format"]["type"].as_str() {
                Some("json_schema") => ScriptedReply::status(
                    400,
                    r#"{"error": {"message": "unknown response_format"}}"#,
                ),
                Some("json_object") => {
                    ScriptedReply::status(422, r#"{"detail": "response_format: not supported"}"#)
                }
                _ => ScriptedReply::fenced(&json!({"answer": 7})),
            },
        );
    let models = models(&provider, ProviderKind::OpenAi);
    for questions in [3, 4] {
        let answer = ask(&models, structured("?")).await.0.unwrap();
        assert_eq!(answer.text, r#"{"answer":7}"#);
        assert_eq!(provider.times_asked(), questions);
    }
    let asked = provider.asked();
    assert_eq!(
        asked[1].body["response_format"]["schema"]["type"],
        json!("object"),
        "llama.cpp's name"
    );
    assert_eq!(
        asked[1].body["format"]["type"],
        json!("object"),
        "Ollama's name"
    );
    assert!(
        asked[2].text().contains("valid against this JSON Schema"),
        "the prompt says it"
    );
    assert_eq!(models.dialect(MODEL, "reply"), Some(Dialect::Text));
}

#[tokio::test]
async fn a_refusal_for_another_reason_changes_nothing() {
    let provider = Provider::scripted([ScriptedReply::status(
        400,
        r#"{"error": {"message": "the context is too long"}}"#,
    )]);
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), structured("?")).await;
    assert!(
        matches!(answer, Err(ModelError::Refused { status: 400, .. })),
        "{answer:?}"
    );
    assert_eq!(provider.times_asked(), 1);
}

#[tokio::test]
async fn every_dialect_can_be_demanded_in_every_format() {
    for kind in KINDS {
        for dialect in [
            Dialect::JsonSchema,
            Dialect::JsonObject,
            Dialect::Tool,
            Dialect::Text,
        ] {
            let provider = Provider::scripted([ScriptedReply::json(json!({"answer": 3}))]);
            let options = ProviderOptions {
                structured: Structured::Always(dialect),
                ..described(&provider, kind)
            };
            let (answer, _) = ask(&models_of(options, Redaction::default()), structured("?")).await;
            assert_eq!(
                answer.unwrap().text,
                r#"{"answer":3}"#,
                "{kind:?} {dialect}"
            );
            assert!(
                provider.asked()[0].text().contains("answer"),
                "{kind:?} {dialect}: the schema is somewhere"
            );
        }
    }
}

#[tokio::test]
async fn what_is_demanded_is_not_replaced() {
    let provider = Provider::scripted([ScriptedReply::status(400, "response_format is unknown")]);
    let structured_as = Structured::Always(Dialect::JsonSchema);
    let options = ProviderOptions {
        structured: structured_as,
        ..described(&provider, ProviderKind::OpenAi)
    };
    let (answer, _) = ask(&models_of(options, Redaction::default()), structured("?")).await;
    assert!(matches!(answer, Err(ModelError::Refused { .. })));
    assert_eq!(provider.times_asked(), 1);
}

#[tokio::test]
async fn nonsense_stays_what_it_is() {
    let provider = Provider::scripted([ScriptedReply::text("I would rather not.")]);
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), structured("?")).await;
    assert_eq!(answer.unwrap().text, "I would rather not.");
}

fn thoughtful(provider: &Provider, kind: ProviderKind) -> Models {
    let settings = RoleSettings {
        temperature: Some(0.5),
        effort: Some(Effort::High),
    };
    let options = ModelOptions {
        default: Some(MODEL.to_owned()),
        providers: [("scripted".to_owned(), described(provider, kind))].into(),
        settings: [(ModelRole::Planner, settings)].into(),
        ..ModelOptions::default()
    };
    options.check().unwrap();
    Models::new(options, Redaction::default())
}

#[tokio::test]
async fn each_provider_is_told_how_much_to_think_in_its_own_words() {
    for kind in KINDS {
        let reply = || ScriptedReply::json(json!({"answer": 1}));
        let provider = Provider::scripted([reply(), reply()]);
        let models = thoughtful(&provider, kind);
        ask(&models, structured("?")).await.0.unwrap();
        let executor = ModelRequest {
            role: ModelRole::Executor,
            ..structured("?")
        };
        ask(&models, executor).await.0.unwrap();
        let asked = provider.asked();
        let body = |index: usize| asked[index].body.to_string();
        let word = match kind {
            ProviderKind::OpenAi => "reasoning_effort",
            ProviderKind::Anthropic => "thinking",
            ProviderKind::Gemini => "thinkingConfig",
        };
        assert!(body(0).contains(word), "{kind:?}: {}", body(0));
        assert!(body(0).contains("\"temperature\":0.5"), "{}", body(0));
        assert!(!body(1).contains(word), "{kind:?}: {}", body(1));
        assert!(!body(1).contains("temperature"), "{}", body(1));
        if kind == ProviderKind::Anthropic {
            assert_eq!(asked[0].body.get("tool_choice"), None, "it could not think");
        }
    }
}

#[tokio::test]
async fn a_model_that_called_a_tool_is_not_told_to_think_where_that_is_refused() {
    let provider = Provider::scripted([ScriptedReply::json(json!({"answer": 1}))]);
    let mut request = structured("?");
    request.messages.extend([
        Message::Assistant {
            text: String::new(),
            calls: vec![WantedCall {
                id: "1".to_owned(),
                name: "look".to_owned(),
                args: json!({}),
            }],
        },
        Message::Tool {
            call: "1".to_owned(),
            name: "look".to_owned(),
            text: "seen".to_owned(),
        },
    ]);
    ask(&thoughtful(&provider, ProviderKind::Anthropic), request)
        .await
        .0
        .unwrap();
    let body = provider.asked()[0].body.to_string();
    assert!(!body.contains("thinking"), "{body}");
}
