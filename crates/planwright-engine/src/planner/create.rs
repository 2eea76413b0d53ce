//! Creating plans from goals.

use super::error::CreateError;
use super::looking::StartLooking;
use super::options::PlannerOptions;
use super::rounds::Request;
use crate::context::Context;
use crate::overview::{Overview, PlanQuery};
use crate::review::plans::{Plans, StoreOptions};
use planwright_core::id::PlanId;
use planwright_core::plan::Finding;
use planwright_core::planning::{
    PlannerFacts, PlannerTask, Prompt, PromptRequest, SavedTemplate, WorkspaceSnapshot,
    build_prompt, fallback_draft, rank_templates,
};
use planwright_core::policy::Permission;
use planwright_core::principal::Principal;
use planwright_core::review::{PlanningRecord, Review, ReviewState};
use planwright_core::tool::Keywords;
use planwright_core::trace::TraceId;
use std::sync::Arc;

/// Templates that are looked at, the latest first.
const MAX_TEMPLATES: usize = 1_000;

/// A goal that the principal `by` wants a plan for.
#[derive(Debug, Clone)]
pub struct CreateOrder {
    /// The goal in the words of the principal.
    pub goal: String,
    /// The author of the plan.
    pub by: Principal,
    /// Keep it as a draft instead of putting it forward.
    pub draft: bool,
    /// The trace of the order.
    pub trace: Option<TraceId>,
    /// Settings of the planner.
    pub options: PlannerOptions,
}

impl CreateOrder {
    /// The most characters of a goal.
    pub const MAX_GOAL: usize = 10_000;

    /// Makes an order with the default options, for a plan that is proposed.
    pub fn new(goal: impl Into<String>, by: Principal) -> Self {
        Self {
            goal: goal.into(),
            by,
            draft: false,
            trace: None,
            options: PlannerOptions::default(),
        }
    }

    fn check(&self) -> Result<(), CreateError> {
        let found = self.goal.chars().count();
        if self.goal.trim().is_empty() {
            return Err(CreateError::NoGoal);
        }
        if found > Self::MAX_GOAL {
            return Err(CreateError::GoalTooLong {
                found,
                limit: Self::MAX_GOAL,
            });
        }
        Ok(())
    }
}

/// A plan that was written and stored.
#[derive(Debug)]
pub struct WrittenPlan {
    /// The plan with its review.
    pub review: Review,
    /// Warnings, and for a fallback also what has to be mended.
    pub findings: Vec<Finding>,
    /// The models that were asked, and the cost.
    pub planning: PlanningRecord,
}

/// Has plans written by models.
///
/// Cheap to clone: it shares the engine's context.
///
/// ```
/// # use planwright_engine::{Engine, FunctionTools};
/// # use std::sync::Arc;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let engine = Engine::builder(Arc::new(FunctionTools::new())).build();
/// // No model is configured, so plans are written by people.
/// assert!(!engine.planner().has_planner());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Planner {
    pub(super) context: Arc<Context>,
    /// `None` for a planner that never looks around.
    pub(super) start_looking: Option<StartLooking>,
}

impl Planner {
    pub(crate) fn new(context: &Arc<Context>) -> Self {
        Self {
            context: Arc::clone(context),
            start_looking: None,
        }
    }

    /// Lets it look around before it writes a plan.
    pub(crate) fn looking_with(self, start_looking: StartLooking) -> Self {
        Self {
            start_looking: Some(start_looking),
            ..self
        }
    }

    /// Lists the prompts that the operator replaced, by name.
    pub fn prompt_names(&self) -> Vec<&str> {
        self.context.settings.prompts.replaced_names().collect()
    }

    pub(super) fn plans(&self) -> Plans {
        Plans::new(&self.context)
    }

    /// Returns whether a model is configured that writes plans.
    pub fn has_planner(&self) -> bool {
        self.context
            .ports
            .model
            .resolve(planwright_core::model::ModelRole::Planner, None)
            .is_ok()
    }

    /// The prompt that the planner would be given. No model is asked, and nothing is stored.
    pub async fn planner_prompt(&self, order: &CreateOrder) -> Result<Prompt, CreateError> {
        order.check()?;
        let snapshot = self.surroundings(&order.options).await;
        let templates = self.fitting_templates(&order.goal).await?;
        self.create_prompt(order, &snapshot, templates)
    }

    /// Has a plan written, and stores it as proposed or as a draft.
    pub async fn create(&self, order: CreateOrder) -> Result<WrittenPlan, CreateError> {
        order.check()?;
        self.plans().permit(&order.by, Permission::Propose)?;
        let snapshot = self.surroundings(&order.options).await;
        let templates = self.fitting_templates(&order.goal).await?;
        let prompt = self.create_prompt(&order, &snapshot, templates)?;
        let budget = self.prompt_budget(order.options.model.as_deref());
        let request = Request {
            goal: &order.goal,
            prompt,
            budget,
            max_steps: order
                .options
                .max_steps
                .unwrap_or_else(|| budget.default_steps()),
            options: &order.options,
            complete: &Ok,
        };
        let exploration = self.exploration(&order.goal, &order.by, &order.options);
        let (mut document, planning) = Box::pin(self.write_plan(request, exploration)).await?;
        // The same goal twice is two plans.
        document.id = Some(PlanId::mint(self.context.ports.ids.entropy()));
        let options = StoreOptions {
            draft: order.draft,
            trace: order.trace,
            planning: Some(Box::new(planning.clone())),
        };
        let (review, findings) = self
            .plans()
            .store_document(document, &order.by, options)
            .await?;
        Ok(WrittenPlan {
            review,
            findings,
            planning,
        })
    }

    /// Puts a draft together without a model, from a template that seems to fit or from the goal's
    /// own clauses.
    pub async fn create_fallback(&self, order: CreateOrder) -> Result<WrittenPlan, CreateError> {
        order.check()?;
        self.plans().permit(&order.by, Permission::Propose)?;
        let tools = self.offered_tools(&order.options.servers);
        let mut document = fallback_draft(
            &order.goal,
            &self.saved_templates(&order.goal).await?,
            &tools,
        );
        document.id = Some(PlanId::mint(self.context.ports.ids.entropy()));
        let planning = PlanningRecord::fallback();
        let options = StoreOptions {
            draft: true,
            trace: order.trace,
            planning: Some(Box::new(planning.clone())),
        };
        let (review, findings) = self
            .plans()
            .store_document(document, &order.by, options)
            .await?;
        Ok(WrittenPlan {
            review,
            findings,
            planning,
        })
    }

    fn create_prompt(
        &self,
        order: &CreateOrder,
        snapshot: &WorkspaceSnapshot,
        templates: Vec<SavedTemplate>,
    ) -> Result<Prompt, CreateError> {
        let facts = PlannerFacts {
            templates,
            ..self.facts()
        };
        let options = &order.options;
        let budget = self.prompt_budget(options.model.as_deref());
        let request = PromptRequest {
            goal: &order.goal,
            tools: &self.offered_tools(&options.servers),
            snapshot: Some(snapshot),
            facts: &facts,
            context: &options.context,
            task: PlannerTask::Create,
            max_steps: options.max_steps.unwrap_or_else(|| budget.default_steps()),
            budget,
        };
        Ok(build_prompt(&request, &self.context.settings.prompts)?)
    }

    /// What is told about the workspace.
    pub(super) async fn surroundings(&self, options: &PlannerOptions) -> WorkspaceSnapshot {
        let mut snapshot = if options.snapshot {
            self.context.ports.surroundings.look().await
        } else {
            WorkspaceSnapshot::default()
        };
        snapshot.servers = self.context.ports.tools.instructions();
        snapshot
    }

    /// The templates that a planner is told of: a plan that was agreed to before is better than a
    /// new one.
    async fn fitting_templates(&self, goal: &str) -> Result<Vec<SavedTemplate>, CreateError> {
        Ok(rank_templates(goal, self.saved_templates(goal).await?))
    }

    /// The templates that have words in common with a goal, as far as their lists show it.
    async fn saved_templates(&self, goal: &str) -> Result<Vec<SavedTemplate>, CreateError> {
        let query = PlanQuery {
            templates: true,
            archived: Some(false),
            limit: MAX_TEMPLATES,
            ..PlanQuery::default()
        };
        let found = Overview::new(&self.context).find_plans(&query).await?;
        let words = Keywords::of(goal);
        let mut templates = Vec::new();
        for summary in found.plans {
            if words.common(&Keywords::of(&summary.text)) == 0 {
                continue;
            }
            // One damaged plan does not stand in the way of the others.
            let Ok((review, _)) = self.plans().load_review(&summary.id).await else {
                continue;
            };
            let document = &review.current().document;
            if document.is_template() && matches!(review.state(), ReviewState::Active(_)) {
                templates.push(SavedTemplate {
                    id: review.id().clone(),
                    version: review.current().number,
                    document: Arc::clone(document),
                });
            }
        }
        Ok(templates)
    }
}
