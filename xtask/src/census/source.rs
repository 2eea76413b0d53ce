//! Finds and parses the source files of a workspace.

use anyhow::{Context as _, Result};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use syn::visit_mut::{self, VisitMut};

/// Crates whose `src` is code for tests.
const TEST_CRATES: &[&str] = &["planwright-testing"];

/// One crate below `crates/`.
pub(super) struct CrateSource {
    pub(super) name: String,
    /// Entries in the root of `src`, without `lib.rs` and `main.rs`.
    pub(super) entries: usize,
    pub(super) src: Vec<SourceFile>,
    pub(super) tests: Vec<SourceFile>,
}

/// One Rust file.
pub(super) struct SourceFile {
    /// Relative to the root of the workspace.
    pub(super) path: PathBuf,
    /// Path of the module inside its crate; empty for the root.
    pub(super) module: Vec<String>,
    pub(super) text: String,
    /// Without the items that only tests see.
    pub(super) syntax: syn::File,
}

impl SourceFile {
    /// Formats a place in this file as an editor understands it.
    pub(super) fn place(&self, span: proc_macro2::Span) -> String {
        format!("{}:{}", self.path.display(), span.start().line)
    }
}

/// Reads every crate of the workspace at `root`, in the order of their names.
pub(super) fn read_crates(root: &Path) -> Result<Vec<CrateSource>> {
    let folder = root.join("crates");
    let entries =
        std::fs::read_dir(&folder).with_context(|| format!("{} has no crates", root.display()))?;
    let mut folders: Vec<PathBuf> = entries
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    folders.retain(|folder| folder.join("src").is_dir());
    folders.sort();
    folders
        .iter()
        .map(|folder| read_crate(root, folder))
        .collect()
}

fn read_crate(root: &Path, folder: &Path) -> Result<CrateSource> {
    let name = folder
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let mut src = read_files(root, &folder.join("src"))?;
    let mut tests = read_files(root, &folder.join("tests"))?;
    if TEST_CRATES.contains(&name.as_str()) {
        tests.append(&mut src);
    }
    Ok(CrateSource {
        entries: count_entries(&folder.join("src"))?,
        name,
        src,
        tests,
    })
}

fn count_entries(src: &Path) -> Result<usize> {
    let mut entries = 0;
    for entry in std::fs::read_dir(src)? {
        let name = entry?.file_name();
        entries += usize::from(name != "lib.rs" && name != "main.rs");
    }
    Ok(entries)
}

fn read_files(root: &Path, folder: &Path) -> Result<Vec<SourceFile>> {
    let mut paths = Vec::new();
    collect_paths(folder, &mut paths)?;
    paths.sort();
    let mut files = Vec::new();
    for path in &paths {
        files.push(read_file(root, folder, path)?);
    }
    let of_tests: BTreeSet<Vec<String>> = files.iter().flat_map(test_modules).collect();
    files.retain(|file| {
        !(1..=file.module.len()).any(|length| of_tests.contains(&file.module[..length]))
    });
    for file in &mut files {
        WithoutTests.visit_file_mut(&mut file.syntax);
    }
    Ok(files)
}

fn collect_paths(folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            collect_paths(&path, paths)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            paths.push(path);
        }
    }
    Ok(())
}

fn read_file(root: &Path, folder: &Path, path: &Path) -> Result<SourceFile> {
    let text =
        std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let syntax =
        syn::parse_file(&text).with_context(|| format!("{} is not Rust", path.display()))?;
    Ok(SourceFile {
        path: path.strip_prefix(root).unwrap_or(path).to_owned(),
        module: module_path(path.strip_prefix(folder).unwrap_or(path)),
        text,
        syntax,
    })
}

fn module_path(path: &Path) -> Vec<String> {
    let mut module: Vec<String> = path
        .with_extension("")
        .components()
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if module
        .last()
        .is_some_and(|last| matches!(last.as_str(), "mod" | "lib" | "main"))
    {
        module.pop();
    }
    module
}

/// Lists the modules that this file declares for tests only and that are files of their own.
fn test_modules(file: &SourceFile) -> Vec<Vec<String>> {
    let declared = file.syntax.items.iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_for_tests(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    declared
        .map(|name| file.module.iter().cloned().chain([name]).collect())
        .collect()
}

/// Removes the items under `#[cfg(test)]`.
struct WithoutTests;

impl VisitMut for WithoutTests {
    fn visit_file_mut(&mut self, file: &mut syn::File) {
        file.items.retain(|item| !is_item_for_tests(item));
        visit_mut::visit_file_mut(self, file);
    }

    fn visit_item_mod_mut(&mut self, module: &mut syn::ItemMod) {
        if let Some((_, items)) = &mut module.content {
            items.retain(|item| !is_item_for_tests(item));
        }
        visit_mut::visit_item_mod_mut(self, module);
    }

    fn visit_item_impl_mut(&mut self, block: &mut syn::ItemImpl) {
        block.items.retain(
            |item| !matches!(item, syn::ImplItem::Fn(function) if is_for_tests(&function.attrs)),
        );
        visit_mut::visit_item_impl_mut(self, block);
    }
}

fn is_item_for_tests(item: &syn::Item) -> bool {
    match item {
        syn::Item::Mod(module) => is_for_tests(&module.attrs),
        syn::Item::Fn(function) => is_for_tests(&function.attrs),
        syn::Item::Impl(block) => is_for_tests(&block.attrs),
        syn::Item::Use(import) => is_for_tests(&import.attrs),
        syn::Item::Struct(item) => is_for_tests(&item.attrs),
        _ => false,
    }
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute
                .parse_args::<syn::Ident>()
                .is_ok_and(|condition| condition == "test")
    })
}
