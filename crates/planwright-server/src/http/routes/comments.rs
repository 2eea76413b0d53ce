//! What people and agents say about a plan.

use crate::http::auth::{Caller, Trace};
use crate::http::body::{JsonBody, PathId};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use planwright_api::ThreadLine;
use planwright_core::id::PlanId;
use planwright_core::review::Review;
use planwright_engine::NewComment;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use utoipa_axum::routes;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list_comments, add_comment))
        .routes(routes!(resolve_comment))
        .routes(routes!(reopen_comment))
}

/// Lists the threads of a plan, the oldest first.
#[utoipa::path(get, path = "/plan/{id}/comments", operation_id = "listComments", tag = "comments",
    params(("id" = String, Path, description = "The plan.")),
    responses((status = 200, description = "The threads.", body = Vec<ThreadLine>)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_comments(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
) -> HttpResult<Json<Vec<ThreadLine>>> {
    Ok(Json(ThreadLine::all(&super::load(&http, &id).await?)))
}

/// What the caller wants to say.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schema(example = json!({ "text": "Why this directory?", "step": "fetch" }))]
struct AddComment {
    #[schema(min_length = 1, max_length = 65536)]
    text: String,
    /// The step it is about; the plan as a whole when absent.
    #[serde(default)]
    step: Option<String>,
    /// The comment it answers.
    #[serde(default)]
    reply_to: Option<String>,
}

/// A thread after something was said in it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Commented {
    /// The id of the comment.
    id: String,
    thread: ThreadLine,
    trace_id: String,
}

/// Says something about a plan, about a step of it, or in answer to a comment.
#[utoipa::path(post, path = "/plan/{id}/comments", operation_id = "addComment", tag = "comments",
    params(("id" = String, Path, description = "The plan.")),
    request_body = AddComment,
    responses((status = 201, description = "It is said.", body = Commented)),
    extensions(("x-planwright-action" = json!("comment"))))]
async fn add_comment(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    PathId(id): PathId<PlanId>,
    JsonBody(AddComment {
        text,
        step,
        reply_to,
    }): JsonBody<AddComment>,
) -> HttpResult<Response> {
    super::load(&http, &id).await?;
    let new = NewComment {
        on: step,
        reply_to,
        text,
    };
    let (comment, review) = http
        .service
        .engine
        .plans()
        .comment(&id, new, &caller.principal)
        .await?;
    let commented = said(&http, &review, comment.as_str(), trace).await?;
    Ok((StatusCode::CREATED, commented).into_response())
}

async fn said(
    http: &Http,
    review: &Review,
    comment: &str,
    trace_id: String,
) -> HttpResult<Json<Commented>> {
    http.service.write_files(review.id()).await;
    let missing = || Problem::not_found(format!("there is no comment `{comment}`"));
    let thread = review.thread_of(comment).ok_or_else(missing)?;
    let thread = ThreadLine::new(thread, &review.current().document);
    Ok(Json(Commented {
        id: comment.to_owned(),
        thread,
        trace_id,
    }))
}

/// Says that nothing is left to discuss in the thread of a comment.
#[utoipa::path(post, path = "/plan/{id}/comments/{comment}/resolve", operation_id = "resolveComment", tag = "comments",
    params(("id" = String, Path, description = "The plan."), ("comment" = String, Path, description = "A comment.")),
    responses((status = 200, description = "The thread is resolved.", body = Commented)),
    extensions(("x-planwright-action" = json!("comment"))))]
async fn resolve_comment(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    Path((id, comment)): Path<(String, String)>,
) -> HttpResult<Json<Commented>> {
    let id = crate::http::body::id(&id)?;
    super::load(&http, &id).await?;
    let review = http
        .service
        .engine
        .plans()
        .resolve_comment(&id, &comment, &caller.principal)
        .await?;
    said(&http, &review, &comment, trace).await
}

/// Says that something is left to discuss after all.
#[utoipa::path(post, path = "/plan/{id}/comments/{comment}/reopen", operation_id = "reopenComment", tag = "comments",
    params(("id" = String, Path, description = "The plan."), ("comment" = String, Path, description = "A comment.")),
    responses((status = 200, description = "The thread is open.", body = Commented)),
    extensions(("x-planwright-action" = json!("comment"))))]
async fn reopen_comment(
    State(http): State<Http>,
    caller: Caller,
    Trace(trace): Trace,
    Path((id, comment)): Path<(String, String)>,
) -> HttpResult<Json<Commented>> {
    let id = crate::http::body::id(&id)?;
    super::load(&http, &id).await?;
    let review = http
        .service
        .engine
        .plans()
        .reopen_comment(&id, &comment, &caller.principal)
        .await?;
    said(&http, &review, &comment, trace).await
}
