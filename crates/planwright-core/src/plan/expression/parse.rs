//! CEL expressions: the only place that knows the library that reads them.
//!
//! Expressions come from models and from the network. The library's default parser aborts the
//! process on deep input, and evaluating recurses once per operator, so the size of an expression
//! is bounded before it is parsed.

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};
use cel::parser::PrattParser;
use std::collections::BTreeSet;

const MAX_SOURCE: usize = 2 << 10;
const MAX_NESTING: usize = 32;
/// Characters that can deepen the syntax tree. Counted in strings too: what looks like a string to
/// a simple scan may be none to the parser, and a limit must not be guessed around.
const MAX_OPERATORS: usize = 200;
const MAX_NODES: usize = 1_000;
/// Levels of the syntax tree. Evaluating takes tens of kilobytes of stack for each.
const MAX_TREE_DEPTH: usize = 40;

/// A parsed expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Expression(IdedExpr);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ParseExpressionError {
    #[error("the expression has {0} bytes, at most {MAX_SOURCE} are read")]
    TooLong(usize),
    #[error(
        "the expression nests too deeply: {MAX_NESTING} levels of brackets or {MAX_TREE_DEPTH} of operators"
    )]
    TooDeep,
    #[error("the expression has more than {MAX_OPERATORS} operators")]
    TooManyOperators,
    #[error("the expression is empty")]
    Empty,
    #[error("{0}")]
    Syntax(String),
}

impl Expression {
    pub(crate) fn parse(source: &str) -> Result<Self, ParseExpressionError> {
        check_size(source)?;
        let parser = PrattParser::new()
            .max_recursion_depth(96)
            .max_expression_node_count(MAX_NODES)
            .error_recovery_limit(1)
            .error_reporting_limit(1);
        let tree = parser.parse(source).map_err(|errors| {
            let first = errors.errors.first();
            let message = first.map_or("it is not CEL", |error| error.msg.as_str());
            let column = first.map_or(1, |error| error.pos.1.max(1));
            ParseExpressionError::Syntax(format!("{message} (column {column})"))
        })?;
        if is_deeper(&tree, MAX_TREE_DEPTH) {
            Err(ParseExpressionError::TooDeep)
        } else {
            Ok(Self(tree))
        }
    }

    pub(super) fn tree(&self) -> &IdedExpr {
        &self.0
    }

    /// The names the expression takes from outside, without those its own macros bind. `steps.x` is
    /// one name.
    pub(crate) fn names(&self) -> BTreeSet<String> {
        let mut names = BTreeSet::new();
        collect(&self.0, &mut Vec::new(), &mut names);
        names
    }

    /// Returns whether the value is false in every case. Only what needs no variable, loop or
    /// function is decided.
    pub(crate) fn is_always_false(&self) -> bool {
        if !is_constant(&self.0) {
            return false;
        }
        let context = cel::Context::default();
        matches!(
            cel::Value::resolve(&self.0, &context),
            Ok(cel::Value::Bool(false))
        )
    }
}

fn check_size(source: &str) -> Result<(), ParseExpressionError> {
    if source.len() > MAX_SOURCE {
        return Err(ParseExpressionError::TooLong(source.len()));
    }
    if source.trim().is_empty() {
        return Err(ParseExpressionError::Empty);
    }
    let mut depth = 0_usize;
    let mut operators = source
        .split_ascii_whitespace()
        .filter(|word| *word == "in")
        .count();
    for byte in source.bytes() {
        match byte {
            b'(' | b'[' | b'{' => {
                depth += 1;
                operators += 1;
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'!' | b'-' | b'+' | b'*' | b'/' | b'%' | b'<' | b'>' | b'=' | b'&' | b'|' | b'?'
            | b'.' => {
                operators += 1;
            }
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(ParseExpressionError::TooDeep);
        }
    }
    if operators > MAX_OPERATORS {
        Err(ParseExpressionError::TooManyOperators)
    } else {
        Ok(())
    }
}

/// Returns whether the tree has more than `depth` levels.
fn is_deeper(expression: &IdedExpr, depth: usize) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return true;
    };
    let any = |mut parts: &mut dyn Iterator<Item = &IdedExpr>| {
        (&mut parts).any(|part| is_deeper(part, depth))
    };
    let entries = |entries: &[IdedEntryExpr]| {
        entries.iter().any(|entry| match &entry.expr {
            EntryExpr::StructField(field) => is_deeper(&field.value, depth),
            EntryExpr::MapEntry(entry) => {
                is_deeper(&entry.key, depth) || is_deeper(&entry.value, depth)
            }
        })
    };
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => false,
        Expr::Call(call) => any(&mut call.target.as_deref().into_iter().chain(&call.args)),
        Expr::List(list) => any(&mut list.elements.iter()),
        Expr::Map(map) => entries(&map.entries),
        Expr::Struct(structure) => entries(&structure.entries),
        Expr::Select(select) => is_deeper(&select.operand, depth),
        Expr::Comprehension(parts) => any(&mut [
            &parts.iter_range,
            &parts.accu_init,
            &parts.loop_cond,
            &parts.loop_step,
            &parts.result,
        ]
        .into_iter()),
    }
}

fn collect<'a>(expression: &'a IdedExpr, bound: &mut Vec<&'a str>, names: &mut BTreeSet<String>) {
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => {}
        Expr::Ident(name) => {
            if !name.starts_with('@') && !bound.contains(&name.as_str()) {
                names.insert(name.clone());
            }
        }
        Expr::Call(call) => {
            if let Some(id) = indexed_step(&call.func_name, &call.args) {
                names.insert(format!("steps.{id}"));
                return;
            }
            for part in call.target.as_deref().into_iter().chain(&call.args) {
                collect(part, bound, names);
            }
        }
        Expr::List(list) => list
            .elements
            .iter()
            .for_each(|element| collect(element, bound, names)),
        Expr::Map(map) => entries(&map.entries, bound, names),
        Expr::Struct(structure) => entries(&structure.entries, bound, names),
        Expr::Select(select) => {
            if matches!(&select.operand.expr, Expr::Ident(root) if root == "steps") {
                names.insert(format!("steps.{}", select.field));
            } else {
                collect(&select.operand, bound, names);
            }
        }
        Expr::Comprehension(parts) => {
            collect(&parts.iter_range, bound, names);
            collect(&parts.accu_init, bound, names);
            let outer = bound.len();
            bound.extend([parts.iter_var.as_str(), parts.accu_var.as_str()]);
            bound.extend(parts.iter_var2.as_deref());
            for part in [&parts.loop_cond, &parts.loop_step, &parts.result] {
                collect(part, bound, names);
            }
            bound.truncate(outer);
        }
    }
}

/// The id in `steps["id"]`: ids may have characters that no field name has.
pub(super) fn indexed_step<'a>(function: &str, args: &'a [IdedExpr]) -> Option<&'a str> {
    match args {
        [
            IdedExpr {
                expr: Expr::Ident(root),
                ..
            },
            IdedExpr {
                expr: Expr::Literal(literal),
                ..
            },
        ] if function == "_[_]" && root == "steps" => {
            if let LiteralValue::String(id) = literal {
                Some(id.inner())
            } else {
                None
            }
        }
        _ => None,
    }
}

fn entries<'a>(
    entries: &'a [IdedEntryExpr],
    bound: &mut Vec<&'a str>,
    names: &mut BTreeSet<String>,
) {
    for entry in entries {
        match &entry.expr {
            EntryExpr::StructField(field) => collect(&field.value, bound, names),
            EntryExpr::MapEntry(entry) => {
                collect(&entry.key, bound, names);
                collect(&entry.value, bound, names);
            }
        }
    }
}

/// Literals and operators only: such an expression ends after as many steps as it has nodes.
fn is_constant(expression: &IdedExpr) -> bool {
    match &expression.expr {
        Expr::Literal(_) => true,
        Expr::Call(call) => {
            let is_operator = call.func_name.contains('_')
                && !call.func_name.starts_with(char::is_alphabetic)
                || call.func_name == "@in";
            is_operator && call.target.is_none() && call.args.iter().all(is_constant)
        }
        Expr::List(list) => list.elements.iter().all(is_constant),
        Expr::Unspecified
        | Expr::Ident(_)
        | Expr::Map(_)
        | Expr::Struct(_)
        | Expr::Select(_)
        | Expr::Comprehension(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(source: &str) -> Expression {
        Expression::parse(source).unwrap()
    }

    #[test]
    fn names_come_from_outside_only() {
        let expression = parse("items.all(x, x.size > limit) && has(a.b) && [c][0] == {'k': d}.k");
        assert_eq!(
            expression.names().into_iter().collect::<Vec<_>>(),
            ["a", "c", "d", "items", "limit"]
        );
        let steps = parse("steps.a.b == 1 && steps['c-d'].e == 2").names();
        assert_eq!(
            steps.into_iter().collect::<Vec<_>>(),
            ["steps.a", "steps.c-d"]
        );
    }

    #[test]
    fn only_constants_are_always_false() {
        for source in ["false", "1 > 2", "!true", "'a' in ['b']", "true && false"] {
            assert!(parse(source).is_always_false(), "{source}");
        }
        for source in [
            "true",
            "x > 2",
            "x && false",
            "size('') > 0",
            "1 / 0 == 1",
            "[1].exists(x, x == 2)",
        ] {
            assert!(!parse(source).is_always_false(), "{source}");
        }
    }

    #[test]
    fn hostile_expressions_are_errors_and_end_nothing() {
        let hostile = [
            "(".repeat(2_000),
            "!".repeat(2_000),
            "-".repeat(2_000),
            "a.".repeat(1_000),
            "[".repeat(33) + "1" + &"]".repeat(33),
            format!("1{}", "+1".repeat(1_000)),
            format!("a{}", " in a".repeat(400)),
            format!("a{}", "?a:a".repeat(400)),
            "\"))))))))\" + ((((".repeat(100),
            "a".repeat(3_000),
            "a.all(x,".repeat(60),
            String::new(),
            "\0".into(),
            "'".into(),
            "1 +".into(),
        ];
        for source in hostile {
            assert!(Expression::parse(&source).is_err(), "{source:.60}");
        }
    }

    #[test]
    fn the_largest_expression_is_read_and_decided() {
        for source in [
            format!("1{} == 0", "+1".repeat(37)),
            format!("{}true", "!".repeat(39)),
            format!("{}1{} == 0", "(".repeat(32), ")".repeat(32)),
            format!("a{}", ".b".repeat(39)),
            format!("{}true{}", "[1].all(x, ".repeat(9), ")".repeat(9)),
            format!("a{}", " && a".repeat(60)),
        ] {
            let expression =
                Expression::parse(&source).unwrap_or_else(|error| panic!("{source}: {error}"));
            expression.is_always_false();
            expression.names();
        }
    }
}
