//! Encrypting, decrypting and a new key, and being killed at every point of it.

use crate::scene::{Chain, LONG, Scene, passphrase, sealed};
use crate::sharing::{child, told_path};
use planwright_adapters::files::FileArtifacts;
use planwright_adapters::sqlite::{
    IdleStore, OpenStoreError, Options, Protection, RewriteStoreError, SqliteStore, is_encrypted,
};
use planwright_adapters::vault::StretchCost;
use planwright_core::journal::{Head, check_chain};
use planwright_core::policy::{Role, Roles};
use planwright_core::principal::Principal;
use planwright_core::time::Timestamp;
use planwright_engine::access::{Grant, create};
use planwright_engine::port::{
    Append, ArtifactRef, Artifacts as _, Journal as _, Mailbox as _, StreamIndex as _,
    StreamStatus, Tokens as _,
};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LARGE: &[u8] = b"a large value, canary and all";

fn protection() -> Protection {
    Protection::Sealed {
        passphrase: passphrase("correct horse"),
        cost: StretchCost::FLOOR,
    }
}

/// A plain store with everything in it.
async fn full(scene: &Scene) -> (Vec<Chain>, ArtifactRef) {
    let store = scene.open();
    let mut chains = vec![Chain::of("run/a"), Chain::of("plan/p"), Chain::of("run/b")];
    chains[0].open(&store, "owner", LONG).await;
    for number in 0..20 {
        for chain in &mut chains {
            let status = StreamStatus {
                plan: "p".parse().unwrap(),
                status: "running".into(),
                label: format!("label {number}"),
            };
            let append = Append {
                status: Some(status),
                ..chain.grow(format!("canary {number}").as_bytes())
            };
            store.append(vec![append]).await.unwrap();
        }
    }
    let first = store
        .send(chains[0].run(), b"canary message".to_vec())
        .await
        .unwrap();
    store
        .send(chains[0].run(), b"canary second".to_vec())
        .await
        .unwrap();
    let answers = vec![(first, Err("canary refusal".to_owned()))];
    store
        .append(vec![Append {
            answers,
            ..chains[0].grow(b"answered")
        }])
        .await
        .unwrap();
    let grant = Grant {
        to: Principal::person("ada"),
        role: Role::Viewer,
        lifetime: None,
    };
    create(
        &store,
        &Roles::default(),
        &grant.to,
        &grant,
        Timestamp::from_millis(1),
    )
    .await
    .unwrap();
    let artifact = artifacts(scene, &store).put(LARGE.to_vec()).await.unwrap();
    (chains, artifact)
}

fn directory(scene: &Scene) -> PathBuf {
    scene.file("-artifacts")
}

fn artifacts(scene: &Scene, store: &SqliteStore) -> FileArtifacts {
    FileArtifacts::with_cipher(directory(scene), Arc::clone(store.cipher()))
}

/// That everything is there, in whichever form, and that the store goes on.
async fn check(scene: &Scene, store: &SqliteStore, chains: &[Chain], artifact: &ArtifactRef) {
    assert!(store.integrity().await.unwrap().is_empty());
    assert!(store.damage().await.unwrap().is_empty());
    assert!(store.odd_rows().await.unwrap().is_empty());
    for chain in chains {
        let records = store.read(&chain.stream, 0, 1_000).await.unwrap();
        assert_eq!(records, chain.records);
        check_chain(Head::EMPTY, &chain.stream, &records).unwrap();
        assert_eq!(store.head(&chain.stream).await.unwrap(), chain.head);
        assert_eq!(
            store
                .info(&chain.stream)
                .await
                .unwrap()
                .unwrap()
                .status
                .label,
            "label 19"
        );
    }
    assert_eq!(store.mail().await.unwrap()[0].body, b"canary second");
    let answered = planwright_engine::port::MessageId(1);
    assert_eq!(
        store.answer(answered).await.unwrap(),
        Some(Err("canary refusal".to_owned()))
    );
    assert_eq!(
        store.list().await.unwrap()[0].principal,
        Principal::person("ada")
    );
    assert_eq!(artifacts(scene, store).get(artifact).await.unwrap(), LARGE);
    let feed = store
        .feed(
            &planwright_engine::port::FeedOf::All,
            Default::default(),
            1_000,
        )
        .await
        .unwrap();
    assert_eq!(
        feed.len(),
        chains
            .iter()
            .map(|chain| chain.records.len())
            .sum::<usize>()
    );
}

fn rewrite(path: PathBuf, from: Options, to: &Protection) -> Result<(), RewriteStoreError> {
    let artifacts = PathBuf::from(format!("{}-artifacts", path.display()));
    let (idle, _) = IdleStore::open(from)?.rewrite(to, &artifacts, &mut |_| ())?;
    idle.finish(&artifacts).map(drop)
}

fn holds(directory: &Path, needle: &[u8]) -> Option<PathBuf> {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else if std::fs::read(&path)
                .unwrap()
                .windows(needle.len())
                .any(|window| window == needle)
            {
                return Some(path);
            }
        }
    }
    None
}

#[tokio::test]
async fn a_store_is_encrypted_rekeyed_and_decrypted_without_losing_anything() {
    let scene = Scene::new();
    let (mut chains, artifact) = full(&scene).await;
    let before = std::fs::read(scene.path()).unwrap();
    rewrite(scene.path(), Options::new(scene.path()), &protection()).unwrap();
    assert_eq!(is_encrypted(&scene.path()).unwrap(), Some(true));
    assert_eq!(holds(scene.directory.path(), b"canary"), None);
    assert!(!scene.file("-new").exists());
    let store = scene.open_sealed();
    check(&scene, &store, &chains, &artifact).await;
    assert!(!store.is_unfinished().await.unwrap());
    chains[2].put(&store, "goes on").await;
    let next = store
        .send(chains[0].run(), b"third".to_vec())
        .await
        .unwrap();
    assert_eq!(next.0, 3, "numbers are not given twice");
    drop(store);

    // Another key for everything.
    rewrite(scene.path(), sealed(scene.path()), &protection()).unwrap();
    let store = scene.open_sealed();
    check(&scene, &store, &chains, &artifact).await;
    drop(store);

    // Another passphrase for the same key.
    let new = passphrase("battery staple");
    let idle = IdleStore::open(sealed(scene.path())).unwrap();
    idle.relock(&passphrase("correct horse"), &new, StretchCost::FLOOR)
        .unwrap();
    assert!(SqliteStore::open_with(sealed(scene.path())).is_err());
    let options = || Options {
        passphrase: Some(new.clone()),
        ..sealed(scene.path())
    };
    check(
        &scene,
        &SqliteStore::open_with(options()).unwrap(),
        &chains,
        &artifact,
    )
    .await;

    rewrite(scene.path(), options(), &Protection::Plain).unwrap();
    check(&scene, &scene.open(), &chains, &artifact).await;
    assert_eq!(std::fs::read_dir(directory(&scene)).unwrap().count(), 1);
    assert_ne!(before, std::fs::read(scene.path()).unwrap());
}

#[tokio::test]
async fn a_store_that_is_open_is_not_rewritten_and_one_that_is_rewritten_not_opened() {
    let scene = Scene::new();
    full(&scene).await;
    let store = scene.open();
    let refused = IdleStore::open(Options::new(scene.path()));
    assert!(matches!(refused, Err(RewriteStoreError::InUse)));
    drop(store);
    let idle = IdleStore::open(Options::new(scene.path())).unwrap();
    let options = Options {
        busy_timeout: std::time::Duration::from_millis(20),
        ..Options::new(scene.path())
    };
    assert!(matches!(
        SqliteStore::open_with(options),
        Err(OpenStoreError::Rewriting)
    ));
    drop(idle);
    drop(scene.open());
}

#[tokio::test]
async fn a_damaged_store_is_left_as_it_is() {
    let scene = Scene::new();
    let (_, artifact) = full(&scene).await;
    let path = artifacts(&scene, &scene.open()).path(&artifact.digest);
    std::fs::write(&path, "changed").unwrap();
    let before = std::fs::read(scene.path()).unwrap();
    let refused = rewrite(scene.path(), Options::new(scene.path()), &protection());
    assert!(
        matches!(refused, Err(RewriteStoreError::Artifact(_))),
        "{refused:?}"
    );
    std::fs::write(&path, LARGE).unwrap();
    let db = rusqlite::Connection::open(scene.path()).unwrap();
    db.execute_batch(
        "DROP TRIGGER entries_are_never_changed; UPDATE entries SET at = 9 WHERE seq = 2",
    )
    .unwrap();
    drop(db);
    let refused = rewrite(scene.path(), Options::new(scene.path()), &protection());
    assert!(
        matches!(refused, Err(RewriteStoreError::Damaged(_))),
        "{refused:?}"
    );
    assert_eq!(is_encrypted(&scene.path()).unwrap(), Some(false));
    assert!(before.len() <= std::fs::metadata(scene.path()).unwrap().len() as usize);
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_rewrites() {
    let Some(path) = told_path() else { return };
    let to_sealed = std::env::var_os("TO_SEALED").is_some();
    let from = if to_sealed {
        Options::new(&path)
    } else {
        sealed(path.clone())
    };
    rewrite(
        path,
        from,
        &if to_sealed {
            protection()
        } else {
            Protection::Plain
        },
    )
    .unwrap();
    println!("\nrewritten");
}

#[tokio::test]
async fn killed_at_any_point_one_whole_store_is_left_and_the_command_can_be_repeated() {
    for to_sealed in [true, false] {
        for point in 1.. {
            let scene = Scene::new();
            let (chains, artifact) = full(&scene).await;
            if !to_sealed {
                rewrite(scene.path(), Options::new(scene.path()), &protection()).unwrap();
            }
            let mut command = child("rewriting::child_that_rewrites", &scene.path());
            command.env("PLANWRIGHT_CRASH_AT", point.to_string());
            if to_sealed {
                command.env("TO_SEALED", "1");
            }
            let output = command.output().unwrap();
            let killed = output.status.signal() == Some(9);
            let is_sealed = is_encrypted(&scene.path()).unwrap().unwrap();
            let store = if is_sealed {
                scene.open_sealed()
            } else {
                scene.open()
            };
            check(&scene, &store, &chains, &artifact).await;
            drop(store);
            if is_sealed != to_sealed {
                assert!(killed);
                let from = if to_sealed {
                    Options::new(scene.path())
                } else {
                    sealed(scene.path())
                };
                let to = if to_sealed {
                    protection()
                } else {
                    Protection::Plain
                };
                rewrite(scene.path(), from, &to).unwrap();
            } else if to_sealed {
                let idle = IdleStore::open(sealed(scene.path())).unwrap();
                idle.finish(&directory(&scene)).unwrap();
            }
            let store = if to_sealed {
                scene.open_sealed()
            } else {
                scene.open()
            };
            check(&scene, &store, &chains, &artifact).await;
            drop(store);
            if to_sealed {
                assert_eq!(
                    holds(scene.directory.path(), b"canary"),
                    None,
                    "point {point}"
                );
            }
            if !killed {
                let text = String::from_utf8(output.stdout).unwrap();
                assert!(
                    text.contains("rewritten") && point > 8,
                    "point {point}: {text}"
                );
                break;
            }
        }
    }
}
