//! Several stores on one file, as several processes have them.

use crate::scene::{Chain, LONG, Scene, owner};
use planwright_adapters::sqlite::SqliteStore;
use planwright_core::journal::{Head, check_chain};
use planwright_engine::port::{
    AcquireError, AppendError, Changes as _, Journal as _, LeaseRule, Leases as _, Mailbox as _,
};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

#[tokio::test]
async fn two_stores_see_each_others_commits_at_once() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let mut chain = Chain::of("plan/p");
    for _ in 0..10 {
        chain.put(&one, "by one").await;
        assert_eq!(two.head(&chain.stream).await.unwrap(), chain.head);
        chain.put(&two, "by two").await;
        assert_eq!(one.head(&chain.stream).await.unwrap(), chain.head);
    }
    assert_eq!(
        one.read(&chain.stream, 0, 100).await.unwrap(),
        chain.records
    );
}

#[tokio::test]
async fn what_any_store_writes_about_a_plan_is_counted_and_own_runs_are_not() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let count = || one.plan_changes().unwrap();
    let mut plan = Chain::of("plan/p");
    let mut own = Chain::of("run/own");
    let mut foreign = Chain::of("run/foreign");
    for _ in 0..3 {
        let before = count();
        assert_eq!(count(), before);
        plan.put(&one, "by one").await;
        assert_ne!(count(), before);

        let before = count();
        own.put(&one, "a call").await;
        assert_eq!(count(), before);

        let before = count();
        plan.put(&two, "by two").await;
        assert_ne!(count(), before);

        // What others write is not looked into.
        let before = count();
        foreign.put(&two, "a call").await;
        assert_ne!(count(), before);

        let before = count();
        own.put(&one, "a call").await;
        plan.put(&two, "by two").await;
        own.put(&one, "a call").await;
        assert_ne!(count(), before);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_another_store_acknowledged_about_a_plan_is_counted_while_this_one_writes() {
    let scene = Scene::new();
    let one = Arc::new(scene.open());
    let two = scene.open();
    let writing = tokio::spawn({
        let one = Arc::clone(&one);
        async move {
            let mut own = Chain::of("run/own");
            loop {
                own.put(&one, "a call").await;
            }
        }
    });
    let count = async || {
        loop {
            if let Some(count) = one.plan_changes() {
                return count;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut plan = Chain::of("plan/p");
    for _ in 0..300 {
        let before = count().await;
        plan.put(&two, "by two").await;
        assert_ne!(count().await, before);
    }
    writing.abort();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stores_that_fight_for_one_stream_lose_nothing_and_never_fail() {
    let scene = Scene::new();
    let tasks: Vec<_> = (0..4)
        .map(|number| {
            let store = scene.open();
            tokio::spawn(async move {
                let mut chain = Chain::of("plan/p");
                let mut own = Chain::of(&format!("run/r{number}"));
                let mut won = 0;
                while won < 25 {
                    chain.head = store.head(&chain.stream).await.unwrap();
                    match store
                        .append(vec![chain.grow(b"fought for"), own.clone().grow(b"own")])
                        .await
                    {
                        Ok(()) => {
                            won += 1;
                            drop(own.grow(b"own"));
                        }
                        Err(AppendError::Conflict { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
                own
            })
        })
        .collect();
    let mut owns = Vec::new();
    for task in tasks {
        owns.push(task.await.unwrap());
    }
    let store = scene.open();
    let shared = Chain::of("plan/p").stream;
    let records = store.read(&shared, 0, 1_000).await.unwrap();
    assert_eq!(records.len(), 100);
    check_chain(Head::EMPTY, &shared, &records).unwrap();
    for own in owns {
        assert_eq!(
            store.read(&own.stream, 0, 1_000).await.unwrap(),
            own.records
        );
    }
    assert!(store.damage().await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_first_open_by_many_at_once_succeeds() {
    let scene = Scene::new();
    let path = Arc::new(scene.path());
    let tasks: Vec<_> = (0..8)
        .map(|number| {
            let path = Arc::clone(&path);
            tokio::task::spawn_blocking(move || (number, SqliteStore::open(&path).unwrap()))
        })
        .collect();
    for task in tasks {
        let (number, store) = task.await.unwrap();
        Chain::of(&format!("run/r{number}"))
            .put(&store, "one")
            .await;
    }
    assert_eq!(scene.open().streams().await.unwrap().len(), 8);
}

#[tokio::test]
async fn a_commit_of_another_store_wakes_those_who_wait() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let mut chain = Chain::of("run/r");
    let mut changes = one.changes();
    for _ in 0..3 {
        changes.mark_unchanged();
        chain.put(&two, "by two").await;
        // Less than the safety tick: it is the notice that wakes.
        tokio::time::timeout(Duration::from_millis(500), changes.changed())
            .await
            .unwrap()
            .unwrap();
        changes.mark_unchanged();
        two.send(chain.run(), b"pause".to_vec()).await.unwrap();
        tokio::time::timeout(Duration::from_millis(500), changes.changed())
            .await
            .unwrap()
            .unwrap();
    }
}

#[tokio::test]
async fn a_run_is_held_across_stores_until_its_store_is_gone() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let mut chain = Chain::of("run/r");
    chain.open(&one, "one", LONG).await;
    assert_eq!(
        two.lease(chain.run()).await.unwrap().unwrap().owner,
        owner("one")
    );
    let refused = two.acquire(chain.run(), &owner("two"), LONG).await;
    assert!(
        matches!(refused, Err(AcquireError::Held { .. })),
        "{refused:?}"
    );
    drop(one);
    assert_eq!(two.lease(chain.run()).await.unwrap(), None);
    assert_eq!(
        two.acquire(chain.run(), &owner("two"), LONG)
            .await
            .unwrap()
            .epoch,
        2
    );
    chain
        .try_put(&two, LeaseRule::Held { epoch: 2 })
        .await
        .unwrap();
}

#[tokio::test]
async fn an_owner_id_belongs_to_one_store() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let mut first = Chain::of("run/first");
    let mut second = Chain::of("run/second");
    first.open(&one, "same", LONG).await;
    let refused = second
        .try_put(
            &two,
            LeaseRule::Open {
                owner: owner("same"),
                ttl: LONG,
            },
        )
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("in use by another store")
    );
    let refused = second
        .try_put(
            &two,
            LeaseRule::Open {
                owner: owner("../up"),
                ttl: LONG,
            },
        )
        .await;
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("cannot be an owner id")
    );
    second.open(&two, "other", LONG).await;
}

#[tokio::test]
async fn a_takeover_while_the_owner_is_paused_fences_it() {
    let scene = Scene::new();
    let one = scene.open();
    let two = scene.open();
    let mut chain = Chain::of("run/r");
    chain.open(&one, "one", Duration::ZERO).await;
    let mut zombie = chain.clone();
    assert_eq!(
        two.acquire(chain.run(), &owner("two"), LONG)
            .await
            .unwrap()
            .epoch,
        2
    );
    chain
        .try_put(&two, LeaseRule::Held { epoch: 2 })
        .await
        .unwrap();
    let refused = zombie.try_put(&one, LeaseRule::Held { epoch: 1 }).await;
    assert!(
        matches!(
            refused,
            Err(AppendError::Fenced {
                ours: 1,
                found: 2,
                ..
            })
        ),
        "{refused:?}"
    );
}

const PATH: &str = "PLANWRIGHT_TEST_STORE";

/// Runs another test of this binary in a process of its own.
pub(crate) fn child(test: &str, path: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([
        "--exact",
        test,
        "--ignored",
        "--nocapture",
        "--test-threads=1",
    ]);
    command
        .env(PATH, path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command
}

/// The store a child was told to use.
pub(crate) fn told_path() -> Option<std::path::PathBuf> {
    std::env::var_os(PATH).map(Into::into)
}

pub(crate) fn wait_for(child: &mut Child, word: &str) {
    let out = child.stdout.as_mut().unwrap();
    let found = BufReader::new(out)
        .lines()
        .any(|line| line.unwrap().contains(word));
    assert!(found, "the child ended without saying {word}");
}

#[tokio::test]
#[ignore = "another test starts it, in a process of its own"]
async fn child_that_holds_a_run() {
    let Some(path) = told_path() else { return };
    let store = SqliteStore::open(&path).unwrap();
    Chain::of("run/r").open(&store, "child", LONG).await;
    println!("\nholding");
    std::future::pending::<()>().await;
}

#[tokio::test]
async fn the_run_of_a_killed_process_is_taken_over_at_once() {
    let scene = Scene::new();
    let store = scene.open();
    let mut child = child("sharing::child_that_holds_a_run", &scene.path())
        .spawn()
        .unwrap();
    wait_for(&mut child, "holding");
    let mut chain = Chain::of("run/r");
    let refused = store.acquire(chain.run(), &owner("parent"), LONG).await;
    assert!(
        matches!(refused, Err(AcquireError::Held { .. })),
        "{refused:?}"
    );
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(store.lease(chain.run()).await.unwrap(), None);
    assert_eq!(
        store
            .acquire(chain.run(), &owner("parent"), LONG)
            .await
            .unwrap()
            .epoch,
        2
    );
    assert!(
        !scene.file(".owners").join("child").exists(),
        "the file of the dead owner is gone"
    );
    chain.head = store.head(&chain.stream).await.unwrap();
    chain
        .try_put(&store, LeaseRule::Held { epoch: 2 })
        .await
        .unwrap();
}
