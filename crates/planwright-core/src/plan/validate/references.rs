//! References against what the steps before return: a part that a value does not have is found
//! before anything runs, not after half of the plan is done.

use super::value_shape::{MissingPart, ValueShapes, Why};
use crate::id::StepId;
use crate::json::pointer_token;
use crate::plan::compile::Compiled;
use crate::plan::finding::Findings;
use crate::plan::reference::StepTemplates;
use crate::plan::{Code, Finding, PathSegment, Reference, Root, Segment, Step, StepIx, Template};
use crate::text::{did_you_mean, nearest_names};

/// Keys that a message names.
const MAX_KEYS: usize = 12;

pub(super) fn check(compiled: &Compiled, shapes: &ValueShapes<'_>, findings: &mut Findings) {
    for (ix, templates) in &compiled.templates {
        let step = &compiled.document.steps[ix.index()];
        if step.skip {
            continue;
        }
        for (pointer, template) in placed_templates(templates, step, *ix) {
            check_template(compiled, shapes, *ix, (pointer, template), findings);
        }
    }
    if let Some(outputs) = &compiled.outputs {
        let end = StepIx::new(compiled.document.steps.len());
        check_template(
            compiled,
            shapes,
            end,
            ("/outputs".to_owned(), outputs),
            findings,
        );
    }
}

fn check_template(
    compiled: &Compiled,
    shapes: &ValueShapes<'_>,
    ix: StepIx,
    (pointer, template): (String, &Template),
    findings: &mut Findings,
) {
    let steps = &compiled.document.steps;
    let step = steps.get(ix.index()).and_then(|step| step.id.as_ref());
    each_placed_reference(template, pointer, &mut |reference, pointer| {
        if let Err(missing) = shapes.find(ix, reference) {
            let shown = format!("`${{{}}}`", reference.source);
            let placed = (step, pointer);
            let finding = describe(compiled, placed, (reference, &shown), &missing, findings);
            findings.add(finding);
        }
    });
}

/// The templates of a step with the JSON pointers of what they were read from.
fn placed_templates<'a>(
    templates: &'a StepTemplates,
    step: &Step,
    ix: StepIx,
) -> Vec<(String, &'a Template)> {
    let prompt = if step.think.is_some() {
        "think/prompt"
    } else {
        "agent/instruction"
    };
    let placed = [
        ("args", &templates.args),
        ("undo/args", &templates.undo),
        ("plan/inputs", &templates.inputs),
        ("forEach", &templates.for_each),
        ("input/message", &templates.message),
        (prompt, &templates.prompt),
        ("agent/target", &templates.target),
    ];
    let placed = placed.into_iter();
    placed
        .filter_map(|(place, template)| {
            let pointer = format!("/steps/{}/{place}", ix.index());
            Some((pointer, template.as_ref()?))
        })
        .collect()
}

fn each_placed_reference(
    template: &Template,
    pointer: String,
    visit: &mut dyn FnMut(&Reference, &str),
) {
    match template {
        Template::Literal(_) => {}
        Template::Reference(reference) => visit(reference, &pointer),
        Template::Text(segments) => {
            for segment in segments {
                if let Segment::Reference(reference) = segment {
                    visit(reference, &pointer);
                }
            }
        }
        Template::List(list) => {
            for (index, element) in list.iter().enumerate() {
                each_placed_reference(element, format!("{pointer}/{index}"), visit);
            }
        }
        Template::Object(entries) => {
            for (key, element) in entries {
                let inside = format!("{pointer}/{}", pointer_token(key));
                each_placed_reference(element, inside, visit);
            }
        }
    }
}

/// Says what is missing. `shown` is the reference as the plan has it.
pub(super) fn describe(
    compiled: &Compiled,
    (step, pointer): (Option<&StepId>, &str),
    (reference, shown): (&Reference, &str),
    missing: &MissingPart,
    findings: &Findings,
) -> Finding {
    let whole = written(compiled, reference, missing.depth);
    let asked = match &reference.path[missing.depth] {
        PathSegment::Field(name) => name.to_string(),
        PathSegment::Index(index) => index.to_string(),
    };
    let (code, problem, suggestion) = match &missing.why {
        Why::Closed(keys) => (
            Code::UnknownField,
            format!("`{whole}` has no part `{asked}`"),
            findings.hint(|| suggest_key(&asked, keys)),
        ),
        Why::Open(keys) => (
            Code::UndeclaredField,
            format!("`{whole}` is not declared to have a part `{asked}`"),
            findings.hint(|| suggest_key(&asked, keys)),
        ),
        Why::Text => (
            Code::UndeclaredField,
            format!("`{whole}` is text, and has parts only if that text is JSON"),
            Some(suggest_for_text(compiled, reference, &whole)),
        ),
        Why::List => (
            Code::UnknownField,
            format!("`{whole}` is a list and has no part `{asked}`"),
            Some(format!(
                "`${{{whole}[0]}}` is its first element; `forEach: \"${{{whole}}}\"` runs a step for each, \
                 which it sees as `${{item}}`"
            )),
        ),
        Why::Scalar(kind) => (
            Code::UnknownField,
            format!("`{whole}` is {kind} and has no parts"),
            Some(format!("write `${{{whole}}}`")),
        ),
        Why::Unseen(keys) => (
            Code::UndeclaredField,
            format!("`{whole}` had no part `{asked}` in earlier results"),
            findings.hint(|| suggest_key(&asked, keys)),
        ),
        Why::UnseenIn(kind) => (
            Code::UndeclaredField,
            format!("`{whole}` was {kind} in earlier results, without a part `{asked}`"),
            Some(format!("`${{{whole}}}` is the whole value")),
        ),
    };
    let message = format!("{shown}: {problem}");
    Finding::new(code, pointer, message)
        .of_step(step)
        .suggest(suggestion)
}

/// The part of a reference that has a value, as one would write it.
fn written(compiled: &Compiled, reference: &Reference, depth: usize) -> String {
    let mut text = match &reference.root {
        Root::Variable(name) | Root::Secret(name) => name.to_string(),
        Root::Step(ix) => {
            let id = compiled.document.steps[ix.index()].id.as_ref();
            id.map(ToString::to_string).unwrap_or_default()
        }
    };
    for segment in &reference.path[..depth] {
        let part = match segment {
            PathSegment::Index(index) => format!("[{index}]"),
            PathSegment::Field(name) if crate::plan::reference::is_name(name) => format!(".{name}"),
            PathSegment::Field(name) => format!("[{name:?}]"),
        };
        text.push_str(&part);
    }
    text
}

fn suggest_key(asked: &str, keys: &[String]) -> Option<String> {
    let near = did_you_mean(&nearest_names(asked, keys.to_vec()));
    near.or_else(|| {
        let named: Vec<&str> = keys.iter().take(MAX_KEYS).map(String::as_str).collect();
        (!named.is_empty()).then(|| format!("it has {}", named.join(", ")))
    })
}

fn suggest_for_text(compiled: &Compiled, reference: &Reference, whole: &str) -> String {
    let thinks = match reference.root {
        Root::Step(ix) => compiled.document.steps[ix.index()].think.is_some(),
        Root::Variable(_) | Root::Secret(_) => false,
    };
    if thinks {
        return "give the `think` step a `schema` with this part".to_owned();
    }
    format!("`${{{whole}}}` is the whole text")
}
