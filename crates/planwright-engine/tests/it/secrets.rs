//! Secrets reach the tool and nothing else.

use crate::world::{World, approved, entries, options, report_of, status_of};
use planwright_core::run::Run;
use planwright_core::secret::{SecretName, SecretText};
use planwright_core::tool::ToolName;
use planwright_engine::memory::MemorySecrets;
use planwright_engine::port::{Artifacts as _, BoxFuture, SecretError, Secrets};
use planwright_engine::{Engine, RedactedArtifacts, Redaction};
use serde_json::{Value, json};
use std::sync::Arc;

const KEY: &str = "hunter2-Hunter2";

fn name(name: &str) -> SecretName {
    SecretName::new(name).unwrap()
}

fn secret(text: &str) -> SecretText {
    SecretText::new(text.to_owned()).unwrap()
}

/// One secret for the server `r`.
#[derive(Debug)]
struct OnlyForReaders(MemorySecrets);

impl Secrets for OnlyForReaders {
    fn get<'a>(&'a self, name: &'a SecretName) -> BoxFuture<'a, Result<SecretText, SecretError>> {
        self.0.get(name)
    }

    fn allows(&self, _: &SecretName, tool: &ToolName) -> bool {
        tool.server == "r"
    }
}

fn engine(world: &World) -> Engine {
    let secrets = OnlyForReaders(MemorySecrets::new([(name("KEY"), secret(KEY))]));
    let store = Arc::clone(&world.store);
    let artifacts = Arc::clone(&world.artifacts);
    world
        .builder("one")
        .store(store, artifacts)
        .secrets(Arc::new(secrets), Redaction::default())
        .build()
}

async fn run(world: &World, steps: Value) -> Run {
    let engine = engine(world);
    let id = approved(&engine, json!({"id": "p", "steps": steps})).await;
    engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap()
}

fn journal(world: &World, run: &Run) -> String {
    entries(&*world.store, run.id())
        .iter()
        .map(|entry| format!("{:?}\n", entry.event))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_tool_gets_the_secret_and_the_journal_does_not() {
    let world = World::new();
    let run = run(
        &world,
        json!([
            {"id": "a", "tool": "r.read", "args": {"value": {"echo": "Bearer ${secret.KEY}", "list": ["${secret.KEY}"]}}},
            {"id": "b", "tool": "r.read", "args": {"value": "${a.echo}"}},
        ]),
    )
    .await;
    assert_eq!(run.status().as_str(), "completed");
    let made = world.made();
    assert_eq!(made[0].args["value"]["echo"], format!("Bearer {KEY}"));
    // What comes back is masked, and that is what later steps see.
    assert_eq!(made[1].args["value"], "Bearer [secret KEY]");
    let journal = journal(&world, &run);
    assert!(!journal.contains(KEY), "{journal}");
}

#[tokio::test(start_paused = true)]
async fn an_error_that_repeats_the_secret_is_masked() {
    let world = World::new();
    let run = run(
        &world,
        json!([{"id": "a", "tool": "r.read", "args": {"fail": "no access for ${secret.KEY}"}}]),
    )
    .await;
    assert_eq!(
        report_of(&run, "a").error.unwrap().message,
        "no access for [secret KEY]"
    );
    assert!(!journal(&world, &run).contains(KEY));
}

#[tokio::test(start_paused = true)]
async fn a_large_value_is_masked_before_it_becomes_an_artifact() {
    let world = World::new();
    let value = format!("{}${{secret.KEY}}", "x".repeat(100_000));
    let run = run(
        &world,
        json!([{"id": "a", "tool": "r.read", "args": {"value": value}}]),
    )
    .await;
    let value = report_of(&run, "a").value.unwrap();
    let text = planwright_engine::read_value(&*world.artifacts, &value)
        .await
        .unwrap()
        .to_string();
    assert!(
        text.ends_with("xx[secret KEY]\""),
        "{}",
        &text[text.len() - 40..]
    );
}

#[tokio::test(start_paused = true)]
async fn the_digest_of_a_call_does_not_depend_on_the_secret() {
    let steps = json!([{"id": "a", "tool": "r.read", "args": {"value": "${secret.KEY}"}}]);
    let world = World::new();
    let first = run(&world, steps.clone()).await;
    let other = World::new();
    let secrets = MemorySecrets::new([(name("KEY"), secret("has changed"))]);
    let store = Arc::clone(&other.store);
    let artifacts = Arc::clone(&other.artifacts);
    let engine = other
        .builder("one")
        .store(store, artifacts)
        .secrets(Arc::new(secrets), Redaction::default())
        .build();
    let id = approved(&engine, json!({"id": "p", "steps": steps})).await;
    let second = engine
        .runs()
        .start(&id, options())
        .await
        .unwrap()
        .wait()
        .await
        .unwrap();
    let call = |world: &World, run: &Run| {
        let journal = journal(world, run);
        journal
            .lines()
            .find(|line| line.starts_with("AttemptStarted"))
            .unwrap()
            .to_owned()
    };
    assert_eq!(call(&world, &first), call(&other, &second));
    assert_eq!(other.made()[0].args["value"], "has changed");
}

#[tokio::test(start_paused = true)]
async fn a_step_without_its_secret_fails_and_its_start_is_not_recorded() {
    let world = World::new();
    let run = run(
        &world,
        json!([{"id": "a", "tool": "r.read", "args": {"value": "${secret.OTHER}"}}]),
    )
    .await;
    assert_eq!(status_of(&run, "a"), "failed");
    let error = report_of(&run, "a").error.unwrap();
    assert_eq!(error.code.as_str(), "secret_unavailable");
    assert!(error.message.contains("OTHER"), "{}", error.message);
    assert!(!journal(&world, &run).contains("AttemptStarted"));
    assert!(world.made().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_may_not_have_a_secret_is_not_called() {
    let world = World::new();
    let run = run(
        &world,
        json!([{"id": "a", "tool": "w.write", "args": {"value": "${secret.KEY}"}}]),
    )
    .await;
    let error = report_of(&run, "a").error.unwrap();
    assert_eq!(
        (error.code.as_str(), world.made().len()),
        ("secret_not_allowed", 0)
    );
    assert!(!journal(&world, &run).contains("AttemptStarted"));
}

#[tokio::test(start_paused = true)]
async fn what_another_step_was_given_is_masked_wherever_it_comes_from() {
    // The first step learns the secret by other means, before any call was given it.
    let world = World::new();
    let run = run(
        &world,
        json!([
            {"id": "a", "tool": "r.read", "args": {"value": KEY}},
            {"id": "b", "tool": "r.read", "dependsOn": ["a"], "args": {"value": "${secret.KEY}"}},
        ]),
    )
    .await;
    let value =
        planwright_engine::read_value(&*world.artifacts, &report_of(&run, "a").value.unwrap())
            .await
            .unwrap();
    assert_eq!(value, "[secret KEY]");
}

#[tokio::test]
async fn artifacts_of_tools_are_masked_before_they_are_named() {
    let world = World::new();
    let redaction = Redaction::default();
    let artifacts =
        RedactedArtifacts::new(Arc::<_>::clone(&world.artifacts) as _, redaction.clone());
    let before = artifacts.put(KEY.into()).await.unwrap();
    redaction.learn(&name("KEY"), &secret(KEY)).unwrap();
    let after = artifacts
        .put(format!("<{KEY}>").into_bytes())
        .await
        .unwrap();
    assert_eq!(artifacts.get(&before).await.unwrap(), KEY.as_bytes());
    assert_eq!(artifacts.get(&after).await.unwrap(), b"<[secret KEY]>");
}

#[test]
fn a_process_looks_for_a_bounded_number_of_secrets() {
    let redaction = Redaction::default();
    for number in 0..Redaction::MAX_SECRETS {
        redaction
            .learn(&name("N"), &secret(&format!("{number:04}")))
            .unwrap();
    }
    assert!(redaction.learn(&name("N"), &secret("one more")).is_err());
    assert!(
        redaction.learn(&name("N"), &secret("0001")).is_ok(),
        "this one is known"
    );
}
