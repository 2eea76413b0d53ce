//! Writing the rest of a plan again after a run of it failed.

use super::error::CreateError;
use super::options::PlannerOptions;
use super::rounds::Request;
use crate::journal::stored_value::read_value;
use crate::planner::create::Planner;
use planwright_core::plan::{Document, StepIx};
use planwright_core::planning::{
    PlannerTask, PromptRequest, StepFate, StepOutcome, build_prompt, kept_steps, merge_remaining,
};
use planwright_core::review::PlanningRecord;
use planwright_core::run::{Run, StepState};

/// A plan for the remaining work. Nothing is stored: the caller makes a version of it.
#[derive(Debug, Clone)]
pub struct Replanned {
    /// The whole plan: steps that have run as they were, and others in the place of the rest.
    pub document: Document,
    /// The models that were asked, and the cost.
    pub planning: PlanningRecord,
}

impl Planner {
    /// Has the remaining work of a run written again. Steps that completed or were skipped stay as
    /// they are, under their ids; everything else is replaced.
    pub async fn replan(
        &self,
        run: &Run,
        options: &PlannerOptions,
    ) -> Result<Replanned, CreateError> {
        let old = run.plan().document();
        let outcomes = self.outcomes(run).await?;
        let kept = kept_steps(&outcomes);
        let goal = old
            .goal
            .clone()
            .or_else(|| old.title.clone())
            .unwrap_or_default();
        let snapshot = self.surroundings(options).await;
        let budget = self.prompt_budget(options.model.as_deref());
        let count = options.max_steps.unwrap_or_else(|| budget.default_steps());
        let prompt = build_prompt(
            &PromptRequest {
                goal: &goal,
                tools: &self.tools_in_scope(&options.servers, old),
                snapshot: Some(&snapshot),
                facts: &self.facts(),
                context: &options.context,
                task: PlannerTask::Replan {
                    document: old,
                    outcomes: &outcomes,
                },
                max_steps: count,
                budget,
            },
            &self.context.settings.prompts,
        )?;
        let complete = |answer| Ok(merge_remaining(old, &kept, answer));
        let max_steps = count + kept.len();
        let request = Request {
            goal: &goal,
            prompt,
            budget,
            max_steps,
            options,
            complete: &complete,
        };
        let (document, planning) = Box::pin(self.write_plan(request, None)).await?;
        Ok(Replanned { document, planning })
    }

    /// What became of every step of the plan, in the order of the document.
    async fn outcomes(&self, run: &Run) -> Result<Vec<StepOutcome>, CreateError> {
        let mut outcomes = Vec::new();
        for ix in run.plan().indices() {
            let step = run.plan().step_id(ix).clone();
            outcomes.push(StepOutcome {
                step,
                outcome: self.outcome(run, ix).await?,
            });
        }
        Ok(outcomes)
    }

    async fn outcome(&self, run: &Run, ix: StepIx) -> Result<StepFate, CreateError> {
        let state = run.step(ix);
        let status = state.status();
        Ok(match state {
            StepState::Completed { value, .. } => {
                let value = read_value(&*self.context.ports.artifacts, value).await?;
                StepFate::Kept {
                    status,
                    value: Some(value),
                }
            }
            StepState::Skipped { .. } => StepFate::Kept {
                status,
                value: None,
            },
            StepState::Failed { error, .. } => StepFate::Open {
                status,
                error: Some(format!("{}: {}", error.code, error.message)),
            },
            StepState::Denied { reason } => StepFate::Open {
                status,
                error: Some(reason.to_string()),
            },
            // It may have had its effect: writing it again could have it twice.
            StepState::OutcomeUnknown { .. }
            | StepState::Running { .. }
            | StepState::Looping { .. } => {
                return Err(CreateError::OutcomeUnknown(
                    run.plan().step_id(ix).to_string(),
                ));
            }
            StepState::Pending { .. }
            | StepState::Blocked { .. }
            | StepState::Ready { .. }
            | StepState::AwaitingApproval { .. }
            | StepState::AwaitingInput { .. }
            | StepState::AwaitingPlan { .. }
            | StepState::RetryDue { .. }
            | StepState::Cancelled { .. }
            | StepState::Undone { .. } => StepFate::Open {
                status,
                error: None,
            },
        })
    }
}
