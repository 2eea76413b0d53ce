//! The fuzzer: built with the branches of our crates counted, and started on one target after the
//! other. `fuzz/src/lib.rs` has the targets and their limits, `fuzz/corpus` a folder for each.

use crate::check::build_quickly;
use crate::output::{Shown, relay_output};
use crate::suites::{Failure, Suite, report, run_suites};
use anyhow::{Context as _, Result, bail, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// How long a target is tried in a check.
pub(crate) const CHECK_SECONDS: u32 = 10;
/// How long each is tried for a proof: two at a time, five hours for all of them.
const PROVE_SECONDS: u32 = 3600;
/// The variable that names the target.
const TARGET: &str = "PLANWRIGHT_FUZZ_TARGET";
/// The largest input that is made up. In a check, where nothing is optimised, it is smaller: the
/// limit on time is for the reader, not for the compiler.
const MAX_INPUT_BYTES: usize = 64 << 10;
const MAX_CHECK_INPUT_BYTES: usize = 16 << 10;

/// The fuzzer as it was built.
pub(crate) struct Fuzzer {
    program: PathBuf,
}

/// How long and from where a target is tried.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Length {
    /// The same beginning each time, so that a change is not blamed for what was there before.
    Check,
    /// Goes on from what earlier proofs found, for this many seconds.
    Seconds(u32),
}

/// Carries out `cargo xtask fuzz`.
pub(crate) fn run(args: &[&str]) -> Result<()> {
    match args {
        [] => report(&Fuzzer::build("dev")?.try_all(Length::Check)?),
        ["merge", target] => Fuzzer::build("dev")?.merge(target),
        [target] => Fuzzer::build("dev")?.try_one(target, Length::Seconds(60)),
        [target, "--seconds", seconds] => {
            let seconds = seconds.parse().context("--seconds takes a number")?;
            Fuzzer::build("dev")?.try_one(target, Length::Seconds(seconds))
        }
        [target, input] => Fuzzer::build("dev")?.reproduce(target, Path::new(input)),
        _ => bail!("unknown arguments {args:?}: cargo xtask fuzz [TARGET [--seconds N | FILE]]"),
    }
}

/// Tries every target for an hour, with an optimised build.
pub(crate) fn prove() -> Result<()> {
    report(&Fuzzer::build("release")?.try_all(Length::Seconds(PROVE_SECONDS))?)
}

impl Fuzzer {
    /// Builds it. The features are those of the check's build, so that no dependency is compiled a
    /// second time; our own crates are, by a wrapper that has their branches counted.
    pub(crate) fn build(profile: &str) -> Result<Self> {
        let started = Instant::now();
        println!("== fuzzer: cargo test --workspace --test fuzz --no-run");
        let mut cargo = Command::new(env!("CARGO"));
        build_quickly(&mut cargo)
            .args(["test", "--workspace", "--test", "fuzz", "--no-run"])
            .args(["--profile", profile])
            .arg("--message-format=json-render-diagnostics")
            .current_dir(root())
            .env("RUSTC_WORKSPACE_WRAPPER", root().join("fuzz/instrument"))
            // An overflow is found where it happens.
            .env("CARGO_PROFILE_RELEASE_DEBUG_ASSERTIONS", "true")
            .env("CARGO_PROFILE_RELEASE_OVERFLOW_CHECKS", "true")
            .stderr(Stdio::inherit());
        let output = cargo.output().context("cannot run cargo for the fuzzer")?;
        ensure!(output.status.success(), "the fuzzer cannot be built");
        let messages = String::from_utf8(output.stdout).context("cargo says no text")?;
        let program = messages.lines().find_map(read_program);
        let program = program.context("cargo built no fuzzer")?;
        let seconds = started.elapsed().as_secs_f64();
        println!("== fuzzer: ok in {seconds:.0} s");
        Ok(Self { program })
    }

    /// The suites of a check, one per target.
    pub(crate) fn suites(&self, length: Length) -> Result<Vec<Suite>> {
        targets()?
            .iter()
            .map(|target| {
                let args = prepare(target, length)?;
                let name = format!("fuzz/{target}");
                let suite = Suite::of_program(name, &self.program, root());
                Ok(suite.with_args(args).with_variable(TARGET, target))
            })
            .collect()
    }

    fn try_all(&self, length: Length) -> Result<Vec<Failure>> {
        let processors = std::thread::available_parallelism().map_or(2, std::num::NonZero::get);
        Ok(run_suites(self.suites(length)?, processors))
    }

    fn try_one(&self, target: &str, length: Length) -> Result<()> {
        let args = prepare(target, length)?;
        self.start(target, &args)
    }

    /// Tries one input, which is how a failure is seen again.
    fn reproduce(&self, target: &str, input: &Path) -> Result<()> {
        check_target(target)?;
        let input = input.canonicalize().context("there is no such input")?;
        let args = [keep_failures(target)?, input.display().to_string()];
        self.start(target, &args)
    }

    /// Adds to the corpus those of the inputs found so far that reach something new.
    fn merge(&self, target: &str) -> Result<()> {
        check_target(target)?;
        let corpus = corpus(target).display().to_string();
        let found = found(target);
        make(&found)?;
        let found = found.display().to_string();
        let args = ["-merge=1".to_owned(), keep_failures(target)?, corpus, found];
        self.start(target, &args)
    }

    fn start(&self, target: &str, args: &[String]) -> Result<()> {
        let mut fuzzer = Command::new(&self.program);
        fuzzer.args(args).current_dir(root()).env(TARGET, target);
        let output = relay_output(target, fuzzer, Shown::AsItRuns)?;
        ensure!(output.succeeded, "{target} failed");
        Ok(())
    }
}

/// Makes the folders of a target and returns the arguments of libFuzzer. New inputs go into the
/// first folder.
fn prepare(target: &str, length: Length) -> Result<Vec<String>> {
    check_target(target)?;
    let found = match length {
        Length::Check => folder("check", target),
        Length::Seconds(_) => found(target),
    };
    if length == Length::Check && found.exists() {
        std::fs::remove_dir_all(&found).context("cannot clear what the last check found")?;
    }
    make(&found)?;
    let mut args = limits(length);
    args.push(keep_failures(target)?);
    let words = root().join(format!("fuzz/words/{target}"));
    if words.exists() {
        args.push(format!("-dict={}", words.display()));
    }
    args.push(found.display().to_string());
    args.push(corpus(target).display().to_string());
    Ok(args)
}

fn limits(length: Length) -> Vec<String> {
    let (seconds, bytes, seed) = match length {
        Length::Check => (
            CHECK_SECONDS,
            MAX_CHECK_INPUT_BYTES,
            Some("-seed=1".to_owned()),
        ),
        Length::Seconds(seconds) => (seconds, MAX_INPUT_BYTES, None),
    };
    let limits = [
        format!("-max_total_time={seconds}"),
        format!("-max_len={bytes}"),
        // A target measures its own time and memory; these are for what does not come back.
        "-timeout=60".to_owned(),
        "-rss_limit_mb=2048".to_owned(),
        "-verbosity=0".to_owned(),
        "-print_final_stats=1".to_owned(),
    ];
    limits.into_iter().chain(seed).collect()
}

/// Returns the argument that has failing inputs kept.
fn keep_failures(target: &str) -> Result<String> {
    let failures = folder("failures", target);
    make(&failures)?;
    Ok(format!("-artifact_prefix={}/", failures.display()))
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))
}

fn read_program(line: &str) -> Option<PathBuf> {
    let message: Value = serde_json::from_str(line).ok()?;
    let is_fuzzer = message["target"]["name"] == "fuzz" && message["target"]["kind"][0] == "test";
    let program = message["executable"].as_str()?;
    is_fuzzer.then(|| program.into())
}

fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

fn corpus(target: &str) -> PathBuf {
    root().join("fuzz/corpus").join(target)
}

/// What earlier runs found, apart from the corpus.
fn found(target: &str) -> PathBuf {
    folder("found", target)
}

fn folder(what: &str, target: &str) -> PathBuf {
    root().join("target/fuzz").join(what).join(target)
}

/// The targets, which are the folders of the corpus: a test there keeps both the same.
fn targets() -> Result<Vec<String>> {
    let folders = root().join("fuzz/corpus");
    let entries = std::fs::read_dir(folders).context("there is no corpus")?;
    let mut targets = Vec::new();
    for entry in entries {
        let name = entry.context("the corpus cannot be read")?.file_name();
        targets.extend(name.to_str().map(str::to_owned));
    }
    targets.sort();
    Ok(targets)
}

fn check_target(target: &str) -> Result<()> {
    let targets = targets()?;
    ensure!(
        targets.iter().any(|known| known == target),
        "there is no target {target}: the targets are {}",
        targets.join(", ")
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_ten_targets_and_no_other_words() {
        let targets = targets().unwrap();
        assert_eq!(targets.len(), 10, "{targets:?}");
        for words in std::fs::read_dir(root().join("fuzz/words")).unwrap() {
            let name = words.unwrap().file_name();
            assert!(check_target(name.to_str().unwrap()).is_ok(), "{name:?}");
        }
        assert!(check_target("nothing").is_err());
    }

    #[test]
    fn a_check_begins_the_same_each_time_and_ends_in_time() {
        let args = limits(Length::Check);
        assert!(args.contains(&"-seed=1".to_owned()), "{args:?}");
        assert!(args.contains(&"-max_total_time=10".to_owned()), "{args:?}");
    }
}
