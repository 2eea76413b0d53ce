//! Events become records in one file, so that nothing is written without being masked.

use std::path::{Path, PathBuf};

/// Files below `directory`, which is below `root`, that have a line for which `found` is true.
fn files_with(root: &Path, directory: &Path, found: &dyn Fn(&str) -> bool) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_with(root, &path, found));
        } else if std::fs::read_to_string(&path).unwrap().lines().any(found) {
            files.push(path.strip_prefix(root).unwrap().to_owned());
        }
    }
    files
}

/// The laws of stores and the store in memory make records of their own to test with.
fn is_product(file: &Path) -> bool {
    !file.starts_with("conformance") && !file.starts_with("memory")
}

#[test]
fn only_the_journal_writer_makes_records_and_appends() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    // `.encode(` is about bytes, not about events.
    let encodes = |line: &str| line.contains("encode(") && !line.contains(".encode(");
    let makes_records = |line: &str| encodes(line) || line.contains("Record::after(");
    let makes_appends = |line: &str| {
        let names_the_type = ["struct ", "impl ", "->"];
        line.contains("Append {") && !names_the_type.iter().any(|word| line.contains(word))
    };
    for makes in [&makes_records as &dyn Fn(&str) -> bool, &makes_appends] {
        let mut files = files_with(&root, &root, makes);
        files.retain(|file| is_product(file));
        assert_eq!(files, [Path::new("journal/writer.rs")]);
    }
}
