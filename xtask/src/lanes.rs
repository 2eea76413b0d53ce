//! All tests, in two lanes that take about equally long: a machine with two cores is idle half of
//! the time otherwise.

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Command;
use std::time::Instant;

/// What goes in the lane beside.
const BESIDE: &[&str] = &["kill", "model", "real", "mcp", "events"];

/// One call of `cargo test`.
type Call = Vec<String>;

/// Runs every test of the workspace. All of them, also after one failed.
pub(crate) fn run() -> Result<()> {
    let (main, beside) = lanes(&metadata()?);
    let started = Instant::now();
    println!(
        "== tests: {} and, beside them, {} calls of cargo test",
        main.len(),
        beside.len()
    );
    let failed = std::thread::scope(|scope| {
        let beside = scope.spawn(|| drive("beside", &beside));
        let mut failed = drive("tests", &main);
        failed.extend(
            beside
                .join()
                .unwrap_or_else(|_| vec!["the lane beside".to_owned()]),
        );
        failed
    });
    ensure!(failed.is_empty(), "tests failed: {}", failed.join("; "));
    println!("== tests: ok in {:.0} s", started.elapsed().as_secs_f64());
    Ok(())
}

fn metadata() -> Result<Value> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--no-deps"])
        .output()
        .context("cannot run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata failed");
    serde_json::from_slice(&output.stdout).context("cargo metadata is no JSON")
}

/// The calls of each lane. Whatever is not named beside is in the main one, so that nothing is
/// forgotten. All are made for the whole workspace: for one package alone cargo would choose other
/// features and build it again.
fn lanes(metadata: &Value) -> (Vec<Call>, Vec<Call>) {
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let targets = packages.flat_map(|package| package["targets"].as_array().into_iter().flatten());
    let tests = targets.filter(|target| target["kind"][0] == "test");
    let names: BTreeSet<&str> = tests.filter_map(|target| target["name"].as_str()).collect();
    let (beside, main): (Vec<&str>, Vec<&str>) =
        names.into_iter().partition(|name| BESIDE.contains(name));
    let main = call(&["--lib", "--bins"], &main);
    (vec![main, call(&["--doc"], &[])], vec![call(&[], &beside)])
}

fn call(kinds: &[&str], tests: &[&str]) -> Call {
    let begin = ["test", "--workspace", "--no-fail-fast"]
        .into_iter()
        .chain(kinds.iter().copied());
    let tests = tests.iter().flat_map(|test| ["--test", test]);
    begin.chain(tests).map(str::to_owned).collect()
}

/// Makes the calls one after the other and returns those that failed. Every line says which lane it
/// comes from.
fn drive(lane: &str, calls: &[Call]) -> Vec<String> {
    let failed = calls.iter().filter_map(|call| {
        let words = call.join(" ");
        match make(lane, call) {
            Ok(true) => None,
            Ok(false) => Some(format!("cargo {words}")),
            Err(error) => Some(format!("cargo {words}: {error:#}")),
        }
    });
    failed.collect()
}

fn make(lane: &str, call: &Call) -> Result<bool> {
    let (reader, writer) = std::io::pipe().context("no pipe")?;
    let mut command = Command::new(env!("CARGO"));
    command
        .args(call)
        .stdout(writer.try_clone().context("no pipe")?)
        .stderr(writer);
    let mut child = command.spawn().context("cannot run cargo")?;
    // Its ends of the pipe must not stay open here, or the lines would never end.
    drop(command);
    for line in BufReader::new(reader).lines() {
        println!(
            "{lane:>6} | {}",
            line.context("cannot read what cargo says")?
        );
    }
    Ok(child.wait().context("cargo is gone")?.success())
}
