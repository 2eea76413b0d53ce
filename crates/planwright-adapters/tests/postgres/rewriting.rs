//! Encrypting, decrypting and a new key, and being killed at every point of it.

use crate::chains::{CANARIES, Planted, check, plant};
use crate::databases::{Database, passphrase};
use planwright_adapters::postgres::{
    IdlePostgresStore, Location, NewProtection, PostgresOptions, PostgresStore,
    RewritePostgresError, is_encrypted,
};
use planwright_adapters::sqlite::{Protection, Rewritten};
use planwright_adapters::vault::StretchCost;
use planwright_engine::port::{Journal as _, Mailbox as _};
use planwright_testing::postgres::server;
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, Stdio};
use std::sync::Arc;

fn sealed_by(word: &str) -> Protection {
    Protection::Sealed {
        passphrase: passphrase(word),
        cost: StretchCost::FLOOR,
    }
}

fn plain(database: &Database) -> PostgresOptions {
    PostgresOptions::new(database.location(), false)
}

fn rewrite(from: &PostgresOptions, to: &Protection) -> Result<Rewritten, RewritePostgresError> {
    let protection = NewProtection::new(to)?;
    IdlePostgresStore::open(from)?.rewrite(protection, &mut |_| ())
}

/// A plain store with something in every table.
async fn full(database: &Database) -> Planted {
    let store = Arc::new(database.open());
    plant(&store).await
}

async fn check_opened(options: PostgresOptions, planted: &Planted) {
    let store = Arc::new(PostgresStore::open_with(options).unwrap());
    check(&store, planted).await;
}

/// The names of the files with tables in which a canary is.
fn found(database: &Database) -> Vec<String> {
    let files = server().files_of(database.name()).into_iter();
    let holds = |bytes: &[u8]| {
        let mut canaries = CANARIES.iter().chain(&["canary-waits"]);
        canaries.any(|canary| {
            let mut windows = bytes.windows(canary.len());
            windows.any(|window| window == canary.as_bytes())
        })
    };
    let held = files.filter(|file| std::fs::read(file).is_ok_and(|bytes| holds(&bytes)));
    held.map(|file| file.display().to_string()).collect()
}

#[tokio::test]
async fn a_store_is_encrypted_rekeyed_and_decrypted_without_losing_anything() {
    let database = Database::new();
    let mut planted = full(&database).await;
    // As the server does by itself from time to time. What it notes is not removed with the rows.
    database.sql("ANALYZE");
    assert!(!found(&database).is_empty());
    let rewritten = rewrite(&plain(&database), &sealed_by("correct horse")).unwrap();
    let entries: usize = planted.chains.iter().map(|chain| chain.records.len()).sum();
    assert_eq!(
        (rewritten.streams, rewritten.entries, rewritten.artifacts),
        (2, entries as u64, 2)
    );
    assert_eq!(is_encrypted(&database.location()).unwrap(), Some(true));
    // Not even in rows that are dead.
    assert_eq!(found(&database), Vec::<String>::new());
    let store = Arc::new(database.open_sealed());
    check(&store, &planted).await;
    planted.chains[1].put(&store, "goes on").await;
    let run = planted.chains[0].run();
    let next = store.send(run, b"third".to_vec()).await.unwrap();
    assert_eq!(next.0, 3, "numbers are not given twice");
    drop(store);

    // Another key for everything.
    rewrite(&database.sealed(), &sealed_by("another horse")).unwrap();
    assert!(PostgresStore::open_with(database.sealed()).is_err());
    let options = |word: &str| PostgresOptions {
        passphrase: Some(passphrase(word)),
        ..database.sealed()
    };
    check_opened(options("another horse"), &planted).await;

    // Another passphrase for the same key.
    let wrapped = || database.sql("SELECT encode(wrapped_key, 'hex') FROM planwright.vault");
    let before = wrapped();
    let idle = IdlePostgresStore::open(&options("another horse")).unwrap();
    let old = passphrase("another horse");
    let new = passphrase("battery staple");
    idle.relock(&old, &new, StretchCost::FLOOR).unwrap();
    assert_ne!(before, wrapped());
    assert!(PostgresStore::open_with(options("another horse")).is_err());
    check_opened(options("battery staple"), &planted).await;

    rewrite(&options("battery staple"), &Protection::Plain).unwrap();
    check_opened(plain(&database), &planted).await;
    assert_eq!(is_encrypted(&database.location()).unwrap(), Some(false));
}

#[tokio::test]
async fn a_store_that_is_open_is_not_rewritten() {
    let database = Database::new();
    let planted = full(&database).await;
    for options in ["", "?listen=off"] {
        let url = format!("{}{options}", database.url());
        let store = PostgresStore::open(Location::parse(&url, None).unwrap(), false).unwrap();
        // A process behind a pooler is known when it owns something.
        let owner = planwright_engine::port::OwnerId("holder".to_owned());
        let run = planted.chains[0].run();
        let lease = planwright_engine::port::Leases::acquire(
            &store,
            run,
            &owner,
            std::time::Duration::from_secs(60),
        );
        let lease = lease.await.unwrap();
        let refused = rewrite(&plain(&database), &sealed_by("correct horse"));
        assert!(
            matches!(refused, Err(RewritePostgresError::InUse)),
            "{options}: {refused:?}"
        );
        planwright_engine::port::Leases::release(&store, &lease)
            .await
            .unwrap();
    }
    check_opened(plain(&database), &planted).await;
}

#[tokio::test]
async fn a_process_that_is_left_with_the_old_key_writes_nothing() {
    let database = Database::new();
    let mut planted = full(&database).await;
    // Through a pooler, a process that owns nothing is not noticed.
    let url = format!("{}?listen=off", database.url());
    let left = PostgresStore::open(Location::parse(&url, None).unwrap(), false).unwrap();
    rewrite(&plain(&database), &sealed_by("correct horse")).unwrap();
    let append = planted.chains[1].clone().grow("canary");
    let refused = left.append(vec![append]).await.unwrap_err().to_string();
    assert!(refused.contains("another key"), "{refused}");
    let sent = left.send(planted.chains[0].run(), b"canary".to_vec()).await;
    assert!(sent.is_err(), "{sent:?}");
    drop(left);
    let store = database.open_sealed();
    planted.chains[1].put(&store, "goes on").await;
    drop(store);
    check_opened(database.sealed(), &planted).await;
}

#[tokio::test]
async fn a_damaged_store_is_left_as_it_is() {
    let database = Database::new();
    let planted = full(&database).await;
    for (attack, undo) in [
        (
            "UPDATE planwright.entries SET at = at + 1 WHERE seq = 2",
            "UPDATE planwright.entries SET at = at - 1 WHERE seq = 2",
        ),
        (
            "UPDATE planwright.artifacts SET bytes = bytes || '\\x00'",
            "UPDATE planwright.artifacts SET bytes = substr(bytes, 1, length(bytes) - 1)",
        ),
        (
            "UPDATE planwright.messages SET body = body || '\\x00'",
            "UPDATE planwright.messages SET body = substr(body, 1, length(body) - 1)",
        ),
        (
            "INSERT INTO planwright.entries (stream, seq, at, epoch, hash, body) \
             SELECT 99, 1, at, epoch, hash, body FROM planwright.entries LIMIT 1",
            "DELETE FROM planwright.entries WHERE stream = 99",
        ),
    ] {
        database.sql(attack);
        let refused = rewrite(&plain(&database), &sealed_by("correct horse"));
        assert!(
            matches!(refused, Err(RewritePostgresError::Damaged(_))),
            "{attack}: {refused:?}"
        );
        database.sql(undo);
    }
    assert_eq!(is_encrypted(&database.location()).unwrap(), Some(false));
    check_opened(plain(&database), &planted).await;
}

const URL: &str = "PLANWRIGHT_POSTGRES_CHILD";
const TO_SEALED: &str = "PLANWRIGHT_POSTGRES_TO_SEALED";

#[test]
#[ignore = "another test starts it, in a process of its own"]
fn child_that_rewrites() {
    let location = Location::parse(&std::env::var(URL).unwrap(), None).unwrap();
    let plain = PostgresOptions::new(location, false);
    let done = match std::env::var_os(TO_SEALED) {
        Some(_) => rewrite(&plain, &sealed_by("correct horse")),
        None => {
            let sealed = PostgresOptions {
                passphrase: Some(passphrase("correct horse")),
                ..plain
            };
            rewrite(&sealed, &Protection::Plain)
        }
    };
    done.unwrap();
}

#[tokio::test]
async fn killed_at_any_point_one_whole_store_is_left_and_the_command_can_be_repeated() {
    let database = Database::new();
    let planted = full(&database).await;
    // Both ways are the same code: the second one is killed where it has written everything, and later.
    for (to_sealed, first) in [(true, 1), (false, 4)] {
        for point in first.. {
            let mut command = Command::new(std::env::current_exe().unwrap());
            command
                .args(["--exact", "rewriting::child_that_rewrites", "--ignored"])
                .env(URL, database.url())
                .env("PLANWRIGHT_CRASH_AT", point.to_string())
                .stdout(Stdio::null())
                .stderr(Stdio::null());
            if to_sealed {
                command.env(TO_SEALED, "1");
            }
            let status = command.status().unwrap();
            let is_sealed = is_encrypted(&database.location()).unwrap().unwrap();
            let options = match is_sealed {
                true => database.sealed(),
                false => plain(&database),
            };
            check_opened(options, &planted).await;
            let left = database.sql(
                "SELECT count(*) FROM pg_tables WHERE schemaname = 'planwright' AND tablename = 'rewritten'",
            );
            assert_eq!(left, "0", "point {point}");
            assert_eq!(status.signal(), Some(9), "point {point}");
            if is_sealed == to_sealed {
                // It was killed after its commit, the last of six points.
                assert_eq!(point, 6);
                break;
            }
        }
    }
}
