//! Names of functions that other modules call.

use super::source::{CrateSource, SourceFile};
use syn::visit::{self, Visit};

/// Single words that say enough, because the standard library taught them to every Rust
/// programmer.
const KNOWN_WORDS: &[&str] = &[
    "build", "builder", "clear", "close", "contains", "count", "default", "drain", "extend",
    "find", "finish", "first", "flush", "fold", "from", "get", "hash", "id", "insert", "iter",
    "join", "keys", "kind", "last", "len", "lock", "main", "map", "max", "min", "name", "new",
    "next", "now", "open", "parse", "path", "poll", "pop", "push", "read", "recv", "remove", "run",
    "send", "set", "sleep", "source", "spawn", "status", "take", "values", "wait", "with", "write",
];

/// Past participles that do not end in `-ed`.
const IRREGULAR_PARTICIPLES: &[&str] = &[
    "begun",
    "bound",
    "bought",
    "broken",
    "brought",
    "built",
    "caught",
    "chosen",
    "done",
    "drawn",
    "driven",
    "fallen",
    "fed",
    "felt",
    "forgotten",
    "fought",
    "found",
    "frozen",
    "given",
    "gone",
    "grown",
    "heard",
    "held",
    "hidden",
    "kept",
    "known",
    "laid",
    "learnt",
    "led",
    "left",
    "lent",
    "lost",
    "made",
    "meant",
    "met",
    "paid",
    "put",
    "said",
    "sealed",
    "seen",
    "sent",
    "shown",
    "shut",
    "sold",
    "sought",
    "spelt",
    "spent",
    "split_off",
    "spoken",
    "stood",
    "stolen",
    "struck",
    "sworn",
    "taken",
    "taught",
    "thought",
    "thrown",
    "told",
    "torn",
    "understood",
    "woken",
    "won",
    "worn",
    "written",
    "wrought",
];

/// Words that end in `-ed` and are no participles.
const NOT_PARTICIPLES: &[&str] = &[
    "bed", "embed", "feed", "need", "proceed", "seed", "shed", "speed",
];

/// A function with a visibility.
pub(super) struct PublicFunction {
    pub(super) name: String,
    pub(super) place: String,
}

impl PublicFunction {
    pub(super) fn is_one_word(&self) -> bool {
        !self.name.trim_matches('_').contains('_')
    }

    /// One word, and none that every Rust programmer knows.
    pub(super) fn is_unusual_word(&self) -> bool {
        self.is_one_word() && !KNOWN_WORDS.contains(&self.name.as_str())
    }

    /// A past participle alone: it says neither who does what nor what it returns.
    pub(super) fn is_bare_participle(&self) -> bool {
        let name = self.name.as_str();
        self.is_one_word()
            && !NOT_PARTICIPLES.contains(&name)
            && (name.ends_with("ed") || IRREGULAR_PARTICIPLES.contains(&name))
    }
}

/// Lists the functions and inherent methods with a visibility, and the methods of traits.
pub(super) fn public_functions(crates: &[CrateSource]) -> Vec<PublicFunction> {
    let files = crates.iter().flat_map(|krate| &krate.src);
    files.flat_map(functions_in).collect()
}

fn functions_in(file: &SourceFile) -> Vec<PublicFunction> {
    let mut functions = Functions {
        file,
        found: Vec::new(),
    };
    functions.visit_file(&file.syntax);
    functions.found
}

struct Functions<'a> {
    file: &'a SourceFile,
    found: Vec<PublicFunction>,
}

impl Functions<'_> {
    fn add(&mut self, visibility: &syn::Visibility, signature: &syn::Signature) {
        if matches!(visibility, syn::Visibility::Inherited) {
            return;
        }
        self.found.push(PublicFunction {
            name: signature.ident.to_string(),
            place: self.file.place(signature.ident.span()),
        });
    }
}

impl<'a> Visit<'a> for Functions<'_> {
    fn visit_item_fn(&mut self, function: &'a syn::ItemFn) {
        self.add(&function.vis, &function.sig);
    }

    fn visit_impl_item_fn(&mut self, function: &'a syn::ImplItemFn) {
        self.add(&function.vis, &function.sig);
    }

    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        for member in &item.items {
            if let syn::TraitItem::Fn(function) = member {
                self.add(&item.vis, &function.sig);
            }
        }
        visit::visit_item_trait(self, item);
    }
}
