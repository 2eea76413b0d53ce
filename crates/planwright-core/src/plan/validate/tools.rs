//! Checks that the tools of a plan exist, are unambiguous, and are in its scope.

use super::arguments::Arguments;
use super::value_shape::ValueShapes;
use super::{conditions, loops, references};
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::{Code, Finding, KnownPlans, Step, StepIx};
use crate::status::StepErrorCode;
use crate::text::{did_you_mean, nearest_names};
use crate::tool::{Catalog, EffectClass, KnownTool, ResolveToolError, is_pattern};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Codes of calls that were made, or may have been: an unsafe one is never made again for them.
const AFTER_CALL: [StepErrorCode; 10] = [
    StepErrorCode::CommandFailed,
    StepErrorCode::ExpectFailed,
    StepErrorCode::Interrupted,
    StepErrorCode::InvalidOutput,
    StepErrorCode::OutcomeLost,
    StepErrorCode::OutcomeUnknown,
    StepErrorCode::OutputTooLarge,
    StepErrorCode::Timeout,
    StepErrorCode::ValueNotStored,
    StepErrorCode::ValueTooDeep,
];

/// Resolves each name once: the steps of a large plan use few tools, and looking for near names is
/// slow.
pub(super) struct Tools<'a> {
    catalog: &'a Catalog,
    resolved: BTreeMap<String, Result<&'a Arc<KnownTool>, ResolveToolError>>,
}

impl<'a> Tools<'a> {
    pub(super) fn resolve(&mut self, name: &str) -> &Result<&'a Arc<KnownTool>, ResolveToolError> {
        if !self.resolved.contains_key(name) {
            self.resolved
                .insert(name.to_owned(), self.catalog.resolve(name));
        }
        &self.resolved[name]
    }
}

pub(super) fn check(
    compiled: &Compiled,
    catalog: &Catalog,
    plans: &KnownPlans,
    findings: &mut Findings,
) {
    let mut tools = Tools {
        catalog,
        resolved: BTreeMap::new(),
    };
    let shapes = ValueShapes::new(compiled, &mut tools, plans);
    let in_scope = compiled.document.scope();
    for (index, step) in compiled.document.steps.iter().enumerate() {
        // What is left out calls nothing. It is checked again when it is taken back in.
        if step.skip {
            continue;
        }
        let uses = [
            step.tool
                .as_deref()
                .map(|name| (name, "tool", "args", &step.args)),
            step.undo
                .as_deref()
                .map(|undo| (&*undo.tool, "undo/tool", "undo/args", &undo.args)),
        ];
        for (name, name_at, args_at, args) in uses.into_iter().flatten() {
            // A bare name is in the scope of its server.
            let full = tools.resolve(name).as_ref().ok();
            let full = full.map(|tool| tool.name.to_string());
            if !in_scope(name) && !full.is_some_and(|full| in_scope(&full)) {
                out_of_scope(
                    compiled,
                    step,
                    &format!("/steps/{index}/{name_at}"),
                    name,
                    findings,
                );
            }
            let known = match tools.resolve(name) {
                Ok(tool) => Arc::clone(tool),
                Err(error) => {
                    let at = format!("/steps/{index}/{name_at}");
                    unknown(step, &at, error, catalog, findings);
                    continue;
                }
            };
            if name_at == "tool" {
                check_retry(step, index, &known, findings);
            }
            let ix = StepIx::new(index);
            Arguments {
                compiled,
                shapes: &shapes,
                step,
                ix,
                tool: &known,
                args,
                at: &format!("/steps/{index}/{args_at}"),
            }
            .check(findings);
        }
    }
    references::check(compiled, &shapes, findings);
    conditions::check(compiled, &shapes, findings);
    loops::check(compiled, &shapes, findings);
    check_required(compiled, &mut tools, findings);
}

/// A code that an unsafe call is never made again for is probably a mistake about the tool.
fn check_retry(step: &Step, index: usize, tool: &KnownTool, findings: &mut Findings) {
    let named = step.retry.iter().flat_map(|retry| retry.on.iter());
    for (position, word) in named.enumerate() {
        let comes_after_call = AFTER_CALL.iter().any(|code| code.as_str() == word);
        if tool.class != EffectClass::Unsafe || !comes_after_call {
            continue;
        }
        let message = format!(
            "`{}` is unsafe, so it is not called again after `{word}`: its call may have had its effect",
            tool.name
        );
        let hint = format!(
            "leave `{word}` out, or set the class of `{}` if calling it twice does no harm",
            tool.name
        );
        findings.add(
            Finding::new(
                Code::UnsafeRetry,
                format!("/steps/{index}/retry/on/{position}"),
                message,
            )
            .of_step(step.id.as_ref())
            .suggest(Some(hint)),
        );
    }
}

fn unknown(
    step: &Step,
    pointer: &str,
    error: &ResolveToolError,
    catalog: &Catalog,
    findings: &mut Findings,
) {
    let finding = match error {
        ResolveToolError::Unknown { name, nearest } => {
            let (code, message) = if step.optional {
                (
                    Code::OptionalToolMissing,
                    format!("the tool `{name}` is not available: the step will be skipped"),
                )
            } else {
                (Code::UnknownTool, format!("no server has a tool `{name}`"))
            };
            let hint = findings.hint(|| suggest_tools(name, nearest, catalog));
            Finding::new(code, pointer, message).suggest(hint)
        }
        ResolveToolError::Ambiguous { candidates, .. } => {
            let hint = format!("write {}", candidates.join(" or "));
            Finding::new(Code::AmbiguousTool, pointer, error.to_string()).suggest(Some(hint))
        }
    };
    findings.add(finding.of_step(step.id.as_ref()));
}

/// Suggests the tools whose names are spelt like this one; else those that seem to do what it says.
fn suggest_tools(name: &str, nearest: &[String], catalog: &Catalog) -> Option<String> {
    did_you_mean(nearest).or_else(|| {
        let related = catalog.related_tools(name);
        let quoted: Vec<String> = related.iter().map(|name| format!("`{name}`")).collect();
        Some(format!("related tools: {}", quoted.join(", "))).filter(|_| !quoted.is_empty())
    })
}

/// Every tool a step names is one the plan says it uses.
fn out_of_scope(
    compiled: &Compiled,
    step: &Step,
    pointer: &str,
    name: &str,
    findings: &mut Findings,
) {
    let scope = &compiled.document.tools_required;
    let message = format!("the tool `{name}` is not in `toolsRequired`");
    let near = findings.hint(|| did_you_mean(&nearest_names(name, scope.iter().cloned())));
    let hint = near.or_else(|| Some(format!("add `{name}` to `toolsRequired`")));
    findings.add(
        Finding::new(Code::OutOfScope, pointer, message)
            .of_step(step.id.as_ref())
            .suggest(hint),
    );
}

/// Tools the plan says it needs beyond those of its steps, for agents to use.
fn check_required(compiled: &Compiled, tools: &mut Tools<'_>, findings: &mut Findings) {
    let steps = &compiled.document.steps;
    let named: ToolNames<'_> = steps
        .iter()
        .filter_map(|step| step.tool.as_deref())
        .collect();
    for (index, name) in compiled.document.tools_required.iter().enumerate() {
        // The step that uses it has said so already.
        if named.matches(name) {
            continue;
        }
        if !tools.catalog.lacks(name) {
            continue;
        }
        if let Err(ResolveToolError::Unknown { nearest, .. }) = tools.resolve(name) {
            let message = match is_pattern(name) {
                true => format!("no server has a tool that `{name}` covers"),
                false => format!("no server is called `{name}`, and none has such a tool"),
            };
            let finding = Finding::new(
                Code::UnknownTool,
                format!("/toolsRequired/{index}"),
                message,
            );
            findings.add(finding.suggest(did_you_mean(nearest)));
        }
    }
}

/// Tool names to compare with: two names match if they are the same text, or one is the bare name
/// of the other.
///
/// A set, because both a plan's scope and its steps can be long.
#[derive(Debug, Default)]
pub(crate) struct ToolNames<'a> {
    exact: BTreeSet<&'a str>,
    bare: BTreeSet<&'a str>,
}

impl<'a> FromIterator<&'a str> for ToolNames<'a> {
    fn from_iter<T: IntoIterator<Item = &'a str>>(names: T) -> Self {
        let exact: BTreeSet<&str> = names.into_iter().collect();
        let bare = exact.iter().filter_map(|name| bare(name)).collect();
        Self { exact, bare }
    }
}

impl ToolNames<'_> {
    pub(crate) fn matches(&self, name: &str) -> bool {
        self.exact.contains(name)
            || self.bare.contains(name)
            || bare(name).is_some_and(|name| self.exact.contains(name))
    }
}

/// The tool's own name in `server.tool` or `mcp__server__tool`.
pub(crate) fn bare(name: &str) -> Option<&str> {
    match name.strip_prefix("mcp__") {
        Some(rest) => rest.split_once("__"),
        None => name.split_once('.'),
    }
    .map(|(_, tool)| tool)
}
