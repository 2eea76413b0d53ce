//! The parts of values that an expression asks for: `status.clean`, `rows[0].name`, `steps.s1.total`.

use super::parse::{Expression, indexed_step};
use crate::plan::PathSegment;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};

/// A name that an expression takes from outside, and the part of it that is asked for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct NamedPath {
    /// The name; `steps.x` is one.
    pub(crate) root: String,
    pub(crate) path: Vec<PathSegment>,
}

impl Expression {
    /// The parts that are asked for without asking first whether they are there. Names that the
    /// expression's own macros bind are left out.
    pub(crate) fn paths(&self) -> Vec<NamedPath> {
        let mut paths = Vec::new();
        collect(self.tree(), &mut Vec::new(), &mut paths);
        paths
    }
}

fn collect<'a>(expression: &'a IdedExpr, bound: &mut Vec<&'a str>, paths: &mut Vec<NamedPath>) {
    if let Some(path) = chain(expression, bound) {
        paths.extend(Some(path).filter(|path| !path.path.is_empty()));
        return;
    }
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
        Expr::Call(call) => {
            for part in call.target.as_deref().into_iter().chain(&call.args) {
                collect(part, bound, paths);
            }
        }
        Expr::List(list) => list
            .elements
            .iter()
            .for_each(|element| collect(element, bound, paths)),
        Expr::Map(map) => collect_entries(&map.entries, bound, paths),
        Expr::Struct(structure) => collect_entries(&structure.entries, bound, paths),
        // `has(a.b)` asks whether it is there.
        Expr::Select(select) if select.test => {}
        Expr::Select(select) => collect(&select.operand, bound, paths),
        Expr::Comprehension(parts) => {
            collect(&parts.iter_range, bound, paths);
            collect(&parts.accu_init, bound, paths);
            let outer = bound.len();
            bound.extend([parts.iter_var.as_str(), parts.accu_var.as_str()]);
            bound.extend(parts.iter_var2.as_deref());
            for part in [&parts.loop_cond, &parts.loop_step, &parts.result] {
                collect(part, bound, paths);
            }
            bound.truncate(outer);
        }
    }
}

fn collect_entries<'a>(
    entries: &'a [IdedEntryExpr],
    bound: &mut Vec<&'a str>,
    paths: &mut Vec<NamedPath>,
) {
    for entry in entries {
        match &entry.expr {
            EntryExpr::StructField(field) => collect(&field.value, bound, paths),
            EntryExpr::MapEntry(entry) => {
                collect(&entry.key, bound, paths);
                collect(&entry.value, bound, paths);
            }
        }
    }
}

/// A name with nothing but fields and indices after it.
fn chain(expression: &IdedExpr, bound: &[&str]) -> Option<NamedPath> {
    match &expression.expr {
        Expr::Ident(name) => {
            let is_outside = !name.starts_with('@') && !bound.contains(&name.as_str());
            is_outside.then(|| NamedPath {
                root: name.clone(),
                path: Vec::new(),
            })
        }
        Expr::Select(select) if !select.test => {
            if matches!(&select.operand.expr, Expr::Ident(root) if root == "steps") {
                return Some(NamedPath {
                    root: format!("steps.{}", select.field),
                    path: Vec::new(),
                });
            }
            let mut path = chain(&select.operand, bound)?;
            path.path
                .push(PathSegment::Field(select.field.as_str().into()));
            Some(path)
        }
        Expr::Call(call) => {
            if let Some(id) = indexed_step(&call.func_name, &call.args) {
                return Some(NamedPath {
                    root: format!("steps.{id}"),
                    path: Vec::new(),
                });
            }
            let [operand, index] = call.args.as_slice() else {
                return None;
            };
            let Expr::Literal(index) = &index.expr else {
                return None;
            };
            if call.func_name != "_[_]" {
                return None;
            }
            let mut path = chain(operand, bound)?;
            path.path.push(segment(index)?);
            Some(path)
        }
        Expr::Unspecified
        | Expr::Literal(_)
        | Expr::List(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Select(_)
        | Expr::Comprehension(_) => None,
    }
}

fn segment(index: &LiteralValue) -> Option<PathSegment> {
    match index {
        LiteralValue::String(name) => Some(PathSegment::Field(name.inner().into())),
        LiteralValue::Int(index) => usize::try_from(*index.inner()).ok().map(PathSegment::Index),
        LiteralValue::Boolean(_)
        | LiteralValue::Bytes(_)
        | LiteralValue::Double(_)
        | LiteralValue::Null
        | LiteralValue::UInt(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(source: &str) -> Vec<String> {
        let paths = Expression::parse(source).unwrap().paths();
        let written = paths.into_iter().map(|path| {
            let segments = path.path.into_iter().map(|segment| match segment {
                PathSegment::Field(name) => format!(".{name}"),
                PathSegment::Index(index) => format!("[{index}]"),
            });
            path.root + &segments.collect::<String>()
        });
        written.collect()
    }

    #[test]
    fn parts_of_outside_names_are_found() {
        assert_eq!(
            paths("!status.clean && rows[0].name == x.y['odd key'].z"),
            ["status.clean", "rows[0].name", "x.y.odd key.z"]
        );
        assert_eq!(
            paths("steps.a.b == 1 && steps['c-d'].e[2] > size(f.g)"),
            ["steps.a.b", "steps.c-d.e[2]", "f.g"]
        );
    }

    #[test]
    fn what_is_asked_about_first_and_what_a_macro_binds_is_left_out() {
        assert!(paths("has(a.b) || a == 1").is_empty());
        assert_eq!(
            paths("list.items.exists(x, x.name == other.name)"),
            ["list.items", "other.name"]
        );
        assert!(paths("json(text).a.b == 1").is_empty());
    }
}
