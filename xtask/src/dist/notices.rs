//! The licenses of the crates that the program contains, which ask to be passed on with it. A text
//! that several crates share is there once.

use crate::dist::crates::Crate;
use anyhow::{Context as _, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// How the names of files with licenses begin, in capitals.
const NAMES: &[&str] = &[
    "LICENSE",
    "LICENCE",
    "COPYING",
    "COPYRIGHT",
    "NOTICE",
    "UNLICENSE",
];
const RULE: &str =
    "--------------------------------------------------------------------------------";

pub(super) fn write(crates: &[Crate]) -> Result<String> {
    let mut text = "Planwright contains the following crates. The page that it serves names the \
        licenses of\nits own parts, at /ui/licenses.md.\n\n"
        .to_owned();
    let mut users: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for found in crates.iter().filter(|found| !found.is_ours()) {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}: {}", found.key, found.license);
        for license in read_licenses(&found.folder)? {
            users.entry(license).or_default().push(&found.key);
        }
    }
    // In the order of the crates, the texts of most crates first.
    let mut licenses: Vec<(String, Vec<&str>)> = users.into_iter().collect();
    licenses.sort_by(|(_, one), (_, other)| other.len().cmp(&one.len()).then(one.cmp(other)));
    for (license, users) in licenses {
        let _ = write!(text, "\n{RULE}\n{}\n\n{license}\n", users.join(", "));
    }
    Ok(text)
}

fn read_licenses(folder: &Path) -> Result<Vec<String>> {
    let unreadable = || format!("cannot read {}", folder.display());
    let mut licenses = BTreeMap::new();
    for entry in std::fs::read_dir(folder).with_context(unreadable)? {
        let path = entry.with_context(unreadable)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_license = NAMES
            .iter()
            .any(|begin| name.to_uppercase().starts_with(begin));
        if is_license && path.is_file() {
            let text = std::fs::read(&path).with_context(unreadable)?;
            let text = String::from_utf8_lossy(&text).replace('\r', "");
            licenses.insert(name.into_owned(), text.trim_end().to_owned());
        }
    }
    Ok(licenses.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::crates::tests::example;

    #[test]
    fn a_text_is_there_once_with_all_who_share_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("LICENSE-MIT"), "Permission\r\n").unwrap();
        std::fs::write(folder.path().join("license.txt"), "Terms").unwrap();
        std::fs::write(folder.path().join("lib.rs"), "code").unwrap();
        let mut crates = example();
        crates[0].folder = folder.path().to_owned();
        let mut other = crates[0].clone();
        other.key = "other v1.0.0".to_owned();
        crates.push(other);
        let text = write(&crates).unwrap();
        assert_eq!(text.matches("Permission").count(), 1, "{text}");
        assert!(text.contains("leaf v1.2.3, other v1.0.0\n\nPermission\n"));
        assert!(text.contains("Terms") && !text.contains("code"), "{text}");
        assert!(text.contains("leaf v1.2.3: MIT OR Apache-2.0\n"), "{text}");
        assert!(!text.contains("planwright v"), "our own license is apart");
    }
}
