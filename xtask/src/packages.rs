//! Programs that only tests and packages need. Where they can be installed, they are.

use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// A program, and the Debian package that has it.
struct Package {
    program: &'static str,
    /// How it is asked for its version.
    version: &'static str,
    package: &'static str,
    purpose: &'static str,
}

const COMPILER: Package = Package {
    program: "c++",
    version: "--version",
    package: "g++",
    purpose: "the fuzzer needs a C++ compiler",
};

const BROWSER: Package = Package {
    program: "chromium",
    version: "--version",
    package: "chromium",
    purpose: "the tests of the page need a browser",
};

const TERMINAL: Package = Package {
    program: "tmux",
    version: "-V",
    package: "tmux",
    purpose: "the tests of the full screen need a terminal that can be read",
};

#[cfg(target_os = "linux")]
const UNITS: Package = Package {
    program: "systemd-analyze",
    version: "--version",
    package: "systemd",
    purpose: "the tests of the systemd units need the program that checks them",
};

/// Where the Debian package puts the server, below a folder for its version: it is not on the path.
const DATABASE_FOLDER: &str = "/usr/lib/postgresql";

/// Where the Debian package puts the broker that any user can start: what is on the path starts it for the whole machine.
const BROKER_FOLDER: &str = "/usr/lib/rabbitmq/lib";

const CACHE: Package = Package {
    program: "redis-server",
    version: "--version",
    package: "redis-server",
    purpose: "the tests of brokers need Redis",
};

const POOLER: Package = Package {
    program: "pgbouncer",
    version: "--version",
    package: "pgbouncer",
    purpose: "the tests of the store in a database need PgBouncer",
};

pub(crate) const MUSL_COMPILER: &str = "musl-gcc";

const COMPILER_OF_STATIC_PROGRAMS: Package = Package {
    program: MUSL_COMPILER,
    version: "--version",
    package: "musl-tools",
    purpose: "a static program needs a C compiler for musl",
};

/// Makes sure that the C parts of static programs can be compiled.
pub(crate) fn ensure_musl_compiler() -> Result<()> {
    COMPILER_OF_STATIC_PROGRAMS.ensure()
}

/// Makes sure that there is a standard library for a target. Toolchains that rustup did not install
/// have to bring it.
pub(crate) fn ensure_target(triple: &str) -> Result<()> {
    let mut rustc = Command::new("rustc");
    rustc.args(["--print", "target-libdir", "--target", triple]);
    let output = rustc.output().context("cannot run rustc")?;
    let folder = String::from_utf8(output.stdout).context("the path of rustc is no text")?;
    if output.status.success() && Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "add", triple]).stderr(Stdio::null());
    ensure!(
        rustup.status().is_ok_and(|status| status.success()),
        "there is no standard library for {triple}: `rustup target add {triple}` installs it, with the network; \
         a toolchain that is not rustup's has to bring it"
    );
    Ok(())
}

/// Makes sure that there is a C++ compiler.
pub(crate) fn ensure_compiler() -> Result<()> {
    COMPILER.ensure()
}

/// Makes sure that the programs that tests start are there. They are installed while the build goes on.
pub(crate) fn ensure_test_programs() -> Result<()> {
    BROWSER.ensure()?;
    TERMINAL.ensure()?;
    #[cfg(target_os = "linux")]
    UNITS.ensure()?;
    ensure_servers()
}

/// Makes sure that the servers of a distributed store are there.
pub(crate) fn ensure_servers() -> Result<()> {
    CACHE.ensure()?;
    POOLER.ensure()?;
    ensure_broker()?;
    ensure_database()
}

/// Makes sure that there is a RabbitMQ that tests can start.
fn ensure_broker() -> Result<()> {
    let is_there = || {
        let versions = std::fs::read_dir(BROKER_FOLDER).into_iter().flatten();
        let mut versions = versions.flatten();
        std::env::var_os("PLANWRIGHT_RABBITMQ_BIN").is_some()
            || versions.any(|version| version.path().join("sbin/rabbitmq-server").exists())
    };
    if is_there() {
        return Ok(());
    }
    println!("== rabbitmq-server: apt-get install rabbitmq-server");
    if succeeds("apt-get", &["update", "-q"]) {
        let install = [
            "install",
            "-qy",
            "--no-install-recommends",
            "rabbitmq-server",
        ];
        succeeds("apt-get", &install);
    }
    ensure!(
        is_there(),
        "the tests of brokers need RabbitMQ, for example the Debian package rabbitmq-server; \
         PLANWRIGHT_RABBITMQ_BIN can name the folder with rabbitmq-server"
    );
    Ok(())
}

/// Makes sure that there is a Postgres server that tests can start.
pub(crate) fn ensure_database() -> Result<()> {
    let is_there = || {
        let versions = std::fs::read_dir(DATABASE_FOLDER).into_iter().flatten();
        let mut versions = versions.flatten();
        std::env::var_os("PLANWRIGHT_POSTGRES_BIN").is_some()
            || versions.any(|version| version.path().join("bin/initdb").exists())
    };
    if is_there() {
        return Ok(());
    }
    println!("== initdb: apt-get install postgresql");
    if succeeds("apt-get", &["update", "-q"]) {
        let install = ["install", "-qy", "--no-install-recommends", "postgresql"];
        succeeds("apt-get", &install);
    }
    ensure!(
        is_there(),
        "the tests of the store in a database need Postgres, for example the Debian package postgresql; \
         PLANWRIGHT_POSTGRES_BIN can name the folder with initdb"
    );
    Ok(())
}

impl Package {
    fn ensure(&self) -> Result<()> {
        let Self {
            program,
            version,
            package,
            purpose,
        } = self;
        if succeeds(program, &[version]) {
            return Ok(());
        }
        println!("== {program}: apt-get install {package}");
        if succeeds("apt-get", &["update", "-q"]) {
            let install = ["install", "-qy", "--no-install-recommends", package];
            succeeds("apt-get", &install);
        }
        ensure!(
            succeeds(program, &[version]),
            "{purpose}, for example the Debian package {package}"
        );
        Ok(())
    }
}

fn succeeds(program: &str, args: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(args).env("DEBIAN_FRONTEND", "noninteractive");
    let status = command.stdout(Stdio::null()).status();
    status.is_ok_and(|status| status.success())
}
