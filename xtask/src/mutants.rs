//! The rules of runs and reviews, broken one by one: most of the broken versions must fail a test
//! of the core.
//!
//! `cargo-mutants` makes the changes. It is installed below `target`, because nothing else needs it.

use anyhow::{Context as _, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const VERSION: &str = "27.1.0";
/// What is broken.
const FILES: [&str; 2] = [
    "crates/planwright-core/src/run/**",
    "crates/planwright-core/src/review/**",
];
/// The least part of the broken versions that the tests must notice.
const MIN_PERCENT: usize = 80;
/// Each version is tried with fewer random histories than a check: there are more than a thousand
/// of them.
const ENVIRONMENT: [(&str, &str); 2] =
    [("PLANWRIGHT_SIMULATIONS", "1000"), ("PROPTEST_CASES", "32")];
/// With so few histories, optimising takes longer than it saves.
const UNOPTIMISED: &str = "--cargo-arg=--config=profile.dev.package.planwright-core.opt-level=0";
/// The second half of the histories of consent.
const LEFT_OUT: &str = "nor_in_as_many_other_histories";

/// Tries all of them.
pub(crate) fn prove() -> Result<()> {
    run(None)
}

/// Tries all of them, or one shard: `0/40` is the first of forty.
pub(crate) fn run(shard: Option<&str>) -> Result<()> {
    let program = install()?;
    let output = root().join("target/mutants");
    fs::create_dir_all(&output).context("cannot make target/mutants")?;
    let mut mutants = Command::new(program);
    mutants
        .args(["mutants", "--package", "planwright-core"])
        // A shard has some of every file.
        .args(["--sharding", "round-robin"])
        .arg(UNOPTIMISED)
        .args(["--timeout-multiplier", "3", "--minimum-test-timeout", "60"])
        .args(["--colors", "never", "--output"])
        .arg(&output)
        .args(FILES.iter().flat_map(|file| ["--file", *file]))
        .args(shard.iter().flat_map(|shard| ["--shard", *shard]))
        .args(["--", "--lib", "--test", "it", "--", "--skip", LEFT_OUT])
        .envs(ENVIRONMENT)
        .current_dir(root());
    println!("== mutants: of runs and reviews, tried with the tests of the core");
    let status = mutants.status().context("cannot run cargo-mutants")?;
    // It ends with 2 if a version survived and with 3 if one never came to an end.
    ensure!(
        matches!(status.code(), Some(0 | 2 | 3)),
        "cargo-mutants ended with {status}"
    );
    judge(&output)
}

/// Counts what was noticed, and lists what was not.
fn judge(output: &Path) -> Result<()> {
    let count = |what: &str| -> Result<Vec<String>> {
        let path = output.join(format!("mutants.out/{what}.txt"));
        let text =
            fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(text.lines().map(str::to_owned).collect())
    };
    let survivors = count("missed")?;
    let noticed = count("caught")?.len() + count("timeout")?.len();
    let all = noticed + survivors.len();
    let list = output.join("survivors.txt");
    fs::write(&list, survivors.join("\n") + "\n").context("cannot write the survivors")?;
    println!(
        "== mutants: {noticed} of {all} were noticed; the others are in {}",
        list.display()
    );
    ensure!(all > 0, "nothing was broken");
    ensure!(
        noticed * 100 >= all * MIN_PERCENT,
        "the tests notice less than {MIN_PERCENT}% of the broken versions"
    );
    Ok(())
}

/// Installs the program that breaks things, if it is not there.
fn install() -> Result<PathBuf> {
    let folder = root().join(format!("target/tools/cargo-mutants-{VERSION}"));
    let program = folder.join("bin/cargo-mutants");
    if !program.exists() {
        println!("== mutants: installing cargo-mutants {VERSION}");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["install", "cargo-mutants", "--version", VERSION, "--locked"])
            .arg("--root")
            .arg(&folder);
        let status = cargo.status().context("cannot run cargo install")?;
        ensure!(status.success(), "cargo-mutants cannot be installed");
    }
    Ok(program)
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge_outcome(caught: usize, missed: usize) -> (bool, String) {
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("mutants.out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("caught.txt"), "x\n".repeat(caught)).unwrap();
        fs::write(out.join("timeout.txt"), "").unwrap();
        fs::write(out.join("missed.txt"), "run/a.rs:1\n".repeat(missed)).unwrap();
        let judged = judge(folder.path()).is_ok();
        let survivors = fs::read_to_string(folder.path().join("survivors.txt"));
        (judged, survivors.unwrap())
    }

    #[test]
    fn four_of_five_must_be_noticed_and_the_others_are_listed() {
        assert_eq!(judge_outcome(4, 1), (true, "run/a.rs:1\n".to_owned()));
        assert!(!judge_outcome(3, 1).0);
        assert!(!judge_outcome(0, 0).0, "nothing tried proves nothing");
    }
}
