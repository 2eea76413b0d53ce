//! The program that is packaged: built for its platform, stripped, and asked what it is.

use crate::dist::description::{NAME, VERSION};
use crate::dist::platform::Platform;
use crate::suites::read_program;
use crate::{packages, web};
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(super) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// Builds the static program, with the page in it.
pub(super) fn build() -> Result<PathBuf> {
    let triple = Platform::to_release()?.triple;
    packages::ensure_target(triple)?;
    packages::ensure_musl_compiler()?;
    web::build()?;
    ensure!(
        root().join("web/dist/index.html").is_file(),
        "there is no page to put into the program: it is built with Node and npm"
    );
    println!("== dist: cargo build --profile dist --target {triple}");
    let variable = triple.replace('-', "_");
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["build", "--locked", "--profile", "dist", "-p", NAME])
        .args(["--target", triple])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root())
        .env(format!("CC_{variable}"), packages::MUSL_COMPILER)
        .env(
            format!("CFLAGS_{variable}"),
            hide_paths("-ffile-prefix-map")?,
        )
        .env(
            "CARGO_ENCODED_RUSTFLAGS",
            hide_paths("--remap-path-prefix")?.replace(' ', "\x1f"),
        )
        .stderr(Stdio::inherit());
    let output = cargo.output().context("cannot run cargo")?;
    ensure!(output.status.success(), "the program cannot be built");
    let messages = String::from_utf8(output.stdout).context("cargo says no text")?;
    let program = read_program(&messages, NAME)?;
    let built = Platform::of_program(&std::fs::read(&program)?)?;
    ensure!(
        built.triple == triple,
        "{} is not static: it is a program for {}",
        program.display(),
        built.triple
    );
    Ok(program)
}

/// Returns the options of a compiler that keep the folders of this machine out of the program.
fn hide_paths(option: &str) -> Result<String> {
    let home = std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo"));
    let cargo = std::env::var_os("CARGO_HOME").map(PathBuf::from).or(home);
    let cargo = cargo.context("neither CARGO_HOME nor HOME is set")?;
    let options = [(root(), NAME), (&cargo, "cargo")]
        .map(|(folder, name)| format!("{option}={}=/{name}", folder.display()));
    ensure!(
        options.iter().all(|option| !option.contains(' ')),
        "a folder with a space in its name cannot be hidden: {options:?}"
    );
    Ok(options.join(" "))
}

/// Returns the program without its symbols, which are most of what a debug build is.
pub(super) fn strip(program: &Path) -> Result<Vec<u8>> {
    let folder = tempfile::tempdir()?;
    let stripped = folder.path().join(NAME);
    let mut strip = Command::new("strip");
    strip
        .args(["--strip-all", "-o"])
        .arg(&stripped)
        .arg(program);
    let status = strip.status();
    let status = status.context("cannot run strip, which is in the Debian package binutils")?;
    ensure!(status.success(), "cannot strip {}", program.display());
    Ok(std::fs::read(stripped)?)
}

/// Checks that a program is what its packages will say it is.
pub(super) fn check_version(program: &Path) -> Result<()> {
    // Each kind of package spells what comes before a release in its own way.
    ensure!(
        VERSION.split('.').all(|part| part.parse::<u32>().is_ok()),
        "{VERSION} cannot be packaged: only versions that are three numbers can"
    );
    let said = ask(program, &["version"])?;
    let said = String::from_utf8_lossy(&said);
    ensure!(
        said.trim_end() == format!("{NAME} {VERSION}"),
        "{} says that it is {said:?}, but {VERSION} is to be packaged",
        program.display()
    );
    Ok(())
}

/// Asks a program something, with nothing of this environment.
pub(super) fn ask(program: &Path, args: &[&str]) -> Result<Vec<u8>> {
    let program = program.canonicalize();
    let program = program.context("there is no such program")?;
    let mut command = Command::new(&program);
    command.args(args).env_clear().stdin(Stdio::null());
    let output = command.output();
    let output = output.with_context(|| format!("cannot start {}", program.display()))?;
    ensure!(
        output.status.success(),
        "{} {} ended with {}: {}",
        program.display(),
        args.join(" "),
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_another_is_not_packaged() {
        let complaint = check_version(Path::new("/bin/echo")).unwrap_err();
        assert!(complaint.to_string().contains("version"), "{complaint}");
        assert!(check_version(Path::new("/nowhere")).is_err());
    }
}
