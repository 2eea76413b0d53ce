//! The ways to say what changes in a plan, and the document that comes of it.

use crate::http::body::{self, json, media_type, unsupported_type};
use crate::http::patch;
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::state::Http;
use axum::extract::Request;
use http::StatusCode;
use planwright_core::plan::{Bounds, Document, Edit};
use planwright_core::review::Review;
use planwright_engine::ReviewError;
use serde::Deserialize;
use serde_json::Value;

/// The most characters of a goal.
const MAX_GOAL: usize = 10_000;

/// Changes of a plan, as they came.
#[derive(Debug)]
pub(super) struct Patch {
    form: Form,
    value: Value,
}

/// The ways to say what changes.
#[derive(Debug, Clone, Copy)]
enum Form {
    Json,
    Merge,
    Edits,
}

impl Form {
    fn of(kind: Option<&str>) -> HttpResult<Self> {
        match kind {
            Some("application/json-patch+json") => Ok(Self::Json),
            Some("application/merge-patch+json") => Ok(Self::Merge),
            Some("application/json") => Ok(Self::Edits),
            Some(_) | None => Err(unsupported_type(
                "application/json-patch+json, application/merge-patch+json or application/json with edits",
            )),
        }
    }
}

/// Edits of a plan, in their order.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Edits {
    edits: Vec<Edit>,
    /// The author's reason, which is stored with the version.
    #[serde(default)]
    reason: Option<String>,
}

impl Patch {
    /// Reads what a request wants to change.
    pub(super) async fn read(request: Request, http: &Http) -> HttpResult<Self> {
        let form = Form::of(media_type(request.headers()).as_deref())?;
        let value = json(&body::read(request, http).await?)?;
        Ok(Self { form, value })
    }

    /// The plan's document after the change, within the same bounds as one that was just posted, and
    /// the reason, if one was given.
    pub(super) fn apply(self, review: &Review) -> HttpResult<(Document, Option<String>)> {
        let (document, reason) = self.apply_to(&review.current().document)?;
        if document.id.as_ref() != Some(review.id()) {
            return Err(Problem::of(
                ProblemCode::FixedId,
                "the id of a plan never changes",
            ));
        }
        Ok((document, reason))
    }

    fn apply_to(self, document: &Document) -> HttpResult<(Document, Option<String>)> {
        let Self { form, value } = self;
        let bounds = Bounds::for_untrusted();
        let mut changed = serde_json::to_value(document)
            .map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))?;
        match form {
            Form::Edits => return apply_edits(document, value, &bounds),
            Form::Json => patch::json_patch(&mut changed, value, bounds.max_document_bytes)?,
            Form::Merge if value.is_object() => patch::merge_patch(&mut changed, value),
            Form::Merge => {
                return Err(Problem::of(
                    ProblemCode::BadPatch,
                    "a merge patch of a plan has to be a JSON object",
                ));
            }
        }
        check_goal(&changed)?;
        let text = serde_json::to_vec(&changed).unwrap_or_default();
        Ok((Document::read(&text, &bounds)?, None))
    }
}

fn apply_edits(
    document: &Document,
    value: Value,
    bounds: &Bounds,
) -> HttpResult<(Document, Option<String>)> {
    let Edits { edits, reason } = body::read_value(value).map_err(|error| {
        Problem::of(ProblemCode::BadBody, format!("these are no edits: {error}"))
    })?;
    super::decisions::check_reason(reason.as_deref().unwrap_or_default())?;
    let document = document
        .with_edits(&edits, bounds)
        .map_err(|error| Problem::from(ReviewError::from(error)))?;
    Ok((document, reason.filter(|reason| !reason.trim().is_empty())))
}

/// A goal says something, and not too much.
pub(super) fn check_goal(value: &Value) -> Result<(), Problem> {
    match value.get("goal") {
        None => Ok(()),
        Some(Value::String(goal)) if goal.trim().is_empty() => {
            Err(Problem::of(ProblemCode::GoalMissing, "the goal is empty"))
        }
        Some(Value::String(goal)) if goal.chars().count() > MAX_GOAL => Err(Problem::of(
            ProblemCode::GoalTooLong,
            format!("the goal has more than {MAX_GOAL} characters"),
        )),
        Some(Value::String(_)) => Ok(()),
        Some(_) => Err(Problem::bad_request("the goal has to be a text")),
    }
}
