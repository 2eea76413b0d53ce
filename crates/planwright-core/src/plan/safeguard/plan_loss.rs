//! The safeguards of a plan itself: its scope and its limits.

use super::loss::{as_json, limit_loss};
use super::{LossKind, SafeguardLoss};
use crate::plan::{Budget, Document, Limits, OnFailure};
use serde::Serialize;

/// Returns what the plan itself lost.
pub(super) fn losses_of_plan(before: &Document, after: &Document) -> Vec<SafeguardLoss> {
    let mut losses = Vec::new();
    compare_scopes(before, after, &mut losses);
    compare_limits(&before.limits, &after.limits, &mut losses);
    losses
}

/// A scope that was written down holds back everything else.
fn compare_scopes(before: &Document, after: &Document, losses: &mut Vec<SafeguardLoss>) {
    let had = &before.tools_required;
    let has = &after.tools_required;
    let kind = match (had.is_empty(), has.is_empty()) {
        (true, _) => return,
        (false, true) => LossKind::Removed,
        (false, false) if has.iter().any(|name| !had.contains(name)) => LossKind::Weakened,
        (false, false) => return,
    };
    lose("toolsRequired", kind, had, Some(has), losses);
}

fn compare_limits(before: &Limits, after: &Limits, losses: &mut Vec<SafeguardLoss>) {
    // Every field is named, so that a new one has to be decided on.
    let Limits {
        max_concurrency,
        budget,
        on_failure,
        max_cycles,
        max_replans,
    } = before;
    if max_concurrency.is_some() && after.max_concurrency() > before.max_concurrency() {
        let kind = LossKind::Weakened;
        let now = after.max_concurrency.as_ref();
        lose("limits.maxConcurrency", kind, max_concurrency, now, losses);
    }
    let stops = |reaction: Option<OnFailure>| reaction != Some(OnFailure::Continue);
    if stops(*on_failure) && !stops(after.on_failure) {
        let now = after.on_failure.as_ref();
        lose(
            "limits.onFailure",
            LossKind::Weakened,
            on_failure,
            now,
            losses,
        );
    }
    compare("limits.maxCycles", *max_cycles, after.max_cycles, losses);
    compare("limits.maxReplans", *max_replans, after.max_replans, losses);
    let Budget {
        calls,
        per_tool,
        seconds,
        tokens,
        same_call,
    } = budget;
    let now = &after.budget;
    compare("limits.budget.calls", *calls, now.calls, losses);
    compare("limits.budget.seconds", *seconds, now.seconds, losses);
    compare("limits.budget.tokens", *tokens, now.tokens, losses);
    compare("limits.budget.sameCall", *same_call, now.same_call, losses);
    for (tool, limit) in per_tool {
        let path = format!("limits.budget.perTool.{tool}");
        compare(&path, Some(*limit), now.per_tool.get(tool).copied(), losses);
    }
}

fn compare<T: PartialOrd + Serialize>(
    path: &str,
    before: Option<T>,
    after: Option<T>,
    losses: &mut Vec<SafeguardLoss>,
) {
    if let Some(kind) = limit_loss(before.as_ref(), after.as_ref()) {
        lose(path, kind, &before, after.as_ref(), losses);
    }
}

fn lose<T: Serialize, U: Serialize>(
    path: &str,
    kind: LossKind,
    before: &T,
    after: Option<&U>,
    losses: &mut Vec<SafeguardLoss>,
) {
    losses.push(SafeguardLoss {
        step: None,
        path: path.to_owned(),
        kind,
        before: as_json(before),
        after: after.and_then(as_json),
    });
}
