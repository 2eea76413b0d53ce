//! Models that the scripted provider has, in each wire format.

use planwright_adapters::model::{ModelOptions, Models, Price, ProviderKind, ProviderOptions};
use planwright_core::model::{AnswerSchema, Message, ModelRole, OfferedTool};
use planwright_engine::Redaction;
use planwright_engine::port::{Model as _, ModelAnswer, ModelError, ModelRequest, TextSink};
use planwright_testing::provider::Provider;
use serde_json::json;
use std::sync::{Arc, Mutex};
use std::time::Duration;

pub(crate) const KINDS: [ProviderKind; 3] = [
    ProviderKind::OpenAi,
    ProviderKind::Anthropic,
    ProviderKind::Gemini,
];

pub(crate) const MODEL: &str = "scripted/model";

/// How the provider is described: patient, but not for long.
pub(crate) fn described(provider: &Provider, kind: ProviderKind) -> ProviderOptions {
    let version = match kind {
        ProviderKind::OpenAi | ProviderKind::Anthropic => "v1",
        ProviderKind::Gemini => "v1beta",
    };
    ProviderOptions {
        pause: Duration::from_millis(5),
        retries: 2,
        silence: Duration::from_secs(10),
        timeout: Duration::from_secs(20),
        ..ProviderOptions::new(kind, format!("{}/{version}", provider.url()))
    }
}

pub(crate) fn models_of(options: ProviderOptions, redaction: Redaction) -> Models {
    let price = Price {
        input: 2.0,
        output: 10.0,
        cached: Some(0.5),
    };
    let options = ModelOptions {
        default: Some(MODEL.to_owned()),
        providers: [("scripted".to_owned(), options)].into(),
        prices: [(MODEL.to_owned(), price)].into(),
        ..ModelOptions::default()
    };
    options.check().unwrap();
    Models::new(options, redaction)
}

pub(crate) fn models(provider: &Provider, kind: ProviderKind) -> Models {
    models_of(described(provider, kind), Redaction::default())
}

pub(crate) fn question(text: &str) -> ModelRequest {
    ModelRequest::new(
        ModelRole::Planner,
        vec![Message::system("Be brief."), Message::user(text)],
    )
}

pub(crate) fn structured(text: &str) -> ModelRequest {
    let schema = json!({
        "type": "object", "required": ["answer"], "properties": {"answer": {"type": "integer"}, "args": {"type": "object"}},
    });
    ModelRequest {
        schema: Some(AnswerSchema {
            name: "reply".to_owned(),
            schema,
        }),
        ..question(text)
    }
}

pub(crate) fn with_tools(text: &str) -> ModelRequest {
    let schema = json!({"type": "object", "properties": {"value": {"type": "string"}}});
    let tool = |name: &str| OfferedTool {
        name: name.to_owned(),
        description: format!("does {name}"),
        schema: schema.clone(),
    };
    ModelRequest {
        tools: vec![tool("demo.echo"), tool("fs.read.file")],
        ..question(text)
    }
}

/// Asks, and says what was told meanwhile.
pub(crate) async fn ask(
    models: &Models,
    mut request: ModelRequest,
) -> (Result<ModelAnswer, ModelError>, Vec<String>) {
    let told: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&told);
    request.told = TextSink::new(move |piece| heard.lock().unwrap().push(piece.to_owned()));
    let answer = models.ask(request).await;
    let told = told.lock().unwrap().clone();
    (answer, told)
}
