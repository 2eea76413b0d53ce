//! Strangers that build on the OpenAPI document: linters, and clients in two languages that are generated from it,
//! checked strictly, and used for every call against the real program.

use crate::client::Service;
use planwright_testing::peers::installed;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// The document as it is checked in, which is the one that is served.
fn document() -> PathBuf {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    place.canonicalize().unwrap()
}

/// A file of the clients.
fn file(name: &str) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.join("tests/service/clients").join(name)
}

/// Runs a program to its end, and returns everything it said.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let said = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success(), "{command:?}\n{said}");
    said
}

/// A program of the Node packages.
fn node(program: &str) -> Command {
    let modules = installed("node-openapi/node_modules");
    let mut command = Command::new("node");
    command.arg(modules.join(program));
    command
}

#[test]
fn the_document_has_no_fault_for_its_linters() {
    succeed(Command::new(installed("py-openapi/bin/openapi-spec-validator")).arg(document()));
    let folder = tempfile::tempdir().unwrap();
    let mut redocly = node("@redocly/cli/bin/cli.js");
    let said = succeed(
        redocly
            .args(["lint", "--extends", "recommended", "--max-problems", "20"])
            // Some operations succeed with a redirection. The rule of spectral knows that.
            .args(["--skip-rule", "operation-2xx-response"])
            .arg(document())
            .env("REDOCLY_TELEMETRY", "off")
            .env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true")
            .current_dir(folder.path()),
    );
    assert!(said.contains("Your API description is valid"), "{said}");
    assert!(!said.contains("You have"), "a warning: {said}");
    let mut spectral = node("@stoplight/spectral-cli/dist/index.js");
    succeed(
        spectral
            .args(["lint", "--fail-severity", "warn", "--ruleset"])
            .arg(file("spectral.yaml"))
            .arg(document()),
    );
}

/// A folder with a client that was generated from the document, and the program that uses it.
fn python_client() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    // What it makes is checked for its types, and not for its looks.
    std::fs::write(path.join("config.yaml"), "post_hooks: []\n").unwrap();
    let said = succeed(
        Command::new(installed("py-openapi/bin/openapi-python-client"))
            .args(["generate", "--meta", "none", "--config", "config.yaml"])
            .args(["--output-path", "planwright_client", "--path"])
            .arg(document())
            .current_dir(path),
    );
    assert!(!said.contains("may be missing"), "{said}");
    std::fs::copy(file("usage.py"), path.join("usage.py")).unwrap();
    folder
}

#[test]
fn a_generated_python_client_makes_every_call() {
    let folder = python_client();
    succeed(
        Command::new(installed("py-openapi/bin/mypy"))
            // What the generator writes without need is no fault of the document.
            .args(["--strict", "--no-warn-redundant-casts"])
            .args(["usage.py", "planwright_client"])
            .current_dir(folder.path()),
    );
    let service = Service::new();
    succeed(
        Command::new(installed("py-openapi/bin/python"))
            .arg("usage.py")
            .arg(format!("http://{}", service.host))
            .arg(&service.admin)
            .current_dir(folder.path()),
    );
}

#[test]
fn a_generated_typescript_client_makes_every_call() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let modules = installed("node-openapi/node_modules");
    std::os::unix::fs::symlink(&modules, path.join("node_modules")).unwrap();
    std::fs::write(path.join("package.json"), r#"{"type": "module"}"#).unwrap();
    for name in ["usage.ts", "tsconfig.json"] {
        std::fs::copy(file(name), path.join(name)).unwrap();
    }
    let mut generator = node("openapi-typescript/bin/cli.js");
    succeed(
        generator
            .arg(document())
            .args(["-o", "schema.d.ts"])
            .current_dir(path),
    );
    succeed(
        node("typescript/bin/tsc")
            .args(["-p", "."])
            .current_dir(path),
    );
    let service = Service::new();
    succeed(
        Command::new("node")
            .arg("usage.js")
            .arg(format!("http://{}", service.host))
            .arg(&service.admin)
            .current_dir(path),
    );
}
