//! Finds steps that need a model or an executor that is not configured.

use crate::port::ModelError;
use crate::review::plans::Plans;
use planwright_core::model::ModelRole;
use planwright_core::plan::{Action, Code, Finding, Plan, StepIx};
use planwright_core::run::Run;

/// A step that no model or executor can work on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MissingExecutor {
    /// No model is configured for the role that the step needs.
    #[error("step `{step}` needs a model for the {role} and none is configured")]
    NoModel {
        /// Id of the step.
        step: String,
        /// The role that needs a model.
        role: ModelRole,
    },
    /// The model of the step cannot be used.
    #[error("step `{step}` cannot be worked on: {source}")]
    Model {
        /// Id of the step.
        step: String,
        /// The reason it cannot.
        source: ModelError,
    },
    /// The step names an executor that is not configured or not trusted.
    #[error("step `{step}` needs the executor `{executor}`, and there is no such executor")]
    NoExecutor {
        /// Id of the step.
        step: String,
        /// Name of the executor.
        executor: String,
    },
}

impl Plans {
    /// The first step of the plan or its sub-plans that no model or executor can work on.
    pub(crate) fn find_missing_executor(&self, plan: &Plan) -> Option<MissingExecutor> {
        let below = plan.all_subplans();
        let mut plans = std::iter::once(plan).chain(below.values().map(|subplan| &*subplan.plan));
        plans.find_map(|plan| {
            plan.indices()
                .find_map(|ix| self.step_missing_executor(plan, ix))
        })
    }

    /// The same for what is left of a run.
    pub(crate) fn find_missing_executor_of_rest(&self, run: &Run) -> Option<MissingExecutor> {
        let plan = run.plan();
        let left = plan.indices().filter(|&ix| !run.step(ix).is_terminal());
        left.into_iter()
            .find_map(|ix| self.step_missing_executor(plan, ix))
    }

    fn step_missing_executor(&self, plan: &Plan, ix: StepIx) -> Option<MissingExecutor> {
        let written = plan.step(ix);
        let step = plan.step_id(ix).to_string();
        let (role, model) = match written.action().filter(|_| !written.skip)? {
            Action::Think(think) => (ModelRole::Executor, think.model.as_deref()),
            // It is there or has gone; no configuration brings it back.
            Action::Agent(agent) if agent.is_client() => return None,
            Action::Agent(agent) => {
                if let Some(executor) = &agent.executor {
                    let known = self.context.ports.executors.names().contains(executor);
                    return (!known).then(|| MissingExecutor::NoExecutor {
                        step,
                        executor: executor.clone(),
                    });
                }
                let role = if agent.converse {
                    ModelRole::Chat
                } else {
                    ModelRole::Executor
                };
                (role, agent.model.as_deref())
            }
            Action::Tool { .. } | Action::Input(_) | Action::Plan(_) => return None,
        };
        let model = model.or(plan.document().executor_model.as_deref());
        match self.context.ports.model.resolve(role, model) {
            Ok(_) => None,
            Err(ModelError::NotConfigured { role }) => {
                Some(MissingExecutor::NoModel { step, role })
            }
            Err(source) => Some(MissingExecutor::Model { step, source }),
        }
    }

    /// The warnings for the reviewer of the plan.
    pub fn missing_executor_findings(&self, plan: &Plan) -> Vec<Finding> {
        let missing = |ix: StepIx| {
            let message = self.step_missing_executor(plan, ix)?.to_string();
            let hint = "configure one before it runs: see planwright explain agents".to_owned();
            let finding = Finding::new(
                Code::MissingExecutor,
                format!("/steps/{}", ix.index()),
                message,
            );
            Some(finding.of_step(Some(plan.step_id(ix))).suggest(Some(hint)))
        };
        plan.indices().filter_map(missing).collect()
    }
}
