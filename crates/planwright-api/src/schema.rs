//! How types of the core look on the wire, for the OpenAPI document. The core itself knows nothing
//! of it.

use utoipa::ToSchema;

/// Who did something.
#[derive(Debug, ToSchema)]
#[schema(as = Principal)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct PrincipalShape {
    /// `person`, `agent`, `service` or `policy`.
    kind: String,
    name: String,
}

/// What an approval covers. Its component is made from the core's own type.
#[derive(Debug, ToSchema)]
#[schema(as = Briefing)]
pub struct BriefingShape {}

/// One thing that is wrong with a plan, where it is and what may help.
#[derive(Debug, ToSchema)]
#[schema(as = Finding)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct FindingShape {
    code: String,
    /// `error` or `warning`.
    severity: String,
    step: Option<String>,
    /// JSON pointer into the canonical document.
    pointer: String,
    message: String,
    suggestion: Option<String>,
}
