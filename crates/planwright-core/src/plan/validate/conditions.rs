//! The parts that `when`, `expect` and `constraints` ask for, against what the steps before return.

use super::references::describe;
use super::value_shape::ValueShapes;
use crate::plan::compile::Compiled;
use crate::plan::expression::{Expression, NamedPath};
use crate::plan::finding::Findings;
use crate::plan::{PathSegment, Reference, Root, Step, StepIx};

pub(super) fn check(compiled: &Compiled, shapes: &ValueShapes<'_>, findings: &mut Findings) {
    for (index, step) in compiled.document.steps.iter().enumerate() {
        if step.skip {
            continue;
        }
        let mut check = |source: &str, place: String, sees_call: bool| {
            // What cannot be read is found elsewhere.
            let Ok(expression) = Expression::parse(source) else {
                return;
            };
            let at = Place {
                compiled,
                step,
                ix: StepIx::new(index),
                pointer: format!("/steps/{index}/{place}"),
                sees_call,
            };
            for path in expression.paths() {
                at.check(path, shapes, findings);
            }
        };
        if let Some(source) = &step.when {
            check(source, "when".to_owned(), false);
        }
        if let Some(source) = &step.expect {
            check(source, "expect".to_owned(), true);
        }
        for (number, source) in step.constraints.iter().enumerate() {
            check(source, format!("constraints/{number}"), true);
        }
    }
}

/// Where an expression stands.
struct Place<'a> {
    compiled: &'a Compiled,
    step: &'a Step,
    ix: StepIx,
    pointer: String,
    /// True if it sees the arguments of the call, and what came of it.
    sees_call: bool,
}

impl Place<'_> {
    fn check(&self, asked: NamedPath, shapes: &ValueShapes<'_>, findings: &mut Findings) {
        let NamedPath { root, path } = asked;
        let root_shape = match self.sees_call {
            true if root == "result" => shapes.own_result(self.ix),
            true if root == "args" || self.step.args.contains_key(&root) => return,
            true | false => shapes.named(self.ix, &root),
        };
        let Err(missing) = root_shape.follow(&path) else {
            return;
        };
        let reference = Reference {
            source: written(&root, &path).into(),
            root: Root::Variable(root.into()),
            path,
        };
        let shown = format!("`{}`", reference.source);
        let finding = describe(
            self.compiled,
            (self.step.id.as_ref(), &self.pointer),
            (&reference, &shown),
            &missing,
            findings,
        );
        findings.add(finding);
    }
}

fn written(root: &str, path: &[PathSegment]) -> String {
    let segments = path.iter().map(|segment| match segment {
        PathSegment::Field(name) if crate::plan::reference::is_name(name) => format!(".{name}"),
        PathSegment::Field(name) => format!("[{name:?}]"),
        PathSegment::Index(index) => format!("[{index}]"),
    });
    root.to_owned() + &segments.collect::<String>()
}
