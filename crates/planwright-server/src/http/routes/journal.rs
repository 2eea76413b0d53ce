//! The journals of a plan and its runs: their entries, whether they are whole, and what happened to
//! one step.

use crate::http::body::{Params, PathId, PathStep};
use crate::http::linked_page::{self, LinkedPage, LinkedParams};
use crate::http::problem::{HttpResult, Problem};
use crate::http::router::Routes;
use crate::http::state::Http;
use axum::Json;
use axum::extract::{Path, State};
use planwright_api::{LogLine, StepTrail};
use planwright_core::id::{PlanId, StepId};
use planwright_core::journal::StreamName;
use planwright_core::review::ReviewEvent;
use planwright_core::run::{RunEvent, StepHistory};
use planwright_engine::port::is_last_page;
use planwright_engine::{LoadError, with_causes};
use serde::Serialize;
use utoipa::ToSchema;
use utoipa_axum::routes;

/// Entries that are read at a time.
const PAGE: usize = 200;

pub(super) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(plan_journal))
        .routes(routes!(run_journal))
        .routes(routes!(verify_plan))
        .routes(routes!(step_trail))
}

/// Reads the journal of a plan: versions, decisions, runs. Each entry has its number and its hash.
#[utoipa::path(get, path = "/plan/{id}/journal", operation_id = "planJournal", tag = "journal",
    params(("id" = String, Path, description = "The plan."), LinkedParams),
    responses((status = 200, description = "A page of entries, the first one first.", body = Vec<serde_json::Value>,
        headers(("Link" = Option<String>, description = "The address of the next page, if there is one: `<…>; rel=\"next\"`.")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn plan_journal(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
    Params(params): Params<LinkedParams>,
) -> HttpResult<LinkedPage> {
    super::load(&http, &id).await?;
    let path = format!("/plan/{id}/journal");
    read_journal(&http, path, &StreamName::Plan(id), params).await
}

/// Reads the journal of a run, entry by entry.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/journal", operation_id = "runJournal", tag = "journal",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), LinkedParams),
    responses((status = 200, description = "A page of entries, the first one first.", body = Vec<serde_json::Value>,
        headers(("Link" = Option<String>, description = "The address of the next page, if there is one: `<…>; rel=\"next\"`.")))),
    extensions(("x-planwright-action" = json!("read"))))]
async fn run_journal(
    State(http): State<Http>,
    PathStep(id, run): PathStep<PlanId>,
    Params(params): Params<LinkedParams>,
) -> HttpResult<LinkedPage> {
    let review = super::load(&http, &id).await?;
    let run = super::load_run(&http, &review, Some(&run)).await?;
    let path = format!("/plan/{id}/runs/{}/journal", run.id());
    read_journal(&http, path, &StreamName::Run(run.id().clone()), params).await
}

async fn read_journal(
    http: &Http,
    path: String,
    stream: &StreamName,
    params: LinkedParams,
) -> HttpResult<LinkedPage> {
    let (mut page, last) = LinkedPage::open(path, params)?;
    let last = last.map(|text| text.parse::<u64>()).transpose();
    let mut after = last
        .map_err(|_| linked_page::unknown_cursor())?
        .unwrap_or_default();
    let journals = http.service.engine.journals();
    loop {
        let records = journals.read(stream, after, PAGE).await?;
        for record in &records {
            let line = LogLine::new(stream, record).map_err(|error| LoadError::Damaged {
                stream: stream.clone(),
                reason: error.to_string(),
            })?;
            if !page.put(record.seq, &line)? {
                return Ok(page);
            }
            after = record.seq;
        }
        if is_last_page(&records, PAGE) {
            return Ok(page);
        }
    }
}

/// Whether the journals of a plan are as they were written.
#[derive(Debug, Serialize, ToSchema)]
struct PlanVerification {
    ok: bool,
    journals: Vec<JournalVerification>,
}

/// One journal.
#[derive(Debug, Serialize, ToSchema)]
struct JournalVerification {
    /// `plan/…` or `run/…`.
    stream: String,
    /// Entries whose chain of hashes is whole.
    entries: u64,
    /// The hash of the last one: whoever kept it can tell that nothing was taken away since.
    hash: String,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Checks that nothing which was recorded about a plan and its runs was changed: every entry, and the chain of their hashes.
///
/// `planwright verify` also checks large values, files and heads that were kept elsewhere.
#[utoipa::path(get, path = "/plan/{id}/verify", operation_id = "verifyPlan", tag = "journal",
    params(("id" = String, Path, description = "The plan.")),
    responses((status = 200, description = "What was found.", body = PlanVerification)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn verify_plan(
    State(http): State<Http>,
    PathId(id): PathId<PlanId>,
) -> HttpResult<Json<PlanVerification>> {
    let journals = http.service.engine.journals();
    let stream = StreamName::Plan(id.clone());
    if journals.info(&stream).await?.is_none() {
        return Err(LoadError::NoSuchPlan(id).into());
    }
    let mut found = Vec::new();
    let read = journals.read_entries::<ReviewEvent>(&stream, |_, _| Ok(()));
    found.push(verified(
        &stream,
        read.await.map(|head| (head.seq, head.hash.to_string())),
    ));
    for info in journals.runs(&id).await? {
        let read = journals.read_entries::<RunEvent>(&info.stream, |_, _| Ok(()));
        let read = read.await.map(|head| (head.seq, head.hash.to_string()));
        found.push(verified(&info.stream, read));
    }
    Ok(Json(PlanVerification {
        ok: found.iter().all(|journal| journal.problem.is_none()),
        journals: found,
    }))
}

fn verified(stream: &StreamName, read: Result<(u64, String), LoadError>) -> JournalVerification {
    let stream = stream.to_string();
    match read {
        Ok((entries, hash)) => JournalVerification {
            stream,
            entries,
            hash,
            problem: None,
        },
        Err(error) => JournalVerification {
            stream,
            entries: 0,
            hash: String::new(),
            problem: Some(with_causes(&error)),
        },
    }
}

/// Says what happened to a step of a run, or to an element of one (`step[0]`): every call with its times, its outcome and
/// its error, and what asking models took.
#[utoipa::path(get, path = "/plan/{id}/runs/{run}/steps/{step}", operation_id = "stepTrail", tag = "runs",
    params(("id" = String, Path, description = "The plan."), ("run" = String, Path, description = "The run."), ("step" = String, Path, description = "The step.")),
    responses((status = 200, description = "What happened to it.", body = StepTrail)),
    extensions(("x-planwright-action" = json!("read"))))]
async fn step_trail(
    State(http): State<Http>,
    Path((plan, run, step)): Path<(String, String, String)>,
) -> HttpResult<Json<StepTrail>> {
    let (_, run) = super::step_values::load_place(&http, (&plan, &run)).await?;
    let unknown = || Problem::not_found(format!("plan `{plan}` has no step `{step}`"));
    let id: StepId = step.parse().map_err(|_| unknown())?;
    if run.find(&step).is_none() {
        return Err(unknown());
    }
    let journals = http.service.engine.journals();
    let histories = journals.step_histories(run.id()).await?;
    let nothing = StepHistory::default();
    let history = histories.get(&id).unwrap_or(&nothing);
    Ok(Json(StepTrail::new(step, history)))
}
