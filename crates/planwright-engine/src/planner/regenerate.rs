//! Writing a plan again, or some of its steps.

use super::error::CreateError;
use super::options::PlannerOptions;
use super::rounds::Request;
use crate::planner::create::Planner;
use crate::review::edits::Editing;
use planwright_core::id::{PlanId, StepId};
use planwright_core::plan::{Finding, PlanDiff};
use planwright_core::planning::{
    PlannerTask, PromptRequest, build_prompt, merge_steps, merge_whole,
};
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::review::{PlanningRecord, Review, ReviewRefusal, ReviewState};
use serde_json::Map;

/// What is to be written again.
#[derive(Debug, Clone)]
pub struct RegenerateOrder {
    /// The author of the next version.
    pub by: Principal,
    /// The steps that are written again; the whole plan when empty. All others stay exactly as they
    /// are.
    pub steps: Vec<String>,
    /// What should be different, beside what was already said about the plan.
    pub feedback: Option<String>,
    /// Plan with tools outside the scope that the plan lists too. What is used of them is added to
    /// it.
    pub any_tool: bool,
    /// Settings of the planner.
    pub options: PlannerOptions,
}

/// The next version of a plan.
#[derive(Debug)]
pub struct Regenerated {
    /// The plan with its next version.
    pub review: Review,
    /// What changed since the version before. Empty if the planner wrote the same again.
    pub diff: PlanDiff,
    /// Warnings about the next version.
    pub findings: Vec<Finding>,
    /// The models that were asked, and the cost.
    pub planning: PlanningRecord,
}

impl Planner {
    /// Has a plan, or some of its steps, written again, with what people said about it in mind. The
    /// result is the next version; a run must not be under way.
    pub async fn regenerate(
        &self,
        plan: &PlanId,
        order: RegenerateOrder,
    ) -> Result<Regenerated, CreateError> {
        self.plans().permit(&order.by, Permission::Propose)?;
        let (review, _) = self.plans().load_review(plan).await?;
        if review.state() == ReviewState::Deleted {
            return Err(ReviewRefusal::Deleted.into());
        }
        if self.plans().status(&review).await?.is_executing() {
            return Err(CreateError::Executing(plan.clone()));
        }
        let old = review.current().document.clone();
        let candidate = self.plans().candidate(&review, &Map::new()).await?;
        let steps = chosen(
            &old.steps
                .iter()
                .filter_map(|step| step.id.clone())
                .collect::<Vec<_>>(),
            &order.steps,
        )?;
        let goal = old
            .goal
            .clone()
            .or_else(|| old.title.clone())
            .unwrap_or_default();
        let options = &order.options;
        let tools = match order.any_tool {
            true => self.offered_tools(&options.servers),
            false => self.tools_in_scope(&options.servers, &old),
        };
        if tools.is_empty() && !old.tools_required.is_empty() {
            return Err(CreateError::NothingInScope(plan.clone()));
        }
        let snapshot = self.surroundings(options).await;
        let budget = self.prompt_budget(options.model.as_deref());
        let count = options
            .max_steps
            .unwrap_or_else(|| budget.default_steps().max(old.steps.len()));
        let prompt = build_prompt(
            &PromptRequest {
                goal: &goal,
                tools: &tools,
                snapshot: Some(&snapshot),
                facts: &self.facts(),
                context: &options.context,
                task: PlannerTask::Regenerate {
                    review: &review,
                    plan: &candidate.plan,
                    steps: &steps,
                    feedback: order.feedback.as_deref(),
                },
                max_steps: count,
                budget,
            },
            &self.context.settings.prompts,
        )?;
        let complete = |answer| {
            let mut merged = match steps.is_empty() {
                true => merge_whole(&old, answer),
                false => merge_steps(&old, &steps, answer)?,
            };
            if order.any_tool {
                merged.widen_scope();
            }
            Ok(merged)
        };
        let max_steps = count.max(old.steps.len());
        let request = Request {
            goal: &goal,
            prompt,
            budget,
            max_steps,
            options,
            complete: &complete,
        };
        let (document, planning) = Box::pin(self.write_plan(request, None)).await?;
        let diff = PlanDiff::between(&old, &document);
        let based_on = review.current().number;
        let editing = Editing {
            based_on,
            by: order.by.clone(),
            reason: order.feedback.clone(),
        };
        let how = Some(Box::new(planning.clone()));
        let (review, findings) = self
            .plans()
            .edit_planned(plan, document, &editing, how)
            .await?;
        Ok(Regenerated {
            review,
            diff,
            findings,
            planning,
        })
    }
}

/// The steps that were named, each once.
fn chosen(known: &[StepId], named: &[String]) -> Result<Vec<StepId>, CreateError> {
    let mut steps = Vec::new();
    for name in named {
        let found = known.iter().find(|id| id.as_str() == name);
        let found = found.ok_or_else(|| CreateError::NoSuchStep(name.clone()))?;
        if !steps.contains(found) {
            steps.push(found.clone());
        }
    }
    Ok(steps)
}
