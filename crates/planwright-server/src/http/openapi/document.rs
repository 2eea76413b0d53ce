//! The OpenAPI document, as it follows from the routes, and what the service itself reads from it.

use crate::http::auth::RouteAccess;
use crate::http::problem::Problem;
use http::Method;
use planwright_api::{ApprovalLine, LeftOut, ModelCostLine, PlanningLine, StepVerdict, ThreadLine};
use serde_json::{Map, Value, json};
use std::collections::{HashMap, HashSet};
use utoipa::openapi::OpenApi;

/// Where a route says what it is for.
pub(crate) const ACTION: &str = "x-planwright-action";

/// Where a route says that people decide something by it, if its action does not.
const DECISION: &str = "x-planwright-decision";

/// The document, and who may use which route.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    pub value: Value,
    pub(crate) access: HashMap<(Method, String), RouteAccess>,
    /// The routes by which people decide, which are never too busy.
    pub(crate) decisions: HashSet<(Method, String)>,
}

impl Document {
    /// The document of these routes, with what all of them share.
    pub(crate) fn new(generated: &OpenApi) -> Self {
        let mut value =
            serde_json::to_value(generated).expect("an OpenAPI document has only string keys");
        describe(&mut value);
        let mut access = HashMap::new();
        let mut decisions = HashSet::new();
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
                complete(&name, operation, &required);
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
        Self {
            value,
            access,
            decisions,
        }
    }
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
            "description": "A token of `planwright token create`, or a session of `POST /sign-in`.",
        }
    });
    components["responses"] = json!({
        "Problem": {
            "description": "Why the request was not done.",
            "content": { "application/problem+json": { "schema": { "$ref": "#/components/schemas/Problem" } } },
            "headers": { "x-trace-id": { "schema": { "type": "string" } } },
        }
    });
    let schemas = components
        .as_object_mut()
        .expect("just made")
        .entry("schemas")
        .or_insert_with(|| json!({}));
    if let Some(schemas) = schemas.as_object_mut() {
        super::schemas::add_core_schemas(schemas);
        named::<Problem>(schemas);
        named::<StepVerdict>(schemas);
        named::<ApprovalLine>(schemas);
        named::<ThreadLine>(schemas);
        named::<LeftOut>(schemas);
        named::<PlanningLine>(schemas);
        named::<ModelCostLine>(schemas);
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
fn complete(method: &Method, operation: &mut Map<String, Value>, required: &RouteAccess) {
    let mut statuses = vec!["400", "403", "404", "414", "500", "503"];
    match required {
        RouteAccess::Public => drop(operation.insert("security".to_owned(), json!([]))),
        RouteAccess::May(_) => {
            statuses.extend(["401", "429"]);
            operation.insert("security".to_owned(), json!([{ "token": [] }]));
        }
    }
    if operation.contains_key("requestBody") {
        statuses.extend(["408", "413", "415"]);
    }
    if *method == Method::POST && *required != RouteAccess::Public {
        statuses.extend(["409", "422"]);
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
        if parameter["name"] == "id" && parameter["in"] == "path" {
            parameter["schema"]["pattern"] = json!("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$");
        }
        // Numbers are read up to 2^64, which no format says.
        if parameter["schema"]["format"] == "int64"
            && let Some(schema) = parameter["schema"].as_object_mut()
        {
            schema.remove("format");
        }
    }
    let responses = operation.entry("responses").or_insert_with(|| json!({}));
    for status in statuses {
        if responses.get(status).is_none() {
            responses[status] = json!({ "$ref": "#/components/responses/Problem" });
        }
    }
    if let Some(responses) = responses.as_object_mut() {
        responses.sort_keys();
    }
}
