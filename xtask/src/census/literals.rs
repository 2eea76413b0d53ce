//! Words of statuses that stand as string literals where an enum should.

use super::source::{CrateSource, SourceFile};
use super::types::type_name;
use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};

/// The words for where a plan, a run or a step stands.
const STATUS_WORDS: &[&str] = &[
    "adjusted",
    "approved",
    "archived",
    "awaiting_approval",
    "awaiting_input",
    "awaiting_plan",
    "blocked",
    "cancelled",
    "changes_requested",
    "completed",
    "deleted",
    "denied",
    "draft",
    "executing",
    "expired",
    "failed",
    "needs_review",
    "opened",
    "outcome_unknown",
    "paused",
    "pending",
    "proposed",
    "ready",
    "rejected",
    "retry_due",
    "running",
    "skipped",
    "stalled",
    "undone",
    "waiting",
];

/// Places where strings are the contract: the outside, the documents other programs rely on, the
/// spelling of the enums themselves, the laws of stores (test code), and a dialect of plan files
/// that others write.
const EXEMPT: &[&str] = &[
    "crates/planwright-adapters/",
    "crates/planwright-api/",
    "crates/planwright-server/src/wire/",
    "crates/planwright-core/src/status/",
    "crates/planwright-core/src/plan/markdown/cursor.rs",
    "crates/planwright-engine/src/conformance/",
];

/// The ends of the names of types that are made of such words; their own tables are where the
/// words belong.
const WORD_TYPES: &[&str] = &["Status", "State", "Code"];

/// Lists every status word that the source has outside wire documents, adapters and the tables of
/// the types themselves.
///
/// A table is also a `match self` of an enum of another vocabulary, in which a variant stands for a
/// word: the word is spelled there once, and everything else compares variants.
pub(super) fn status_literals(crates: &[CrateSource]) -> Vec<String> {
    let files = crates.iter().flat_map(|krate| &krate.src);
    let files = files.filter(|file| {
        let path = file.path.to_string_lossy();
        !EXEMPT.iter().any(|place| path.starts_with(place))
    });
    files.flat_map(literals_in).collect()
}

fn literals_in(file: &SourceFile) -> Vec<String> {
    let mut literals = Literals {
        file,
        found: Vec::new(),
    };
    literals.visit_file(&file.syntax);
    literals.found
}

struct Literals<'a> {
    file: &'a SourceFile,
    found: Vec<String>,
}

impl Literals<'_> {
    fn add(&mut self, word: &str, span: proc_macro2::Span) {
        if STATUS_WORDS.contains(&word) {
            self.found
                .push(format!("{} \"{word}\"", self.file.place(span)));
        }
    }

    /// Reads the tokens of a macro. A literal before a colon is the name of a field, as in `json!`.
    fn read_tokens(&mut self, tokens: TokenStream) {
        let tokens: Vec<TokenTree> = tokens.into_iter().collect();
        for (index, token) in tokens.iter().enumerate() {
            let is_key = matches!(tokens.get(index + 1), Some(TokenTree::Punct(next)) if next.as_char() == ':');
            match token {
                TokenTree::Group(group) => self.read_tokens(group.stream()),
                TokenTree::Literal(literal) if !is_key => {
                    let text = literal.to_string();
                    self.add(text.trim_matches('"'), literal.span());
                }
                _ => {}
            }
        }
    }
}

impl<'a> Visit<'a> for Literals<'_> {
    fn visit_attribute(&mut self, _: &'a syn::Attribute) {}

    fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
        let name = type_name(&block.self_ty).unwrap_or_default();
        if !WORD_TYPES.iter().any(|end| name.ends_with(end)) {
            visit::visit_item_impl(self, block);
        }
    }

    fn visit_lit_str(&mut self, literal: &'a syn::LitStr) {
        self.add(&literal.value(), literal.span());
    }

    fn visit_expr_match(&mut self, table: &'a syn::ExprMatch) {
        let is_of_self = is_self(&table.expr);
        self.visit_expr(&table.expr);
        for arm in &table.arms {
            if is_of_self && is_own_variant(&arm.pat) && is_only_words(&arm.body) {
                continue;
            }
            self.visit_arm(arm);
        }
    }

    fn visit_macro(&mut self, called: &'a syn::Macro) {
        self.read_tokens(called.tokens.clone());
    }
}

/// Returns whether a value is `self`, `*self` or `&self`.
fn is_self(value: &syn::Expr) -> bool {
    match value {
        syn::Expr::Path(path) => path.path.is_ident("self"),
        syn::Expr::Unary(unary) => is_self(&unary.expr),
        syn::Expr::Reference(reference) => is_self(&reference.expr),
        _ => false,
    }
}

/// Returns whether a pattern is a variant of the type itself, or several.
fn is_own_variant(pattern: &syn::Pat) -> bool {
    let path = match pattern {
        syn::Pat::Path(path) => &path.path,
        syn::Pat::TupleStruct(variant) => &variant.path,
        syn::Pat::Struct(variant) => &variant.path,
        syn::Pat::Or(several) => return several.cases.iter().all(is_own_variant),
        _ => return false,
    };
    path.segments
        .first()
        .is_some_and(|first| first.ident == "Self")
}

/// Returns whether a value is a literal, several, or the code with which a kind of error is told.
fn is_only_words(value: &syn::Expr) -> bool {
    match value {
        syn::Expr::Lit(_) | syn::Expr::Path(_) => true,
        syn::Expr::Tuple(words) => words.elems.iter().all(is_only_words),
        syn::Expr::MethodCall(call) if call.method == "with_code" => {
            is_only_words(&call.receiver) && call.args.iter().all(is_only_words)
        }
        _ => false,
    }
}
