//! What the world is told about the journals that are kept: everything, in order, once.

use crate::run_files;
use planwright_core::digest::Digest;
use planwright_core::event::{CloudEvent, EventName, PlanEvent, PlanEvents, trace_of_plan};
use planwright_core::id::PlanId;
use planwright_core::journal::{Cause, Head, Record, StreamName, encode};
use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::Principal;
use planwright_core::review::{Review, ReviewEvent};
use planwright_core::status::StepStatus;
use planwright_core::time::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

fn golden(name: &str) -> (Document, Vec<Record>) {
    let plan = run_files::read(&format!("journals/v1/{name}.plan.json"));
    let mut document: Document = serde_json::from_str(&plan).unwrap();
    document.number_steps();
    let lines = run_files::read(&format!("journals/v1/{name}.jsonl"));
    let record = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        Record {
            seq: line["seq"].as_u64().unwrap(),
            at: serde_json::from_value(line["at"].clone()).unwrap(),
            epoch: line["epoch"].as_u64().unwrap(),
            key: None,
            body: serde_json::to_vec(&line["body"]).unwrap(),
            hash: Digest::ZERO,
        }
    };
    (document, lines.lines().map(record).collect())
}

fn proposed(plan: &PlanId, document: Document) -> Record {
    let event = Review::propose_first(
        Arc::new(document),
        Digest::of_bytes(b"shown"),
        Principal::person("ada"),
    );
    encode(
        Head::EMPTY,
        &StreamName::Plan(plan.clone()),
        Timestamp::from_millis(1),
        0,
        Cause::Command,
        &event,
    )
}

/// The events of a plan with one run, as the journal has it.
fn events_of(name: &str) -> Vec<PlanEvent> {
    let (document, records) = golden(name);
    let plan = document
        .id
        .clone()
        .unwrap_or_else(|| "plan-story".parse().unwrap());
    let mut events = PlanEvents::new(plan.clone(), Bounds::default());
    let first = proposed(&plan, document);
    let mut told = events.push(&StreamName::Plan(plan), &first).unwrap();
    let run = StreamName::Run("run_golden".parse().unwrap());
    for record in &records {
        told.extend(
            events
                .push(&run, record)
                .unwrap_or_else(|error| panic!("{name}: {error}")),
        );
    }
    assert_eq!(events.last(), told.len() as u64);
    told
}

fn kept() -> Vec<String> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/journals/v1");
    let names = std::fs::read_dir(directory).unwrap().filter_map(|entry| {
        let name = entry.unwrap().file_name().into_string().unwrap();
        name.strip_suffix(".jsonl").map(str::to_owned)
    });
    let mut names: Vec<_> = names.filter(|name| !name.starts_with("review")).collect();
    names.sort();
    assert!(names.len() > 20);
    names
}

/// `step state` of every event about a step of the run, and the names of the others.
fn words(events: &[PlanEvent]) -> Vec<String> {
    let word = |event: &PlanEvent| match &event.step {
        Some(step) => format!("{} {}", step.id, step.state),
        None => event.event.to_string(),
    };
    events
        .iter()
        .filter(|event| event.run_id.is_some())
        .map(word)
        .collect()
}

#[test]
fn events_are_numbered_without_gaps_in_every_journal() {
    for name in kept() {
        let numbers: Vec<u64> = events_of(&name).iter().map(|event| event.seq).collect();
        assert_eq!(
            numbers,
            (1..=numbers.len() as u64).collect::<Vec<_>>(),
            "{name}"
        );
    }
}

#[test]
fn a_step_is_queued_before_it_runs_and_runs_before_it_ends_in_every_journal() {
    let rank = |state: &str| match state {
        "queued" => 0,
        "completed" | "failed" | "denied" | "skipped" | "cancelled" | "blocked" => 2,
        "undone" => 3,
        _ => 1,
    };
    for name in kept() {
        let mut last: BTreeMap<String, u32> = BTreeMap::new();
        for event in events_of(&name)
            .iter()
            .filter(|event| event.run_id.is_some())
        {
            let Some(step) = &event.step else { continue };
            let rank = rank(step.state.as_str());
            let before = last.insert(step.id.to_string(), rank).unwrap_or(0);
            assert!(
                rank >= before,
                "{name}: {} is {} after an end",
                step.id,
                step.state
            );
        }
    }
}

#[test]
fn every_step_of_an_ended_run_was_told_to_end_in_every_journal() {
    for name in kept() {
        let events = events_of(&name);
        let Some(end) = events.iter().position(|event| event.event.ends_run()) else {
            continue;
        };
        let mut states: BTreeMap<String, &str> = BTreeMap::new();
        for step in events[..end].iter().filter_map(|event| event.step.as_ref()) {
            states.insert(step.id.to_string(), step.state.as_str());
        }
        let expected: Value = serde_json::from_str(&run_files::read(&format!(
            "journals/v1/{name}.expected.json"
        )))
        .unwrap();
        for (id, state) in states {
            assert!(
                !["queued", "running", "approved"].contains(&state),
                "{name}: {id} is {state}"
            );
        }
        assert!(expected.is_object());
    }
}

#[test]
fn a_creation_queues_every_step() {
    let events = events_of("diamond");
    let created: Vec<_> = events
        .iter()
        .take_while(|event| event.run_id.is_none())
        .collect();
    let names: Vec<_> = created.iter().map(|event| event.event.as_str()).collect();
    let step = "plan.step";
    assert_eq!(
        names,
        ["plan.created", step, step, step, step, "plan.proposed"]
    );
    let trace = trace_of_plan(&created[0].plan_id);
    assert!(created.iter().all(|event| event.trace_id == trace));
}

#[test]
fn a_gated_step_waits_is_approved_and_runs() {
    let words = words(&events_of("gate_approved"));
    let found: Vec<_> = words
        .iter()
        .filter(|word| !word.ends_with("queued"))
        .collect();
    assert_eq!(found[0], "run.started");
    let of_gate: Vec<_> = words
        .iter()
        .filter_map(|word| word.split_once(' '))
        .skip_while(|(_, state)| *state != "awaiting_approval")
        .map(|(_, state)| state)
        .take(4)
        .collect();
    assert_eq!(
        of_gate,
        ["awaiting_approval", "approved", "running", "completed"]
    );
    assert_eq!(words.last().unwrap(), "run.completed");
}

#[test]
fn dependants_of_a_failed_step_are_told_to_be_blocked() {
    let events = events_of("noncritical_failure");
    let blocked: Vec<_> = events
        .iter()
        .filter(|event| event.state() == Some(StepStatus::Blocked))
        .collect();
    assert!(!blocked.is_empty());
    let error = blocked[0].error.as_ref().unwrap();
    assert!(error.code.starts_with("dependency_failed:"), "{error:?}");
}

#[test]
fn a_retry_says_why() {
    let events = events_of("retry");
    let due = events
        .iter()
        .find(|event| event.state() == Some(StepStatus::RetryDue))
        .unwrap();
    assert!(due.error.is_some());
    assert_eq!(due.attempt, Some(1));
}

#[test]
fn the_payload_of_a_step_is_the_promised_one() {
    let document: Document = serde_json::from_value(json!({
        "id": "plan-a", "title": "Ship", "steps": [{
            "id": "s2", "title": "apply_changes", "tool": "code_writer", "capability": "repo.write",
            "capabilityLabel": "Apply repository changes", "labels": ["repo", "approval"],
            "timeoutSeconds": 900.0, "approvalRequired": true
        }]
    }))
    .unwrap();
    let plan: PlanId = "plan-a".parse().unwrap();
    let mut events = PlanEvents::new(plan.clone(), Bounds::default());
    let told = events
        .push(&StreamName::Plan(plan.clone()), &proposed(&plan, document))
        .unwrap();
    let step = told
        .iter()
        .find(|event| event.event == EventName::PlanStep)
        .unwrap();
    let text = serde_json::to_string(step).unwrap();
    let trace = trace_of_plan(&plan);
    let promised = format!(
        r#"{{"event":"plan.step","traceId":"{trace}","planId":"plan-a","step":{{"id":"s2","action":"apply_changes","tool":"code_writer","state":"queued","capability":"repo.write","capabilityLabel":"Apply repository changes","labels":["repo","approval"],"timeoutSeconds":900,"approvalRequired":true}},"#
    );
    assert!(text.starts_with(&promised), "{text}");
    assert!(text.contains(r#""occurredAt":"1970-01-01T00:00:00.001Z""#));
    let envelope = serde_json::to_value(CloudEvent::new(step)).unwrap();
    assert_eq!(envelope["specversion"], "1.0");
    assert_eq!(envelope["type"], "dev.planwright.plan.step.queued.v1");
    assert_eq!(envelope["id"], "plan-a/2");
    assert_eq!(envelope["source"], "/plan/plan-a");
    assert_eq!(envelope["subject"], "step/s2");
    assert_eq!(envelope["data"], serde_json::to_value(step).unwrap());
}

#[test]
fn a_run_without_a_trace_has_that_of_its_plan() {
    let events = events_of("chain");
    let of_run: Vec<_> = events
        .iter()
        .filter(|event| event.run_id.is_some())
        .collect();
    assert!(
        of_run
            .iter()
            .all(|event| event.trace_id == trace_of_plan(&event.plan_id))
    );
}

#[test]
fn events_carry_the_names_that_earlier_systems_have_for_them() {
    let events = events_of("chain");
    let named = |alias: &str| {
        let found = events.iter().filter(|event| event.alias == Some(alias));
        found.map(|event| event.event).collect::<Vec<_>>()
    };
    assert_eq!(named("plan_execution_start"), [EventName::RunStarted]);
    assert_eq!(named("plan_execution_complete"), [EventName::RunCompleted]);
    assert!(!named("plan_step_ready").is_empty());
    assert_eq!(
        named("plan_step_ready").len(),
        named("plan_step_complete").len()
    );
    let queued = StepStatus::Queued;
    assert_eq!(EventName::PlanStep.alias(Some(queued)), None);
    let adjusted = EventName::PlanAdjusted.alias(None);
    assert_eq!(adjusted, Some("adjustment_applied"));
    let looked = EventName::PlanReflected.alias(None);
    assert_eq!(looked, Some("reflection_complete"));
}

#[test]
fn records_of_another_plan_are_refused() {
    let plan: PlanId = "plan-a".parse().unwrap();
    let mut events = PlanEvents::new(plan, Bounds::default());
    let other = "plan-b".parse().unwrap();
    let document = Document::default();
    let record = proposed(&other, document);
    assert!(events.push(&StreamName::Plan(other), &record).is_err());
    assert!(events.is_empty());
}

#[test]
fn a_fold_of_a_long_history_keeps_little_and_tells_the_same() {
    let mut given = 0;
    for name in kept() {
        let (document, records) = golden(&name);
        let plan = document
            .id
            .clone()
            .unwrap_or_else(|| "plan-story".parse().unwrap());
        let stream = StreamName::Plan(plan.clone());
        let mut events = PlanEvents::new(plan.clone(), Bounds::default());
        let first = proposed(&plan, document.clone());
        events.push(&stream, &first).unwrap();
        let mut head = first.head();
        for version in 2..=20 {
            let edited = ReviewEvent::PlanProposed {
                version,
                document: Arc::new(Document {
                    goal: Some("x".repeat(60_000)),
                    ..document.clone()
                }),
                digest: Digest::of_bytes(b"edited"),
                by: Principal::person("ada"),
                reason: None,
                restored_from: None,
                draft: false,
                trace: None,
                planning: None,
            };
            let at = Timestamp::from_millis(2);
            let record = encode(head, &stream, at, 0, Cause::Command, &edited);
            head = record.head();
            events.push(&stream, &record).unwrap();
            assert!(events.kept_bytes() <= 256 << 10, "{name}");
        }
        let run = StreamName::Run("run_golden".parse().unwrap());
        let mut told = Vec::new();
        for record in &records {
            if let Some(version) = events.missing_version(&run, record) {
                assert_eq!(version, 1, "{name}");
                assert!(events.clone().push(&run, record).is_err(), "{name}");
                events.give_version(version, Arc::new(document.clone()));
                given += 1;
            }
            told.extend(events.push(&run, record).unwrap());
        }
        assert_eq!(words(&told), words(&events_of(&name)), "{name}");
    }
    assert!(given > 10, "{given}");
}
