//! Results of tools: JSON objects that say what came of the call and what to do next.

use planwright_core::plan::Finding;
use planwright_engine::with_causes;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value, json};
use std::error::Error;

/// The most findings in one result.
const MAX_FINDINGS: usize = 100;

/// Why a tool did not do what was asked for. The model reads it and can do better.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) error: String,
    /// What a program tells it by.
    pub(crate) code: Option<String>,
    pub(crate) next: Option<String>,
    pub(crate) findings: Vec<Finding>,
}

impl Problem {
    pub(crate) fn new(error: impl Into<String>) -> Self {
        Self {
            error: error.into(),
            code: None,
            next: None,
            findings: Vec::new(),
        }
    }

    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        Self::new(with_causes(error))
    }

    pub(crate) fn code(self, code: &str) -> Self {
        Self {
            code: Some(code.to_owned()),
            ..self
        }
    }

    pub(crate) fn next(self, next: impl Into<String>) -> Self {
        Self {
            next: Some(next.into()),
            ..self
        }
    }

    /// Says what to do next where that is not said.
    pub(crate) fn or_next(self, next: impl FnOnce() -> String) -> Self {
        Self {
            next: Some(self.next.unwrap_or_else(next)),
            ..self
        }
    }

    pub(crate) fn into_result(self) -> CallToolResult {
        let mut value = json!({ "success": false, "error": self.error });
        if let Some(code) = self.code {
            value["code"] = json!(code);
        }
        if let Some(next) = self.next {
            value["next"] = json!(next);
        }
        if !self.findings.is_empty() {
            value["findings"] = finding_values(&self.findings);
        }
        CallToolResult::structured_error(value)
    }
}

/// What is wrong with a plan, or could be better, as data.
pub(crate) fn finding_values(findings: &[Finding]) -> Value {
    let shown = findings.iter().take(MAX_FINDINGS);
    json!(shown.collect::<Vec<&Finding>>())
}

/// A result that did what was asked for.
pub(crate) fn success(mut fields: Map<String, Value>, next: &str) -> CallToolResult {
    fields.insert("success".to_owned(), json!(true));
    fields.insert("next".to_owned(), json!(next));
    CallToolResult::structured(Value::Object(fields))
}

/// A result of the plan tools of the engine, which say themselves whether they succeeded.
pub(crate) fn outcome(mut value: Value, next: &str) -> CallToolResult {
    let is_success = value["success"] == true;
    value["next"] = json!(next);
    let text = value.to_string();
    let mut result = if is_success {
        CallToolResult::success(vec![ContentBlock::text(text)])
    } else {
        CallToolResult::error(vec![ContentBlock::text(text)])
    };
    result.structured_content = Some(value);
    result
}
