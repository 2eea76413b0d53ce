//! How types of the core look on the wire, for the OpenAPI document. The core itself knows nothing
//! of it.

use crate::words::{FindingCodeShape, PrincipalKindShape, SeverityShape};
use serde_json::Value;
use utoipa::ToSchema;

/// Who did something.
#[derive(Debug, ToSchema)]
#[schema(as = Principal)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct PrincipalShape {
    kind: PrincipalKindShape,
    name: String,
}

/// What an approval covers. Its component is made from the core's own type.
#[derive(Debug, ToSchema)]
#[schema(as = Briefing)]
pub struct BriefingShape {}

/// What a step does to the world.
#[derive(Debug, ToSchema)]
#[schema(as = Effect)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct EffectShape {
    /// `unknown`, `destroys`, `changes`, `sends`, `reads` or `nothing`.
    kind: String,
    /// What happens, in words without a subject.
    words: String,
}

/// What differs between two versions of a plan. Its component is made from the core's own type.
#[derive(Debug, ToSchema)]
#[schema(as = Diff)]
pub struct DiffShape {}

/// One question to a person.
#[derive(Debug, ToSchema)]
#[schema(as = Question)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct QuestionShape {
    /// Tells the questions of one call apart.
    key: String,
    message: String,
    /// JSON Schema of the values asked for.
    schema: Value,
    /// A page the person is asked to open instead of answering here.
    url: Option<String>,
}

/// One thing that is wrong with a plan, where it is and what may help.
#[derive(Debug, ToSchema)]
#[schema(as = Finding)]
#[expect(dead_code, reason = "only its shape is used")]
pub struct FindingShape {
    code: FindingCodeShape,
    severity: SeverityShape,
    step: Option<String>,
    /// JSON pointer into the canonical document.
    pointer: String,
    message: String,
    suggestion: Option<String>,
}
