//! Resources, prompts and completions of the servers, for clients behind the gateway.
//!
//! An address that a server lists can be read. One that a model makes up from a template cannot: it
//! would send what the model chose to the server, and no policy would have seen it.

use super::names::{offered_name, split_prompt};
use planwright_engine::port::{ServerError, ServerQuestion, Servers};
use rmcp::ErrorData;
use rmcp::model::{
    CompleteRequestParams, CompleteResult, ErrorCode, GetPromptRequestParams, GetPromptResult,
    Prompt, ReadResourceResult, Resource, ResultType,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// What the offered servers have besides tools.
#[derive(Debug, Clone)]
pub(super) struct Offers {
    pub(super) servers: Arc<dyn Servers>,
    pub(super) names: BTreeSet<String>,
}

impl Offers {
    /// The resources of all servers. One that cannot be asked does not hide the others.
    pub(super) async fn resources(&self) -> Vec<Resource> {
        let listed = self.list::<Resource>(ServerQuestion::Resources).await;
        listed.into_iter().map(|(_, resource)| resource).collect()
    }

    /// The prompts of all servers, as `server__prompt`.
    pub(super) async fn prompts(&self) -> Vec<Prompt> {
        let listed = self.list::<Prompt>(ServerQuestion::Prompts).await;
        let named = listed.into_iter().map(|(server, mut prompt)| {
            prompt.name = offered_name(&server, &prompt.name);
            prompt
        });
        named.collect()
    }

    /// Reads what a server lists. Nothing if none does, or more than one.
    pub(super) async fn read(&self, uri: &str) -> Result<Option<ReadResourceResult>, ErrorData> {
        let listed = self.list::<Resource>(ServerQuestion::Resources).await;
        let mut owners = listed.iter().filter(|(_, resource)| resource.uri == uri);
        let (Some((server, _)), None) = (owners.next(), owners.next()) else {
            return Ok(None);
        };
        let question = ServerQuestion::Resource(uri.to_owned());
        let read = self.servers.ask(server, question).await;
        let read: ReadResourceResult = parse(read.map_err(|error| refusal(&error))?)?;
        // Servers of the earlier era do not say what modern clients want to hear.
        let mut whole = ReadResourceResult::new(read.contents);
        whole.meta = read.meta;
        Ok(Some(whole))
    }

    /// One prompt of one server. Nothing if no offered server has the name.
    pub(super) async fn prompt(
        &self,
        request: GetPromptRequestParams,
    ) -> Result<Option<GetPromptResult>, ErrorData> {
        let Some((server, name)) = split_prompt(&self.names, &request.name) else {
            return Ok(None);
        };
        let question = ServerQuestion::Prompt {
            name: name.to_owned(),
            arguments: request.arguments.unwrap_or_default(),
        };
        let given = self.servers.ask(server, question).await;
        let mut given: GetPromptResult = parse(given.map_err(|error| refusal(&error))?)?;
        given.result_type = Some(ResultType::COMPLETE);
        Ok(Some(given))
    }

    /// How an argument of a server's prompt may go on.
    pub(super) async fn complete(
        &self,
        request: &CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let mut params = json!(request);
        let name = params["ref"]["name"].as_str().map(str::to_owned);
        let found = name
            .as_deref()
            .and_then(|name| split_prompt(&self.names, name));
        let Some((server, name)) = found else {
            return Ok(CompleteResult::default());
        };
        params["ref"]["name"] = json!(name);
        if let Some(fields) = params.as_object_mut() {
            fields.remove("_meta");
        }
        let question = ServerQuestion::Completion(params);
        match self.servers.ask(server, question).await {
            Ok(value) => parse(value),
            Err(ServerError::NotOffered) => Ok(CompleteResult::default()),
            Err(error) => Err(refusal(&error)),
        }
    }

    async fn list<T: DeserializeOwned>(&self, question: ServerQuestion) -> Vec<(String, T)> {
        let mut items = Vec::new();
        for server in &self.names {
            let listed = match self.servers.ask(server, question.clone()).await {
                Ok(Value::Array(listed)) => listed,
                Ok(_) | Err(ServerError::NotOffered) => continue,
                Err(error) => {
                    tracing::warn!(server, %error, "what a server offers could not be listed");
                    continue;
                }
            };
            let read = listed
                .into_iter()
                .filter_map(|item| Some((server.clone(), serde_json::from_value(item).ok()?)));
            items.extend(read);
        }
        items
    }
}

fn parse<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    let unreadable = |error: serde_json::Error| {
        ErrorData::internal_error(format!("the server's answer cannot be read: {error}"), None)
    };
    serde_json::from_value(value).map_err(unreadable)
}

fn refusal(error: &ServerError) -> ErrorData {
    let code = match error {
        ServerError::Refused { code, .. } => ErrorCode(*code),
        ServerError::NotOffered | ServerError::Unavailable(_) => ErrorCode::INTERNAL_ERROR,
    };
    ErrorData::new(code, error.to_string(), None)
}
