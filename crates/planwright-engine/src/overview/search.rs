//! Finding plans by what they are about and where they stand.

use super::{Overview, PlanSummary};
use crate::journal::load::LoadError;
use planwright_core::id::PlanId;
use planwright_core::status::PlanStatus;
use planwright_core::time::Timestamp;
use std::cmp::Reverse;

/// Which plans, and in what order.
#[derive(Debug, Clone, Default)]
pub struct PlanQuery {
    /// Every word has to be in the id, the title, the goal or the titles and tools of the steps.
    pub text: Option<String>,
    /// Plans that stand at one of these; all if empty.
    pub statuses: Vec<PlanStatus>,
    /// Plans that a principal of this name brought.
    pub author: Option<String>,
    /// Plans that call this tool or ask for it.
    pub tool: Option<String>,
    /// Plans with this label on one of their steps.
    pub label: Option<String>,
    /// Only plans that take inputs.
    pub templates: bool,
    /// Only plans that were put away, or only those that were not.
    pub archived: Option<bool>,
    /// Deleted plans and conversations too.
    pub all: bool,
    /// The order.
    pub order: PlanOrder,
    /// Those after this one in this order.
    pub after: Option<(Timestamp, PlanId)>,
    /// The most that are wanted.
    pub limit: usize,
}

/// The order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PlanOrder {
    /// The plan that was brought last comes first.
    #[default]
    Created,
    /// That in which something happened last.
    Activity,
}

impl PlanOrder {
    /// Returns the instant by which a plan is ordered.
    pub fn instant(self, plan: &PlanSummary) -> Timestamp {
        match self {
            Self::Created => plan.created_at,
            Self::Activity => plan.active_at,
        }
    }
}

/// Plans that were found.
#[derive(Debug, Clone, Default)]
pub struct FoundPlans {
    /// A page of them.
    pub plans: Vec<PlanSummary>,
    /// The number of them in all.
    pub total: usize,
    /// True if there are more after these.
    pub more: bool,
}

impl Overview {
    /// Finds plans.
    pub async fn find_plans(&self, query: &PlanQuery) -> Result<FoundPlans, LoadError> {
        let kept = self.catch_up().await?;
        let words: Vec<String> = query
            .text
            .iter()
            .flat_map(|text| text.split_whitespace())
            .map(str::to_lowercase)
            .collect();
        let mut found: Vec<&PlanSummary> = kept
            .plans
            .values()
            .filter(|plan| query.matches(plan, &words))
            .collect();
        let total = found.len();
        let place = |plan: &PlanSummary| (Reverse(query.order.instant(plan)), plan.id.clone());
        found.sort_by_cached_key(|plan| place(plan));
        if let Some((at, id)) = &query.after {
            let after = (Reverse(*at), id.clone());
            found.retain(|plan| place(plan) > after);
        }
        let more = found.len() > query.limit;
        found.truncate(query.limit);
        Ok(FoundPlans {
            plans: found.into_iter().cloned().collect(),
            total,
            more,
        })
    }
}

impl PlanQuery {
    fn matches(&self, plan: &PlanSummary, words: &[String]) -> bool {
        let is_kind = match &self.label {
            Some(label) => plan.labels.contains(label),
            None => self.all || !plan.is_conversation,
        };
        let asks_deleted = self.all || self.statuses.contains(&PlanStatus::Deleted);
        is_kind
            && (asks_deleted || !plan.is_deleted)
            && self.matches_status(plan)
            && (!self.templates || plan.is_template)
            && self
                .archived
                .is_none_or(|archived| plan.is_archived == archived)
            && self.author.as_ref().is_none_or(|author| {
                let by = plan.author.as_ref();
                by.is_some_and(|by| by.name == *author)
            })
            && self
                .tool
                .as_ref()
                .is_none_or(|tool| plan.tools.iter().any(|name| is_named(name, tool)))
            && words.iter().all(|word| plan.text.contains(word))
    }

    fn matches_status(&self, plan: &PlanSummary) -> bool {
        let archived = plan.is_archived && self.statuses.contains(&PlanStatus::Archived);
        self.statuses.is_empty()
            || archived
            || plan
                .status
                .is_some_and(|status| self.statuses.contains(&status))
    }
}

/// Plans may name a tool with or without its server, and so may those who look for it.
fn is_named(name: &str, wanted: &str) -> bool {
    let is_suffix = |long: &str, short: &str| {
        long.strip_suffix(short)
            .is_some_and(|server| server.ends_with('.'))
    };
    name == wanted || is_suffix(name, wanted) || is_suffix(wanted, name)
}
