//! Plans that are looked for: by words, author, tool and where they stand.

use crate::http::page::{Cursor, PageBuilder, PageParams};
use crate::http::problem::HttpResult;
use crate::http::state::Http;
use axum::Json;
use planwright_api::{Page, PlanLine, RunProgress};
use planwright_core::status::PlanStatus;
use planwright_engine::{FoundPlans, PlanOrder, PlanQuery, PlanSummary};

/// What is looked for.
#[derive(Debug)]
pub(super) struct PlanSearch {
    /// Words for where plans stand, separated by commas.
    pub(super) statuses: Option<String>,
    /// That in which something happened last comes first.
    pub(super) by_activity: bool,
    pub(super) query: PlanQuery,
}

/// Finds a page of plans.
pub(super) async fn find(
    http: &Http,
    search: PlanSearch,
    which: &PageParams,
) -> HttpResult<Json<Page<PlanLine>>> {
    let (page, after) = PageBuilder::<PlanLine>::open(which)?;
    let mut query = search.query;
    query.limit = page.limit();
    query.after = after.map(|cursor| {
        let (at, plan) = cursor.place();
        (at, plan.clone())
    });
    if search.by_activity {
        query.order = PlanOrder::Activity;
    }
    if let Some(words) = &search.statuses {
        let known = words.split(',').map(|word| word.trim().parse());
        let known = known.collect::<Result<Vec<PlanStatus>, _>>();
        query.statuses = known.map_err(super::plans::unknown_status)?;
    }
    let FoundPlans { plans, total, more } =
        http.service.engine.overview().find_plans(&query).await?;
    let last = plans.last().filter(|_| more);
    let cursor = last.map(|plan| Cursor::new(query.order.instant(plan), plan.id.clone()));
    Ok(Json(Page {
        next_cursor: cursor.map(|cursor| cursor.encode()),
        total: Some(total),
        items: plans.into_iter().map(line).collect(),
    }))
}

fn line(plan: PlanSummary) -> PlanLine {
    let status = plan.status.map_or("unreadable", |status| status.as_str());
    PlanLine {
        id: plan.id.to_string(),
        title: plan.title,
        status: status.to_owned(),
        version: plan.version,
        steps: plan.steps,
        created_at: plan.created_at.to_string(),
        updated_at: plan.updated_at.to_string(),
        author: plan.author,
        active_at: Some(plan.active_at.to_string()),
        progress: plan
            .progress
            .map(|(done, total)| RunProgress { done, total }),
        damage: plan.damage,
    }
}
