//! `cargo xtask dist`: makes the packages, or tries them.

use crate::dist::contents::{Contents, Product};
use crate::dist::description::{NAME, Part, VERSION};
use crate::dist::{debian, npm, program, sbom, tarball, trial, wheel};
use crate::peers::target_directory;
use crate::suites::Suite;
use anyhow::{Context as _, Result, anyhow, bail};
use data_encoding::HEXLOWER;
use flate2::Compression;
use sha2::{Digest as _, Sha256};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The hashes of everything that was made, as `sha256sum --check` reads them.
pub(super) const SUMS: &str = "SHA256SUMS";

/// Everything that is made.
const PACKERS: &[fn(&Contents) -> Result<Product>] = &[
    copy_program,
    tarball::pack,
    debian::pack,
    wheel::pack,
    npm::pack,
    sbom::pack,
];

pub(crate) fn run(args: &[&str]) -> Result<()> {
    let target = target_directory()?;
    let folder = target.join("dist");
    match args {
        [] => make(&program::build()?, &folder, Compression::best()),
        ["--program", program] => make(Path::new(program), &folder, Compression::best()),
        ["check"] => trial::run(&folder),
        ["check", "--program", program] => {
            // Not in the temporary folder of the system, where programs may not be allowed to run.
            let folder = tempfile::tempdir_in(target)?;
            make(Path::new(program), folder.path(), Compression::fast())?;
            trial::run(folder.path())
        }
        _ => bail!("unknown arguments {args:?}: cargo xtask dist [check] [--program PATH]"),
    }
}

/// The packages of a program that was built, made and tried by this tool as it was built with the
/// program: the build may have replaced the file that runs.
pub(crate) fn trial_suite(tool: &Path, program: &Path) -> Result<Suite> {
    let program = program.to_str().context("the program's path is no text")?;
    let suite = Suite::of_program("dist/install".to_owned(), tool, program::root());
    let args = ["dist", "check", "--program", program].map(str::to_owned);
    Ok(suite.with_args(args.to_vec()))
}

fn make(program: &Path, folder: &Path, level: Compression) -> Result<()> {
    let contents = Contents::gather(program, level)?;
    let products = pack_all(&contents)?;
    // What an earlier version left must not be taken for a part of this one.
    if folder.exists() {
        std::fs::remove_dir_all(folder).context("cannot clear the folder of the packages")?;
    }
    std::fs::create_dir_all(folder)?;
    for Product { name, bytes } in products.iter().chain([&sum_up(&products)]) {
        std::fs::write(folder.join(name), bytes).with_context(|| format!("cannot write {name}"))?;
        println!("== dist: {:>11} {name}", bytes.len());
    }
    let program = folder.join(name_program(&contents));
    std::fs::set_permissions(program, Permissions::from_mode(0o755))?;
    println!("== dist: made in {}", folder.display());
    Ok(())
}

fn pack_all(contents: &Contents) -> Result<Vec<Product>> {
    std::thread::scope(|scope| {
        let packers = PACKERS
            .iter()
            .map(|pack| scope.spawn(move || pack(contents)));
        // All are started before the first is waited for.
        let packers: Vec<_> = packers.collect();
        let finish = |packer: std::thread::ScopedJoinHandle<'_, Result<Product>>| {
            packer.join().map_err(|_| anyhow!("a packer panicked"))?
        };
        packers.into_iter().map(finish).collect()
    })
}

fn name_program(contents: &Contents) -> String {
    format!("{NAME}-{VERSION}-{}", contents.platform.triple)
}

fn copy_program(contents: &Contents) -> Result<Product> {
    Ok(Product {
        name: name_program(contents),
        bytes: contents.part(Part::Program).to_owned(),
    })
}

fn sum_up(products: &[Product]) -> Product {
    let line = |product: &Product| {
        let hash = HEXLOWER.encode(&Sha256::digest(&product.bytes));
        format!("{hash}  {}\n", product.name)
    };
    Product {
        name: SUMS.to_owned(),
        bytes: products.iter().map(line).collect::<String>().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::contents::tests::example;

    #[test]
    fn the_same_contents_give_the_same_bytes() {
        let sums = || String::from_utf8(sum_up(&pack_all(&example()).unwrap()).bytes).unwrap();
        let first = sums();
        assert_eq!(first.lines().count(), PACKERS.len(), "{first}");
        assert_eq!(first, sums());
        for kind in [".tar.gz", "_amd64.deb", ".whl", ".tgz", ".cdx.json"] {
            assert!(first.lines().any(|line| line.ends_with(kind)), "{first}");
        }
    }

    #[test]
    fn a_changed_part_changes_every_package() {
        let contents = example();
        let mut other = example();
        other.replace(Part::License, b"other terms\n");
        let changed = pack_all(&other).unwrap();
        let unchanged = pack_all(&contents).unwrap();
        let pairs = unchanged.iter().zip(&changed);
        let same: Vec<&str> = pairs
            .filter(|(one, other)| one.bytes == other.bytes)
            .map(|(one, _)| one.name.as_str())
            .collect();
        // The program and the list of its crates.
        assert_eq!(same.len(), 2, "{same:?}");
    }
}
