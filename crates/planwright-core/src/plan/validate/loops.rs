//! `forEach` runs over lists.

use super::value_shape::ValueShapes;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::{Code, Finding, StepIx, Template};
use serde_json::Value;

pub(super) fn check(compiled: &Compiled, shapes: &ValueShapes<'_>, findings: &mut Findings) {
    for (index, step) in compiled.document.steps.iter().enumerate() {
        let Some(written) = step.for_each.as_ref().filter(|_| !step.skip) else {
            continue;
        };
        let ix = StepIx::new(index);
        let templates = compiled.templates.get(&ix);
        let template = templates.and_then(|templates| templates.for_each.as_ref());
        let found = match template {
            Some(Template::Reference(list)) => {
                let shape = shapes.find(ix, list).ok();
                let kind = shape.and_then(|shape| shape.type_name());
                kind.and_then(|kind| judge_type(&list.source, kind))
            }
            Some(Template::Text(_)) => Some((
                Code::NotAList,
                "text with references in it is no list".to_owned(),
            )),
            Some(Template::List(_)) => None,
            Some(Template::Object(_)) => Some((Code::NotAList, "an object is no list".to_owned())),
            Some(Template::Literal(value)) => judge_value(value),
            None => judge_value(written),
        };
        if let Some((code, problem)) = found {
            let finding = Finding::new(code, format!("/steps/{index}/forEach"), problem);
            findings.add(finding.of_step(step.id.as_ref()).suggest(Some(
                "`forEach` is a list, or a reference to one: `${step.field}`".to_owned(),
            )));
        }
    }
}

fn judge_type(reference: &str, kind: &str) -> Option<(Code, String)> {
    match kind {
        "array" => None,
        "string" => Some((
            Code::UndeclaredField,
            format!("`${{{reference}}}` is text, and a list only if that text is JSON"),
        )),
        kind => Some((
            Code::NotAList,
            format!("`${{{reference}}}` is of type {kind}, and no list"),
        )),
    }
}

fn judge_value(value: &Value) -> Option<(Code, String)> {
    (!value.is_array()).then(|| (Code::NotAList, "the value is no list".to_owned()))
}
