//! The C++ compiler, which only the fuzzer needs.

use anyhow::{Result, ensure};
use std::process::{Command, Stdio};

const COMPILER: &str = "c++";
/// The Debian package that has one.
const PACKAGE: &str = "g++";

/// Makes sure that there is a C++ compiler. Where packages can be installed, it installs one.
pub(crate) fn ensure_compiler() -> Result<()> {
    if succeeds(COMPILER, &["--version"]) {
        return Ok(());
    }
    println!("== C++ compiler: apt-get install {PACKAGE}");
    if succeeds("apt-get", &["update", "-q"]) {
        let install = ["install", "-qy", "--no-install-recommends", PACKAGE];
        succeeds("apt-get", &install);
    }
    ensure!(
        succeeds(COMPILER, &["--version"]),
        "the fuzzer needs a C++ compiler, for example the Debian package {PACKAGE}"
    );
    Ok(())
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
