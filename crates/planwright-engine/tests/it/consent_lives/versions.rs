//! What narrowed a version, and what became of it in the next ones: found anew from the documents.

use super::opening::{find, steps};
use super::past::Past;
use planwright_core::principal::{Principal, PrincipalKind};
use planwright_core::review::ReviewEvent;
use serde_json::Value;

/// What a step has that narrows it, besides its arguments.
const NARROWS: [&str; 5] = [
    "approvalRequired",
    "constraints",
    "retry",
    "timeoutSeconds",
    "undo",
];

/// What came of the versions of a history.
#[derive(Debug, Default)]
pub(super) struct Versions {
    /// Steps that a reflection wrote anew, and that kept what narrowed them.
    pub(super) kept: u64,
    /// Versions that lost something, and that a person agreed to.
    pub(super) agreed: u64,
}

/// Returns what was dropped without a person, in words.
pub(super) fn check_versions(past: &Past) -> Result<Versions, String> {
    let mut versions = Versions::default();
    // The last version that a person agreed to, and those since.
    let mut since: Vec<Value> = Vec::new();
    for noted in &past.plan {
        match &noted.event {
            ReviewEvent::PlanProposed { document, by, .. } => {
                let document = serde_json::to_value(&**document).unwrap();
                if let Some(before) = since.last().filter(|_| *by == Principal::reflector()) {
                    versions.kept += check_kept(before, &document)?;
                }
                since.push(document);
            }
            ReviewEvent::PlanApproved { by, .. } => {
                let current = since.last().ok_or("nothing was proposed")?;
                let lost = since.iter().find_map(|before| find_loss(before, current));
                match (by.kind, lost) {
                    (PrincipalKind::Policy, Some(lost)) => {
                        return Err(format!("policy agreed to a version without {lost}"));
                    }
                    (PrincipalKind::Person, lost) => {
                        versions.agreed += u64::from(lost.is_some());
                        since.drain(..since.len() - 1);
                    }
                    (_, _) => {}
                }
            }
            _ => {}
        }
    }
    Ok(versions)
}

/// A step that is still there under its id has all that narrowed it.
fn check_kept(before: &Value, after: &Value) -> Result<u64, String> {
    let mut kept = 0;
    for was in steps(before) {
        let id = was["id"].as_str().unwrap_or_default();
        let Some(is) = find(after, id).filter(|is| *is != was && is["skip"] != true) else {
            continue;
        };
        for name in NARROWS.into_iter().filter(|name| !was[name].is_null()) {
            if is[name].is_null() {
                return Err(format!("a reflection dropped {name} of step {id}"));
            }
            kept += 1;
        }
    }
    Ok(kept)
}

/// The first thing that a version had and a later one lacks: a gate, wherever its step went, and
/// everything else where the step goes on.
fn find_loss(before: &Value, after: &Value) -> Option<String> {
    let all = steps(before).into_iter();
    let running = all.filter(|was| was["skip"] != true);
    let lost = running.filter_map(|was| {
        let id = was["id"].as_str()?;
        let is = find(after, id).filter(|is| is["skip"] != true);
        let goes_on = is.is_some();
        let lacks = |name: &str| is.is_none_or(|is| is[name].is_null());
        let name = NARROWS.into_iter().find(|&name| {
            let counts = goes_on || matches!(name, "approvalRequired" | "constraints");
            !was[name].is_null() && counts && lacks(name)
        })?;
        Some(format!("{name} of step {id}"))
    });
    lost.into_iter().next()
}
