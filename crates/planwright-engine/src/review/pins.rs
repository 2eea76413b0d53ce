//! The tools a plan is approved with: remembered as they were, compared with what they are.

use crate::port::{ArtifactError, Artifacts};
use crate::review::plans::Plans;
use planwright_core::artifact::ArtifactRef;
use planwright_core::digest::{Digest, canonical_json};
use planwright_core::id::PlanId;
use planwright_core::plan::Plan;
use planwright_core::review::Pin;
use planwright_core::tool::{Catalog, KnownTool, ToolDefinition, ToolName, describe_change};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

/// What is kept of a definition. A larger one is pinned by its digest alone, so its change is not
/// explained.
const MAX_DEFINITION: u64 = 1 << 20;

impl Plans {
    /// Pins every tool the plan uses and keeps the definitions, so that a change can be shown
    /// later.
    pub(crate) async fn pins(&self, plan: &Plan) -> Result<BTreeMap<String, Pin>, ArtifactError> {
        let (pins, definitions) = self.build_pins(plan);
        for bytes in definitions {
            self.context.ports.artifacts.put(bytes).await?;
        }
        Ok(pins)
    }

    /// Builds the pins of every tool the plan uses, and the definitions that are to be kept.
    pub(crate) fn build_pins(&self, plan: &Plan) -> (BTreeMap<String, Pin>, Vec<Vec<u8>>) {
        let mut definitions = Vec::new();
        let catalog = self.context.catalog();
        let mut pins = BTreeMap::new();
        let children = plan.all_subplans();
        for (id, child) in &children {
            let digest = child
                .plan
                .digest(&catalog, &self.context.settings.policy_version);
            pins.insert(
                child_tool(id).to_string(),
                Pin {
                    digest,
                    definition: None,
                },
            );
        }
        let below = children.values().flat_map(|child| child.plan.tool_names());
        for name in plan.tool_names().into_iter().chain(below) {
            // An optional tool may be missing, and a server may get new ones. What turns up later
            // no approver agreed to.
            for tool in catalog.scoped_tools(name) {
                if let Entry::Vacant(place) = pins.entry(tool.name.to_string()) {
                    place.insert(pin_tool(tool, &mut definitions));
                }
            }
        }
        (pins, definitions)
    }

    /// Which of the pinned tools are not what they were, in words. Empty when all are.
    pub(crate) async fn changed_tools(&self, pins: &BTreeMap<String, Pin>) -> String {
        let catalog = self.context.catalog();
        let mut changes = Vec::new();
        for (name, pin) in pins {
            // A plan below is named by the version that changed, not by a definition.
            if name.starts_with("plan.") {
                continue;
            }
            let words = match exact(&catalog, name) {
                Some(tool) if tool.digest() == pin.digest => continue,
                Some(tool) => since_pinned(&*self.context.ports.artifacts, pin, tool).await,
                None => "it is not there any more".to_owned(),
            };
            changes.push(format!("`{name}`: {words}"));
        }
        changes.join("; ")
    }
}

/// Pins a tool as it is, and adds its definition to those that are to be kept.
fn pin_tool(tool: &KnownTool, definitions: &mut Vec<Vec<u8>>) -> Pin {
    let definition =
        serde_json::to_value(&tool.definition).expect("definitions have only string keys");
    let bytes = canonical_json(&definition);
    let reference = ArtifactRef {
        digest: Digest::of_bytes(&bytes),
        bytes: bytes.len() as u64,
    };
    let definition = (reference.bytes <= MAX_DEFINITION).then_some(reference);
    if definition.is_some() {
        definitions.push(bytes);
    }
    Pin {
        digest: tool.digest(),
        definition,
    }
}

/// Stands where others have the name of a server, for plans that steps run.
pub(crate) const CHILD_SERVER: &str = "plan";

/// The name under which a plan that a step runs is pinned and journaled.
pub(crate) fn child_tool(plan: &PlanId) -> ToolName {
    ToolName {
        server: CHILD_SERVER.into(),
        tool: plan.to_string(),
    }
}

fn exact<'a>(catalog: &'a Catalog, name: &str) -> Option<&'a KnownTool> {
    catalog
        .resolve(name)
        .ok()
        .filter(|tool| tool.name.to_string() == name)
        .map(|tool| &**tool)
}

/// Says in words what changed since the tool was pinned.
pub(crate) async fn since_pinned(artifacts: &dyn Artifacts, pin: &Pin, now: &KnownTool) -> String {
    let unknown = || "its definition is another one".to_owned();
    let Some(artifact) = pin
        .definition
        .as_ref()
        .filter(|artifact| artifact.bytes <= MAX_DEFINITION)
    else {
        return unknown();
    };
    // The difference only explains. If it cannot be had, the tool has changed all the same.
    let Ok(bytes) = artifacts.get(artifact).await else {
        return unknown();
    };
    match serde_json::from_slice::<ToolDefinition>(&bytes) {
        Ok(before) => describe_change(&before, &now.definition),
        Err(_) => unknown(),
    }
}
