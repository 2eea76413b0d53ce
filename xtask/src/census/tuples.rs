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
            // With an `else` it is no binding but a question, asked about two things at once.
            let plain = binding
                .init
                .as_ref()
                .filter(|value| value.diverge.is_none());
            let value = plain.map(|value| &*value.expr);
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
