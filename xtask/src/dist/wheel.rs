//! The package for Python's installers (`pip`, `uv`): no Python, only the program, put where
//! scripts go.

use crate::dist::archive::{Entry, make_zip};
use crate::dist::contents::{Contents, Product};
use crate::dist::description::{AUTHORS, LICENSE, NAME, Part, SUMMARY, VERSION};
use anyhow::{Context as _, Result};
use data_encoding::BASE64URL_NOPAD;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

pub(super) fn pack(contents: &Contents) -> Result<Product> {
    let tags = contents.platform.wheel;
    let info = format!("{NAME}-{VERSION}.dist-info");
    let metadata = write_metadata(contents)?;
    let wheel = write_wheel(tags);
    let mut entries = contents.entries("", |item| item.wheel);
    entries.push(Entry::text(format!("{info}/METADATA"), &metadata));
    entries.push(Entry::text(format!("{info}/WHEEL"), &wheel));
    entries.sort_by(|one, other| one.path.cmp(&other.path));
    let record = format!("{info}/RECORD");
    let text = write_record(&entries, &record);
    entries.push(Entry::text(record, &text));
    Ok(Product {
        name: format!("{NAME}-{VERSION}-py3-none-{}.whl", tags.join(".")),
        bytes: make_zip(&entries, contents.level)?,
    })
}

fn write_metadata(contents: &Contents) -> Result<String> {
    let readme = std::str::from_utf8(contents.part(Part::Readme));
    let readme = readme.context("the README is no text")?;
    Ok(format!(
        "Metadata-Version: 2.4\nName: {NAME}\nVersion: {VERSION}\nSummary: {SUMMARY}\nAuthor: {AUTHORS}\n\
         License-Expression: {LICENSE}\nLicense-File: LICENSE\nLicense-File: THIRD-PARTY-LICENSES.txt\n\
         Classifier: Environment :: Console\nClassifier: Operating System :: POSIX :: Linux\n\
         Requires-Python: >=3.8\nDescription-Content-Type: text/markdown; charset=UTF-8\n\n{readme}"
    ))
}

fn write_wheel(tags: &[&str]) -> String {
    let mut text =
        "Wheel-Version: 1.0\nGenerator: cargo xtask dist\nRoot-Is-Purelib: false\n".to_owned();
    for tag in tags {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "Tag: py3-none-{tag}");
    }
    text
}

/// Lists the files with their hashes, and itself without.
fn write_record(entries: &[Entry<'_>], record: &str) -> String {
    let mut text = String::new();
    for Entry { path, bytes, .. } in entries {
        let hash = BASE64URL_NOPAD.encode(&Sha256::digest(bytes));
        let _ = writeln!(text, "{path},sha256={hash},{}", bytes.len());
    }
    let _ = writeln!(text, "{record},,");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::contents::tests::example;

    #[test]
    fn a_static_program_is_for_every_linux() {
        let made = pack(&example()).unwrap();
        let tags = "manylinux_2_17_x86_64.manylinux2014_x86_64.musllinux_1_1_x86_64";
        let name = format!("planwright-{VERSION}-py3-none-{tags}.whl");
        assert_eq!(made.name, name);
    }

    #[test]
    fn the_record_has_the_hashes_that_installers_expect() {
        let entries = [Entry::text("empty", "")];
        let record = write_record(&entries, "RECORD");
        let empty = "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU";
        assert_eq!(record, format!("empty,sha256={empty},0\nRECORD,,\n"));
    }
}
