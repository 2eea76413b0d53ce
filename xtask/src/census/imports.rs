//! Import cycles between the modules in the root of a crate.

use super::source::{CrateSource, SourceFile};
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens as _;
use std::collections::{BTreeMap, BTreeSet};

/// Which root module names which others.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// Lists the strongly connected groups of root modules with more than one member, largest first.
pub(super) fn import_cycles(krate: &CrateSource) -> Vec<Vec<String>> {
    let modules: BTreeSet<String> = krate
        .src
        .iter()
        .filter_map(|file| file.module.first().cloned())
        .collect();
    let exports = root_exports(krate, &modules);
    let mut imports = Imports::new();
    for file in &krate.src {
        let Some(module) = file.module.first() else {
            continue;
        };
        let named = names_from_root(file).into_iter();
        let named = named.filter_map(|name| {
            if modules.contains(&name) {
                Some(name)
            } else {
                exports.get(&name).cloned()
            }
        });
        let others = named.filter(|other| other != module);
        imports.entry(module.clone()).or_default().extend(others);
    }
    connected_groups(&imports)
}

/// Maps what the root re-exports to the module that has it.
fn root_exports(krate: &CrateSource, modules: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut exports = BTreeMap::new();
    for file in krate.src.iter().filter(|file| file.module.is_empty()) {
        for item in &file.syntax.items {
            if let syn::Item::Use(import) = item
                && let Some((module, tree)) = below_module(&import.tree, modules)
            {
                let mut names = Vec::new();
                exported_names(tree, &mut names);
                exports.extend(names.into_iter().map(|name| (name, module.clone())));
            }
        }
    }
    exports
}

fn below_module<'a>(
    tree: &'a syn::UseTree,
    modules: &BTreeSet<String>,
) -> Option<(String, &'a syn::UseTree)> {
    let syn::UseTree::Path(path) = tree else {
        return None;
    };
    let name = path.ident.to_string();
    match name.as_str() {
        "self" | "crate" => below_module(&path.tree, modules),
        _ => modules.contains(&name).then_some((name, &*path.tree)),
    }
}

fn exported_names(tree: &syn::UseTree, names: &mut Vec<String>) {
    match tree {
        syn::UseTree::Path(path) => exported_names(&path.tree, names),
        syn::UseTree::Name(name) => names.push(name.ident.to_string()),
        syn::UseTree::Rename(rename) => names.push(rename.rename.to_string()),
        syn::UseTree::Group(group) => {
            group
                .items
                .iter()
                .for_each(|item| exported_names(item, names));
        }
        syn::UseTree::Glob(_) => {}
    }
}

/// Lists the names that a file takes from the root of its crate: after `crate::`, and after as many
/// `super::` as the file is deep. Reads tokens, because macros hold paths too.
fn names_from_root(file: &SourceFile) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect_names(file.syntax.to_token_stream(), file.module.len(), &mut names);
    names
}

fn collect_names(tokens: TokenStream, depth: usize, names: &mut BTreeSet<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => collect_names(group.stream(), depth, names),
            TokenTree::Ident(ident) if ident == "crate" => {
                collect_after(&tokens[index + 1..], names);
            }
            TokenTree::Ident(ident) if ident == "super" && !follows_path(&tokens[..index]) => {
                if let Some(rest) = skip_supers(&tokens[index..], depth) {
                    collect_after(rest, names);
                }
            }
            _ => {}
        }
    }
}

fn follows_path(before: &[TokenTree]) -> bool {
    matches!(before, [.., TokenTree::Punct(colon)] if colon.as_char() == ':')
}

/// Steps over exactly `depth` times `super`, the last without the colons that follow it.
fn skip_supers(mut tokens: &[TokenTree], depth: usize) -> Option<&[TokenTree]> {
    for level in 0..depth {
        if level > 0 {
            tokens = skip_colons(tokens)?;
        }
        match tokens {
            [TokenTree::Ident(ident), rest @ ..] if ident == "super" => tokens = rest,
            _ => return None,
        }
    }
    Some(tokens)
}

fn skip_colons(tokens: &[TokenTree]) -> Option<&[TokenTree]> {
    match tokens {
        [TokenTree::Punct(first), TokenTree::Punct(second), rest @ ..]
            if first.as_char() == ':' && second.as_char() == ':' =>
        {
            Some(rest)
        }
        _ => None,
    }
}

/// Adds the first name, or the first name of each member of the group, behind `::`.
fn collect_after(tokens: &[TokenTree], names: &mut BTreeSet<String>) {
    match skip_colons(tokens).and_then(<[TokenTree]>::first) {
        Some(TokenTree::Ident(ident)) => {
            names.insert(ident.to_string());
        }
        Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
            let mut is_first = true;
            for token in group.stream() {
                match token {
                    TokenTree::Ident(ident) if is_first => {
                        names.insert(ident.to_string());
                        is_first = false;
                    }
                    TokenTree::Punct(comma) if comma.as_char() == ',' => is_first = true,
                    _ => {}
                }
            }
        }
        _ => {}
    }
}

/// Groups the modules that reach each other. Few enough modules for the plain transitive closure.
fn connected_groups(imports: &Imports) -> Vec<Vec<String>> {
    let reached: BTreeMap<&str, BTreeSet<&str>> = imports
        .keys()
        .map(|module| (module.as_str(), reach(imports, module)))
        .collect();
    let mut groups = BTreeSet::new();
    for (module, from_here) in &reached {
        let mutual = from_here.iter().filter(|other| {
            reached
                .get(*other)
                .is_some_and(|back| back.contains(module))
        });
        let group: Vec<String> = mutual.map(|&other| other.to_owned()).collect();
        if group.len() > 1 {
            groups.insert(group);
        }
    }
    let mut groups: Vec<Vec<String>> = groups.into_iter().collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
    groups
}

fn reach<'a>(imports: &'a Imports, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&str> = vec![from];
    while let Some(module) = pending.pop() {
        for other in imports.get(module).into_iter().flatten() {
            if reached.insert(other.as_str()) {
                pending.push(other);
            }
        }
    }
    reached
}
