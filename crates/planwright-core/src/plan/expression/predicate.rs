//! Deciding a CEL predicate over values that are known.
//!
//! The result is a clear yes, a clear no, or an error. The caller decides what an error means, and
//! must not take it for a yes.

use super::evaluate::Scope;
use super::hosts::HostPrefixes;
use super::parse::Expression;
use super::plain_paths::without_detours;
use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A predicate that was read once and can be decided many times.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    source: String,
    expression: Expression,
    arguments: ArgumentUse,
    hosts: HostPrefixes,
}

/// The arguments of a call that a predicate looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArgumentUse {
    /// Only these, each as `args.name`.
    Fields(BTreeSet<String>),
    /// `args` as a whole.
    All,
}

impl Condition {
    /// Reads a predicate, or says why it is none.
    pub fn parse(source: &str) -> Result<Self, String> {
        let expression = Expression::parse(source).map_err(|error| error.to_string())?;
        let arguments = argument_use(expression.tree());
        let hosts = HostPrefixes::of(expression.tree());
        Ok(Self {
            source: source.to_owned(),
            expression,
            arguments,
            hosts,
        })
    }

    /// Returns the predicate as it is written.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// Returns the arguments the predicate looks at.
    pub fn arguments(&self) -> &ArgumentUse {
        &self.arguments
    }

    /// The names it takes from outside.
    pub fn names(&self) -> BTreeSet<String> {
        self.expression.names()
    }

    /// Returns whether it is true of these values. Anything but `true` or `false` is an error.
    pub fn holds<'a>(
        &self,
        names: impl IntoIterator<Item = (&'a str, &'a Value)>,
    ) -> Result<bool, String> {
        let mut scope = Scope::default();
        scope.names.extend(
            names
                .into_iter()
                .map(|(name, value)| (name.to_owned(), Cow::Borrowed(value))),
        );
        self.expression
            .holds(&scope)
            .map_err(|error| error.to_string())
    }

    /// Returns whether an argument only looks like an address that the predicate is about.
    pub(crate) fn mistakes_host(&self, args: &Value) -> bool {
        self.hosts.mistake(args)
    }

    /// Returns whether it is true of a call's arguments, as they are written and as the paths and
    /// addresses in them lead: `args.name`, or the bare name of an argument.
    pub fn holds_for_args(&self, args: &Value) -> Result<bool, String> {
        let plain = without_detours(args);
        Ok(!self.mistakes_host(args)
            && self.holds_for_written(args)?
            && plain.map_or(Ok(true), |plain| self.holds_for_written(&plain))?)
    }

    fn holds_for_written(&self, args: &Value) -> Result<bool, String> {
        let fields = args
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value));
        self.holds(fields.chain([("args", args)]))
    }
}

fn argument_use(tree: &IdedExpr) -> ArgumentUse {
    let mut fields = BTreeSet::new();
    if uses_args_whole(tree, &mut fields) {
        ArgumentUse::All
    } else {
        ArgumentUse::Fields(fields)
    }
}

/// Notes every `args.name`, and says whether `args` stands anywhere else. A name that a macro binds
/// counts too: taking too much for an argument is the safe mistake.
fn uses_args_whole(expression: &IdedExpr, fields: &mut BTreeSet<String>) -> bool {
    match &expression.expr {
        Expr::Unspecified | Expr::Literal(_) => false,
        Expr::Ident(name) => name == "args",
        Expr::Select(select) if matches!(&select.operand.expr, Expr::Ident(root) if root == "args") =>
        {
            fields.insert(select.field.clone());
            false
        }
        Expr::Select(select) => uses_args_whole(&select.operand, fields),
        Expr::Call(call) => call
            .target
            .as_deref()
            .into_iter()
            .chain(&call.args)
            .any(|part| uses_args_whole(part, fields)),
        Expr::List(list) => list
            .elements
            .iter()
            .any(|part| uses_args_whole(part, fields)),
        Expr::Map(map) => entries_use_args(&map.entries, fields),
        Expr::Struct(structure) => entries_use_args(&structure.entries, fields),
        Expr::Comprehension(parts) => [
            &parts.iter_range,
            &parts.accu_init,
            &parts.loop_cond,
            &parts.loop_step,
            &parts.result,
        ]
        .into_iter()
        .any(|part| uses_args_whole(part, fields)),
    }
}

fn entries_use_args(entries: &[IdedEntryExpr], fields: &mut BTreeSet<String>) -> bool {
    entries.iter().any(|entry| match &entry.expr {
        EntryExpr::StructField(field) => uses_args_whole(&field.value, fields),
        EntryExpr::MapEntry(entry) => {
            uses_args_whole(&entry.key, fields) || uses_args_whole(&entry.value, fields)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn parse(source: &str) -> Condition {
        Condition::parse(source).unwrap()
    }

    #[test]
    fn a_predicate_is_true_false_or_an_error() {
        let args = json!({"path": "/etc/x", "n": 5, "list": ["a", "b"], "big": u64::MAX, "f": 1.5});
        for (source, expected) in [
            ("args.path.startsWith('/etc')", true),
            ("path == '/tmp'", false),
            ("args.n == 5 && n < 6 && f > 1.0", true),
            ("'a' in args.list && list.size() == 2", true),
            ("list.all(x, x.size() == 1)", true),
            ("has(args.missing)", false),
            ("args['path'] == '/etc/x'", true),
        ] {
            assert_eq!(
                parse(source).holds_for_args(&args),
                Ok(expected),
                "{source}"
            );
        }
        for source in [
            "args.missing == 1",
            "args.path",
            "1 / 0 == 1",
            "nobody",
            "args.n.startsWith('a')",
        ] {
            assert!(parse(source).holds_for_args(&args).is_err(), "{source}");
        }
    }

    #[test]
    fn the_arguments_a_predicate_looks_at_are_known() {
        let fields = |source: &str| match parse(source).arguments() {
            ArgumentUse::Fields(fields) => {
                Some(fields.iter().cloned().collect::<Vec<_>>().join(" "))
            }
            ArgumentUse::All => None,
        };
        assert_eq!(
            fields("args.a == 1 && has(args.b.c)").as_deref(),
            Some("a b")
        );
        assert_eq!(fields("tool == 'x'").as_deref(), Some(""));
        assert_eq!(fields("args['a'] == 1"), None);
        assert_eq!(fields("size(args) > 1"), None);
    }
}
