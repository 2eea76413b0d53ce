//! Killed at every numbered point: what was acknowledged is there, and nothing is there by half.

use crate::scene::{Chain, LONG, Scene};
use crate::sharing::{child, told_path};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::journal::{Head, check_chain};
use planwright_engine::port::{Append, Artifacts as _, Journal as _, LeaseRule};
use std::os::unix::process::ExitStatusExt as _;

const COMMITS: usize = 6;
const SIGKILL: i32 = 9;

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_appends() {
    let Some(path) = told_path() else { return };
    let store = SqliteStore::open(&path).unwrap();
    let (mut run, mut plan) = (Chain::of("run/r"), Chain::of("plan/p"));
    run.open(&store, "child", LONG).await;
    println!("\nacknowledged 1");
    for number in 2..=COMMITS {
        let held = Append {
            lease: LeaseRule::Held { epoch: 1 },
            ..run.grow(b"step")
        };
        store.append(vec![held, plan.grow(b"note")]).await.unwrap();
        println!("acknowledged {number}");
    }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_kill_at_every_point() {
    for point in 1.. {
        let scene = Scene::new();
        let mut command = child("crash::child_that_appends", &scene.path());
        command.env("PLANWRIGHT_CRASH_AT", point.to_string());
        command.env("PLANWRIGHT_CRASH_LOG", scene.directory.path().join("log"));
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let acknowledged = text
            .lines()
            .filter(|line| line.starts_with("acknowledged"))
            .count() as u64;

        let store = scene.open();
        assert!(store.damage().await.unwrap().is_empty(), "point {point}");
        let (run, plan) = (Chain::of("run/r").stream, Chain::of("plan/p").stream);
        let records = store.read(&run, 0, 100).await.unwrap();
        let head = check_chain(Head::EMPTY, &run, &records).unwrap();
        assert!(
            head.seq >= acknowledged,
            "point {point}: {} of {acknowledged}",
            head.seq
        );
        assert!(head.seq <= acknowledged + 1, "point {point}");
        let notes = store.head(&plan).await.unwrap().seq;
        assert_eq!(
            notes,
            head.seq.saturating_sub(1),
            "point {point}: both streams or none"
        );

        if output.status.signal() != Some(SIGKILL) {
            assert_eq!(acknowledged, COMMITS as u64, "the child failed by itself");
            assert!(point > 4 * COMMITS, "only {point} points");
            return;
        }
        let log = std::fs::read_to_string(scene.directory.path().join("log")).unwrap();
        assert!(log.starts_with(&format!("{point} store: ")), "{log}");
    }
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_puts_an_artifact() {
    let Some(path) = told_path() else { return };
    FileArtifacts::new(path)
        .put(b"content".to_vec())
        .await
        .unwrap();
    println!("\nacknowledged");
}

#[tokio::test]
async fn an_artifact_is_whole_or_absent_after_a_kill() {
    for point in 1..=3 {
        let scene = Scene::new();
        let directory = scene.directory.path().join("artifacts");
        let mut command = child("crash::child_that_puts_an_artifact", &directory);
        command.env("PLANWRIGHT_CRASH_AT", point.to_string());
        let output = command.output().unwrap();
        assert_eq!(
            output.status.signal(),
            (point < 3).then_some(SIGKILL),
            "point {point}"
        );
        let artifacts = FileArtifacts::new(&directory);
        let artifact = artifacts.put(b"content".to_vec()).await.unwrap();
        assert_eq!(artifacts.get(&artifact).await.unwrap(), b"content");
    }
}
