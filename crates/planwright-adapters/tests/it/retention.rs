//! Journals that leave the database: killed at every point, encrypted, changed on disk, backed up,
//! taken away and brought back; and a store that stays small while runs come and go.

use crate::scene::{Chain, LONG, Scene, sealed};
use crate::sharing::{child, told_path};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::sqlite::{
    IdleStore, ImportError, Options, Protection, Restore, RewriteStoreError, SealedFile,
    SqliteStore, restore,
};
use planwright_core::journal::{Head, StreamName, check_chain};
use planwright_core::plan::{Bounds, Document};
use planwright_core::principal::Principal;
use planwright_core::status::RunStatus;
use planwright_core::time::Timestamp;
use planwright_core::tool::{Annotations, ToolDefinition};
use planwright_engine::conformance::retention::BoundedStore;
use planwright_engine::port::{
    Append, Artifacts as _, Journal as _, LeaseRule, Outbox, Position, RetentionStore as _,
    StreamIndex as _, StreamStatus,
};
use planwright_engine::{Engine, FunctionTools, Retention, RetentionPass, RunOptions};
use serde_json::json;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

fn make() -> (Arc<dyn BoundedStore>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(&directory.path().join("planwright.db")).unwrap();
    (Arc::new(store), directory)
}

mod laws {
    use super::make;
    planwright_engine::retention_laws!(make);
}

mod laws_when_encrypted {
    use super::*;

    fn make_sealed() -> (Arc<dyn BoundedStore>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let options = sealed(directory.path().join("planwright.db"));
        let store = SqliteStore::open_with(options).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::retention_laws!(make_sealed);
}

mod laws_when_signed {
    use super::*;
    use crate::scene::{new_key, signed};

    fn make_signed() -> (Arc<dyn BoundedStore>, TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let options = signed(directory.path().join("planwright.db"), &new_key());
        let store = SqliteStore::open_with(options).unwrap();
        (Arc::new(store), directory)
    }

    planwright_engine::retention_laws!(make_signed);
}

const NOW: Timestamp = Timestamp::from_millis(5_000);
const SIGKILL: i32 = 9;

/// Grows a chain by many entries in one commit.
fn many(chain: &mut Chain, count: usize) -> Vec<Append> {
    (0..count)
        .map(|number| chain.grow(format!("{} entry {number}", chain.stream).as_bytes()))
        .collect()
}

async fn whole(store: &SqliteStore) {
    assert_eq!(store.integrity().await.unwrap(), Vec::<String>::new());
    assert!(store.damage().await.unwrap().is_empty());
    assert!(store.missing_streams().await.unwrap().is_empty());
    assert!(store.odd_rows().await.unwrap().is_empty());
    let (_, problems) = store.check_sealed_files().await.unwrap();
    assert!(problems.is_empty(), "{problems:?}");
}

fn sealed_files(scene: &Scene) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(scene.file("-sealed")) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

async fn same(store: &SqliteStore, chain: &Chain) {
    let records = store.read(&chain.stream, 0, 10_000).await.unwrap();
    assert_eq!(records, chain.records);
    let head = check_chain(Head::EMPTY, &chain.stream, &records).unwrap();
    assert_eq!(head, chain.head);
}

#[tokio::test]
async fn a_long_journal_leaves_in_portions_and_is_read_by_pages() {
    let scene = Scene::new();
    let store = scene.open();
    let (mut long, mut other) = (Chain::of("run/long"), Chain::of("run/other"));
    store.append(many(&mut long, 2_500)).await.unwrap();
    store.append(many(&mut other, 3)).await.unwrap();
    let two = scene.open();
    store.seal(&long.stream, long.head, NOW).await.unwrap();
    for store in [&store, &two] {
        same(store, &long).await;
        let mut read = Vec::new();
        for _ in 0..4 {
            let page = store.read(&long.stream, read.len() as u64, 700).await;
            read.extend(page.unwrap());
        }
        assert_eq!(read, long.records);
    }
    // The other process goes on writing, and so does this one.
    store.append(many(&mut other, 3)).await.unwrap();
    two.append(many(&mut other, 3)).await.unwrap();
    same(&store, &other).await;
    whole(&store).await;
    drop((store, two));
    let store = scene.open();
    whole(&store).await;
    same(&store, &long).await;
    store.restore(&long.stream).await.unwrap();
    assert!(sealed_files(&scene).is_empty());
    same(&store, &long).await;
    whole(&store).await;
}

#[tokio::test]
async fn what_was_sealed_or_removed_is_not_reported_as_lost() {
    let scene = Scene::new();
    let store = scene.open();
    let (mut gone, mut kept) = (Chain::of("run/gone"), Chain::of("run/kept"));
    for chain in [&mut gone, &mut kept] {
        store.append(many(chain, 4)).await.unwrap();
        store.seal(&chain.stream, chain.head, NOW).await.unwrap();
    }
    store.remove(&[gone.stream.clone()], NOW).await.unwrap();
    drop(store);
    // Every head is still promised by the file beside the database.
    assert!(std::fs::metadata(scene.file("-heads")).unwrap().len() > 0);
    let store = scene.open();
    whole(&store).await;
    same(&store, &kept).await;
    assert_eq!(store.head(&gone.stream).await.unwrap(), Head::EMPTY);
}

#[tokio::test]
async fn a_changed_or_missing_sealed_file_is_named() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    store.append(many(&mut chain, 5)).await.unwrap();
    store.seal(&chain.stream, chain.head, NOW).await.unwrap();
    let file = sealed_files(&scene).remove(0);
    let bytes = std::fs::read(&file).unwrap();
    SealedFile::check(&file).unwrap();
    for at in (0..bytes.len()).step_by(23) {
        let mut changed = bytes.clone();
        changed[at] ^= 0x04;
        std::fs::write(&file, &changed).unwrap();
        let (count, problems) = store.check_sealed_files().await.unwrap();
        assert_eq!((count, problems.len()), (1, 1), "byte {at}");
        assert_eq!(problems[0].0, file);
        assert!(SealedFile::check(&file).is_err(), "byte {at}");
        let back = store.restore(&chain.stream).await;
        assert!(back.is_err(), "byte {at}: nothing changed is believed");
    }
    for cut in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&file, &bytes[..cut]).unwrap();
        let (_, problems) = store.check_sealed_files().await.unwrap();
        assert_eq!(problems.len(), 1, "cut at {cut}");
        let read = store.read(&chain.stream, 0, 100).await;
        let is_whole = read.is_ok_and(|records| records == chain.records);
        assert!(!is_whole || cut == bytes.len() - 1, "cut at {cut}");
    }
    std::fs::remove_file(&file).unwrap();
    let (_, problems) = store.check_sealed_files().await.unwrap();
    assert!(problems[0].1.contains("missing"), "{problems:?}");
    assert!(store.read(&chain.stream, 0, 100).await.is_err());
    std::fs::write(&file, &bytes).unwrap();
    whole(&store).await;
    same(&store, &chain).await;
}

#[tokio::test]
async fn a_sealed_file_that_may_be_the_only_copy_is_left_alone() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    store.append(many(&mut chain, 3)).await.unwrap();
    let directory = scene.file("-sealed");
    std::fs::create_dir(&directory).unwrap();
    let export = |to: &str| directory.join(to);
    store
        .export_journal(&chain.stream, &export("run-r.copy.jsonl"))
        .await
        .unwrap();
    let other = Scene::new();
    let elsewhere = other.open();
    let mut only = Chain::of("run/only");
    only.put(&elsewhere, "here alone").await;
    elsewhere
        .export_journal(&only.stream, &export("run-only.copy.jsonl"))
        .await
        .unwrap();
    std::fs::write(export("run-odd.jsonl"), "not ours").unwrap();
    std::fs::write(export(".tmp-1"), "begun").unwrap();
    let removed = store.remove_unnamed_sealed_files().await.unwrap();
    assert_eq!(removed.files, 2, "the draft, and what the database holds");
    let left: Vec<_> = sealed_files(&scene);
    let left: Vec<_> = left.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(left, ["run-odd.jsonl", "run-only.copy.jsonl"]);
    same(&store, &chain).await;
}

#[tokio::test]
async fn an_encrypted_journal_stays_encrypted_in_its_file() {
    let scene = Scene::new();
    let store = scene.open_sealed();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "canary value").await;
    store.seal(&chain.stream, chain.head, NOW).await.unwrap();
    let file = sealed_files(&scene).remove(0);
    let text = String::from_utf8_lossy(&std::fs::read(&file).unwrap()).into_owned();
    assert!(!text.contains("canary"), "{text}");
    let hash = chain.head.hash.hex();
    assert!(!text.contains(&hash), "a hash would confirm a guess");
    assert!(SealedFile::check(&file).unwrap().is_encrypted());
    whole(&store).await;
    drop(store);
    let store = scene.open_sealed();
    same(&store, &chain).await;
    store.restore(&chain.stream).await.unwrap();
    same(&store, &chain).await;
    whole(&store).await;
}

#[tokio::test]
async fn a_store_with_sealed_journals_is_not_rewritten_around_them() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "canary value").await;
    store.seal(&chain.stream, chain.head, NOW).await.unwrap();
    drop(store);
    let artifacts = scene.file("-artifacts");
    let protection = Protection::Sealed {
        passphrase: crate::scene::passphrase("correct horse"),
        cost: planwright_adapters::vault::StretchCost::FLOOR,
    };
    let idle = IdleStore::open(Options::new(scene.path())).unwrap();
    let refused = idle.rewrite(&protection, &artifacts, &mut |_| {});
    assert!(matches!(refused, Err(RewriteStoreError::SealedJournals(1))));
    same(&scene.open(), &chain).await;
}

#[tokio::test]
async fn a_backup_holds_sealed_journals_and_they_are_restored_with_it() {
    let scene = Scene::new();
    let store = scene.open();
    let (mut away, mut here) = (Chain::of("run/away"), Chain::of("run/here"));
    store.append(many(&mut away, 4)).await.unwrap();
    store.append(many(&mut here, 4)).await.unwrap();
    store.seal(&away.stream, away.head, NOW).await.unwrap();
    let (artifacts, to) = (
        scene.file("-artifacts"),
        scene.directory.path().join("copy"),
    );
    let turn = store.take_turn().unwrap();
    assert!(turn.is_some());
    drop(turn);
    let manifest = store.backup(&artifacts, &to, NOW, &mut |_| {}).unwrap();
    assert!(
        manifest
            .files
            .iter()
            .any(|file| file.path.starts_with("sealed/run-away."))
    );
    let other = Scene::new();
    let what = Restore {
        from: to.clone(),
        to: Options::new(other.path()),
        artifacts: other.file("-artifacts"),
        replace: false,
        keep_tokens: true,
        now: NOW,
    };
    restore(&what, &mut |_| {}).unwrap();
    let copy = other.open();
    same(&copy, &away).await;
    same(&copy, &here).await;
    whole(&copy).await;
    let file = sealed_files(&scene).remove(0);
    std::fs::write(&file, "changed").unwrap();
    let again = scene.directory.path().join("again");
    assert!(store.backup(&artifacts, &again, NOW, &mut |_| {}).is_err());
    assert!(!again.exists());
}

#[tokio::test]
async fn an_exported_journal_comes_back_elsewhere_with_its_large_values() {
    for is_sealed in [false, true] {
        let scene = Scene::new();
        let store = scene.open();
        let artifacts = FileArtifacts::new(scene.file("-artifacts"));
        let large = vec![b'x'; 100_000];
        let artifact = artifacts.put(large.clone()).await.unwrap();
        let mut chain = Chain::of("run/r");
        let body = json!({ "value": { "artifact": { "digest": artifact.digest } } });
        let status = StreamStatus {
            plan: "p".parse().unwrap(),
            status: RunStatus::Completed.into(),
            label: "Plan p".to_owned(),
        };
        let append = Append {
            status: Some(status.clone()),
            ..chain.grow(body.to_string().as_bytes())
        };
        store.append(vec![append]).await.unwrap();
        store.append(many(&mut chain, 600)).await.unwrap();
        if is_sealed {
            store.seal(&chain.stream, chain.head, NOW).await.unwrap();
        }
        let file = scene.directory.path().join("taken.jsonl");
        let (head, _) = store.export_journal(&chain.stream, &file).await.unwrap();
        assert_eq!(head, chain.head);
        let again = store.export_journal(&chain.stream, &file).await;
        assert!(matches!(again, Err(ImportError::Exists(_))), "{again:?}");
        let unknown: StreamName = "run/unknown".parse().unwrap();
        let none = store
            .export_journal(&unknown, &file.with_extension("no"))
            .await;
        assert!(none.is_err());
        assert!(!file.with_extension("no").exists());
        let present = store.import_journal(&file).await;
        assert!(
            matches!(present, Err(ImportError::Present(_))),
            "{present:?}"
        );

        let other = Scene::new();
        let copy = if is_sealed {
            other.open_sealed()
        } else {
            other.open()
        };
        copy.import_journal(&file).await.unwrap();
        same(&copy, &chain).await;
        whole(&copy).await;
        let info = copy.info(&chain.stream).await.unwrap().unwrap();
        assert_eq!(info.status, status);
        let values =
            FileArtifacts::with_cipher(other.file("-artifacts"), Arc::clone(copy.cipher()));
        assert_eq!(values.get(&artifact).await.unwrap(), large);
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert!(Scene::new().open().import_journal(&file).await.is_err());
    }
}

fn make_old(path: &Path) {
    let file = std::fs::File::open(path).unwrap();
    file.set_modified(std::time::SystemTime::now() - LONG)
        .unwrap();
}

#[tokio::test]
async fn large_values_go_only_when_no_journal_names_them_and_their_time_is_over() {
    let scene = Scene::new();
    let store = scene.open();
    let artifacts = FileArtifacts::new(scene.file("-artifacts"));
    let mut values = Vec::new();
    for text in ["live", "sealed", "unused", "fresh", "asked for again"] {
        let artifact = artifacts.put(text.as_bytes().to_vec()).await.unwrap();
        if text != "fresh" {
            make_old(&artifacts.path(&artifact.digest));
        }
        values.push(artifact);
    }
    let [mut live, mut away] = ["run/live", "run/away"].map(Chain::of);
    live.put(&store, &format!("{{\"v\":\"{}\"}}", values[0].digest))
        .await;
    away.put(&store, &format!("{{\"v\":\"{}\"}}", values[1].digest))
        .await;
    store.seal(&away.stream, away.head, NOW).await.unwrap();
    artifacts.put(b"asked for again".to_vec()).await.unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let before = Timestamp::from_millis(0)
        .plus(now)
        .minus(Duration::from_secs(60));
    let dry = store.remove_unused_artifacts(before, true).await.unwrap();
    let removed = store.remove_unused_artifacts(before, false).await.unwrap();
    assert_eq!((removed, removed.files), (dry, 1));
    assert!(artifacts.get(&values[2]).await.is_err());
    for at in [0, 1, 3, 4] {
        assert!(artifacts.get(&values[at]).await.is_ok(), "value {at}");
    }
    // What is removed for good lets go of what it named, after a time of grace.
    store.remove(&[away.stream.clone()], NOW).await.unwrap();
    let removed = store.remove_unused_artifacts(before, false).await.unwrap();
    assert_eq!(removed.files, 0);
    make_old(&artifacts.path(&values[1].digest));
    let removed = store.remove_unused_artifacts(before, false).await.unwrap();
    assert_eq!(removed.files, 1);
    assert!(artifacts.get(&values[0]).await.is_ok());
}

/// Two runs: one to be sealed, and one that stays.
async fn prepare(path: &Path) -> (SqliteStore, Chain, Chain) {
    let store = SqliteStore::open(path).unwrap();
    let (mut away, mut here) = (Chain::of("run/away"), Chain::of("run/here"));
    for chain in [&mut away, &mut here] {
        store.append(many(chain, 3)).await.unwrap();
    }
    (store, away, here)
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_seals_restores_and_removes() {
    let Some(path) = told_path() else { return };
    let (store, away, _) = prepare(&path).await;
    println!("\nprepared");
    store.seal(&away.stream, away.head, NOW).await.unwrap();
    println!("sealed");
    store.restore(&away.stream).await.unwrap();
    println!("restored");
    store.seal(&away.stream, away.head, NOW).await.unwrap();
    store.remove(&[away.stream], NOW).await.unwrap();
    println!("removed");
}

#[tokio::test]
async fn a_kill_at_any_point_leaves_the_journal_in_one_place_or_both_and_never_in_none() {
    let (_, expected_away, expected_here) = {
        let scene = Scene::new();
        prepare(&scene.path()).await
    };
    let mut passed = 0;
    for point in 1.. {
        let scene = Scene::new();
        let name = "retention::child_that_seals_restores_and_removes";
        let mut command = child(name, &scene.path());
        command.env("PLANWRIGHT_CRASH_AT", point.to_string());
        command.env("PLANWRIGHT_CRASH_LOG", scene.directory.path().join("log"));
        let output = command.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        if output.status.signal() != Some(SIGKILL) {
            assert!(
                text.contains("removed"),
                "the child failed by itself: {text}"
            );
            assert!(
                passed > 20,
                "only {passed} points after the journals were there"
            );
            return;
        }
        if !text.contains("prepared") {
            continue;
        }
        passed += 1;
        let log = std::fs::read_to_string(scene.directory.path().join("log")).unwrap();
        let store = scene.open();
        same(&store, &expected_here).await;
        let is_removed = store.head(&expected_away.stream).await.unwrap() == Head::EMPTY;
        let may_be_removed = text.contains("restored");
        assert!(!is_removed || may_be_removed, "{log}");
        if !is_removed {
            same(&store, &expected_away).await;
        }
        whole(&store).await;
        // What was left behind goes, and everything can be repeated.
        store.remove_unnamed_sealed_files().await.unwrap();
        whole(&store).await;
        if !is_removed {
            match store.sealed(&expected_away.stream).await.unwrap() {
                Some(_) => store.restore(&expected_away.stream).await.unwrap(),
                None => {
                    let (stream, head) = (&expected_away.stream, expected_away.head);
                    store.seal(stream, head, NOW).await.unwrap();
                }
            }
            same(&store, &expected_away).await;
        }
        whole(&store).await;
        let mut here = expected_here.clone();
        here.put(&store, "goes on").await;
        whole(&store).await;
    }
}

/// An engine whose runs are sealed, and removed, as soon as they are over.
fn engine_on(store: &Arc<SqliteStore>, scene: &Scene, retention: Retention) -> Engine {
    let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let greet = ToolDefinition::new("text", "greet", "Greets a person.", schema)
        .with_annotations(Annotations::read_only());
    let tools = FunctionTools::new().with(greet, |call| async move {
        Ok(json!(format!("hello {}", call.args["name"])))
    });
    let artifacts = FileArtifacts::new(scene.file("-artifacts"));
    Engine::builder(Arc::new(tools))
        .store(Arc::<SqliteStore>::clone(store), Arc::new(artifacts))
        .retention_store(
            Arc::<SqliteStore>::clone(store),
            Arc::<SqliteStore>::clone(store),
            vec!["hook".to_owned()],
        )
        .retention(retention)
        .build()
}

async fn run_plan(engine: &Engine, id: &str) {
    let steps = json!([
        { "id": "one", "tool": "greet", "args": { "name": "world" }, "result": "first" },
        { "id": "two", "tool": "greet", "args": { "name": "${first}" } },
    ]);
    let text = json!({ "id": id, "title": "A small plan", "steps": steps }).to_string();
    let document = Document::read(text.as_bytes(), &Bounds::default()).unwrap();
    let options = RunOptions::new(Principal::person("ada"));
    let mut run = engine.runs().run_document(document, options).await.unwrap();
    assert_eq!(run.wait().await.unwrap().status(), RunStatus::Completed);
}

fn size_of(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).unwrap();
    let size = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(found) if found.is_dir() => size_of(&entry.path()),
        Ok(found) => found.len(),
        Err(_) => 0,
    };
    entries.map(|entry| size(entry.unwrap())).sum()
}

const AT_ONCE: Retention = Retention {
    stale_after_days: 30,
    stalled_after: Duration::from_secs(60),
    archive_after: Some(Duration::ZERO),
    delete_after: None,
    seal_after: Some(Duration::ZERO),
    remove_after: Some(Duration::ZERO),
    remove_artifacts_after: None,
};

const PASS: RetentionPass = RetentionPass {
    max_journals: 1000,
    dry_run: false,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_stays_small_while_runs_come_and_go() {
    let scene = Scene::new();
    // The file of heads has a limit of its own.
    let options = Options {
        max_heads_bytes: 16 * 1024,
        ..Options::new(scene.path())
    };
    let store = Arc::new(SqliteStore::open_with(options).unwrap());
    let engine = engine_on(&store, &scene, AT_ONCE);
    let mut sizes = Vec::new();
    for number in 1..=300 {
        run_plan(&engine, &format!("plan-{number}")).await;
        if number % 10 == 0 {
            for _ in 0..2 {
                engine.maintenance().run_maintenance().await.unwrap();
                engine.maintenance().apply_retention(PASS).await.unwrap();
            }
        }
        if number % 100 == 0 {
            store.vacuum().await.unwrap();
            sizes.push(size_of(scene.directory.path()));
        }
    }
    assert!(sizes[2] < sizes[0] * 3 / 2, "{sizes:?}");
    assert_eq!(
        store.plans().await.unwrap().len(),
        0,
        "everything was removed"
    );
    whole(&store).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_a_webhook_was_not_told_of_stays_and_nothing_of_it_is_missed() {
    let scene = Scene::new();
    let store = Arc::new(scene.open());
    let kept = Retention {
        remove_after: None,
        ..AT_ONCE
    };
    let engine = engine_on(&store, &scene, kept);
    let outbox: &dyn Outbox = &*store;
    assert!(
        outbox
            .advance("hook", None, Position(0), Vec::new(), NOW)
            .await
            .unwrap()
    );
    run_plan(&engine, "told").await;
    let end = engine.journals().end_of_feed().await.unwrap();
    let report = engine.maintenance().apply_retention(PASS).await.unwrap();
    assert!(report.sealed.is_empty(), "{report:?}");
    // Told of everything but the last record, which waits in the outbox.
    let waiting = vec![(end, 0)];
    assert!(
        outbox
            .advance("hook", Some(Position(0)), end, waiting, NOW)
            .await
            .unwrap()
    );
    let report = engine.maintenance().apply_retention(PASS).await.unwrap();
    assert!(report.sealed.is_empty(), "{report:?}");
    let later = Timestamp::from_millis(i64::MAX / 2);
    let delivery = outbox.take("hook", later, later).await.unwrap().unwrap();
    let done = planwright_engine::port::Settled::Done;
    outbox.settle("hook", &delivery, done).await.unwrap();
    let before = engine
        .journals()
        .feed(&planwright_engine::port::FeedOf::All, Position(0), 1000)
        .await
        .unwrap();
    let report = engine.maintenance().apply_retention(PASS).await.unwrap();
    assert_eq!(report.sealed.len(), 1, "{report:?}");
    let after = engine
        .journals()
        .feed(&planwright_engine::port::FeedOf::All, Position(0), 1000)
        .await
        .unwrap();
    assert_eq!(after, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_has_not_ended_is_never_sealed() {
    let scene = Scene::new();
    let store = Arc::new(scene.open());
    let engine = engine_on(&store, &scene, AT_ONCE);
    run_plan(&engine, "ended").await;
    // Its word says that it has ended, but its journal does not.
    let mut lying = Chain::of("run/lying");
    let status = StreamStatus {
        plan: "ended".parse().unwrap(),
        status: RunStatus::Completed.into(),
        label: String::new(),
    };
    let append = Append {
        status: Some(status),
        lease: LeaseRule::None,
        ..lying.grow(b"{}")
    };
    store.append(vec![append]).await.unwrap();
    let report = engine.maintenance().apply_retention(PASS).await.unwrap();
    assert_eq!(report.sealed.len(), 1, "{report:?}");
    assert_eq!(report.failures.len(), 1, "{report:?}");
    assert_eq!(report.failures[0].0, lying.stream);
    assert!(store.sealed(&lying.stream).await.unwrap().is_none());
    assert_eq!(
        engine
            .journals()
            .runs(&"ended".parse().unwrap())
            .await
            .unwrap()
            .len(),
        2
    );
}
