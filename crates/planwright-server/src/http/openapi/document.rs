//! The OpenAPI document, as it follows from the routes, and what the service itself reads from it.

use crate::http::auth::RouteAccess;
use crate::http::problem::Problem;
use crate::http::routes::is_secret;
use http::Method;
use planwright_api::{
    ApprovalLine, ApprovalStanding, ErrorWire, LeftOut, ModelCostLine, PlanGraph, PlanStatusShape,
    PlanningLine, RequestedRunLine, RunStatusShape, StepFacts, StepStatusShape, StepVerdict,
    ThreadLine,
};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use utoipa::openapi::OpenApi;

/// Where a route says what it is for.
pub(crate) const ACTION: &str = "x-planwright-action";

/// Where a route says that people decide something by it, if its action does not.
const DECISION: &str = "x-planwright-decision";

/// What the routes are about, in the order in which they are shown.
const TAGS: [(&str, &str); 15] = [
    (
        "plans",
        "Proposing, listing, reading, changing and deleting plans.",
    ),
    ("versions", "What a plan was before, and going back to it."),
    ("planning", "Having a model write plans, and watching it."),
    (
        "journal",
        "What was written down, and whether it still holds.",
    ),
    (
        "trials",
        "Trying on paper: nothing is called and nothing stored.",
    ),
    ("decisions", "What waits for people, and what they decide."),
    ("comments", "What people and agents say about a plan."),
    (
        "runs",
        "Beginning runs, stopping them, going on, and taking them back.",
    ),
    (
        "steps",
        "Single steps of a run: approving, answering, skipping, repeating.",
    ),
    ("events", "What happens, as a list or as it comes."),
    ("tools", "What plans can call."),
    ("chat", "Asking a model."),
    ("templates", "Plans with parameters."),
    ("access", "Signing in, and who one is."),
    (
        "service",
        "The service itself: health, figures, documentation.",
    ),
];

/// The document, and who may use which route.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub value: Value,
    pub(crate) access: HashMap<(Method, String), RouteAccess>,
    /// The routes by which people decide, which are never too busy.
    pub(crate) decisions: HashSet<(Method, String)>,
    /// What each route takes behind the question mark.
    pub(crate) queries: HashMap<(Method, String), Vec<QueryParameter>>,
}

/// What a route takes behind the question mark.
#[derive(Debug, Clone)]
pub(crate) struct QueryParameter {
    pub(crate) name: String,
    /// The most characters of its value.
    pub(crate) most: Option<usize>,
}

impl Document {
    /// The document of these routes, with what all of them share.
    pub(crate) fn new(generated: &OpenApi) -> Self {
        let mut value =
            serde_json::to_value(generated).expect("an OpenAPI document has only string keys");
        describe(&mut value);
        let mut access = HashMap::new();
        let mut decisions = HashSet::new();
        let mut queries = HashMap::new();
        let paths = value
            .get_mut("paths")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten();
        for (path, item) in paths {
            for (method, operation) in item.as_object_mut().into_iter().flatten() {
                let Some(operation) = operation.as_object_mut() else {
                    continue;
                };
                let words = operation
                    .get(ACTION)
                    .and_then(Value::as_str)
                    .unwrap_or_default()
                    .to_owned();
                let (Some(required), Ok(name)) = (
                    RouteAccess::parse(&words),
                    Method::from_bytes(method.to_ascii_uppercase().as_bytes()),
                ) else {
                    continue;
                };
                complete((&name, path), operation, (&required, &words));
                queries.insert((name.clone(), path.clone()), query_parameters(operation));
                // The generator gives a route's own words in any order: this one comes last.
                let decides = operation.shift_remove(DECISION) == Some(Value::Bool(true));
                if decides {
                    operation.insert(DECISION.to_owned(), Value::Bool(true));
                }
                if decides || required.is_for_decisions() {
                    decisions.insert((name.clone(), path.clone()));
                }
                access.insert((name, path.clone()), required);
            }
        }
        describe_tags(&mut value);
        super::shape::shape_schemas(&mut value);
        Self {
            value,
            access,
            decisions,
            queries,
        }
    }
}

/// The parameters behind the question mark.
fn query_parameters(operation: &Map<String, Value>) -> Vec<QueryParameter> {
    let parameters = operation.get("parameters").and_then(Value::as_array);
    let queries = parameters
        .into_iter()
        .flatten()
        .filter(|parameter| parameter["in"] == "query");
    let parameter = |parameter: &Value| {
        let name = parameter["name"].as_str()?.to_owned();
        let length = parameter["schema"]["maxLength"].as_u64();
        let most = length.and_then(|length| usize::try_from(length).ok());
        Some(QueryParameter { name, most })
    };
    queries.filter_map(parameter).collect()
}

/// Lists the tags that routes have.
fn describe_tags(document: &mut Value) {
    let operations = document["paths"].as_object().into_iter().flatten();
    let operations = operations.flat_map(|(_, item)| item.as_object().into_iter().flatten());
    let used: HashSet<&str> = operations
        .filter_map(|(_, operation)| operation["tags"][0].as_str())
        .collect();
    let tags: Vec<Value> = TAGS
        .iter()
        .filter(|(name, _)| used.contains(name))
        .map(|(name, description)| json!({ "name": name, "description": description }))
        .collect();
    document["tags"] = json!(tags);
}

/// The document as it is served and checked in.
pub fn document() -> Value {
    crate::http::router::routes().1.value
}

fn describe(document: &mut Value) {
    document["info"] = json!({
        "title": "Planwright",
        "version": env!("CARGO_PKG_VERSION"),
        "description": "Plans people can trust: proposed, reviewed, approved, run, resumed and audited.",
        "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
    });
    document["servers"] = json!([{ "url": "/" }]);
    let components = document["components"].take();
    let mut components = if components.is_object() {
        components
    } else {
        json!({})
    };
    components["securitySchemes"] = json!({
        "token": {
            "type": "http",
            "scheme": "bearer",
            "description": "A token of `planwright token create`, or a session of `POST /sign-in`. Pages of the service itself bring a session as a cookie, with its proof as `Planwright-Proof`.",
        }
    });
    components["responses"] = json!({
        "Problem": {
            "description": "Why the request was not done.",
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            "headers": {
                "x-trace-id": { "description": "The trace of the request, for the operator's log.", "schema": { "type": "string" } },
                "Retry-After": { "description": "Seconds after which the request may be repeated, if that may help.", "schema": { "type": "integer", "minimum": 0 } },
            },
        }
    });
    let schemas = components
        .as_object_mut()
        .expect("just made")
        .entry("schemas")
        .or_insert_with(|| json!({}));
    if let Some(schemas) = schemas.as_object_mut() {
        super::schemas::add_core_schemas(schemas);
        super::events::add_event_schemas(schemas);
        named::<Problem>(schemas);
        named::<StepVerdict>(schemas);
        named::<PlanGraph>(schemas);
        named::<StepFacts>(schemas);
        named::<ApprovalStanding>(schemas);
        named::<PlanStatusShape>(schemas);
        named::<RunStatusShape>(schemas);
        named::<StepStatusShape>(schemas);
        named::<ErrorWire>(schemas);
        named::<ApprovalLine>(schemas);
        named::<ThreadLine>(schemas);
        named::<LeftOut>(schemas);
        named::<RequestedRunLine>(schemas);
        named::<PlanningLine>(schemas);
        named::<ModelCostLine>(schemas);
        super::schemas::split_what_was_shown(schemas);
        schemas.sort_keys();
    }
    document["components"] = components;
}

/// Adds a schema that no route names by itself, with those it refers to.
fn named<T: utoipa::ToSchema>(schemas: &mut Map<String, Value>) {
    let mut parts = vec![(T::name().into_owned(), T::schema())];
    T::schemas(&mut parts);
    for (name, schema) in parts {
        let schema = serde_json::to_value(schema).expect("a schema has only string keys");
        schemas.entry(name).or_insert(schema);
    }
}

/// Adds what every route shares: the token, and the answers of the layers in front of it.
fn complete(
    (method, path): (&Method, &str),
    operation: &mut Map<String, Value>,
    (required, action): (&RouteAccess, &str),
) {
    describe_access(operation, required, action);
    complete_body(operation);
    let mut statuses = vec!["400", "403", "404", "414", "500", "503"];
    match required {
        RouteAccess::Public => drop(operation.insert("security".to_owned(), json!([]))),
        RouteAccess::May(_) => {
            statuses.extend(["401", "429"]);
            operation.insert("security".to_owned(), json!([{ "token": [] }]));
        }
    }
    if operation.contains_key("requestBody") {
        statuses.extend(["408", "413", "415", "422"]);
    }
    if *method == Method::POST && *required != RouteAccess::Public {
        statuses.extend(["409", "422"]);
    }
    if *method == Method::POST && *required != RouteAccess::Public && !is_secret(path) {
        let parameters = operation.entry("parameters").or_insert_with(|| json!([]));
        if let Some(parameters) = parameters.as_array_mut() {
            parameters.push(json!({
                "name": "Idempotency-Key",
                "in": "header",
                "required": false,
                "description": "The same key with the same request is answered again and done once.",
                "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
            }));
        }
    }
    if *method == Method::PATCH {
        statuses.extend(["409", "412", "422", "428"]);
    }
    if *method == Method::DELETE {
        statuses.push("409");
    }
    for parameter in operation
        .get_mut("parameters")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        complete_parameter(parameter);
        // Numbers are read up to 2^64, which no format says.
        if parameter["schema"]["format"] == "int64"
            && let Some(schema) = parameter["schema"].as_object_mut()
        {
            schema.remove("format");
        }
    }
    // What the data of each event of a stream is.
    let event_data = match operation.get("operationId").and_then(Value::as_str) {
        Some("chat") => Some("#/components/schemas/ChatEvent"),
        Some("events" | "planEvents") => Some("#/components/schemas/StreamedEvent"),
        Some(_) | None => None,
    };
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    for status in statuses {
        if responses.get(status).is_none() {
            responses[status] = json!({ "$ref": "#/components/responses/Problem" });
        }
    }
    if let Some(responses) = responses.as_object_mut() {
        for (status, response) in responses.iter_mut() {
            complete_response(status, response);
            let content = response.get_mut("content");
            let stream = content.and_then(|content| content.get_mut("text/event-stream"));
            if let (Some(stream), Some(event_data)) = (stream, event_data) {
                stream["schema"]["contentMediaType"] = json!("text/event-stream");
                stream["schema"]["contentSchema"] = json!({ "$ref": event_data });
            }
        }
        responses.sort_keys();
    }
}

/// Says who may use the route, where people read what it does.
fn describe_access(operation: &mut Map<String, Value>, required: &RouteAccess, action: &str) {
    let access = match required {
        RouteAccess::Public => "Open without a token.".to_owned(),
        RouteAccess::May(_) => {
            format!("Needs the permission `{}`.", action.replace(' ', "` and `"))
        }
    };
    let description = match operation.get("description").and_then(Value::as_str) {
        Some(said) => format!("{said}\n\n{access}"),
        None => access,
    };
    operation.insert("description".to_owned(), json!(description));
}

/// A body that may be left out is still never `null`.
fn complete_body(operation: &mut Map<String, Value>) {
    let Some(body) = operation.get_mut("requestBody") else {
        return;
    };
    let mut required = true;
    let contents = body["content"].as_object_mut();
    for (_, content) in contents.into_iter().flatten() {
        let choices = content["schema"]["oneOf"].as_array().cloned();
        let choices = choices.unwrap_or_default();
        if choices.contains(&json!({ "type": "null" })) {
            required = false;
            let mut kept = choices
                .into_iter()
                .filter(|choice| choice["type"] != "null");
            content["schema"] = kept.next().unwrap_or_default();
        }
    }
    body["required"] = json!(required);
}

fn complete_parameter(parameter: &mut Value) {
    let name = parameter["name"].as_str().unwrap_or_default().to_owned();
    if parameter["in"] == "path"
        && let Some((pattern, description)) = super::patterns::of_path_parameter(&name)
    {
        parameter["schema"]["pattern"] = json!(pattern);
        if parameter.get("description").is_none() {
            parameter["description"] = json!(description);
        }
    }
    if let Some(schema) = parameter["schema"].as_object_mut() {
        super::shape::bound_integer(schema, u64::MAX);
    }
    if name == "cursor" {
        parameter["schema"] = json!({ "type": "string", "pattern": super::patterns::CURSOR });
    }
    if parameter["in"] == "query"
        && let Some(words) = super::patterns::words_of_query(&name)
    {
        let word = format!("({})", words.join("|"));
        parameter["schema"]["pattern"] = json!(format!("^{word}(,{word})*$"));
    }
    if name == "If-Match" {
        parameter["schema"]["pattern"] = json!(super::patterns::ETAG);
    }
}

/// An answer that is an error is a problem, also where a route says only why.
fn complete_response(status: &str, response: &mut Value) {
    let failed = status.starts_with('4') || status.starts_with('5');
    if failed && response.get("$ref").is_none() && response.get("content").is_none() {
        response["content"] = json!({ "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } });
    }
}
