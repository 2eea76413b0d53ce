//! The routes of events.

use super::frame::Frame;
use super::global::GlobalStream;
use super::global_id::GlobalId;
use super::hub::Events;
use super::listen::{self, Manner};
use super::plan_stream::{Broken, PlanStream};
use super::reset::{Reason, snapshot};
use super::wire::{EventList, GlobalQuery, MAX_LIMIT, PlanQuery, Types, Wanted, negotiate_format};
use crate::http::body::{Params, PathId};
use crate::http::router::Routes;
use crate::http::{Caller, Http, HttpResult, Problem, ProblemCode};
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use http::{HeaderMap, StatusCode};
use planwright_core::id::PlanId;
use planwright_engine::LoadError;
use planwright_engine::port::Position;
use utoipa_axum::routes;

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(plan_events))
        .routes(routes!(all_events))
}

/// Tells what happened to a plan, and what happens from here on.
///
/// With `Accept: text/event-stream` the events so far are replayed and what follows is streamed; the stream ends when
/// the run is over. Otherwise they are one list.
#[utoipa::path(get, path = "/plan/{id}/events", operation_id = "planEvents", tag = "events",
    params(("id" = String, Path, description = "The plan."), PlanQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The number of the last event that was received.")),
    responses(
        (status = 200, description = "The events so far, as a list or as a stream that goes on.",
            content((EventList = "application/json"), (String = "text/event-stream"))),
        (status = 204, description = "The run is over, and the client that came back has all events."),
        (status = 404, description = "There is no such plan."),
        (status = 406, description = "Neither JSON nor an event stream is accepted.")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn plan_events(
    State(http): State<Http>,
    caller: Caller,
    PathId(id): PathId<PlanId>,
    Params(query): Params<PlanQuery>,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let events = &http.events;
    let form = negotiate_format(&headers).ok_or_else(not_acceptable)?;
    let topic = events.topic(&id).await.map_err(LoadError::from)?;
    let mark = topic.mark();
    if mark.damaged && form == Wanted::List {
        return Err(damaged());
    }
    if mark.last == 0 && !mark.damaged {
        return Err(LoadError::NoSuchPlan(id).into());
    }
    let types = Types::parse(query.types.as_deref()).of_run(query.run);
    let format = query.format.unwrap_or_default();
    if form == Wanted::List {
        let named = last_event_id(&headers).and_then(|text| text.parse().ok());
        let stream = PlanStream::new(
            events.clone(),
            topic,
            named.or(query.after).unwrap_or_default(),
        );
        return list(stream, limit(query.limit)?, &types, |frame| {
            frame.value(format)
        })
        .await;
    }
    let follow = query.follow.unwrap_or_default();
    let came_back = last_event_id(&headers).and_then(|text| text.parse().ok());
    if let Some(after) = came_back
        && !follow
        && has_told_everything(
            PlanStream::new(events.clone(), topic.clone(), after),
            &types,
        )
        .await
    {
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let place = events.enter(&caller).ok_or_else(full)?;
    let (after, reason) = match last_event_id(&headers).map(|text| text.parse().ok()) {
        None => place_of(query.after, mark.last, events),
        Some(after @ Some(_)) => place_of(after, mark.last, events),
        Some(None) => (mark.last, Some(Reason::UnknownId)),
    };
    let reset = match reason {
        Some(reason) => Some(snapshot(events, &id, after, reason).await?.to_string()),
        None => None,
    };
    let manner = Manner {
        format,
        types,
        follow,
    };
    let stream = PlanStream::new(events.clone(), topic, after);
    Ok(listen::plan(events, place, stream, manner, reset))
}

/// Returns whether a client that came back has everything there will ever be. A browser comes back to a
/// stream that has ended, again and again, unless it is told that there is no more.
async fn has_told_everything(mut stream: PlanStream, types: &Types) -> bool {
    loop {
        let Ok(frames) = stream.next().await else {
            return false;
        };
        if frames.is_empty() {
            return stream.is_over();
        }
        let mut told = frames.iter().map(|frame| frame.event.event.as_str());
        if told.any(|event| types.include(event)) {
            return false;
        }
    }
}

/// Returns where a stream begins, and why not where it was asked to.
fn place_of(after: Option<u64>, last: u64, events: &Events) -> (u64, Option<Reason>) {
    match after {
        None => (0, None),
        Some(after) if after > last => (last, Some(Reason::UnknownId)),
        Some(after) if last - after > events.options.max_replay => (last, Some(Reason::TooOld)),
        Some(after) => (after, None),
    }
}

async fn list(
    mut stream: PlanStream,
    limit: usize,
    types: &Types,
    value: impl Fn(&Frame) -> serde_json::Value,
) -> HttpResult<Response> {
    let mut events = Vec::new();
    let mut next = None;
    'pages: loop {
        let frames = stream.next().await.map_err(problem)?;
        if frames.is_empty() {
            break;
        }
        for frame in frames
            .iter()
            .filter(|frame| types.include_event(&frame.event))
        {
            if events.len() == limit {
                next = Some((frame.seq() - 1).to_string());
                break 'pages;
            }
            events.push(value(frame));
        }
    }
    Ok(Json(EventList { events, next }).into_response())
}

/// Tells what happens to all plans.
///
/// The ids are places in the order of the journal. A stream begins now unless it is told where it ended before.
#[utoipa::path(get, path = "/events", operation_id = "events", tag = "events",
    params(GlobalQuery,
        ("Last-Event-ID" = Option<String>, Header, description = "The id of the last event that was received.")),
    responses(
        (status = 200, description = "The events so far, as a list or as a stream that goes on.",
            content((EventList = "application/json"), (String = "text/event-stream"))),
        (status = 406, description = "Neither JSON nor an event stream is accepted.")),
    extensions(("x-planwright-action" = json!("read"))))]
async fn all_events(
    State(http): State<Http>,
    caller: Caller,
    Params(query): Params<GlobalQuery>,
    headers: HeaderMap,
) -> HttpResult<Response> {
    let events = &http.events;
    let form = negotiate_format(&headers).ok_or_else(not_acceptable)?;
    let types = Types::parse(query.types.as_deref());
    let format = query.format.unwrap_or_default();
    let asked = query
        .after
        .as_deref()
        .map(str::parse::<GlobalId>)
        .transpose();
    let asked = asked
        .map_err(|error| Problem::of(ProblemCode::BadParameter, format!("`after`: {error}")))?;
    if form == Wanted::List {
        let begin = asked.unwrap_or_else(|| GlobalId::after(Position(0)));
        let stream = GlobalStream::new(events.clone(), begin);
        return global_list(stream, limit(query.limit)?, &types, |frame| {
            frame.value(format)
        })
        .await;
    }
    let place = events.enter_global(&caller).ok_or_else(full)?;
    let end = GlobalId::after(
        events
            .journals
            .end_of_feed()
            .await
            .map_err(LoadError::from)?,
    );
    let named = last_event_id(&headers).map(|text| text.parse::<GlobalId>().ok());
    let (after, reason) = match named.unwrap_or_else(|| asked.or(Some(end))) {
        None => (end, Some(Reason::UnknownId)),
        Some(after) if after > end => (end, Some(Reason::UnknownId)),
        Some(after) if end.position.0 - after.position.0 > events.options.max_replay => {
            (end, Some(Reason::TooOld))
        }
        Some(after) => (after, None),
    };
    let manner = Manner {
        format,
        types,
        follow: true,
    };
    Ok(listen::global(
        events,
        place,
        GlobalStream::new(events.clone(), after),
        manner,
        reason,
    ))
}

async fn global_list(
    mut stream: GlobalStream,
    limit: usize,
    types: &Types,
    value: impl Fn(&Frame) -> serde_json::Value,
) -> HttpResult<Response> {
    let mut events = Vec::new();
    let mut last: Option<GlobalId> = None;
    loop {
        let (frames, more) = stream.next().await.map_err(LoadError::from)?;
        for (id, frame) in frames {
            if types.include(frame.event.event.as_str()) {
                if events.len() == limit {
                    let next = last.map(|id| id.to_string());
                    return Ok(Json(EventList { events, next }).into_response());
                }
                events.push(value(&frame));
            }
            last = Some(id);
        }
        if !more {
            return Ok(Json(EventList { events, next: None }).into_response());
        }
    }
}

pub(super) fn last_event_id(headers: &HeaderMap) -> Option<&str> {
    // An empty id is what clients send that never received one.
    headers
        .get("last-event-id")
        .map(|value| value.to_str().unwrap_or("?").trim())
        .filter(|id| !id.is_empty())
}

fn limit(asked: Option<usize>) -> HttpResult<usize> {
    match asked.unwrap_or(MAX_LIMIT) {
        limit @ 1..=MAX_LIMIT => Ok(limit),
        _ => Err(Problem::of(
            ProblemCode::BadParameter,
            format!("`limit` is a number from 1 to {MAX_LIMIT}"),
        )),
    }
}

fn problem(broken: Broken) -> Problem {
    match broken {
        Broken::Store(error) => LoadError::from(error).into(),
        Broken::Damaged => damaged(),
        Broken::Slow => Problem::later(ProblemCode::TooBusy, "more happens than can be listed", 1),
    }
}

fn damaged() -> Problem {
    Problem::of(
        ProblemCode::JournalDamaged,
        "the journal of the plan is damaged",
    )
    .hint("Other plans are not affected. To see everything that is damaged: planwright verify")
}

pub(crate) fn full() -> Problem {
    Problem::later(ProblemCode::TooManyStreams, "too many streams are open", 5)
        .hint("close one, or ask for a list with Accept: application/json")
}

fn not_acceptable() -> Problem {
    Problem::of(
        ProblemCode::NotAcceptable,
        "events come as text/event-stream or application/json",
    )
}
