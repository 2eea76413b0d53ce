//! The plan tools as a model sees them.

use planwright_core::model::OfferedTool;
use planwright_core::tool::{Annotations, EffectClass, KnownTool, ToolDefinition};
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The server that the plan tools are tools of. No other server can have this name.
pub const PLAN_TOOLS_SERVER: &str = "planwright";

/// A plan tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanTool {
    /// Has a plan written for a goal.
    Create,
    /// Runs a stored plan.
    Execute,
    /// Has a plan written and runs it.
    CreateAndExecute,
}

impl PlanTool {
    /// Every plan tool, in the order in which they are offered.
    pub const ALL: [Self; 3] = [Self::Create, Self::Execute, Self::CreateAndExecute];

    /// Returns the name without its server.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Create => "plan_create",
            Self::Execute => "plan_execute",
            Self::CreateAndExecute => "plan_create_and_execute",
        }
    }

    /// The tool with this name, bare or with its server.
    pub fn from_name(name: &str) -> Option<Self> {
        let bare = name
            .strip_prefix(PLAN_TOOLS_SERVER)
            .and_then(|rest| rest.strip_prefix('.'))
            .unwrap_or(name);
        Self::ALL.into_iter().find(|tool| tool.as_str() == bare)
    }

    /// Gives the arguments of a plan tool the names of its schema: models and clients of other
    /// programs write `plan_id`.
    pub fn rename_arguments(args: &mut Map<String, Value>) {
        if !args.contains_key("planId")
            && let Some(plan) = args.shift_remove("plan_id")
        {
            args.insert("planId".to_owned(), plan);
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Create => {
                "Makes a plan of several tool calls for a goal and stores it as a proposal. Nothing is run. Returns the plan's id and its steps."
            }
            Self::Execute => {
                "Runs a plan that was made before, by its id. What a person has to agree to is asked or comes back as pending: then tell the user how to review it."
            }
            Self::CreateAndExecute => {
                "Makes a plan of several tool calls for a goal and runs it. Use it when several calls have to be coordinated; for a single call use the tool itself."
            }
        }
    }

    fn schema(self) -> Value {
        let goal = json!({ "type": "string", "minLength": 1, "description": "What is to be achieved, in full sentences." });
        match self {
            Self::Create | Self::CreateAndExecute => {
                let context = json!({ "type": "string", "description": "What this conversation has found out that the plan needs: \
                    names, paths, ids, decisions, wishes of the user. The planner sees nothing else of the conversation." });
                json!({
                    "type": "object",
                    "properties": { "goal": goal, "context": context },
                    "required": ["goal"],
                    "additionalProperties": false,
                })
            }
            Self::Execute => json!({
                "type": "object",
                "properties": {
                    "planId": { "type": "string", "minLength": 1, "description": "The id that plan_create returned." },
                    "variables": { "type": "object", "description": "Values that replace the plan's own variables." },
                },
                "required": ["planId"],
                "additionalProperties": false,
            }),
        }
    }

    /// The definition that is offered and pinned.
    ///
    /// The call itself changes nothing that was not agreed to: proposing is everybody's right, and
    /// a run has a consent of its own. So it is read-only in the eyes of the policy, and no one is
    /// asked about the same thing twice.
    pub fn definition(self) -> ToolDefinition {
        let definition = ToolDefinition::new(
            PLAN_TOOLS_SERVER,
            self.as_str(),
            self.description(),
            self.schema(),
        );
        definition.with_annotations(Annotations::read_only())
    }

    /// Another attempt goes on with what an earlier one began, so it may be made after a crash.
    pub(crate) fn known_tool(self) -> Arc<KnownTool> {
        Arc::new(KnownTool::new(self.definition(), EffectClass::Keyed))
    }

    /// Describes the tool to a model.
    pub fn offered_tool(self) -> OfferedTool {
        OfferedTool {
            name: self.as_str().to_owned(),
            description: self.description().to_owned(),
            schema: self.schema(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_tool_is_found_by_its_name_with_and_without_its_server() {
        for tool in PlanTool::ALL {
            assert_eq!(PlanTool::from_name(tool.as_str()), Some(tool));
            assert_eq!(
                PlanTool::from_name(&tool.definition().tool_name().to_string()),
                Some(tool)
            );
        }
        assert_eq!(
            (
                PlanTool::from_name("plan_delete"),
                PlanTool::from_name("other.plan_create")
            ),
            (None, None)
        );
    }
}
