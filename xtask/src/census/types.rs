//! Types: how many public methods each has, and the names that several of them share.

use super::source::{CrateSource, SourceFile};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};

/// The type of one crate with the most public methods.
#[derive(Debug, Clone, Default)]
pub(super) struct LargestType {
    pub(super) name: String,
    pub(super) methods: MethodCounts,
    pub(super) files: usize,
}

/// Methods of one type in all its inherent `impl` blocks. The order of the fields is the order in
/// which types are compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MethodCounts {
    /// Visible outside the crate.
    pub(super) public: usize,
    /// Visible outside their module.
    pub(super) visible: usize,
    pub(super) all: usize,
}

/// Returns the type with the most public methods.
///
/// A block belongs to the type of its name in the same file if there is one, else to the name in
/// the crate: two types of one name in two files are not added up.
pub(super) fn largest_type(krate: &CrateSource) -> LargestType {
    let mut counts = BTreeMap::<_, (MethodCounts, BTreeSet<&Path>)>::new();
    let shared = shared_in_crate(krate);
    for file in &krate.src {
        for block in inherent_blocks(file) {
            let Some(name) = type_name(&block.self_ty) else {
                continue;
            };
            let is_own = shared.contains(&name) && declares(file, &name);
            let own = is_own.then_some(file.path.as_path());
            let (methods, files) = counts.entry((name, own)).or_default();
            methods.add(block);
            files.insert(&file.path);
        }
    }
    let largest = counts.into_iter().max_by_key(|(_, (methods, _))| *methods);
    largest.map_or_else(LargestType::default, |((name, _), (methods, files))| {
        LargestType {
            name,
            methods,
            files: files.len(),
        }
    })
}

impl MethodCounts {
    fn add(&mut self, block: &syn::ItemImpl) {
        for item in &block.items {
            let syn::ImplItem::Fn(function) = item else {
                continue;
            };
            self.all += 1;
            self.visible += usize::from(!matches!(function.vis, syn::Visibility::Inherited));
            self.public += usize::from(matches!(function.vis, syn::Visibility::Public(_)));
        }
    }
}

fn inherent_blocks(file: &SourceFile) -> Vec<&syn::ItemImpl> {
    #[derive(Default)]
    struct Blocks<'a>(Vec<&'a syn::ItemImpl>);
    impl<'a> Visit<'a> for Blocks<'a> {
        fn visit_item_impl(&mut self, block: &'a syn::ItemImpl) {
            if block.trait_.is_none() {
                self.0.push(block);
            }
            visit::visit_item_impl(self, block);
        }
    }
    let mut blocks = Blocks::default();
    blocks.visit_file(&file.syntax);
    blocks.0
}

/// Returns the last segment of the path that names a type.
pub(super) fn type_name(of: &syn::Type) -> Option<String> {
    match of {
        syn::Type::Path(path) => path
            .path
            .segments
            .last()
            .map(|segment| segment.ident.to_string()),
        syn::Type::Reference(reference) => type_name(&reference.elem),
        _ => None,
    }
}

/// A type that a file declares.
struct Declared {
    name: String,
    is_public: bool,
    span: proc_macro2::Span,
}

fn declared_types(file: &SourceFile) -> Vec<Declared> {
    #[derive(Default)]
    struct Types(Vec<Declared>);
    impl Types {
        fn add(&mut self, name: &syn::Ident, visibility: &syn::Visibility) {
            self.0.push(Declared {
                name: name.to_string(),
                is_public: matches!(visibility, syn::Visibility::Public(_)),
                span: name.span(),
            });
        }
    }
    impl<'a> Visit<'a> for Types {
        fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
            self.add(&item.ident, &item.vis);
        }
        fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
            self.add(&item.ident, &item.vis);
        }
        fn visit_item_union(&mut self, item: &'a syn::ItemUnion) {
            self.add(&item.ident, &item.vis);
        }
        fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
            self.add(&item.ident, &item.vis);
        }
        fn visit_item_type(&mut self, item: &'a syn::ItemType) {
            self.add(&item.ident, &item.vis);
        }
    }
    let mut types = Types::default();
    types.visit_file(&file.syntax);
    types.0
}

fn declares(file: &SourceFile, name: &str) -> bool {
    declared_types(file).iter().any(|found| found.name == name)
}

fn shared_in_crate(krate: &CrateSource) -> BTreeSet<String> {
    let mut seen = BTreeMap::<String, usize>::new();
    for declared in krate.src.iter().flat_map(declared_types) {
        *seen.entry(declared.name).or_default() += 1;
    }
    seen.into_iter()
        .filter(|(_, count)| *count > 1)
        .map(|(name, _)| name)
        .collect()
}

/// Maps each name that several types of the workspace have to the places where they are declared.
/// `only_public` leaves out the types that their crate keeps to itself.
pub(super) fn shared_names(
    crates: &[CrateSource],
    only_public: bool,
) -> BTreeMap<String, Vec<String>> {
    let mut places = BTreeMap::<String, Vec<String>>::new();
    for file in crates.iter().flat_map(|krate| &krate.src) {
        let types = declared_types(file).into_iter();
        for declared in types.filter(|declared| declared.is_public || !only_public) {
            let place = file.place(declared.span);
            places.entry(declared.name).or_default().push(place);
        }
    }
    places.retain(|_, places| places.len() > 1);
    places
}
