//! The archive for every Linux: unpack it, and run what is in it.

use crate::dist::archive::make_tar_gz;
use crate::dist::contents::{Contents, Product};
use crate::dist::description::{NAME, VERSION};
use anyhow::Result;

pub(super) fn pack(contents: &Contents) -> Result<Product> {
    let stem = format!("{NAME}-{VERSION}-{}", contents.platform.triple);
    let entries = contents.entries(&format!("{stem}/"), |item| Some(item.tarball));
    Ok(Product {
        name: format!("{stem}.tar.gz"),
        bytes: make_tar_gz(entries, contents.level)?,
    })
}
