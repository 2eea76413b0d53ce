//! The plan of a session.

use crate::journal::conversation::SESSION_LABEL;
use planwright_core::plan::{Agent, Budget, Document};
use serde_json::json;

/// The step in which the client calls.
pub(super) const STEP: &str = "session";

/// The most calls that are wanted in one session, refused ones included: what its run holds in memory
/// is bounded.
const MAX_CALLS: u32 = 10_000;

/// A plan with which a client may call each of these tools, as far as policy lets it.
pub(super) fn session_document(
    id: &str,
    client: &str,
    tools: &[String],
    budget: &Budget,
) -> Result<Document, serde_json::Error> {
    serde_json::from_value(json!({
        "id": id,
        "title": format!("Session of {client}"),
        "toolsRequired": tools,
        "limits": { "budget": budget },
        "steps": [{
            "id": STEP,
            "title": format!("Calls of {client}"),
            "labels": [SESSION_LABEL],
            "agent": {
                "instruction": "Make the calls that the client wants, one by one.",
                "executor": Agent::CLIENT,
                "maxCalls": MAX_CALLS,
            },
        }],
    }))
}
