//! Whether an answer can be accepted: stricter than for people, since a model can be asked to do it
//! again.

use crate::planner::create::Planner;
use crate::planner::error::CreateError;
use crate::review::plans::ReviewError;
use planwright_core::model::ModelRole;
use planwright_core::plan::{Code, Document, Finding, Step, validate_with};
use planwright_core::planning::{AnswerFault, PlannerFacts, PromptBudget};
use planwright_core::policy::{CallToJudge, Verdict};
use planwright_core::tool::KnownTool;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The server whose tools only show how plans run.
const DEMO_SERVER: &str = "demo";

impl Planner {
    /// Checks the plan that a model wrote: every error is a fault, also those that more knowledge
    /// could mend, and so is what the policy would never let run.
    pub(super) async fn check_written(
        &self,
        document: Document,
        max_steps: usize,
    ) -> Result<Result<Document, AnswerFault>, CreateError> {
        if document.steps.len() > max_steps {
            let message = format!(
                "the plan has {} steps, at most {max_steps} were asked for",
                document.steps.len()
            );
            return Ok(Err(AnswerFault::Findings(vec![Finding::new(
                Code::TooLarge,
                "/steps",
                message,
            )])));
        }
        let plans = match self.plans().known_plans(&document).await {
            Ok(plans) => plans,
            Err(ReviewError::Invalid(findings)) => return Ok(Err(AnswerFault::Findings(findings))),
            Err(error) => return Err(error.into()),
        };
        let validated = validate_with(
            document,
            &self.context.catalog(),
            &plans,
            &self.context.settings.bounds,
        );
        let errors: Vec<Finding> = validated
            .findings
            .into_iter()
            .filter(Finding::is_error)
            .collect();
        let Some(plan) = validated.plan.filter(|_| errors.is_empty()) else {
            return Ok(Err(AnswerFault::Findings(errors)));
        };
        Ok(match self.plans().judge(&plan).denial() {
            Some(denied) => Err(AnswerFault::Findings(vec![Finding::new(
                Code::OutOfScope,
                "/steps",
                denied.to_string(),
            )])),
            None => Ok(Document::clone(plan.document())),
        })
    }

    /// The tools a planner is told about, in a stable order: those of the servers that were named,
    /// and none that the policy denies regardless of its arguments.
    pub(crate) fn offered_tools(&self, servers: &[String]) -> Vec<Arc<KnownTool>> {
        let catalog = self.context.catalog();
        // The tools for trying things out are no tools for work.
        let named = |tool: &&Arc<KnownTool>| {
            let server = &tool.name.server;
            servers.contains(server) || servers.is_empty() && server != DEMO_SERVER
        };
        catalog
            .iter()
            .filter(named)
            .filter(|tool| !self.is_denied(tool))
            .cloned()
            .collect()
    }

    /// Of these, the tools in the scope of a plan. A scope that only follows from the steps narrows
    /// nothing: else a plan could never be written again with another tool.
    pub(crate) fn tools_in_scope(
        &self,
        servers: &[String],
        document: &Document,
    ) -> Vec<Arc<KnownTool>> {
        let catalog = self.context.catalog();
        let in_scope = document.scope();
        // Names can be written in several ways.
        let resolved = document
            .tools_required
            .iter()
            .flat_map(|entry| catalog.scoped_tools(entry));
        let resolved: BTreeSet<String> = resolved.map(|tool| tool.name.to_string()).collect();
        let mut offered = self.offered_tools(servers);
        offered.retain(|tool| {
            let name = tool.name.to_string();
            in_scope(&name) || resolved.contains(&name)
        });
        offered
    }

    /// What a planner is told beside the tools and the workspace.
    pub(super) fn facts(&self) -> PlannerFacts {
        let now = self.context.ports.clock.now().to_string();
        let catalog = self.context.catalog();
        let asks = catalog
            .iter()
            .filter(|tool| self.judge_unknown(tool, false) == Verdict::Ask);
        let secrets = self.context.ports.secrets.names();
        PlannerFacts {
            today: Some(now.chars().take(10).collect()),
            asks: asks.map(|tool| tool.name.to_string()).collect(),
            secrets: secrets.iter().map(ToString::to_string).collect(),
            templates: Vec::new(),
        }
    }

    fn is_denied(&self, tool: &KnownTool) -> bool {
        self.judge_unknown(tool, false) == Verdict::Deny
    }

    /// Judges a call of the tool whose arguments are not known.
    pub(super) fn judge_unknown(&self, tool: &KnownTool, chosen_by_model: bool) -> Verdict {
        let properties = tool
            .definition
            .input_schema
            .get("properties")
            .and_then(Value::as_object);
        let unknown: BTreeSet<String> = properties
            .into_iter()
            .flat_map(Map::keys)
            .cloned()
            .collect();
        let step = Step {
            tool: Some(tool.name.to_string()),
            ..Step::default()
        };
        let subject = CallToJudge {
            tool: Some(tool),
            args: &Value::Object(Map::new()),
            unknown: &unknown,
            step: &step,
            step_id: "",
            plan: "",
            chosen_by_model,
        };
        self.context.settings.policy.judge_call(&subject).verdict
    }

    /// Returns how much the planner that would be asked can be told.
    pub(super) fn prompt_budget(&self, model: Option<&str>) -> PromptBudget {
        let info = self
            .context
            .ports
            .model
            .resolve(ModelRole::Planner, model)
            .ok();
        PromptBudget::of(info.and_then(|info| info.context_tokens))
    }
}
