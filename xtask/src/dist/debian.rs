//! The package for Debian and Ubuntu.

use crate::dist::archive::{Entry, make_ar, make_tar_gz};
use crate::dist::contents::{Contents, Product};
use crate::dist::description::{AUTHORS, DETAILS, NAME, SUMMARY, VERSION};
use anyhow::Result;

pub(super) fn pack(contents: &Contents) -> Result<Product> {
    let control = write_control(contents);
    let control = make_tar_gz(vec![Entry::text("./control", &control)], contents.level)?;
    let files = contents.entries("./", |item| Some(item.debian));
    let files = make_tar_gz(files, contents.level)?;
    let members: [(&str, &[u8]); 3] = [
        ("debian-binary", b"2.0\n"),
        ("control.tar.gz", &control),
        ("data.tar.gz", &files),
    ];
    Ok(Product {
        name: format!("{NAME}_{VERSION}_{}.deb", contents.platform.debian),
        bytes: make_ar(&members),
    })
}

fn write_control(contents: &Contents) -> String {
    let platform = contents.platform;
    let depends = platform.debian_depends;
    let depends = depends.map_or_else(String::new, |names| format!("Depends: {names}\n"));
    let kibibytes = contents.size().div_ceil(1024);
    let details: String = DETAILS.iter().flat_map(|line| [" ", line, "\n"]).collect();
    format!(
        "Package: {NAME}\nVersion: {VERSION}\nArchitecture: {}\nMaintainer: {AUTHORS}\n{depends}\
         Installed-Size: {kibibytes}\nSection: utils\nPriority: optional\nDescription: {SUMMARY}\n{details}",
        platform.debian
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::contents::tests::example;

    #[test]
    fn the_control_file_has_what_dpkg_asks_for() {
        let control = write_control(&example());
        for line in [
            "Package: planwright",
            "Architecture: amd64",
            "Maintainer: The Planwright authors",
            "Installed-Size: 1",
            " afterwards what happened.",
        ] {
            assert!(control.lines().any(|known| known == line), "{control}");
        }
        assert!(!control.contains("Depends"), "a static program needs none");
    }
}
