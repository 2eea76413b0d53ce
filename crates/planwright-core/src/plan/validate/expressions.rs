//! `when`, `expect` and `constraints`: readable, about names that exist, and not decided from the
//! start.

use crate::plan::compile::Compiled;
use crate::plan::expression::Expression;
use crate::plan::finding::Findings;
use crate::plan::reference::{Meaning, is_loop_name};
use crate::plan::{Code, Finding, Step};
use crate::text::{did_you_mean, nearest_names};

/// The names of CEL's types, which an expression may compare with.
const TYPES: &[&str] = &[
    "bool",
    "bytes",
    "double",
    "dyn",
    "int",
    "list",
    "map",
    "null_type",
    "string",
    "type",
    "uint",
];

pub(super) fn check(compiled: &Compiled, findings: &mut Findings) {
    for (index, step) in compiled.document.steps.iter().enumerate() {
        let at = format!("/steps/{index}");
        let mut checker = Checker {
            compiled,
            step,
            findings,
        };
        if let Some(source) = &step.when
            && let Some(condition) = checker.expression(source, format!("{at}/when"), &[])
            && condition.is_always_false()
        {
            let message = format!("`when` is always false: {source}");
            let finding = Finding::new(Code::NeverRuns, format!("{at}/when"), message);
            findings.add(finding.of_step(step.id.as_ref()));
        }
        let mut checker = Checker {
            compiled,
            step,
            findings,
        };
        if let Some(source) = &step.expect {
            checker.expression(source, format!("{at}/expect"), &["result", "args"]);
        }
        for (number, source) in step.constraints.iter().enumerate() {
            checker.expression(source, format!("{at}/constraints/{number}"), &["args"]);
        }
    }
}

/// Returns whether an expression may use this name without a definition.
pub(crate) fn is_type_name(name: &str) -> bool {
    TYPES.contains(&name)
}

struct Checker<'a> {
    compiled: &'a Compiled,
    step: &'a Step,
    findings: &'a mut Findings,
}

impl Checker<'_> {
    fn expression(&mut self, source: &str, pointer: String, given: &[&str]) -> Option<Expression> {
        let expression = match Expression::parse(source) {
            Ok(expression) => expression,
            Err(error) => {
                let finding = Finding::new(Code::BadExpression, pointer, error.to_string());
                self.findings.add(finding.of_step(self.step.id.as_ref()));
                return None;
            }
        };
        for name in expression.names() {
            if name == "secret" && !self.is_known(&name, given) {
                let message =
                    "an expression cannot look at secrets: what it decides is stored and shown";
                let finding = Finding::new(Code::MisplacedSecret, pointer.clone(), message);
                self.findings.add(finding.of_step(self.step.id.as_ref()));
            } else if !self.is_known(&name, given) {
                let message = format!("`{name}` in the expression is no variable, result or step");
                let known = || self.compiled.names.all(&self.compiled.by_id);
                let suggestion = self
                    .findings
                    .hint(|| did_you_mean(&nearest_names(&name, known())));
                let finding = Finding::new(Code::UnresolvedName, pointer.clone(), message);
                self.findings
                    .add(finding.of_step(self.step.id.as_ref()).suggest(suggestion));
            }
        }
        Some(expression)
    }

    fn is_known(&self, name: &str, given: &[&str]) -> bool {
        if let Some(id) = name.strip_prefix("steps.") {
            return self.compiled.by_id.contains_key(id);
        }
        given.contains(&name)
            || given.contains(&"args") && self.step.args.contains_key(name)
            || self.step.for_each.is_some() && is_loop_name(name)
            || name == "steps"
            || TYPES.contains(&name)
            || self.compiled.names.meaning(name, &self.compiled.by_id) != Meaning::Nothing
    }
}
