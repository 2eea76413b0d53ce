//! The size that the values of an expression can reach.
//!
//! `x + x` in a loop over the result of such a loop doubles a value with every loop, so that a short
//! expression could ask for more memory than there is. The bound follows from the syntax tree and
//! the sizes of the values that are looked at, before anything is evaluated.

use super::evaluate::{READ_JSON, VALUE_SIZE};
use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr, LiteralValue};
use std::collections::BTreeMap;

/// Functions and operators whose result is a number or a boolean, regardless of what they are
/// given.
const SCALAR: [&str; 24] = [
    "_==_",
    "_!=_",
    "_<_",
    "_<=_",
    "_>_",
    "_>=_",
    "_&&_",
    "_||_",
    "!_",
    "-_",
    "_-_",
    "_*_",
    "_/_",
    "_%_",
    "@in",
    "@not_strictly_false",
    "size",
    "matches",
    "contains",
    "startsWith",
    "endsWith",
    "int",
    "uint",
    "double",
];

/// The most that a value can be.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Bound {
    /// Of all values in it, with their texts.
    pub(super) size: u64,
    /// The length of the longest list or object in it.
    pub(super) longest: u64,
}

impl Bound {
    const SCALAR: Self = Self::of_text(0);

    const fn of_text(bytes: usize) -> Self {
        Self {
            size: VALUE_SIZE + bytes as u64,
            longest: 0,
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            longest: self.longest.saturating_add(other.longest),
        }
    }

    fn max(self, other: Self) -> Self {
        Self {
            size: self.size.max(other.size),
            longest: self.longest.max(other.longest),
        }
    }
}

/// The bounds of the values of an expression, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct Growth<'a> {
    names: BTreeMap<&'a str, Bound>,
    /// Of all values on the way.
    largest: Bound,
    /// The most elements that a text can have once it is read as JSON.
    elements: u64,
}

impl<'a> Growth<'a> {
    /// Notes how large the value of a name is. Other names have none.
    pub(super) fn note(&mut self, name: &'a str, bound: Bound) {
        self.names.insert(name, bound);
    }

    /// Notes how many elements a text can have once it is read as JSON.
    pub(super) fn note_elements(&mut self, elements: u64) {
        self.elements = elements;
    }

    /// Returns what no value exceeds that evaluating makes.
    pub(super) fn largest(mut self, expression: &'a IdedExpr) -> Bound {
        self.bound(expression);
        self.largest
    }

    fn bound(&mut self, expression: &'a IdedExpr) -> Bound {
        let bound = match &expression.expr {
            Expr::Literal(LiteralValue::String(text)) => Bound::of_text(text.inner().len()),
            Expr::Literal(LiteralValue::Bytes(bytes)) => Bound::of_text(bytes.inner().len()),
            Expr::Literal(
                LiteralValue::Boolean(_)
                | LiteralValue::Double(_)
                | LiteralValue::Int(_)
                | LiteralValue::Null
                | LiteralValue::UInt(_),
            )
            | Expr::Unspecified => Bound::SCALAR,
            Expr::Ident(name) => self.names.get(name.as_str()).copied().unwrap_or_default(),
            Expr::Select(select) => self.bound(&select.operand),
            Expr::List(list) => self.bound_of_parts(&list.elements, list.elements.len()),
            Expr::Map(map) => self.bound_of_entries(&map.entries),
            Expr::Struct(structure) => self.bound_of_entries(&structure.entries),
            Expr::Comprehension(parts) => self.bound_of_loop(parts),
            Expr::Call(call) => {
                let parts = call.target.as_deref().into_iter().chain(&call.args);
                let parts: Vec<Bound> = parts.map(|part| self.bound(part)).collect();
                match (call.func_name.as_str(), parts.as_slice()) {
                    ("_?_:_", [_, yes, no]) => yes.max(*no),
                    ("_[_]", [value, _]) => *value,
                    // Two characters of text are at least needed for a value.
                    (READ_JSON, [text]) => Bound {
                        size: text.size.saturating_mul(1 + VALUE_SIZE / 2),
                        longest: self.elements,
                    },
                    (name, _) if SCALAR.contains(&name) => Bound::SCALAR,
                    _ => parts
                        .iter()
                        .fold(Bound::SCALAR, |sum, part| sum.plus(*part)),
                }
            }
        };
        self.largest = self.largest.max(bound);
        bound
    }

    /// A list or an object of these parts.
    fn bound_of_parts(
        &mut self,
        parts: impl IntoIterator<Item = &'a IdedExpr>,
        count: usize,
    ) -> Bound {
        let mut all = Bound {
            size: VALUE_SIZE,
            longest: count as u64,
        };
        for part in parts {
            let part = self.bound(part);
            all.size = all.size.saturating_add(part.size);
            all.longest = all.longest.max(part.longest);
        }
        all
    }

    fn bound_of_entries(&mut self, entries: &'a [IdedEntryExpr]) -> Bound {
        let parts = entries.iter().flat_map(|entry| match &entry.expr {
            EntryExpr::StructField(field) => [Some(&field.value), None],
            EntryExpr::MapEntry(entry) => [Some(&entry.key), Some(&entry.value)],
        });
        self.bound_of_parts(parts.flatten(), entries.len())
    }

    /// What all turns add to the result. Each makes something of its element, which is together at
    /// most what one turn would make of all elements, and something of its own.
    fn bound_of_loop(&mut self, parts: &'a ComprehensionExpr) -> Bound {
        let range = self.bound(&parts.iter_range);
        let begin = self.bound(&parts.accu_init);
        let of_elements = self.bound_of_turn(parts, range);
        let own = self.bound_of_turn(parts, Bound::default());
        let own = own.size.saturating_mul(range.longest);
        let size = begin.size.saturating_add(of_elements.size);
        let result = Bound {
            size: size.saturating_add(own),
            longest: range.longest.max(of_elements.longest).max(begin.longest),
        };
        self.with(&parts.accu_var, result, |growth| {
            growth.bound(&parts.result)
        })
    }

    fn bound_of_turn(&mut self, parts: &'a ComprehensionExpr, element: Bound) -> Bound {
        let second = parts.iter_var2.as_deref().unwrap_or_default();
        self.with(&parts.iter_var, element, |growth| {
            growth.with(second, element, |growth| {
                growth.with(&parts.accu_var, Bound::default(), |growth| {
                    growth.bound(&parts.loop_cond);
                    growth.bound(&parts.loop_step)
                })
            })
        })
    }

    /// Looks at something in which a name stands for something else.
    fn with(
        &mut self,
        name: &'a str,
        bound: Bound,
        look: impl FnOnce(&mut Self) -> Bound,
    ) -> Bound {
        let outer = self.names.insert(name, bound);
        let found = look(self);
        match outer {
            Some(outer) => self.names.insert(name, outer),
            None => self.names.remove(name),
        };
        found
    }
}
