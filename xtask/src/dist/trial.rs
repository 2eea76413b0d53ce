//! The packages as a person meets them: each is installed into an empty prefix with the tools of its
//! kind, without the network, and the program runs from there.

use crate::dist::command::SUMS;
use crate::dist::description::{NAME, VERSION};
use crate::dist::sbom;
use anyhow::{Context as _, Result, anyhow, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// Where programs of the system are. dpkg looks for some that ordinary users do not have on their path.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// What the demo says when its story ended as it should.
const LAST_WORDS: &str = "nothing is lost";
/// What its plan wrote, across the crash.
const NOTES: (&str, &str) = ("notes.txt", "all links work");

/// A kind of package that can be installed.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Tarball,
    Debian,
    Wheel,
    Npm,
}

const KINDS: [Kind; 4] = [Kind::Tarball, Kind::Debian, Kind::Wheel, Kind::Npm];

/// Tries everything in a folder of packages.
pub(super) fn run(folder: &Path) -> Result<()> {
    let sums = std::fs::read_to_string(folder.join(SUMS))
        .with_context(|| format!("there are no packages in {}", folder.display()))?;
    check_sums(folder)?;
    check_sbom(&find(folder, &sums, ".cdx.json")?)?;
    let prefixes = tempfile::tempdir_in(folder)?;
    let failed = std::thread::scope(|scope| {
        let trials = KINDS.map(|kind| {
            let package = find(folder, &sums, kind.suffix());
            let prefix = prefixes.path().join(format!("{kind:?}"));
            scope.spawn(move || try_package(kind, &package?, &prefix))
        });
        let trials = KINDS.into_iter().zip(trials);
        let finish = |(kind, trial): (Kind, std::thread::ScopedJoinHandle<'_, Result<()>>)| {
            let verdict = trial.join().unwrap_or_else(|_| Err(anyhow!("it panicked")));
            verdict.err().map(|error| format!("{kind:?}: {error:#}"))
        };
        trials.filter_map(finish).collect::<Vec<String>>()
    });
    ensure!(failed.is_empty(), "{}", failed.join("\n"));
    Ok(())
}

/// Finds a package by the end of its name, among those that were made.
fn find(folder: &Path, sums: &str, suffix: &str) -> Result<PathBuf> {
    let mut names = sums.lines().filter_map(|line| line.split_once("  "));
    let found = names.find(|(_, name)| name.ends_with(suffix));
    let (_, name) = found.with_context(|| format!("no {suffix} was made"))?;
    Ok(folder.join(name))
}

fn check_sums(folder: &Path) -> Result<()> {
    let mut command = Command::new("sha256sum");
    command
        .args(["--check", "--strict", "--quiet", SUMS])
        .current_dir(folder);
    succeed(&mut command, "the Debian package coreutils")?;
    println!("== dist: {SUMS} holds");
    Ok(())
}

fn check_sbom(path: &Path) -> Result<()> {
    let document = serde_json::from_slice(&std::fs::read(path)?).context("the SBOM is no JSON")?;
    let count = sbom::examine(&document).context("the SBOM")?;
    println!("== dist: the SBOM names {count} parts");
    Ok(())
}

fn try_package(kind: Kind, package: &Path, prefix: &Path) -> Result<()> {
    let started = Instant::now();
    std::fs::create_dir(prefix)?;
    let program = kind.install(package, prefix)?;
    let installed = started.elapsed().as_secs_f64();
    let home = prefix.join("home of the user");
    std::fs::create_dir(&home)?;
    check_version(&program, &home)?;
    check_demo(&program, &home)?;
    let seconds = started.elapsed().as_secs_f64();
    println!("== dist: {kind:?}: installed in {installed:.1} s, demo ended after {seconds:.1} s");
    Ok(())
}

fn check_version(program: &Path, home: &Path) -> Result<()> {
    let said = succeed(start(program, home).arg("version"), "the package")?;
    ensure!(
        said.trim_end() == format!("{NAME} {VERSION}"),
        "{} says that it is {said:?}",
        program.display()
    );
    Ok(())
}

fn check_demo(program: &Path, home: &Path) -> Result<()> {
    let stage = home.join("stage");
    let said = succeed(
        start(program, home).args(["demo", "--dir"]).arg(&stage),
        "the package",
    )?;
    ensure!(
        said.contains(LAST_WORDS),
        "the demo ended otherwise: {said}"
    );
    let (name, words) = NOTES;
    let notes = std::fs::read_to_string(stage.join(name)).context("the demo wrote no notes")?;
    ensure!(notes.contains(words), "the demo wrote {notes:?}");
    Ok(())
}

/// The installed program as a person without any settings would start it.
fn start(program: &Path, home: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(home).env_clear();
    command.env("PATH", SYSTEM_PATH).env("HOME", home);
    command
}

impl Kind {
    fn suffix(self) -> &'static str {
        match self {
            Self::Tarball => ".tar.gz",
            Self::Debian => ".deb",
            Self::Wheel => ".whl",
            Self::Npm => ".tgz",
        }
    }

    /// Installs a package and returns where the program is now.
    fn install(self, package: &Path, prefix: &Path) -> Result<PathBuf> {
        match self {
            Self::Tarball => unpack(package, prefix),
            Self::Debian => install_with_dpkg(package, prefix),
            Self::Wheel => install_with_pip(package, prefix),
            Self::Npm => install_with_npm(package, prefix),
        }
    }
}

fn unpack(package: &Path, prefix: &Path) -> Result<PathBuf> {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(package).arg("-C").arg(prefix);
    succeed(&mut tar, "the Debian packages tar and gzip")?;
    let name = package.file_name().unwrap_or_default().to_string_lossy();
    let folder = prefix.join(name.trim_end_matches(Kind::Tarball.suffix()));
    Ok(folder.join(NAME))
}

fn install_with_dpkg(package: &Path, prefix: &Path) -> Result<PathBuf> {
    // The least that dpkg takes for a system.
    let state = prefix.join("var/lib/dpkg");
    for folder in ["info", "updates", "triggers"] {
        std::fs::create_dir_all(state.join(folder))?;
    }
    std::fs::write(state.join("status"), "")?;
    let mut dpkg = Command::new("dpkg");
    dpkg.arg(option("--root", prefix))
        // Of the prefix, not of the system.
        .arg(option("--log", &prefix.join("log")))
        .arg("--force-not-root")
        // A program that is not static uses the libraries of this machine, and the prefix has none.
        .args(["--force-depends", "--install"])
        .arg(package)
        .env("PATH", SYSTEM_PATH)
        .env("LC_ALL", "C");
    succeed(&mut dpkg, "the Debian package dpkg")?;
    Ok(prefix.join("usr/bin").join(NAME))
}

fn install_with_pip(package: &Path, prefix: &Path) -> Result<PathBuf> {
    let hint = "Python 3 with venv, the Debian packages python3 and python3-venv";
    let mut python = Command::new("python3");
    succeed(python.args(["-m", "venv"]).arg(prefix), hint)?;
    let mut pip = Command::new(prefix.join("bin/python"));
    // Neither variables nor files of the user change what is installed.
    pip.args(["-I", "-m", "pip", "--isolated", "install", "--no-index"])
        .args(["--no-cache-dir", "--disable-pip-version-check"])
        .arg(package);
    succeed(&mut pip, hint)?;
    Ok(prefix.join("bin").join(NAME))
}

fn install_with_npm(package: &Path, prefix: &Path) -> Result<PathBuf> {
    let mut npm = Command::new("npm");
    npm.args(["install", "--offline", "--no-audit", "--no-fund"])
        .arg(option("--prefix", prefix))
        .arg(option("--cache", &prefix.join("cache")))
        .arg(package)
        .env("HOME", prefix);
    succeed(&mut npm, "Node and npm")?;
    Ok(prefix.join("node_modules/.bin").join(NAME))
}

fn option(name: &str, path: &Path) -> String {
    format!("{name}={}", path.display())
}

/// Runs a command, and returns all that it said.
fn succeed(command: &mut Command, needs: &str) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("cannot run {name}: this needs {needs}"))?;
    let mut said = String::from_utf8_lossy(&output.stdout).into_owned();
    said.push_str(&String::from_utf8_lossy(&output.stderr));
    ensure!(
        output.status.success(),
        "{name} ended with {}: {said}",
        output.status
    );
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_tool_is_named_with_what_brings_it() {
        let complaint = succeed(&mut Command::new("/nowhere/tool"), "a package").unwrap_err();
        let complaint = complaint.to_string();
        assert!(complaint.contains("/nowhere/tool") && complaint.contains("a package"));
    }

    #[test]
    fn a_package_that_was_altered_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        std::fs::write(folder.path().join(SUMS), format!("{empty}  it.deb\n")).unwrap();
        std::fs::write(folder.path().join("it.deb"), "").unwrap();
        check_sums(folder.path()).unwrap();
        std::fs::write(folder.path().join("it.deb"), "more").unwrap();
        assert!(check_sums(folder.path()).is_err());
        // Nothing is tried of a folder in which a kind is missing.
        std::fs::write(folder.path().join("it.deb"), "").unwrap();
        assert!(run(folder.path()).is_err());
        let sums = std::fs::read_to_string(folder.path().join(SUMS)).unwrap();
        assert!(find(folder.path(), &sums, ".deb").is_ok());
        assert!(find(folder.path(), &sums, ".whl").is_err());
    }
}
