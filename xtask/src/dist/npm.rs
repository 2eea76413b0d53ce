//! The package for npm: the program is what `npx planwright` starts.

use crate::dist::archive::{Entry, make_tar_gz};
use crate::dist::contents::{Contents, Product};
use crate::dist::description::{AUTHORS, LICENSE, NAME, SUMMARY, VERSION};
use anyhow::Result;
use serde_json::{Value, json};

/// npm wants everything below a folder of this name.
const FOLDER: &str = "package/";

pub(super) fn pack(contents: &Contents) -> Result<Product> {
    let manifest = format!("{:#}\n", describe(contents));
    let mut entries = contents.entries(FOLDER, |item| item.npm);
    entries.push(Entry::text(format!("{FOLDER}package.json"), &manifest));
    Ok(Product {
        name: format!("{NAME}-{VERSION}.tgz"),
        bytes: make_tar_gz(entries, contents.level)?,
    })
}

fn describe(contents: &Contents) -> Value {
    let platform = contents.platform;
    let mut manifest = json!({
        "name": NAME,
        "version": VERSION,
        "description": SUMMARY,
        "license": LICENSE,
        "author": AUTHORS,
        "bin": { NAME: "bin/planwright" },
        "os": ["linux"],
        "cpu": [platform.npm_processor],
        // It is started from a folder, not from an archive.
        "preferUnplugged": true,
    });
    if let Some(library) = platform.npm_library {
        manifest["libc"] = json!([library]);
    }
    manifest
}
