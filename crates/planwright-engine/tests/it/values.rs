//! What tools return: kept whole, wherever it fits.

use crate::world::{World, entries, reads, report_of, status_of};
use planwright_core::run::{RunReport, StoredValue};
use planwright_core::status::StepStatus;
use planwright_engine::read_value;
use serde_json::{Value, json};

async fn value_of(world: &World, run: &planwright_core::run::Run, step: &str) -> Value {
    read_value(&*world.artifacts, &report_of(run, step).value.unwrap())
        .await
        .unwrap()
}

#[tokio::test(start_paused = true)]
async fn results_keep_their_type_and_shape() {
    for value in [
        json!({"content": "x", "other": 1}),
        json!("123"),
        json!(""),
        json!(null),
        json!(-0.0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(0.1),
        json!(1e300),
        json!([[], {}, [{"kind": "attempt_succeeded", "v": 2, "cause": "timer", "inline": 1}]]),
        json!("${not.a.reference} \u{0}\u{202e}\u{10ffff}"),
    ] {
        let world = World::new();
        // The value comes back through a reference: written text is not what is tested here.
        let mut plan = reads(&[
            ("a", &[], json!({"value": "${given}"})),
            ("b", &[], json!({"value": "${a}"})),
        ]);
        plan["variables"] = json!({"given": value});
        let run = world.run(plan).await;
        assert_eq!(run.status().as_str(), "completed");
        let a = value_of(&world, &run, "a").await;
        let b = value_of(&world, &run, "b").await;
        assert_eq!(
            (a.to_string(), b.to_string()),
            (value.to_string(), value.to_string())
        );
        // The journal says the same.
        entries(&*world.store, run.id());
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_over_64_kib_is_an_artifact_and_comes_back() {
    for (size, large) in [
        (64 * 1024 - 2, false),
        (64 * 1024 - 1, true),
        (1 << 20, true),
    ] {
        let text = "x".repeat(size);
        let world = World::new();
        let run = world
            .run(reads(&[
                ("a", &[], json!({"value": text})),
                ("b", &["a"], json!({"value": {"of": "${a}"}})),
            ]))
            .await;
        assert_eq!(run.status().as_str(), "completed");
        let stored = report_of(&run, "a").value.unwrap();
        assert_eq!(
            matches!(stored, StoredValue::Artifact(_)),
            large,
            "{size} bytes"
        );
        assert_eq!(value_of(&world, &run, "b").await, json!({"of": text}));
        if let StoredValue::Artifact(artifact) = stored {
            assert_eq!(artifact.bytes, size as u64 + 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_path_that_is_missing_in_a_result_fails_the_step_without_a_call() {
    let world = World::new();
    let run = world
        .run(reads(&[
            ("a", &[], json!({"value": {"id": 1, "name": "x"}})),
            ("b", &[], json!({"value": "${a.title}"})),
        ]))
        .await;
    assert_eq!((status_of(&run, "b"), world.calls_of("b")), ("failed", 0));
    let error = report_of(&run, "b").error.unwrap();
    assert_eq!(error.code.as_str(), "unresolved_reference");
    for part in ["a.title", "id", "name"] {
        assert!(error.message.contains(part), "{}", error.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_value_that_nests_too_deep_to_be_read_back_fails_its_step() {
    let world = World::new();
    let mut steps = vec![json!({"id": "s0", "tool": "r.read", "args": {"value": 1}})];
    for at in 1..200 {
        let before = format!("${{s{}}}", at - 1);
        steps.push(json!({"id": format!("s{at}"), "tool": "r.read", "args": {"value": [before]}}));
    }
    let run = world.run(json!({"id": "p", "steps": steps})).await;
    assert_eq!(run.status().as_str(), "failed");
    let failed = RunReport::new(&run, run.updated_at())
        .steps
        .into_iter()
        .find(|step| step.status == StepStatus::Failed)
        .unwrap();
    assert_eq!(failed.error.unwrap().code.as_str(), "value_too_deep");
    // What was written can be read.
    entries(&*world.store, run.id());
}
