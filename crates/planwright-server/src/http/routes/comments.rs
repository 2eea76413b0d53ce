//! What people and agents say about a plan.

use crate::documents::{newest_part, thread_within};
use crate::http::auth::{Caller, Trace};
use crate::http::body::{JsonBody, Params, PathId};
use crate::http::linked_page::{self, LinkedPage, LinkedParams};
use crate::http::problem::{HttpResult, Problem, ProblemCode};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse as _, Response};
use http::StatusCode;
use planwright_api::ThreadLine;
use planwright_core::id::PlanId;
use planwright_core::review::{Comment, Review, Thread};
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
    params(("id" = String, Path, description = "The plan."), LinkedParams),
    responses((status = 200, description = "A page of threads. One that does not fit goes on, `continued`, on the next page.",
        body = Vec<ThreadLine>,
        headers(("Link" = Option<String>, description = "The address of the next page, if there is one: `<…>; rel=\"next\"`.")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn list_comments(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    Params(params): Params<LinkedParams>,
) -> HttpResult<LinkedPage> {
    let (mut page, last) = LinkedPage::open(format!("/plan/{id}/comments"), params)?;
    let review = super::load(&http, &id).await?;
    let document = &review.current().document;
    // The thread of the last comment of the page before may have more of them.
    let (threads, mut first) = match &last {
        None => (review.threads(), 0),
        Some(last) => find_comment(&review, last).ok_or_else(linked_page::unknown_cursor)?,
    };
    for thread in threads {
        let count = 1 + thread.replies.len();
        if first >= count {
            first = 0;
            continue;
        }
        let room = page.room();
        let (line, end) = thread_within(thread, document, (first, room));
        let name = line.comments.last().map_or("", |comment| &comment.id);
        let fits = page.put(name, &line)?;
        if fits && end < count {
            page.break_off();
        }
        if !fits || end < count {
            break;
        }
        first = 0;
    }
    Ok(page)
}

/// The threads from that of this comment on, and how many comments of the first of them came up to
/// it.
fn find_comment<'a>(review: &'a Review, comment: &str) -> Option<(&'a [Thread], usize)> {
    let threads = review.threads();
    threads.iter().enumerate().find_map(|(place, thread)| {
        let is_it = |found: &Comment| found.id.as_str() == comment;
        let before = thread.comments().position(is_it)?;
        Some((threads.get(place..)?, before + 1))
    })
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
    /// With its newest comments, as many as an answer has room for.
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
    let missing = || {
        Problem::of(
            ProblemCode::UnknownComment,
            format!("there is no comment `{comment}`"),
        )
    };
    let thread = review.thread_of(comment).ok_or_else(missing)?;
    let thread = newest_part(thread, &review.current().document);
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
