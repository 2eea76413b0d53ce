//! The plans that a plan runs: whether they are there, can run themselves, end at all, and get the
//! inputs they take.

use super::inputs::missing;
use super::{ValidationReport, arguments::describe};
use crate::id::PlanId;
use crate::json::compile_schema;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::reference::has_markers;
use crate::plan::subplans::{KnownPlan, KnownPlans, Subplan, Subplans};
use crate::plan::{Bounds, Code, Document, Finding, Plan, SubPlan};
use crate::tool::Catalog;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Goes from a plan through all that it runs. Every plan is checked once, however many steps run
/// it.
pub(super) struct Walk<'a> {
    pub(super) known: &'a KnownPlans,
    pub(super) catalog: &'a Catalog,
    pub(super) bounds: &'a Bounds,
    /// From the plan that is validated to the one that is being looked at.
    path: Vec<PlanId>,
    seen: BTreeMap<PlanId, Result<Looked, Problem>>,
    /// The deepest nesting below each plan on the path.
    heights: Vec<usize>,
}

/// A plan that is there.
#[derive(Clone)]
struct Looked {
    subplan: Subplan,
    /// Number of plans that nest in it, itself included.
    height: usize,
    /// The reason it could not run by itself.
    error: Option<String>,
}

#[derive(Clone)]
struct Problem {
    code: Code,
    message: String,
    suggestion: &'static str,
}

impl<'a> Walk<'a> {
    pub(super) fn new(known: &'a KnownPlans, catalog: &'a Catalog, bounds: &'a Bounds) -> Self {
        Self {
            known,
            catalog,
            bounds,
            path: Vec::new(),
            seen: BTreeMap::new(),
            heights: vec![0],
        }
    }

    pub(super) fn check(&mut self, compiled: &Compiled, findings: &mut Findings) -> Subplans {
        if self.path.is_empty() {
            self.path.extend(compiled.document.id.clone());
        }
        let mut subplans = BTreeMap::new();
        for (index, step) in compiled.document.steps.iter().enumerate() {
            // What is left out runs nothing.
            let Some(written) = step.plan.as_deref().filter(|_| !step.skip) else {
                continue;
            };
            let at = format!("/steps/{index}/plan");
            match self.look(&written.id) {
                Err(Problem {
                    code,
                    message,
                    suggestion,
                }) => {
                    let finding = Finding::new(code, format!("{at}/id"), message);
                    findings.add(
                        finding
                            .of_step(step.id.as_ref())
                            .suggest(Some(suggestion.to_owned())),
                    );
                }
                Ok(Looked {
                    subplan,
                    height,
                    error,
                }) => {
                    if let Some(height_here) = self.heights.last_mut() {
                        *height_here = (*height_here).max(height);
                    }
                    if height >= KnownPlans::MAX_DEPTH {
                        let limit = KnownPlans::MAX_DEPTH;
                        let message =
                            format!("plans run each other more than {limit} deep from here");
                        let finding = Finding::new(Code::PlanCycle, format!("{at}/id"), message);
                        findings.add(finding.of_step(step.id.as_ref()));
                    }
                    if let Some(error) = error {
                        let message = format!("plan `{}` cannot run: {error}", written.id);
                        let finding =
                            Finding::new(Code::SubplanInvalid, format!("{at}/id"), message);
                        let hint = format!("planwright validate {} lists everything", written.id);
                        findings.add(finding.of_step(step.id.as_ref()).suggest(Some(hint)));
                    }
                    for finding in inputs(written, subplan.plan.document()) {
                        let finding = Finding {
                            pointer: format!("{at}/inputs{}", finding.pointer),
                            ..finding
                        };
                        findings.add(finding.of_step(step.id.as_ref()));
                    }
                    subplans.insert(written.id.clone(), subplan);
                }
            }
        }
        subplans.into_iter().collect()
    }

    fn look(&mut self, id: &PlanId) -> Result<Looked, Problem> {
        if let Some(first) = self.path.iter().position(|on_path| on_path == id) {
            let circle = self.path[first..]
                .iter()
                .chain([id])
                .map(ToString::to_string);
            let message = format!(
                "these plans run each other without end: {}",
                circle.collect::<Vec<_>>().join(" → ")
            );
            let suggestion = "remove one of these steps";
            return Err(Problem {
                code: Code::PlanCycle,
                message,
                suggestion,
            });
        }
        if let Some(looked) = self.seen.get(id) {
            return looked.clone();
        }
        let looked = match self.known.get(id) {
            Some(known) => self.look_inside(id, known),
            None => {
                let message = format!("there is no plan `{id}`");
                let suggestion = "import it first, or save it as a template";
                Err(Problem {
                    code: Code::UnknownPlan,
                    message,
                    suggestion,
                })
            }
        };
        self.seen.insert(id.clone(), looked.clone());
        looked
    }

    fn look_inside(&mut self, id: &PlanId, known: &KnownPlan) -> Result<Looked, Problem> {
        self.path.push(id.clone());
        self.heights.push(0);
        let ValidationReport { plan, findings } = self.validate((*known.document).clone());
        let below = self.heights.pop().unwrap_or_default();
        self.path.pop();
        // The step that runs the plan brings the inputs; errors in them are reported where they are
        // written.
        let errors: Vec<&Finding> = findings
            .iter()
            .filter(|f| f.is_error() && f.code != Code::VariableMismatch)
            .collect();
        if let Some(cycle) = errors
            .iter()
            .find(|finding| finding.code == Code::PlanCycle)
        {
            let message = cycle.message.clone();
            return Err(Problem {
                code: Code::PlanCycle,
                message,
                suggestion: "remove one of these steps",
            });
        }
        let error = errors.first().map(|first| match errors.len() {
            1 => first.message.clone(),
            several => format!("{} (and {} more)", first.message, several - 1),
        });
        let Some(plan) = plan else {
            let message = format!("plan `{id}` cannot run: {}", error.unwrap_or_default());
            return Err(Problem {
                code: Code::SubplanInvalid,
                message,
                suggestion: "import a version that can",
            });
        };
        let subplan = Subplan {
            version: known.version,
            plan: Arc::<Plan>::new(plan),
            needs_person: known.needs_person.clone(),
        };
        Ok(Looked {
            subplan,
            height: below + 1,
            error,
        })
    }
}

/// Checks the inputs as they are written. Those with references are checked when they are known.
fn inputs(written: &SubPlan, child: &Document) -> Vec<Finding> {
    let mut findings: Vec<Finding> = written
        .inputs
        .keys()
        .filter_map(|name| child.unknown_input(name))
        .collect();
    let Some(schema) = &child.inputs else {
        return findings;
    };
    let mut given = child.variables.clone();
    given.extend(
        written
            .inputs
            .iter()
            .map(|(name, value)| (name.clone(), value.clone())),
    );
    for name in missing(schema, &given) {
        let message = format!("`{}` needs the input `{name}`", written.id);
        findings.push(Finding::new(Code::InvalidInputs, "", message));
    }
    let literal: Map<String, Value> = written
        .inputs
        .iter()
        .filter(|(_, value)| !has_markers(value))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    findings.extend(misfits(schema, literal));
    findings
}

/// Checks some of the inputs: what the schema says about all of them together is left out.
fn misfits(schema: &Value, literal: Map<String, Value>) -> Vec<Finding> {
    let mut lenient = schema.clone();
    if let Some(object) = lenient.as_object_mut() {
        for key in [
            "required",
            "minProperties",
            "additionalProperties",
            "unevaluatedProperties",
        ] {
            object.remove(key);
        }
    }
    // A schema that cannot be used is a finding of the child.
    let Ok(validator) = compile_schema(&lenient) else {
        return Vec::new();
    };
    let finding = |error: jsonschema::ValidationError<'_>| {
        Finding::new(
            Code::InvalidInputs,
            error.instance_path().to_string(),
            describe(&error),
        )
    };
    let literal = Value::Object(literal);
    match validator.for_value(&literal) {
        Ok(validator) => validator.iter_errors(&literal).map(finding).collect(),
        Err(problem) => vec![Finding::new(Code::InvalidInputs, "", problem.to_string())],
    }
}
