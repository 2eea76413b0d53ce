//! The page that the service shows to people: built before the program, which takes it in, and tried in a browser with
//! the program.

use crate::suites::Suite;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What the page's dependencies were installed from, beside them: they are installed again when it is another.
const STAMP: &str = "node_modules/.installed";

/// The files of tests in a browser that take longest.
const LONGEST_FIRST: &[&str] = &["pages", "scale", "review", "run", "hostile"];

/// Builds the page where Node is, and says so where it is not: the program works without it.
pub(crate) fn build() -> Result<()> {
    if !succeeds("npm", &["--version"]) {
        println!("== page: there is no npm, so the program is built without its page");
        return Ok(());
    }
    install_packages()?;
    run_script("build")
}

/// Builds the page and tests what of it needs no browser.
pub(crate) fn check() -> Result<()> {
    ensure!(
        succeeds("npm", &["--version"]),
        "the page needs Node and npm, version 20.19 or newer"
    );
    let started = Instant::now();
    install_packages()?;
    for script in ["test", "build"] {
        run_script(script)?;
    }
    println!("== page: ok in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

/// The page in a browser, with the program that was built: a suite per file, those that take longest first.
pub(crate) fn browser_suites(program: &Path) -> Result<Vec<Suite>> {
    let program = program.to_str().context("the program's path is no text")?;
    let files = folder().join("tests/browser");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&files).context("the page has no tests")? {
        let name = entry?.file_name();
        let name = name.to_str().and_then(|name| name.strip_suffix(".test.ts"));
        names.extend(name.map(str::to_owned));
    }
    names.sort_by_key(|name| {
        let place = LONGEST_FIRST.iter().position(|long| long == name);
        (place.unwrap_or(LONGEST_FIRST.len()), name.clone())
    });
    ensure!(!names.is_empty(), "the page has no tests");
    Ok(names
        .iter()
        .map(|name| browser_suite(name, program))
        .collect())
}

fn browser_suite(name: &str, program: &str) -> Suite {
    let file = format!("tests/browser/{name}.test.ts");
    let args = ["run", "--silent", "browser", "--", &file].map(str::to_owned);
    Suite::of_program(format!("web/{name}"), Path::new("npm"), &folder())
        .with_args(args.to_vec())
        .with_variable("PLANWRIGHT_PROGRAM", program)
        .retried_whole()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../web")
}

/// Installs exactly what the lock file names, unless that was done.
fn install_packages() -> Result<()> {
    let lock = std::fs::read(folder().join("package-lock.json"))?;
    let stamp = folder().join(STAMP);
    if std::fs::read(&stamp).is_ok_and(|installed| installed == lock) {
        return Ok(());
    }
    run_npm(&["ci", "--no-audit", "--no-fund"])?;
    std::fs::write(stamp, lock)?;
    Ok(())
}

fn run_script(name: &str) -> Result<()> {
    run_npm(&["run", "--silent", name])
}

fn run_npm(args: &[&str]) -> Result<()> {
    println!("== page: npm {}", args.join(" "));
    let mut npm = Command::new("npm");
    let status = npm.args(args).current_dir(folder()).status();
    let status = status.context("cannot run npm")?;
    ensure!(status.success(), "npm {} failed", args.join(" "));
    Ok(())
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
