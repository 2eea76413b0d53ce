//! The answer to a request that is none of the protocol's.
//!
//! The library takes a request whose parameters it cannot read for one of another protocol. Its client asked for
//! something that exists, and is told what is wrong with the parameters.

use rmcp::ErrorData;
use rmcp::model::{
    CallToolRequestParams, CompleteRequestParams, CustomRequest, ErrorCode, GetPromptRequestParams,
    PaginatedRequestParams, ReadResourceRequestParams,
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Finds what is wrong with parameters.
type FindProblem = fn(Value) -> Option<String>;

/// Requests that both eras of the protocol have, and their parameters.
const KNOWN: [(&str, FindProblem); 8] = [
    ("completion/complete", find_problem::<CompleteRequestParams>),
    ("prompts/get", find_problem::<GetPromptRequestParams>),
    ("prompts/list", find_problem::<PaginatedRequestParams>),
    ("resources/list", find_problem::<PaginatedRequestParams>),
    ("resources/read", find_problem::<ReadResourceRequestParams>),
    (
        "resources/templates/list",
        find_problem::<PaginatedRequestParams>,
    ),
    ("tools/call", find_problem::<CallToolRequestParams>),
    ("tools/list", find_problem::<PaginatedRequestParams>),
];

fn find_problem<P: DeserializeOwned>(params: Value) -> Option<String> {
    serde_json::from_value::<P>(params)
        .err()
        .map(|error| error.to_string())
}

/// What the client is told: which parameters cannot be read, or that there is no such method.
pub(crate) fn refuse_unknown(request: &CustomRequest) -> ErrorData {
    let method = &request.method;
    let params = || request.params.clone().unwrap_or_else(|| json!({}));
    let known = KNOWN.iter().find(|(known, _)| known == method);
    match known.and_then(|(_, find_problem)| find_problem(params())) {
        Some(problem) => ErrorData::invalid_params(
            format!("the parameters of {method} cannot be read: {problem}"),
            None,
        ),
        None => no_method(method),
    }
}

pub(crate) fn no_method(method: &str) -> ErrorData {
    let words = format!("there is no method {method}");
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, words, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(method: &str, params: Option<Value>) -> ErrorData {
        refuse_unknown(&CustomRequest::new(method, params))
    }

    #[test]
    fn parameters_that_cannot_be_read_are_named() {
        for (method, params, named) in [
            ("tools/call", None, "`name`"),
            ("tools/call", Some(json!({"name": 5})), "5"),
            (
                "tools/call",
                Some(json!({"name": "x", "arguments": []})),
                "map",
            ),
            ("tools/list", Some(json!({"cursor": 1})), "1"),
            ("prompts/get", Some(json!({})), "`name`"),
            ("resources/read", Some(json!({"uri": null})), "null"),
        ] {
            let refusal = refusal(method, params);
            assert_eq!(refusal.code, ErrorCode::INVALID_PARAMS, "{refusal:?}");
            assert!(refusal.message.contains(method), "{refusal:?}");
            assert!(refusal.message.contains(named), "{refusal:?}");
        }
    }

    #[test]
    fn what_is_no_request_of_the_protocol_is_unknown() {
        // A modern client knows no `resources/subscribe`, whatever its parameters.
        for method in [
            "made/up",
            "tools",
            "tools/call/",
            "TOOLS/CALL",
            "",
            "resources/subscribe",
        ] {
            let refusal = refusal(method, Some(json!({})));
            assert_eq!(refusal.code, ErrorCode::METHOD_NOT_FOUND);
            assert_eq!(refusal.message, format!("there is no method {method}"));
        }
    }
}
