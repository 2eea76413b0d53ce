//! The tools as a client sees them.

use planwright_core::policy::Permission;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use std::sync::Arc;

/// A tool of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PlanCall {
    Propose,
    List,
    Get,
    Status,
    Comment,
    Approve,
    Reject,
    Create,
    Execute,
    CreateAndExecute,
    Resume,
    Cancel,
    /// What the person decided on the page that a client shows. Only that page is told of it.
    Decide,
}

impl PlanCall {
    /// Every tool that models are offered, in this order.
    pub(crate) const ALL: [Self; 12] = [
        Self::Propose,
        Self::List,
        Self::Get,
        Self::Status,
        Self::Comment,
        Self::Approve,
        Self::Reject,
        Self::Create,
        Self::Execute,
        Self::CreateAndExecute,
        Self::Resume,
        Self::Cancel,
    ];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Propose => "plan_propose",
            Self::List => "plan_list",
            Self::Get => "plan_get",
            Self::Status => "plan_status",
            Self::Comment => "plan_comment",
            Self::Approve => "plan_approve",
            Self::Reject => "plan_reject",
            Self::Create => "plan_create",
            Self::Execute => "plan_execute",
            Self::CreateAndExecute => "plan_create_and_execute",
            Self::Resume => "plan_resume",
            Self::Cancel => "plan_cancel",
            Self::Decide => "plan_decide",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let mut tools = Self::ALL.into_iter().chain([Self::Decide]);
        tools.find(|tool| tool.as_str() == name)
    }

    /// Returns whether a page with the review is shown with its result.
    pub(crate) fn has_review(self) -> bool {
        matches!(self, Self::Propose | Self::Get | Self::Approve)
    }

    pub(crate) fn definition(self) -> Tool {
        let schema = |value: Value| -> Arc<JsonObject> {
            let object = value.as_object().cloned();
            Arc::new(object.unwrap_or_default())
        };
        let annotations = ToolAnnotations::with_title(self.title())
            .read_only(self.only_reads())
            .destructive(false)
            .idempotent(self.only_reads())
            .open_world(false);
        Tool::new(self.as_str(), self.description(), schema(self.input()))
            .with_title(self.title())
            .with_raw_output_schema(schema(output()))
            .with_annotations(annotations)
    }

    /// What its caller has to be allowed. An approval is asked of the person, who has to be allowed to
    /// give it.
    pub(crate) fn permission(self) -> Permission {
        match self {
            Self::List | Self::Get | Self::Status | Self::Approve | Self::Reject | Self::Decide => {
                Permission::Read
            }
            Self::Propose | Self::Create => Permission::Propose,
            Self::Comment => Permission::Comment,
            Self::Execute | Self::CreateAndExecute | Self::Resume => Permission::Run,
            Self::Cancel => Permission::Cancel,
        }
    }

    /// The texts that it cannot do without.
    pub(crate) fn needed_texts(self) -> &'static [&'static str] {
        match self {
            Self::Propose | Self::List => &[],
            Self::Get
            | Self::Status
            | Self::Approve
            | Self::Execute
            | Self::Resume
            | Self::Cancel => &["planId"],
            Self::Comment => &["planId", "text"],
            Self::Reject => &["planId", "reason"],
            Self::Decide => &["planId", "nonce", "decision"],
            Self::Create | Self::CreateAndExecute => &["goal"],
        }
    }

    /// Returns whether it begins or goes on with a run, which may take long.
    pub(crate) fn runs_plans(self) -> bool {
        matches!(self, Self::Execute | Self::CreateAndExecute | Self::Resume)
    }

    fn title(self) -> &'static str {
        match self {
            Self::Propose => "Propose a plan",
            Self::List => "List plans",
            Self::Get => "Read a plan",
            Self::Status => "See where a plan stands",
            Self::Comment => "Comment on a plan",
            Self::Approve => "Ask a person to approve a plan",
            Self::Reject => "Ask a person to reject a plan",
            Self::Create => "Have a plan written for a goal",
            Self::Execute => "Run a plan",
            Self::CreateAndExecute => "Have a plan written and run it",
            Self::Resume => "Go on with a run",
            Self::Cancel => "Cancel a run",
            Self::Decide => "Record what the person decided",
        }
    }

    fn description(self) -> &'static str {
        match self {
            Self::Propose => {
                "Stores a plan of tool calls as a proposal for a person to review. Nothing is run. The result has the digest, what an approver will see, and findings: repair the plan and propose it again with the same id until no finding is an error. Then plan_approve asks a person."
            }
            Self::List => "Lists the plans of this workspace, the newest first.",
            Self::Get => "Returns a plan: its document, its status, and what an approval covers.",
            Self::Status => "Returns where a plan and the steps of its latest run stand.",
            Self::Comment => {
                "Says something about a plan or one of its steps, for people who review it."
            }
            Self::Approve => {
                "Asks a person to approve the plan, with everything it would do. You cannot approve it yourself, and no argument does. When no person can be asked here, the result says how they are reached."
            }
            Self::Reject => "Asks a person to reject the plan, with your reason.",
            Self::Create => {
                "Has a plan of several tool calls written for a goal by the planner, as a proposal. Nothing is run."
            }
            Self::Execute => {
                "Runs a plan that was approved, or that policy allows. What a person has to agree to is asked; without a person the result says how one is reached, and nothing is run."
            }
            Self::CreateAndExecute => {
                "Has a plan written for a goal and runs it, with the same consent as plan_execute."
            }
            Self::Resume => "Goes on with a run that waited, was paused or lost its process.",
            Self::Cancel => {
                "Cancels the latest run of a plan. Calls in flight are stopped, nothing else starts."
            }
            Self::Decide => {
                "Records what the person decided in the review. It takes the nonce that came with the review, and does nothing without it."
            }
        }
    }

    fn only_reads(self) -> bool {
        matches!(self, Self::List | Self::Get | Self::Status)
    }

    /// The first argument that is there and no value of its kind, with the kind in words.
    pub(crate) fn find_mistyped(self, args: &JsonObject) -> Option<(String, &'static str)> {
        let input = self.input();
        let properties = input["properties"].as_object()?;
        properties.iter().find_map(|(name, schema)| {
            let given = args.get(name).filter(|given| !given.is_null())?;
            let (fits, kind) = match schema["type"].as_str()? {
                "string" => (given.is_string(), "a text"),
                "integer" => (given.is_i64() || given.is_u64(), "a whole number"),
                "boolean" => (given.is_boolean(), "true or false"),
                "object" => (given.is_object(), "an object"),
                _ => return None,
            };
            (!fits).then(|| (name.clone(), kind))
        })
    }

    /// What its schema says of an argument.
    pub(crate) fn describe_argument(self, name: &str) -> Option<String> {
        let input = self.input();
        let described = input["properties"][name]["description"].as_str();
        described.map(str::to_owned)
    }

    fn input(self) -> Value {
        let plan_id =
            json!({ "type": "string", "minLength": 1, "description": "The id of the plan." });
        let object = |properties: Value, required: &[&str]| json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false });
        match self {
            Self::Propose => object(
                json!({ "plan": { "type": "object", "description": "The plan document: id, title, goal, steps [{id, title, tool, args, dependsOn}]. ${step.field} in args stands for a result of an earlier step." } }),
                &["plan"],
            ),
            Self::List => object(
                json!({
                    "status": { "type": "string", "description": "Only plans with this status, as proposed or completed." },
                    "limit": { "type": "integer", "minimum": 1, "maximum": 100 },
                }),
                &[],
            ),
            Self::Get | Self::Status | Self::Approve | Self::Resume | Self::Cancel => {
                object(json!({ "planId": plan_id }), &["planId"])
            }
            Self::Comment => object(
                json!({
                    "planId": plan_id,
                    "step": { "type": "string", "description": "The step it is about; the whole plan when absent." },
                    "text": { "type": "string", "minLength": 1, "maxLength": 10_000 },
                }),
                &["planId", "text"],
            ),
            Self::Reject => object(
                json!({ "planId": plan_id, "reason": { "type": "string", "minLength": 1, "maxLength": 2_000 } }),
                &["planId", "reason"],
            ),
            Self::Decide => object(
                json!({
                    "planId": plan_id,
                    "nonce": { "type": "string", "description": "Comes with the review, for one decision." },
                    "decision": { "type": "string", "enum": ["approve", "changes", "reject"] },
                    "comment": { "type": "string", "maxLength": 2_000 },
                    "seeLateValues": { "type": "boolean" },
                }),
                &["planId", "nonce", "decision"],
            ),
            Self::Create | Self::CreateAndExecute => object(
                json!({ "goal": { "type": "string", "minLength": 1, "description": "What is to be achieved, in full sentences." } }),
                &["goal"],
            ),
            Self::Execute => object(
                json!({
                    "planId": plan_id,
                    "variables": { "type": "object", "description": "Values that replace the plan's own variables." },
                }),
                &["planId"],
            ),
        }
    }
}

/// Every result is an object that says whether it is what was asked for, and what to do next.
fn output() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": { "type": "boolean" },
            "error": { "type": "string" },
            "next": { "type": "string", "description": "What to do now." },
        },
        "required": ["success"],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_tool_needs_is_what_its_schema_requires() {
        for tool in PlanCall::ALL.into_iter().chain([PlanCall::Decide]) {
            let required = tool.input()["required"].clone();
            // A plan is an object, and may be given as the arguments themselves.
            let expected = match tool {
                PlanCall::Propose => json!(["plan"]),
                _ => json!(tool.needed_texts()),
            };
            assert_eq!(required, expected, "{tool:?}");
        }
    }

    #[test]
    fn a_tool_is_found_by_its_name_alone() {
        for tool in PlanCall::ALL {
            assert_eq!(PlanCall::from_name(tool.as_str()), Some(tool));
        }
        for other in [
            "plan_delete",
            "PLAN_APPROVE",
            "plan_approve ",
            "",
            "plan\u{ff3f}approve",
        ] {
            assert_eq!(PlanCall::from_name(other), None, "{other:?}");
        }
    }
}
