//! The pages of `docs/errors/` say what the codes say.

use planwright_core::plan::{Code, error_page};
use std::path::PathBuf;

/// Run with `UPDATE_DOCS=1` to write the pages.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the core touches no files, but this test compares them"
)]
fn every_code_has_its_page() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/errors");
    let update = std::env::var("UPDATE_DOCS").is_ok();
    for code in Code::ALL {
        let file = folder.join(format!("{code}.md"));
        let page = error_page(code);
        if update {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&file, &page).unwrap();
        }
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(
            written, page,
            "docs/errors/{code}.md is out of date: run the tests with UPDATE_DOCS=1"
        );
    }
}
