//! What comes of a question in each wire format.

use crate::scene::{KINDS, MODEL, ask, models, question, structured, with_tools};
use planwright_adapters::model::ProviderKind;
use planwright_core::model::{Cost, Message, ModelRole, WantedCall};
use planwright_engine::port::Model as _;
use planwright_testing::provider::{Provider, ScriptedReply};
use serde_json::json;

#[tokio::test]
async fn text_is_streamed_counted_and_paid_for() {
    for kind in KINDS {
        let provider =
            Provider::scripted([ScriptedReply::text("Grüße aus dem Skript").using(1000, 50, 400)]);
        let (answer, told) = ask(&models(&provider, kind), question("hello")).await;
        let answer = answer.unwrap();
        assert_eq!(answer.text, "Grüße aus dem Skript", "{kind:?}");
        assert_eq!(
            (told.len(), told.concat()),
            (2, answer.text.clone()),
            "{kind:?}"
        );
        assert!(!answer.cut && answer.calls.is_empty());
        assert_eq!(
            (answer.used.role, answer.used.model.as_str()),
            (ModelRole::Planner, MODEL)
        );
        let usage = answer.used.usage;
        assert_eq!(
            (usage.input, usage.output, usage.cached, usage.estimated),
            (1000, 50, 400, false),
            "{kind:?}"
        );
        assert_eq!(
            answer.used.cost,
            Some(Cost(600 * 2 + 200 + 500)),
            "{kind:?}"
        );
        let asked = &provider.asked()[0];
        assert!(asked.text().contains("Be brief.") && asked.text().contains("hello"));
        assert!(
            asked
                .headers
                .keys()
                .all(|name| !name.contains("auth") && !name.contains("key")),
            "no key is sent"
        );
    }
}

#[tokio::test]
async fn without_figures_tokens_are_estimated() {
    for kind in KINDS {
        let provider = Provider::scripted([ScriptedReply::text("four").without_usage()]);
        let (answer, _) = ask(&models(&provider, kind), question("12345678901")).await;
        let usage = answer.unwrap().used.usage;
        assert_eq!(
            (usage.input, usage.output, usage.estimated),
            (5, 1, true),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn an_answer_at_the_limit_of_tokens_is_cut() {
    for kind in KINDS {
        let provider = Provider::scripted([ScriptedReply::text("once upon a").too_long()]);
        let (answer, _) = ask(&models(&provider, kind), question("a story")).await;
        assert!(answer.unwrap().cut, "{kind:?}");
    }
}

#[tokio::test]
async fn calls_come_with_our_names_and_whatever_arguments_were_written() {
    for kind in KINDS {
        let calls = [
            ("demo__echo", json!({"value": "a"})),
            ("demo__echo", json!({"value": "b"})),
            ("fs.read.file", json!({})),
            ("rm", json!({"path": "/"})),
        ];
        let provider = Provider::scripted([ScriptedReply::calls(calls).saying("I call.")]);
        let (answer, told) = ask(&models(&provider, kind), with_tools("do it")).await;
        let answer = answer.unwrap();
        let wanted: Vec<(&str, &serde_json::Value)> = answer
            .calls
            .iter()
            .map(|call| (call.name.as_str(), &call.args))
            .collect();
        let expected = [
            ("demo.echo", &json!({"value": "a"})),
            ("demo.echo", &json!({"value": "b"})),
            ("fs.read.file", &json!({})),
            ("rm", &json!({"path": "/"})),
        ];
        assert_eq!(wanted, expected, "{kind:?}");
        let mut ids: Vec<&str> = answer.calls.iter().map(|call| call.id.as_str()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 4, "{kind:?}: every call has an id of its own");
        assert_eq!(
            (told.concat().as_str(), answer.text.as_str()),
            ("I call.", "I call.")
        );
        assert!(
            provider.asked()[0].text().contains("demo__echo"),
            "dots are not taken by every provider"
        );
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_stay_text() {
    for kind in [ProviderKind::OpenAi, ProviderKind::Anthropic] {
        let provider = Provider::scripted([ScriptedReply::calls([(
            "demo__echo",
            json!("{\"value\": oops"),
        )])]);
        let (answer, _) = ask(&models(&provider, kind), with_tools("do it")).await;
        assert_eq!(
            answer.unwrap().calls[0].args,
            json!("{\"value\": oops"),
            "{kind:?}"
        );
    }
}

#[tokio::test]
async fn a_conversation_with_calls_is_repeated_in_full() {
    for kind in KINDS {
        let provider = Provider::scripted([ScriptedReply::text("done")]);
        let mut request = with_tools("do it");
        let call = |id: &str, args| WantedCall {
            id: id.to_owned(),
            name: "demo.echo".to_owned(),
            args,
        };
        let result = |id: &str, text: &str| Message::Tool {
            call: id.to_owned(),
            name: "demo.echo".to_owned(),
            text: text.to_owned(),
        };
        request.messages.extend([
            Message::Assistant {
                text: String::new(),
                calls: vec![call("x1", json!({"value": 7})), call("x2", json!("odd"))],
            },
            result("x1", "result seven"),
            result("x2", "result odd"),
            Message::assistant(""),
            Message::user("and now?"),
        ]);
        let (answer, _) = ask(&models(&provider, kind), request).await;
        assert_eq!(answer.unwrap().text, "done");
        let text = provider.asked()[0].text();
        for words in ["result seven", "result odd", "and now?", "demo__echo"] {
            assert!(
                text.contains(words),
                "{kind:?}: {words} is missing in {text}"
            );
        }
    }
}

#[tokio::test]
async fn an_answer_of_a_schema_is_json_in_every_format() {
    for kind in KINDS {
        let provider = Provider::scripted([ScriptedReply::json(
            json!({"answer": 42, "args": {"free": true}}),
        )]);
        let (answer, told) = ask(&models(&provider, kind), structured("what is it?")).await;
        let answer = answer.unwrap();
        let value: serde_json::Value = serde_json::from_str(&answer.text).unwrap();
        assert_eq!(
            value,
            json!({"answer": 42, "args": {"free": true}}),
            "{kind:?}"
        );
        assert!(answer.calls.is_empty() && !told.is_empty(), "{kind:?}");
        assert_eq!(told.concat(), answer.text, "{kind:?}");
    }
}

#[tokio::test]
async fn the_name_of_a_model_is_sent_as_it_is() {
    for name in ["qwen-max", "gpt-4o-high", "meta/llama-3:free"] {
        let provider = Provider::scripted([
            ScriptedReply::text("ok"),
            ScriptedReply::text("ok"),
            ScriptedReply::text("ok"),
        ]);
        for kind in KINDS {
            let mut request = question("hello");
            request.model = Some(format!("scripted/{name}"));
            let (answer, _) = ask(&models(&provider, kind), request).await;
            assert_eq!(answer.unwrap().used.model, format!("scripted/{name}"));
        }
        let asked = provider.asked();
        assert_eq!(
            (&asked[0].body["model"], &asked[1].body["model"]),
            (&json!(name), &json!(name))
        );
        assert!(
            asked[2].path.contains(&format!("models/{name}:stream")),
            "{}",
            asked[2].path
        );
        assert!(
            asked
                .iter()
                .all(|asked| asked.body.get("reasoning_effort").is_none())
        );
    }
}

#[tokio::test]
async fn models_are_listed_with_their_roles_and_found_by_name() {
    let provider = Provider::scripted([]);
    let models = models(&provider, ProviderKind::OpenAi);
    let listed = models.models();
    assert_eq!((listed.len(), listed[0].name.as_str()), (1, MODEL));
    assert_eq!(listed[0].roles, ModelRole::ALL);
    assert_eq!(listed[0].key, None);
    assert!(
        models
            .resolve(ModelRole::Chat, Some("scripted/other"))
            .is_ok()
    );
    for unknown in ["nobody/model", "scripted", "scripted/", "bare-name"] {
        let error = models.resolve(ModelRole::Chat, Some(unknown)).unwrap_err();
        assert_eq!(error.to_string(), format!("there is no model `{unknown}`"));
    }
    assert!(provider.asked().is_empty());
}
