//! Damage on disk: it is noticed, named exactly, and stays where it is.

use crate::scene::{Chain, LONG, Scene, owner};
use planwright_adapters::sqlite::{Loss, Options, SqliteStore};
use planwright_core::journal::{Head, check_chain};
use planwright_engine::port::{AcquireError, AppendError, Journal as _, Leases as _, StoreError};
use planwright_testing::dice::Dice;
use std::path::Path;

const SUFFIXES: [&str; 3] = ["", "-wal", "-heads"];
const TRIALS: u64 = 2_400;

/// What the files of a store held, to be put back changed.
#[derive(Clone)]
struct Files([Vec<u8>; 3]);

impl Files {
    fn of(scene: &Scene) -> Self {
        Self(SUFFIXES.map(|suffix| std::fs::read(scene.file(suffix)).unwrap()))
    }

    fn write(&self, scene: &Scene) {
        for (suffix, bytes) in SUFFIXES.iter().zip(&self.0) {
            std::fs::write(scene.file(suffix), bytes).unwrap();
        }
    }
}

/// A log whose first half ends after `early` is complete and whose second half belongs to `late`.
async fn early_and_late(scene: &Scene) -> (Chain, Chain, usize) {
    let store = scene.open();
    scene.empty_log();
    let mut early = Chain::of("run/early");
    let mut late = Chain::of("run/late");
    for _ in 0..5 {
        early.put(&store, "early").await;
        late.put(&store, "late").await;
    }
    let middle = std::fs::metadata(scene.file("-wal")).unwrap().len();
    for _ in 0..3 {
        late.put(&store, "later").await;
    }
    (early, late, usize::try_from(middle).unwrap())
}

#[tokio::test]
async fn a_cut_log_damages_the_stream_that_lost_and_no_other() {
    let scene = Scene::new();
    let (mut early, mut late, middle) = early_and_late(&scene).await;
    let mut files = Files::of(&scene);
    files.0[1].truncate(middle);
    let cut = Scene::new();
    files.write(&cut);
    let store = cut.open();

    let loss = Loss {
        stream: "run/late".to_owned(),
        present: 5,
        promised: 8,
    };
    assert_eq!(store.damage().await.unwrap(), [loss]);
    for error in [
        store.read(&late.stream, 0, 10).await.unwrap_err(),
        store.head(&late.stream).await.unwrap_err(),
    ] {
        let text = error.to_string();
        assert!(
            matches!(error, StoreError::Damaged { .. }) && text.contains("6 to 8 are lost"),
            "{text}"
        );
    }
    let refused = store.append(vec![late.grow(b"more")]).await;
    assert!(
        matches!(refused, Err(AppendError::Store(StoreError::Damaged { .. }))),
        "{refused:?}"
    );
    let refused = store.acquire(late.run(), &owner("a"), LONG).await;
    assert!(
        matches!(
            refused,
            Err(AcquireError::Store(StoreError::Damaged { .. }))
        ),
        "{refused:?}"
    );
    assert_eq!(
        store.read_remains(&late.stream, 0, 10).await.unwrap(),
        late.records[..5]
    );

    assert_eq!(
        store.read(&early.stream, 0, 10).await.unwrap(),
        early.records
    );
    early.put(&store, "goes on").await;
    drop(store);
    let store = cut.open();
    assert_eq!(store.head(&early.stream).await.unwrap(), early.head);
    assert_eq!(
        store.damage().await.unwrap().len(),
        1,
        "and it is still known the next time"
    );
}

#[tokio::test]
async fn a_lost_log_is_noticed_for_every_stream() {
    let scene = Scene::new();
    early_and_late(&scene).await;
    let mut files = Files::of(&scene);
    files.0[1].clear();
    let cut = Scene::new();
    files.write(&cut);
    let store = cut.open();
    let lost: Vec<_> = store
        .damage()
        .await
        .unwrap()
        .into_iter()
        .map(|loss| (loss.stream, loss.promised))
        .collect();
    assert_eq!(
        lost,
        [("run/early".to_owned(), 5), ("run/late".to_owned(), 8)]
    );
    Chain::of("run/new").put(&store, "a fresh run works").await;
}

#[tokio::test]
async fn a_torn_record_of_the_heads_file_is_ignored() {
    let scene = Scene::new();
    let (early, mut late, _) = early_and_late(&scene).await;
    let mut files = Files::of(&scene);
    let whole = files.0[2].len();
    files.0[2].truncate(whole - 50);
    let torn = Scene::new();
    files.write(&torn);
    let store = torn.open();
    assert!(store.damage().await.unwrap().is_empty());
    assert_eq!(
        store.read(&early.stream, 0, 10).await.unwrap(),
        early.records
    );
    late.put(&store, "and what follows is anchored again").await;
    drop(store);
    let mut files = Files::of(&torn);
    files.0[1].clear();
    files.write(&torn);
    let lost = torn.open().damage().await.unwrap();
    assert!(
        lost.iter()
            .any(|loss| loss.stream == "run/late" && loss.promised == 9),
        "{lost:?}"
    );
}

#[tokio::test]
async fn the_heads_file_is_cut_and_losses_are_remembered() {
    let scene = Scene::new();
    let (mut early, late, middle) = early_and_late(&scene).await;
    let mut files = Files::of(&scene);
    files.0[1].truncate(middle);
    let cut = Scene::new();
    files.write(&cut);
    let options = Options {
        max_heads_bytes: 2 * 1024,
        ..Options::new(cut.path())
    };
    let store = SqliteStore::open_with(options).unwrap();
    let mut largest = 0;
    for _ in 0..300 {
        early.put(&store, "more").await;
        largest = largest.max(std::fs::metadata(cut.file("-heads")).unwrap().len());
    }
    drop(store);
    assert!(largest < 20 * 1024, "{largest} bytes");
    let store = cut.open();
    assert_eq!(store.damage().await.unwrap().len(), 1);
    assert!(matches!(
        store.head(&late.stream).await,
        Err(StoreError::Damaged { .. })
    ));
    assert_eq!(
        store.read(&early.stream, 0, 1_000).await.unwrap(),
        early.records
    );
}

/// The caller commits on its own thread here, and the writer's thread has to be asked.
#[tokio::test]
async fn the_log_stays_short_while_a_run_is_alone() {
    let scene = Scene::new();
    let store = scene.open();
    let mut chain = Chain::of("run/r");
    let body = "x".repeat(60_000);
    let mut largest = 0;
    // 15 pages each. Without a checkpoint the log would end with 6,000 of them.
    for _ in 0..400 {
        chain.put(&store, &body).await;
        largest = largest.max(std::fs::metadata(scene.file("-wal")).unwrap().len());
    }
    let pages = largest / (4096 + 24);
    assert!((500..3_000).contains(&pages), "{pages} pages");
}

/// Streams of several sizes, half of them in the main file, half in the log.
async fn original() -> (Scene, Vec<Chain>) {
    let scene = Scene::new();
    let mut chains: Vec<_> = (0..6)
        .map(|number| Chain::of(&format!("run/r{number}")))
        .collect();
    for round in 0..8 {
        let store = scene.open();
        for (number, chain) in chains.iter_mut().enumerate() {
            let body = format!("{round} of {number} ").repeat(1 + number * number * 12);
            chain.put(&store, &body).await;
        }
        drop(store);
        if round == 4 {
            let db = rusqlite::Connection::open(scene.path()).unwrap();
            db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
                .unwrap();
        }
    }
    (scene, chains)
}

/// Whether anything is reported about a store whose files were changed. Panics if a journal was
/// changed silently.
async fn is_noticed(path: &Path, chains: &[Chain]) -> bool {
    let Ok(store) = SqliteStore::open(path) else {
        return true;
    };
    let mut noticed = !store
        .integrity()
        .await
        .is_ok_and(|problems| problems.is_empty());
    noticed |= !store.damage().await.is_ok_and(|losses| losses.is_empty());
    for chain in chains {
        match store.read(&chain.stream, 0, 1_000).await {
            Err(_) => noticed = true,
            Ok(records) if check_chain(Head::EMPTY, &chain.stream, &records).is_err() => {
                noticed = true;
            }
            Ok(records) => assert!(
                records == chain.records,
                "{} differs silently",
                chain.stream
            ),
        }
    }
    noticed
}

#[tokio::test]
async fn random_cuts_and_flips_never_change_a_journal_silently() {
    let (scene, chains) = original().await;
    let files = Files::of(&scene);
    let trial = Scene::new();
    assert!(!{
        files.write(&trial);
        is_noticed(&trial.path(), &chains).await
    });
    let mut noticed = 0;
    for number in 0..TRIALS {
        let mut dice = Dice::congruential(number);
        let mut files = files.clone();
        let bytes = &mut files.0[dice.below(2)];
        let at = dice.below(bytes.len());
        match dice.below(4) {
            0 => bytes.truncate(at),
            1 => bytes[at] = bytes[at].wrapping_add(1 + u8::try_from(dice.below(255)).unwrap()),
            2 => bytes[at] ^= 1 << dice.below(8),
            _ => {
                let end = (at + 1 + dice.below(600)).min(bytes.len());
                bytes[at..end].fill(u8::try_from(dice.below(256)).unwrap());
            }
        }
        drop(std::fs::remove_file(trial.file("-shm")));
        files.write(&trial);
        noticed += u32::from(is_noticed(&trial.path(), &chains).await);
    }
    assert!(
        u64::from(noticed) > TRIALS / 4,
        "only {noticed} of {TRIALS} were noticed"
    );
}
