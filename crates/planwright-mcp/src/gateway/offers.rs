//! Resources, prompts and completions of the servers, for clients behind the gateway.
//!
//! An address that a server lists can be read. One that a model makes up from a template would send
//! what the model chose to the server, and no policy would have seen it: it is read only where the
//! configuration says so.

use super::link::{ask_by_requests, read_requests};
use super::names::{NameStyle, named_prompts, split_prompt};
use super::templates::is_made_from;
use planwright_engine::port::{ClientInput, ServerError, ServerQuestion, Servers};
use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, CompleteRequestParams, CompleteResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, InputRequiredResult, InputResponses, Prompt,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, Resource,
    ResourceTemplate, ResultType,
};
use rmcp::service::{Peer, RoleServer};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The number of times a server may ask the client before it answers.
const MAX_ROUNDS: usize = 10;

/// What the offered servers have besides tools.
#[derive(Debug, Clone)]
pub(super) struct Offers {
    pub(super) servers: Arc<dyn Servers>,
    pub(super) names: BTreeSet<String>,
    pub(super) style: NameStyle,
    /// True if addresses made from templates are read.
    pub(super) templates: bool,
}

/// The client that wants something of a server, and can be asked.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) peer: Peer<RoleServer>,
    pub(super) capabilities: ClientCapabilities,
    /// Questions are results in the modern era, and requests in the earlier one.
    pub(super) is_modern: bool,
}

impl Offers {
    /// The resources of all servers. One that cannot be asked does not hide the others.
    pub(super) async fn resources(&self) -> Vec<Resource> {
        let listed = self.list::<Resource>(ServerQuestion::Resources).await;
        listed.into_iter().map(|(_, resource)| resource).collect()
    }

    /// The templates of all servers, if addresses made from them are read.
    pub(super) async fn resource_templates(&self) -> Vec<ResourceTemplate> {
        let listed = self.list_templates().await;
        listed.into_iter().map(|(_, template)| template).collect()
    }

    /// The prompts of all servers, by the names they are offered under.
    pub(super) async fn prompts(&self) -> Vec<Prompt> {
        let listed = self.list::<Prompt>(ServerQuestion::Prompts).await;
        let all = listed
            .iter()
            .map(|(server, prompt)| (server.as_str(), prompt.name.as_str(), prompt));
        let named = named_prompts(self.style, all).into_iter();
        named
            .map(|(name, prompt)| {
                let mut prompt = prompt.clone();
                prompt.name = name;
                prompt
            })
            .collect()
    }

    /// Reads what a server offers. Nothing if none does, or more than one.
    pub(super) async fn read(
        &self,
        request: ReadResourceRequestParams,
        asking: &Asking,
    ) -> Result<Option<ReadResourceResponse>, ErrorData> {
        let Some(server) = self.owner(&request.uri).await else {
            return Ok(None);
        };
        let input = asking.input(request.input_responses, request.request_state);
        let question = |input| ServerQuestion::Resource {
            uri: request.uri.clone(),
            input,
        };
        match self.ask(&server, input, question, asking).await? {
            Answered::Asks(asks) => Ok(Some(asks.into())),
            Answered::Whole(value) => {
                let read: ReadResourceResult = parse(value)?;
                // Servers of the earlier era do not say what modern clients want to hear.
                let mut whole = ReadResourceResult::new(read.contents);
                whole.meta = read.meta;
                Ok(Some(whole.into()))
            }
        }
    }

    /// One prompt of one server. Nothing if no offered server has the name.
    pub(super) async fn prompt(
        &self,
        request: GetPromptRequestParams,
        asking: &Asking,
    ) -> Result<Option<GetPromptResponse>, ErrorData> {
        let Some((server, name)) = self.find_prompt(&request.name).await else {
            return Ok(None);
        };
        let arguments = request.arguments.unwrap_or_default();
        let input = asking.input(request.input_responses, request.request_state);
        let question = |input| ServerQuestion::Prompt {
            name: name.clone(),
            arguments: arguments.clone(),
            input,
        };
        match self.ask(&server, input, question, asking).await? {
            Answered::Asks(asks) => Ok(Some(asks.into())),
            Answered::Whole(value) => {
                let mut given: GetPromptResult = parse(value)?;
                given.result_type = Some(ResultType::COMPLETE);
                Ok(Some(given.into()))
            }
        }
    }

    /// How an argument of a server's prompt or template may go on.
    pub(super) async fn complete(
        &self,
        request: &CompleteRequestParams,
    ) -> Result<CompleteResult, ErrorData> {
        let mut params = json!(request);
        let part = |name: &str| params["ref"][name].as_str().map(str::to_owned);
        let server = match (part("name"), part("uri")) {
            (Some(name), _) => {
                let found = self.find_prompt(&name).await;
                found.map(|(server, name)| {
                    params["ref"]["name"] = json!(name);
                    server
                })
            }
            (None, Some(uri)) => {
                let mut owners = self.list_templates().await.into_iter();
                let owner = owners.find(|(_, template)| template.uri_template == uri);
                owner.map(|(server, _)| server)
            }
            (None, None) => None,
        };
        let Some(server) = server else {
            return Ok(CompleteResult::default());
        };
        if let Some(fields) = params.as_object_mut() {
            fields.remove("_meta");
        }
        let question = ServerQuestion::Completion(params);
        match self.servers.ask(&server, question).await {
            Ok(value) => parse(value),
            Err(ServerError::NotOffered) => Ok(CompleteResult::default()),
            Err(error) => Err(refusal(error)),
        }
    }

    /// The server at whose resource this address is. Nothing if there is none, or more than one.
    pub(super) async fn owner(&self, uri: &str) -> Option<String> {
        let listed = self.list::<Resource>(ServerQuestion::Resources).await;
        let listed = listed
            .into_iter()
            .filter(|(_, resource)| resource.uri == uri);
        let mut owners: BTreeSet<String> = listed.map(|(server, _)| server).collect();
        if owners.is_empty() {
            let made = self.list_templates().await.into_iter();
            let made = made.filter(|(_, template)| is_made_from(&template.uri_template, uri));
            owners = made.map(|(server, _)| server).collect();
        }
        let owner = owners.pop_first()?;
        owners.is_empty().then_some(owner)
    }

    /// The server and its own name of a prompt, exactly as it was offered.
    async fn find_prompt(&self, name: &str) -> Option<(String, String)> {
        if self.style == NameStyle::Prefixed {
            let (server, name) = split_prompt(&self.names, name)?;
            return Some((server.to_owned(), name.to_owned()));
        }
        let listed = self.list::<Prompt>(ServerQuestion::Prompts).await;
        let all = listed.iter().map(|(server, prompt)| {
            let found = (server.clone(), prompt.name.clone());
            (server.as_str(), prompt.name.as_str(), found)
        });
        named_prompts(self.style, all).remove(name)
    }

    /// Asks a server, and its client for what the server wants before it answers.
    async fn ask(
        &self,
        server: &str,
        mut input: ClientInput,
        question: impl Fn(ClientInput) -> ServerQuestion,
        asking: &Asking,
    ) -> Result<Answered, ErrorData> {
        for _ in 0..MAX_ROUNDS {
            let asked = self.servers.ask(server, question(input.clone())).await;
            let mut value = asked.map_err(refusal)?;
            if value["resultType"] != "input_required" {
                return Ok(Answered::Whole(value));
            }
            let state = value["requestState"].as_str().map(str::to_owned);
            let requests = match value["inputRequests"].take() {
                Value::Object(requests) => requests,
                _ => Map::new(),
            };
            let unable = || {
                let words = "the server wants what this client cannot be asked for";
                ErrorData::invalid_request(words, None)
            };
            let requests = read_requests(requests, &asking.capabilities).ok_or_else(unable)?;
            if asking.is_modern {
                let requests = Some(requests).filter(|requests| !requests.is_empty());
                return Ok(Answered::Asks(InputRequiredResult::new(requests, state)));
            }
            let answers = ask_by_requests(&asking.peer, requests).await;
            input.responses = answers.ok_or_else(unable)?;
            input.state = state;
        }
        let words = "the server keeps asking to be asked again";
        Err(ErrorData::internal_error(words, None))
    }

    async fn list_templates(&self) -> Vec<(String, ResourceTemplate)> {
        if !self.templates {
            return Vec::new();
        }
        self.list(ServerQuestion::ResourceTemplates).await
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

/// What a server said.
enum Answered {
    Whole(Value),
    /// It wants something of the client first.
    Asks(InputRequiredResult),
}

impl Asking {
    fn input(&self, responses: Option<InputResponses>, state: Option<String>) -> ClientInput {
        ClientInput {
            capabilities: Some(json!(self.capabilities)),
            responses: responses.unwrap_or_default().into_iter().collect(),
            state,
        }
    }
}

fn parse<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    let unreadable = |error: serde_json::Error| {
        ErrorData::internal_error(format!("the server's answer cannot be read: {error}"), None)
    };
    serde_json::from_value(value).map_err(unreadable)
}

pub(super) fn refusal(error: ServerError) -> ErrorData {
    let words = error.to_string();
    match error {
        ServerError::Refused { code, data, .. } => ErrorData::new(ErrorCode(code), words, data),
        ServerError::NotOffered | ServerError::Unavailable(_) => {
            ErrorData::internal_error(words, None)
        }
    }
}
