//! What follows from a plan, so that no reader has to work it out: its edges, the effects of its
//! steps, and where its approval stands.

use planwright_core::briefing::{ActionBriefing, Briefing, Effect, StepBriefing};
use planwright_core::plan::{Edge, Plan, Step, StepIx};
use planwright_core::principal::Principal;
use planwright_core::run::unit_estimate;
use planwright_core::tool::Catalog;
use serde::Serialize;
use utoipa::ToSchema;

/// Which steps wait for which, and what follows from it.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanGraph {
    pub edges: Vec<EdgeLine>,
    /// Steps grouped by the longest chain before them. A step begins when all it waits for has ended, and not when
    /// the level before it has.
    pub levels: Vec<Vec<String>>,
    /// The longest chain of steps.
    pub critical_path: Vec<String>,
}

/// A step that waits for another one.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct EdgeLine {
    /// The step that comes first.
    pub from: String,
    /// The step that waits for it.
    pub to: String,
    /// `declared` in `dependsOn`, a `reference` to its value, or an `expression` that looks at it.
    pub reasons: Vec<&'static str>,
}

impl PlanGraph {
    pub fn new(plan: &Plan) -> Self {
        let name = |ix: StepIx| plan.step_id(ix).to_string();
        let edge = |edge: Edge| EdgeLine {
            from: name(edge.from),
            to: name(edge.to),
            reasons: edge.reasons.iter().map(|reason| reason.as_str()).collect(),
        };
        let levels = plan.graph().levels().into_iter();
        let path = plan.graph().critical_path(unit_estimate);
        Self {
            edges: plan.edges().into_iter().map(edge).collect(),
            levels: levels
                .map(|level| level.into_iter().map(name).collect())
                .collect(),
            critical_path: path.into_iter().map(name).collect(),
        }
    }
}

/// What a step does to the world, and whether that can be taken back.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct StepFacts {
    pub step: String,
    /// What it does, in a few words: its title, or its tool.
    pub action: String,
    /// `unknown`, `destroys`, `changes`, `sends`, `reads` or `nothing`, and the same in words.
    #[schema(value_type = crate::EffectShape)]
    pub effect: Effect,
    #[schema(value_type = crate::words::RiskShape)]
    pub risk: &'static str,
    /// `safe`, `keyed` or `unsafe`: whether the call can be made again when its outcome is unknown. Absent where no
    /// known tool is called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<crate::words::EffectClassShape>)]
    pub class: Option<&'static str>,
    /// The tool that takes the step back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
}

impl StepFacts {
    /// The facts about every step, in plan order.
    pub fn all(plan: &Plan, briefing: &Briefing, catalog: &Catalog) -> Vec<Self> {
        let mut facts: Vec<(usize, Self)> = briefing
            .steps
            .iter()
            .filter_map(|step| {
                let ix = plan.find(&step.id)?;
                Some((ix.index(), Self::new(step, plan.step(ix), catalog)))
            })
            .collect();
        facts.sort_by_key(|(index, _)| *index);
        facts.into_iter().map(|(_, facts)| facts).collect()
    }

    fn new(step: &StepBriefing, written: &Step, catalog: &Catalog) -> Self {
        let class = match &step.action {
            ActionBriefing::Call(call) => {
                let tool = catalog.resolve(&call.tool).ok();
                tool.map(|tool| tool.class.as_str())
            }
            ActionBriefing::Think { .. }
            | ActionBriefing::Agent { .. }
            | ActionBriefing::Input { .. }
            | ActionBriefing::Plan { .. }
            | ActionBriefing::Nothing => None,
        };
        Self {
            step: step.id.clone(),
            action: crate::created::action_of(written),
            effect: step.effect.clone(),
            risk: step.risk().as_str(),
            class,
            undo: step.undo.as_ref().map(|undo| undo.tool.clone()),
        }
    }
}

/// How far the approval of what would run now has come, and whether the reader may give one.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApprovalStanding {
    /// How many people have to agree.
    pub required: u32,
    /// Those who have agreed to it.
    #[schema(value_type = Vec<crate::PrincipalShape>)]
    pub given_by: Vec<Principal>,
    /// How many are still wanted.
    pub remaining: u32,
    /// Whether an approval by the reader would be taken now.
    pub may_approve: bool,
    /// Why it would not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The code of the problem that it would be answered with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason_code: Option<&'static str>,
}

/// Why an approval would not be taken, and the code of that.
pub type ApprovalRefusal = (String, Option<&'static str>);

impl ApprovalStanding {
    /// `refusal` is why an approval by the reader would not be taken.
    pub fn new(required: u32, given_by: Vec<Principal>, refusal: Option<ApprovalRefusal>) -> Self {
        let given = u32::try_from(given_by.len()).unwrap_or(u32::MAX);
        Self {
            required,
            remaining: required.saturating_sub(given),
            given_by,
            may_approve: refusal.is_none(),
            reason_code: refusal.as_ref().and_then(|(_, code)| *code),
            reason: refusal.map(|(reason, _)| reason),
        }
    }
}
