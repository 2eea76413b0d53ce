//! A key is sent to its provider, and is nowhere else.

use crate::scene::{KINDS, MODEL, ask, described, models_of, question, structured};
use planwright_adapters::model::{Models, ProviderKind, ProviderOptions};
use planwright_adapters::secrets::SecretSource;
use planwright_engine::Redaction;
use planwright_engine::port::{Model as _, ModelError};
use planwright_testing::provider::{Provider, ScriptedReply};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

const CANARY: &str = "sk-canary-0123456789abcdefXYZ";

struct Kept {
    _directory: tempfile::TempDir,
    path: PathBuf,
}

fn kept(key: &str) -> Kept {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("key");
    std::fs::write(&path, key).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    Kept {
        _directory: directory,
        path,
    }
}

fn with_key(provider: &Provider, kind: ProviderKind, key: &Kept, redaction: Redaction) -> Models {
    let source = SecretSource::File(key.path.clone());
    models_of(
        ProviderOptions {
            key: Some(source),
            ..described(provider, kind)
        },
        redaction,
    )
}

#[tokio::test]
async fn every_provider_gets_its_key_where_it_expects_it() {
    let key = kept(CANARY);
    for (kind, header, value) in [
        (
            ProviderKind::OpenAi,
            "authorization",
            format!("Bearer {CANARY}"),
        ),
        (ProviderKind::Anthropic, "x-api-key", CANARY.to_owned()),
        (ProviderKind::Gemini, "x-goog-api-key", CANARY.to_owned()),
    ] {
        let provider = Provider::scripted([ScriptedReply::text("ok")]);
        let models = with_key(&provider, kind, &key, Redaction::default());
        ask(&models, question("hello")).await.0.unwrap();
        let asked = &provider.asked()[0];
        assert_eq!(asked.headers[header], value);
        assert!(!asked.path.contains(CANARY) && !asked.text().contains(CANARY));
        assert!(!format!("{models:?}").contains(CANARY));
        let listed = format!("{:?}", models.models());
        assert!(
            listed.contains("present: true") && !listed.contains(CANARY),
            "{listed}"
        );
    }
}

#[tokio::test]
async fn no_failure_repeats_the_key() {
    let key = kept(CANARY);
    for kind in KINDS {
        let replies = [
            ScriptedReply::status(
                401,
                format!(r#"{{"error": {{"message": "Incorrect key: Bearer {CANARY}"}}}}"#),
            ),
            ScriptedReply::status(400, format!("authorization: Bearer {CANARY}")),
            ScriptedReply::status(400, format!("response_format {CANARY}")),
            ScriptedReply::status(500, CANARY),
            ScriptedReply::status(
                503,
                format!("{} {CANARY} {}", "x".repeat(290), "y".repeat(100)),
            ),
            ScriptedReply::status(
                200,
                format!("data: {{\"error\": {{\"message\": \"{CANARY}\", \"code\": 400}}}}\n\n"),
            ),
            ScriptedReply::status(200, format!("data: {CANARY}\n\n")),
            ScriptedReply::status(
                200,
                format!("event: error\ndata: {{\"error\": {{\"message\": \"{CANARY}\"}}}}\n\n"),
            ),
            ScriptedReply::status(302, "")
                .header("location", format!("http://127.0.0.1:1/{CANARY}")),
            ScriptedReply::text(CANARY).cut(1),
            ScriptedReply::text(CANARY).hanging(1),
            ScriptedReply::text(format!("your key is {CANARY}")),
            ScriptedReply::text(format!("{CANARY} is your key")),
        ];
        for reply in replies {
            let said = format!("{reply:?}");
            let provider = Provider::answering(move |_| reply.clone());
            let source = Some(SecretSource::File(key.path.clone()));
            let options = ProviderOptions {
                key: source,
                retries: 0,
                silence: Duration::from_millis(300),
                ..described(&provider, kind)
            };
            let redaction = Redaction::default();
            let (answer, told) =
                ask(&models_of(options, redaction.clone()), structured("hello")).await;
            assert!(
                !told.concat().contains("canary"),
                "{kind:?}, {said}: {told:?}"
            );
            let shown = match &answer {
                Ok(answer) => format!("{answer:?}"),
                Err(error) => format!("{error} {error:?}"),
            };
            assert!(!shown.contains("canary"), "{kind:?}, {said}: {shown}");
            assert!(
                redaction.redactor().finds(CANARY.as_bytes()),
                "it is masked everywhere else too"
            );
        }
    }
}

#[tokio::test]
async fn a_key_that_is_not_there_or_cannot_be_sent_stops_the_question() {
    let provider = Provider::scripted([]);
    let options = described(&provider, ProviderKind::OpenAi);
    let missing = SecretSource::Environment("PLANWRIGHT_TEST_NO_SUCH_KEY".to_owned());
    let models = models_of(
        ProviderOptions {
            key: Some(missing),
            ..options.clone()
        },
        Redaction::default(),
    );
    let (answer, _) = ask(&models, question("hello")).await;
    let Err(ModelError::NoKey { model, hint }) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(model, MODEL);
    assert!(
        hint.contains("PLANWRIGHT_TEST_NO_SUCH_KEY is not set"),
        "{hint}"
    );
    assert!(!models.models()[0].key.as_ref().unwrap().present);
    let broken = kept("two\nlines-of-a-key");
    let models = with_key(
        &provider,
        ProviderKind::OpenAi,
        &broken,
        Redaction::default(),
    );
    let (answer, _) = ask(&models, question("hello")).await;
    let error = answer.unwrap_err();
    assert!(
        !format!("{error:?}").contains("lines-of-a-key"),
        "{error:?}"
    );
    assert!(provider.asked().is_empty(), "nothing was sent");
}
