//! Backups made while others write, and stores made from them.

use crate::scene::{Chain, LONG, Scene, owner, passphrase, sealed};
use crate::sharing::{child, told_path};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::sqlite::{
    OpenStoreError, Options, Restore, Restored, RewriteStoreError, SqliteStore, restore,
};
use planwright_core::journal::{Head, check_chain};
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create, recognise};
use planwright_engine::port::{
    AppendError, Artifacts as _, Journal as _, LeaseRule, Leases as _, Mailbox as _,
};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const NOW: Timestamp = Timestamp::from_millis(5);

fn artifacts_of(scene: &Scene) -> PathBuf {
    scene.file("-artifacts")
}

fn back_up(scene: &Scene, store: &SqliteStore, to: &Path) -> planwright_adapters::sqlite::Manifest {
    store
        .backup(&artifacts_of(scene), to, NOW, &mut |_| ())
        .unwrap()
}

fn plain(from: &Path, scene: &Scene) -> Restore {
    Restore {
        from: from.into(),
        to: Options::new(scene.path()),
        artifacts: artifacts_of(scene),
        replace: false,
        keep_tokens: false,
        now: NOW,
    }
}

fn run(what: &Restore) -> Result<Restored, RewriteStoreError> {
    restore(what, &mut |_| ())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_made_while_runs_go_on_is_one_moment_of_them() {
    let scene = Scene::new();
    let store = Arc::new(scene.open());
    let mut one = Chain::of("run/one");
    let mut two = Chain::of("run/two");
    store
        .append(vec![one.grow(b"0"), two.grow(b"0")])
        .await
        .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let writing = {
        let store = Arc::clone(&store);
        let stop = Arc::clone(&stop);
        tokio::spawn(async move {
            while !stop.load(Ordering::Relaxed) {
                // Both or neither: a backup must not come between them.
                store
                    .append(vec![one.grow(&[7; 3000]), two.grow(&[7; 3000])])
                    .await
                    .unwrap();
            }
            one.head.seq
        })
    };
    let mut backups = Vec::new();
    for number in 0..4 {
        let to = scene.directory.path().join(format!("backup{number}"));
        let copied = Arc::clone(&store);
        let scene_artifacts = artifacts_of(&scene);
        let target = to.clone();
        tokio::task::spawn_blocking(move || {
            copied.backup(&scene_artifacts, &target, NOW, &mut |_| ())
        })
        .await
        .unwrap()
        .unwrap();
        backups.push(to);
    }
    stop.store(true, Ordering::Relaxed);
    let end = writing.await.unwrap();
    let mut last = 0;
    for backup in backups {
        let place = Scene::new();
        run(&plain(&backup, &place)).unwrap();
        let restored = place.open();
        let one = "run/one".parse().unwrap();
        let two = "run/two".parse().unwrap();
        let head = restored.head(&one).await.unwrap();
        assert_eq!(
            head.seq,
            restored.head(&two).await.unwrap().seq,
            "half a commit"
        );
        assert!(head.seq >= last && head.seq <= end);
        last = head.seq;
        let records = restored.read(&one, 0, 100_000).await.unwrap();
        assert_eq!(check_chain(Head::EMPTY, &one, &records).unwrap(), head);
        assert!(restored.damage().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn what_is_restored_goes_on_by_nobody_and_lets_nobody_in() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    chain.open(&store, "owner", LONG).await;
    let message = store.send(chain.run(), b"cancel".to_vec()).await.unwrap();
    let grant = Grant {
        to: Principal::person("ada"),
        role: Role::Admin,
        lifetime: None,
    };
    let minted = create(&store, &Roles::default(), &grant.to, &grant, NOW)
        .await
        .unwrap();
    let artifacts = FileArtifacts::new(artifacts_of(&scene));
    let value = artifacts.put(b"large".to_vec()).await.unwrap();
    let backup = scene.directory.path().join("backup");
    let manifest = back_up(&scene, &store, &backup);
    assert_eq!(
        (manifest.streams, manifest.entries, manifest.files.len()),
        (1, 1, 2)
    );

    let place = Scene::new();
    let restored = run(&plain(&backup, &place)).unwrap();
    assert_eq!((restored.tokens_revoked, restored.commands_refused), (1, 1));
    let store = place.open();
    assert!(matches!(
        chain.try_put(&store, LeaseRule::Held { epoch: 1 }).await,
        Err(AppendError::Fenced { .. })
    ));
    assert_eq!(
        store
            .acquire(chain.run(), &owner("new"), LONG)
            .await
            .unwrap()
            .epoch,
        3
    );
    assert!(store.mail().await.unwrap().is_empty());
    assert!(
        store
            .answer(message)
            .await
            .unwrap()
            .unwrap()
            .unwrap_err()
            .contains("restored")
    );
    assert!(
        recognise(&store, minted.text.expose(), NOW)
            .await
            .unwrap()
            .is_none()
    );
    assert_eq!(
        FileArtifacts::new(artifacts_of(&place))
            .get(&value)
            .await
            .unwrap(),
        b"large"
    );

    let kept = Scene::new();
    run(&Restore {
        keep_tokens: true,
        ..plain(&backup, &kept)
    })
    .unwrap();
    assert!(
        recognise(&kept.open(), minted.text.expose(), NOW)
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn a_store_is_replaced_only_when_told_and_only_when_nobody_has_it_open() {
    let scene = Scene::new();
    let (mut chain, store) = (Chain::of("run/r"), scene.open());
    chain.put(&store, "one").await;
    let backup = scene.directory.path().join("backup");
    back_up(&scene, &store, &backup);
    let early = chain.records.clone();
    chain.put(&store, "two").await;
    assert!(matches!(
        store.backup(&artifacts_of(&scene), &backup, NOW, &mut |_| ()),
        Err(RewriteStoreError::Exists(_))
    ));
    let told = Restore {
        replace: true,
        ..plain(&backup, &scene)
    };
    assert!(matches!(
        run(&plain(&backup, &scene)),
        Err(RewriteStoreError::Exists(_))
    ));
    assert!(matches!(run(&told), Err(RewriteStoreError::InUse)));
    drop(store);
    run(&told).unwrap();
    let store = scene.open();
    assert!(
        store.damage().await.unwrap().is_empty(),
        "the anchor is the backup's now"
    );
    assert_eq!(store.read(&chain.stream, 0, 10).await.unwrap(), early);
}

#[tokio::test]
async fn a_backup_of_an_encrypted_store_needs_its_passphrase_and_shows_nothing() {
    let scene = Scene::new();
    let store = scene.open_sealed();
    let mut chain = Chain::of("run/r");
    chain.put(&store, "canary in the journal").await;
    let artifacts = FileArtifacts::with_cipher(artifacts_of(&scene), Arc::clone(store.cipher()));
    let value = artifacts.put(b"canary in a value".to_vec()).await.unwrap();
    let backup = scene.directory.path().join("backup");
    assert!(back_up(&scene, &store, &backup).encrypted);
    for directory in [backup.clone(), backup.join("artifacts")] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let bytes = std::fs::read(entry.unwrap().path()).unwrap_or_default();
            assert!(!bytes.windows(6).any(|window| window == b"canary"));
        }
    }
    let place = Scene::new();
    let refused = run(&plain(&backup, &place));
    assert!(
        matches!(
            refused,
            Err(RewriteStoreError::Open(OpenStoreError::Encrypted))
        ),
        "{refused:?}"
    );
    let with = |text: &str| Restore {
        to: Options {
            passphrase: Some(passphrase(text)),
            ..sealed(place.path())
        },
        ..plain(&backup, &place)
    };
    assert!(matches!(
        run(&with("wrong horse")),
        Err(RewriteStoreError::Open(OpenStoreError::Unlock(_)))
    ));
    assert!(!place.path().exists());
    run(&with("correct horse")).unwrap();
    let store = place.open_sealed();
    assert_eq!(
        store.read(&chain.stream, 0, 10).await.unwrap(),
        chain.records
    );
    let artifacts = FileArtifacts::with_cipher(artifacts_of(&place), Arc::clone(store.cipher()));
    assert_eq!(artifacts.get(&value).await.unwrap(), b"canary in a value");
}

#[tokio::test]
async fn a_backup_that_was_changed_replaces_nothing() {
    let scene = Scene::new();
    let store = scene.open();
    Chain::of("run/r").put(&store, "one").await;
    FileArtifacts::new(artifacts_of(&scene))
        .put(b"large".to_vec())
        .await
        .unwrap();
    let backup = scene.directory.path().join("backup");
    back_up(&scene, &store, &backup);
    let value = std::fs::read_dir(backup.join("artifacts"))
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let database = backup.join("planwright.db");
    let manifest = backup.join("manifest.json");
    type Change = Box<dyn Fn(&mut Vec<u8>)>;
    let changes: [(&Path, Change); 5] = [
        (&database, Box::new(|bytes| bytes[5000] ^= 1)),
        (&database, Box::new(|bytes| bytes.truncate(4096))),
        (&value, Box::new(|bytes| bytes[0] ^= 1)),
        (&manifest, Box::new(|bytes| bytes.truncate(40))),
        (
            &manifest,
            Box::new(|bytes| {
                let text = String::from_utf8(bytes.clone()).unwrap();
                *bytes = text.replace("artifacts/", "artifacts/../../").into_bytes();
            }),
        ),
    ];
    for (path, change) in changes {
        let whole = std::fs::read(path).unwrap();
        let mut bytes = whole.clone();
        change(&mut bytes);
        std::fs::write(path, bytes).unwrap();
        let place = Scene::new();
        assert!(run(&plain(&backup, &place)).is_err(), "{}", path.display());
        assert!(!place.path().exists());
        std::fs::write(path, whole).unwrap();
    }
    std::fs::remove_file(&value).unwrap();
    assert!(run(&plain(&backup, &Scene::new())).is_err());
    assert!(matches!(
        run(&plain(scene.directory.path(), &Scene::new())),
        Err(RewriteStoreError::NoBackup(_))
    ));
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_restores() {
    let Some(path) = told_path() else { return };
    let directory = path.parent().unwrap().to_owned();
    let what = Restore {
        from: directory.join("backup"),
        to: Options::new(&path),
        artifacts: directory.join("planwright.db-artifacts"),
        replace: true,
        keep_tokens: false,
        now: NOW,
    };
    restore(&what, &mut |_| ()).unwrap();
    println!("\nrestored");
}

#[tokio::test]
async fn killed_at_any_point_of_a_restore_one_whole_store_is_left() {
    for point in 1.. {
        let scene = Scene::new();
        let store = scene.open();
        let mut chain = Chain::of("run/r");
        chain.put(&store, "one").await;
        FileArtifacts::new(artifacts_of(&scene))
            .put(b"large".to_vec())
            .await
            .unwrap();
        back_up(&scene, &store, &scene.directory.path().join("backup"));
        let early = chain.records.clone();
        chain.put(&store, "two").await;
        drop(store);
        let mut command = child("backups::child_that_restores", &scene.path());
        command.env("PLANWRIGHT_CRASH_AT", point.to_string());
        let output = command.output().unwrap();
        let killed = output.status.signal() == Some(9);
        let store = scene.open();
        assert!(store.integrity().await.unwrap().is_empty());
        assert!(store.damage().await.unwrap().is_empty(), "point {point}");
        let found = store.read(&chain.stream, 0, 10).await.unwrap();
        assert!(
            found == early || (killed && found == chain.records),
            "point {point}"
        );
        drop(store);
        run(&Restore {
            replace: true,
            ..plain(&scene.directory.path().join("backup"), &scene)
        })
        .unwrap();
        assert_eq!(
            scene.open().read(&chain.stream, 0, 10).await.unwrap(),
            early
        );
        if !killed {
            let text = String::from_utf8(output.stdout).unwrap();
            assert!(
                text.contains("restored") && point > 5,
                "point {point}: {text}"
            );
            return;
        }
    }
}
