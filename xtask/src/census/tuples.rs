//! Bindings of a tuple to a tuple: `let (a, b) = (x, y)`.

use super::source::SourceFile;
use syn::visit::{self, Visit};

/// Lists the places of such bindings.
pub(super) fn tuple_bindings(file: &SourceFile) -> Vec<String> {
    struct Bindings<'a> {
        file: &'a SourceFile,
        places: Vec<String>,
    }
    impl<'a> Visit<'a> for Bindings<'_> {
        fn visit_local(&mut self, binding: &'a syn::Local) {
            let value = binding.init.as_ref().map(|value| &*value.expr);
            if matches!(binding.pat, syn::Pat::Tuple(_))
                && matches!(value, Some(syn::Expr::Tuple(_)))
            {
                self.places.push(self.file.place(binding.let_token.span));
            }
            visit::visit_local(self, binding);
        }
    }
    let mut bindings = Bindings {
        file,
        places: Vec::new(),
    };
    bindings.visit_file(&file.syntax);
    bindings.places
}
