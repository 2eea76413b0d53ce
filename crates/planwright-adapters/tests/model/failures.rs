//! Providers that fail, each in its own way.

use crate::scene::{KINDS, MODEL, ask, described, models, models_of, question, with_tools};
use planwright_adapters::model::{ModelOptions, Models, ProviderKind, ProviderOptions};
use planwright_core::model::ModelRole;
use planwright_engine::Redaction;
use planwright_engine::port::{Model as _, ModelError, ModelRequest};
use planwright_testing::provider::{Provider, ScriptedReply};
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn what_passes_is_asked_again() {
    for kind in KINDS {
        let provider = Provider::scripted([
            ScriptedReply::status(500, "{}"),
            ScriptedReply::status(
                529,
                r#"{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}"#,
            ),
            ScriptedReply::text("at last"),
        ]);
        let (answer, told) = ask(&models(&provider, kind), question("hello")).await;
        assert_eq!(answer.unwrap().text, "at last", "{kind:?}");
        assert_eq!(told.concat(), "at last");
        assert_eq!(provider.times_asked(), 3);
    }
}

#[tokio::test]
async fn a_provider_that_limits_the_rate_is_left_alone_for_as_long_as_it_says() {
    let provider = Provider::scripted([ScriptedReply::limited(1), ScriptedReply::text("now")]);
    let begun = Instant::now();
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
    assert_eq!(answer.unwrap().text, "now");
    assert!(
        begun.elapsed() >= Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
}

#[tokio::test]
async fn retries_end() {
    let provider = Provider::answering(|_| {
        ScriptedReply::status(503, r#"{"error": {"message": "too busy"}}"#)
    });
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
    let expected = ModelError::Unavailable {
        model: MODEL.to_owned(),
        message: "too busy (503)".to_owned(),
    };
    assert_eq!(answer, Err(expected));
    assert_eq!(provider.times_asked(), 3);
}

#[tokio::test]
async fn a_model_that_is_loading_is_waited_for() {
    let loading = std::iter::repeat_with(ScriptedReply::loading).take(3);
    let provider = Provider::scripted(loading.chain([ScriptedReply::text("loaded")]));
    let options = ProviderOptions {
        retries: 0,
        ..described(&provider, ProviderKind::OpenAi)
    };
    let (answer, _) = ask(
        &models_of(options.clone(), Redaction::default()),
        question("hello"),
    )
    .await;
    assert_eq!(answer.unwrap().text, "loaded");
    let provider = Provider::answering(|_| ScriptedReply::loading());
    let options = ProviderOptions {
        loading: Duration::from_millis(20),
        base_url: format!("{}/v1", provider.url()),
        ..options
    };
    let (answer, _) = ask(&models_of(options, Redaction::default()), question("hello")).await;
    assert!(
        matches!(&answer, Err(ModelError::Unavailable { message, .. }) if message == "Loading model"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn nobody_at_home_is_unavailable() {
    let gone = {
        let provider = Provider::scripted([]);
        described(&provider, ProviderKind::OpenAi)
    };
    let (answer, _) = ask(&models_of(gone, Redaction::default()), question("hello")).await;
    let Err(ModelError::Unavailable { message, .. }) = answer else {
        panic!("{answer:?}")
    };
    assert!(message.starts_with("no connection: "), "{message}");
}

#[tokio::test]
async fn a_refusal_is_final_and_says_why() {
    for kind in KINDS {
        let body = r#"{"error": {"message": "no such\nmodel \u001b[31mhere"}}"#;
        let provider = Provider::scripted([ScriptedReply::status(404, body)]);
        let (answer, _) = ask(&models(&provider, kind), question("hello")).await;
        let message = "no such model [31mhere".to_owned();
        assert_eq!(
            answer,
            Err(ModelError::Refused {
                model: MODEL.to_owned(),
                status: 404,
                message
            }),
            "{kind:?}"
        );
        assert_eq!(provider.times_asked(), 1);
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let provider = Provider::scripted([
        ScriptedReply::status(307, "").header("location", "http://127.0.0.1:9/")
    ]);
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
    assert!(
        matches!(answer, Err(ModelError::Refused { status: 307, .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_asked_for_again_only_while_nobody_knows_a_part_of_it() {
    for kind in KINDS {
        // Gemini has no event before the first text.
        if kind != ProviderKind::Gemini {
            let events = if kind == ProviderKind::OpenAi { 5 } else { 8 };
            let provider = Provider::scripted([
                ScriptedReply::text("a whole answer").cut(events),
                ScriptedReply::text("again"),
            ]);
            let (answer, _) = ask(&models(&provider, kind), question("hello")).await;
            assert_eq!(answer.unwrap().text, "again", "{kind:?}");
        }
        let provider = Provider::scripted([
            ScriptedReply::text("a whole answer").cut(1),
            ScriptedReply::text("again"),
        ]);
        let (answer, told) = ask(&models(&provider, kind), question("hello")).await;
        assert!(
            matches!(answer, Err(ModelError::Unreadable { .. })),
            "{kind:?}: {answer:?}"
        );
        assert_eq!(told.concat(), "a whole answer", "{kind:?}");
        assert_eq!(provider.times_asked(), 1);
    }
}

#[tokio::test]
async fn silence_and_slowness_have_limits() {
    for kind in KINDS {
        let provider = Provider::scripted([ScriptedReply::text("a whole answer").hanging(1)]);
        let options = ProviderOptions {
            silence: Duration::from_millis(200),
            ..described(&provider, kind)
        };
        let (answer, _) = ask(&models_of(options, Redaction::default()), question("hello")).await;
        assert_eq!(
            answer,
            Err(ModelError::TimedOut {
                model: MODEL.to_owned(),
                seconds: 1
            }),
            "{kind:?}"
        );
        let provider = Provider::scripted([
            ScriptedReply::text("a whole answer").slowly(Duration::from_millis(150))
        ]);
        let options = ProviderOptions {
            timeout: Duration::from_millis(200),
            ..described(&provider, kind)
        };
        let (answer, _) = ask(&models_of(options, Redaction::default()), question("hello")).await;
        assert!(
            matches!(answer, Err(ModelError::TimedOut { .. })),
            "{kind:?}: {answer:?}"
        );
        assert_eq!(
            provider.times_asked(),
            1,
            "a slow provider is not asked again"
        );
    }
}

#[tokio::test]
async fn cancelling_stops_at_once() {
    for reply in [
        ScriptedReply::text("a whole answer").hanging(1),
        ScriptedReply::text("late").after(Duration::from_secs(30)),
        ScriptedReply::limited(30),
    ] {
        let provider = Provider::scripted([reply]);
        let request = question("hello");
        let cancelled = request.cancelled.clone();
        let models = models(&provider, ProviderKind::OpenAi);
        let asking = tokio::spawn(models.ask(request));
        while provider.asked().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        cancelled.cancel();
        let answer = tokio::time::timeout(Duration::from_secs(5), asking)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(answer, Err(ModelError::Cancelled));
    }
}

#[tokio::test]
async fn an_error_inside_a_stream_is_told_like_any_other() {
    // What is no answer in any format.
    for (body, expected) in [
        ("<html>", "broke off"),
        ("{\"choices\": []}", "broke off"),
        ("", "broke off"),
    ] {
        let provider = Provider::answering(move |_| ScriptedReply::status(200, body));
        let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
        assert!(
            answer
                .as_ref()
                .is_err_and(|error| error.to_string().contains(expected)),
            "{body}: {answer:?}"
        );
    }
    let streamed = |data: &str| ScriptedReply::status(200, format!("data: {data}\n\n"));
    let overloaded = streamed(r#"{"error": {"message": "overloaded", "code": 503}}"#);
    let provider = Provider::scripted([overloaded, ScriptedReply::text("fine")]);
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
    assert_eq!(answer.unwrap().text, "fine");
    let provider = Provider::scripted([streamed(
        r#"{"error": {"message": "bad prompt", "code": 400}}"#,
    )]);
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
    assert!(
        matches!(&answer, Err(ModelError::Refused { status: 400, .. })),
        "{answer:?}"
    );
    let provider = Provider::scripted([streamed("{\"choices\": [{")]);
    let (answer, _) = ask(&models(&provider, ProviderKind::OpenAi), question("hello")).await;
    assert!(
        matches!(&answer, Err(ModelError::Unreadable { .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn figures_that_make_no_sense_break_nothing() {
    let absurd = json!({"choices": [{"index": 0, "delta": {"tool_calls": [
        {"index": u32::MAX, "id": "x", "function": {"name": "demo__echo", "arguments": "{}"}}
    ]}}]});
    let usage =
        json!({"choices": [], "usage": {"prompt_tokens": -5, "completion_tokens": i64::MAX}});
    let body = format!("data: {absurd}\n\ndata: {usage}\n\ndata: [DONE]\n\n");
    let provider = Provider::answering(move |_| ScriptedReply::status(200, body.clone()));
    let (answer, _) = ask(
        &models(&provider, ProviderKind::OpenAi),
        with_tools("hello"),
    )
    .await;
    let answer = answer.unwrap();
    assert_eq!(answer.calls.len(), 1);
    assert!(answer.used.usage.estimated);
    let usage = json!({"input_tokens": i32::MAX, "cache_read_input_tokens": i32::MAX, "output_tokens": i32::MAX});
    let start = json!({"type": "message_start", "message": {"usage": usage}});
    let body =
        format!("event: message_start\ndata: {start}\n\nevent: message_stop\ndata: {{}}\n\n");
    let provider = Provider::answering(move |_| ScriptedReply::status(200, body.clone()));
    let (answer, _) = ask(
        &models(&provider, ProviderKind::Anthropic),
        question("hello"),
    )
    .await;
    assert!(
        answer.is_ok() || matches!(answer, Err(ModelError::Unreadable { .. })),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_answer_without_end_is_stopped() {
    for kind in KINDS {
        let provider = Provider::scripted([ScriptedReply::text("x".repeat(5 << 20))]);
        let (answer, _) = ask(&models(&provider, kind), question("hello")).await;
        let error = answer.unwrap_err().to_string();
        assert!(error.contains("longer than 4 MiB"), "{kind:?}: {error}");
    }
}

#[tokio::test]
async fn a_provider_that_may_not_be_used_is_not_asked() {
    let provider = Provider::scripted([]);
    let options = described(&provider, ProviderKind::OpenAi);
    for (options, words) in [
        (
            ProviderOptions {
                obstacle: Some("it is not trusted".to_owned()),
                ..options.clone()
            },
            "it is not trusted",
        ),
        (
            ProviderOptions {
                base_url: "http://models.example.org/v1".to_owned(),
                ..options
            },
            "unencrypted",
        ),
    ] {
        let options = ModelOptions {
            default: Some(MODEL.to_owned()),
            providers: [("scripted".to_owned(), options)].into(),
            ..ModelOptions::default()
        };
        let models = Models::new(options, Redaction::default());
        let (answer, _) = ask(&models, question("hello")).await;
        assert!(
            matches!(&answer, Err(ModelError::Unavailable { message, .. }) if message.contains(words)),
            "{answer:?}"
        );
        assert_eq!(models.models().len(), 1, "it is listed all the same");
        assert!(
            models
                .obstacle(MODEL)
                .is_some_and(|obstacle| obstacle.contains(words))
        );
    }
    assert!(provider.asked().is_empty());
}

#[tokio::test]
async fn without_a_model_there_is_nobody_to_ask() {
    let models = Models::new(ModelOptions::default(), Redaction::default());
    let answer = models
        .ask(ModelRequest::new(ModelRole::Reflector, Vec::new()))
        .await;
    assert_eq!(
        answer,
        Err(ModelError::NotConfigured {
            role: ModelRole::Reflector
        })
    );
}
